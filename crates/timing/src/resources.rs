//! Queues by priority, dies, planes, channels, cores and the shared DRAM.

use crate::map_waits::HostRead;
use crate::nodes::{NIL, Nodes};
use crate::times::{CoreTimes, SharedDramTimes};
use flashatlas_types::{Class, DieBlock, Dur, Layout, MemoryKind, Op, OpKind, Ps, TiVec};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Queue of operations. Lower ranks go first; within a rank, the queue is first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// First and last operation of each rank.
    ends: [(u32, u32); Class::ALL.len()],
    /// For each rank, the time since which its first operation has been the first.
    since: [Ps; Class::ALL.len()],
    /// One bit for each rank, set if operations of that rank wait.
    ranks: u32,
}

impl Queue {
    pub fn new() -> Queue {
        Queue {
            ends: [(NIL, NIL); Class::ALL.len()],
            since: [Ps::ZERO; Class::ALL.len()],
            ranks: 0,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranks == 0
    }

    #[inline]
    pub fn push(&mut self, nodes: &mut Nodes, n: u32, now: Ps) {
        nodes.at_mut(n).queued = NIL;
        let rank = nodes.at(n).rank;
        let (head, tail) = &mut self.ends[rank as usize];
        if self.ranks >> rank & 1 == 0 {
            *head = n;
            self.since[rank as usize] = now;
            self.ranks |= 1 << rank;
        } else {
            nodes.at_mut(*tail).queued = n;
        }
        *tail = n;
    }

    /// Returns the operation that goes next, which is the first operation of the lowest rank.
    /// Returns `None` if no operation waits.
    ///
    /// An operation that has been the first of its rank for at least `longest` goes before lower
    /// ranks. Of several such operations, the operation that has been first for the longest time
    /// goes next. With `longest` = 0, only the rank decides.
    #[inline]
    pub fn first(&self, now: Ps, longest: Dur) -> Option<u32> {
        if longest > Dur::ZERO && !self.ranks.is_power_of_two() && self.ranks != 0 {
            return Some(self.first_passed(now, longest));
        }
        (self.ranks != 0).then(|| self.ends[self.ranks.trailing_zeros() as usize].0)
    }

    #[cold]
    fn first_passed(&self, now: Ps, longest: Dur) -> u32 {
        let waiting = (0..self.since.len()).filter(|rank| self.ranks >> rank & 1 == 1);
        let overdue = waiting.filter(|&rank| now.since(self.since[rank]) >= longest);
        let rank = overdue.min_by_key(|&rank| self.since[rank]);
        self.ends[rank.unwrap_or(self.ranks.trailing_zeros() as usize)].0
    }

    /// Returns the first host read, even if operations of lower rank wait.
    pub fn first_host_read(&self, nodes: &Nodes) -> Option<u32> {
        let mut left = self.ranks;
        while left != 0 {
            let head = self.ends[left.trailing_zeros() as usize].0;
            if nodes.at(head).host_read != HostRead::No {
                return Some(head);
            }
            left &= left - 1;
        }
        None
    }

    /// Removes an operation that is the first of its rank.
    #[inline]
    pub fn pop(&mut self, nodes: &Nodes, n: u32, now: Ps) {
        let node = nodes.at(n);
        let (head, _) = &mut self.ends[node.rank as usize];
        assert!(
            self.ranks >> node.rank & 1 == 1 && *head == n,
            "only the head of a queue leaves it"
        );
        *head = node.queued;
        self.since[node.rank as usize] = now;
        if node.queued == NIL {
            self.ranks &= !(1 << node.rank);
        }
    }

    /// Removes an operation of this rank from any place in the queue. Returns `false` if the
    /// operation is not in the queue.
    pub fn take(&mut self, nodes: &mut Nodes, n: u32, rank: u8, now: Ps) -> bool {
        if self.ranks >> rank & 1 == 0 {
            return false;
        }
        let (head, tail) = self.ends[rank as usize];
        if head == n {
            self.pop(nodes, n, now);
            return true;
        }
        let mut before = head;
        while before != tail {
            let next = nodes.at(before).queued;
            if next == n {
                nodes.at_mut(before).queued = nodes.at(n).queued;
                if tail == n {
                    self.ends[rank as usize].1 = before;
                }
                return true;
            }
            before = next;
        }
        false
    }
}

/// Activity of a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// The die does nothing.
    Idle,
    /// The die's operation waits for the channel or uses it.
    Channel,
    /// The die's cells work until this time.
    Cells { until: Ps },
    /// The die's cells are about to stop, or have stopped and wait for operations that may arrive
    /// at this instant. Reads start after that.
    Suspending,
    /// The status of a program or an erase whose cells have finished waits for the channel or uses
    /// it.
    Status,
    /// A sensed page waits until the cache register is free.
    WaitCache,
}

