//! Queues by priority, dies and channels.

use crate::nodes::{NIL, Nodes};
use flashatlas_types::{Class, Dur, Ps};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// First in, first out within a rank; a lower rank goes first.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    ends: [(u32, u32); Class::ALL.len()],
}

impl Queue {
    pub fn new() -> Queue {
        Queue { ends: [(NIL, NIL); Class::ALL.len()] }
    }

    #[inline]
    pub fn push(&mut self, nodes: &mut Nodes, n: u32) {
        nodes.at_mut(n).queued = NIL;
        let (head, tail) = &mut self.ends[nodes.at(n).rank as usize];
        if *head == NIL {
            *head = n;
        } else {
            nodes.at_mut(*tail).queued = n;
        }
        *tail = n;
    }

    /// The operation that goes next.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.ends.iter().map(|e| e.0).find(|&head| head != NIL)
    }

    /// The first host read, whatever else waits.
    pub fn first_host_read(&self, nodes: &Nodes) -> Option<u32> {
        self.ends.iter().map(|e| e.0).find(|&head| head != NIL && nodes.at(head).host_read)
    }

    /// Take out an operation that is at the head of its rank.
    #[inline]
    pub fn pop(&mut self, nodes: &Nodes, n: u32) {
        let (head, _) = &mut self.ends[nodes.at(n).rank as usize];
        assert!(*head == n, "only the head of a queue leaves it");
        *head = nodes.at(n).queued;
    }
}

/// What a die does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing.
    Idle,
    /// Its operation waits for the channel or uses it.
    Channel,
    /// Its cells work until then.
    Cells { until: Ps },
    /// Its cells stop; reads begin then.
    Suspending,
    /// A page is sensed, and waits until the cache register is free.
    WaitCache,
}

/// A die: one array of cells, a page register and, for cache operations, a second one.
#[derive(Clone, Debug)]
pub(crate) struct Die {
    pub queue: Queue,
    pub current: u32,
    pub phase: Phase,
    /// Operation that holds the cache register: a read on its way out, or a program on its way in.
    pub cached: u32,
    /// The cached program is in the register, ready to go on.
    pub loaded: bool,
    pub suspended: u32,
    /// Since when, if there is one.
    pub suspended_since: Ps,
    pub remaining: Dur,
    /// Whether the statistics count this die among those at work.
    pub counted: bool,
}

impl Die {
    pub fn new() -> Die {
        Die {
            queue: Queue::new(),
            current: NIL,
            phase: Phase::Idle,
            cached: NIL,
            loaded: false,
            suspended: NIL,
            suspended_since: Ps::ZERO,
            remaining: Dur::ZERO,
            counted: false,
        }
    }

    pub fn at_work(&self) -> bool {
        self.current != NIL || self.cached != NIL || self.suspended != NIL
    }
}

/// A bus, or one way of the host link: one transfer at a time.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    pub queue: Queue,
    pub current: u32,
    /// When the current transfer ends.
    pub until: Ps,
}

impl Bus {
    pub fn new() -> Bus {
        Bus { queue: Queue::new(), current: NIL, until: Ps::ZERO }
    }
}

/// The slots of the write cache: they are counted, for one is as good as another.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// So far.
    pub freed: u64,
    /// Which operations wait, and until how many have been freed. A wait and its end take a time
    /// that is logarithmic in how many wait.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Slots {
    /// An operation waits until `count` slots have been freed.
    pub fn wait(&mut self, count: u64, n: u32) {
        self.waiting.push(Reverse((count, n)));
    }

    /// Slots are free again. Operations that have waited for them are appended to `ready`.
    pub fn free(&mut self, count: u64, ready: &mut Vec<u32>) {
        self.freed += count;
        while let Some(&Reverse((need, n))) = self.waiting.peek()
            && need <= self.freed
        {
            self.waiting.pop();
            ready.push(n);
        }
    }
}