/// A die, with one array of cells, a page register and, for cache operations, a cache register.
#[derive(Clone, Debug)]
pub(crate) struct Die {
    pub queue: Queue,
    pub current: u32,
    pub phase: Phase,
    /// Operation that uses the cache register: a read whose data goes out, or a program whose data
    /// comes in.
    pub cached: u32,
    /// `true` if the cached program's data is in the cache register, ready for the cells.
    pub loaded: bool,
    /// Reads of other planes beside the operation `current` (`planes.rs`).
    pub planes: Vec<u32>,
    pub suspended: u32,
    /// Time before which the operation `current` may not be suspended.
    pub not_before: Ps,
    /// Time since which the operation `suspended` has been suspended, if there is such an
    /// operation.
    pub suspended_since: Ps,
    pub remaining: Dur,
    /// `true` if the statistics count this die among the dies at work.
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
            planes: Vec::new(),
            suspended: NIL,
            not_before: Ps::ZERO,
            suspended_since: Ps::ZERO,
            remaining: Dur::ZERO,
            counted: false,
        }
    }

    #[inline]
    pub fn at_work(&self) -> bool {
        self.current != NIL
            || self.cached != NIL
            || self.suspended != NIL
            || !self.planes.is_empty()
    }

    /// Returns `true` if the die is idle and no operation waits for it.
    pub fn is_vacant(&self) -> bool {
        !self.at_work() && self.phase == Phase::Idle && self.queue.is_empty()
    }
}

/// A bus, or one direction of the host link. It carries one transfer at a time.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    pub queue: Queue,
    pub current: u32,
    /// Time at which the current transfer ends.
    pub until: Ps,
}

impl Bus {
    pub fn new() -> Bus {
        Bus { queue: Queue::new(), current: NIL, until: Ps::ZERO }
    }

    /// Returns `true` if no operation uses the bus or waits for it. At the end of a transfer,
    /// operations may wait for a bus that no operation uses.
    pub fn is_vacant(&self) -> bool {
        self.current == NIL && self.queue.is_empty()
    }
}

/// The cores of the controller, which share one queue.
#[derive(Debug)]
pub(crate) struct Cores {
    pub queue: Queue,
    pub idle: u32,
    /// The times at which the cores at work end.
    pub until: Vec<Ps>,
}

impl Cores {
    pub fn new(times: CoreTimes) -> Box<Cores> {
        Box::new(Cores { queue: Queue::new(), idle: times.count, until: Vec::new() })
    }

    /// Returns the sum of the times that the cores at work still take.
    pub fn left(&self, now: Ps) -> Dur {
        Dur(self.until.iter().map(|until| until.since(now).0).sum())
    }
}

/// The DRAM that data and tables share, and its queue.
#[derive(Debug)]
pub(crate) struct SharedDram {
    times: SharedDramTimes,
    pub bus: Bus,
    /// Time that the operation of each node takes on the DRAM.
    pub of_nodes: Vec<Dur>,
}

impl SharedDram {
    pub fn new(times: SharedDramTimes) -> Box<SharedDram> {
        Box::new(SharedDram { times, bus: Bus::new(), of_nodes: Vec::new() })
    }

    /// Notes the time that an operation takes on the DRAM.
    #[cold]
    #[inline(never)]
    pub fn enter(&mut self, n: u32, op: &Op) {
        let bytes = match op.kind {
            OpKind::Read { bytes, .. } | OpKind::Program { bytes, .. } => bytes.into(),
            OpKind::Link { bytes, .. } => bytes,
            OpKind::Memory { kind: MemoryKind::Dram, accesses, bytes, .. } => {
                u64::from(accesses) * u64::from(bytes.max(self.times.burst))
            }
            _ => 0,
        };
        let n = n as usize;
        if self.of_nodes.len() <= n {
            self.of_nodes.resize(n + 1, Dur::ZERO);
        }
        self.of_nodes[n] = Dur::transfer(bytes, self.times.rate);
    }

    /// Returns the time that the transfer under way still takes, or zero if there is none.
    pub fn left(&self, now: Ps) -> Dur {
        if self.bus.current == NIL { Dur::ZERO } else { self.bus.until.since(now) }
    }
}

/// The slots of the write cache. The slots are only counted, because any free slot can serve any
/// operation.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Number of slots freed so far.
    pub freed: u64,
    /// Operations that wait, each with the number of slots that must be freed before it is
    /// released. Adding or ending a wait takes a time that is logarithmic in the number of waits.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Slots {
    /// Makes an operation wait until `count` slots have been freed.
    pub fn wait(&mut self, count: u64, n: u32) {
        self.waiting.push(Reverse((count, n)));
    }

    /// Frees slots, and appends to `ready` the operations that waited for them.
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

/// The plane of each block on a die. Planes under one frame work together, and count as one plane.
#[derive(Debug, Default)]
pub(crate) struct Planes(TiVec<DieBlock, u8>);

impl Planes {
    pub fn new(layout: &Layout) -> Planes {
        let mut on_die = vec![0u8; layout.geometry.die_count() as usize];
        let mut planes = TiVec::new();
        for lane in layout.lane_ids() {
            let first = layout.dies_of(lane)[0] as usize;
            let plane = on_die[first];
            on_die[first] += 1;
            let blocks = layout.blocks_per_lane * layout.dies_per_frame;
            planes.extend((0..blocks).map(|_| plane));
        }
        Planes(planes)
    }
    /// Returns the plane of a block.
    pub fn of(&self, block: DieBlock) -> u8 {
        self.0[block]
    }
}
