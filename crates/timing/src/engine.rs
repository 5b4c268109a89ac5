//! The event engine: the definition of correct timing.
//!
//! A read takes command cycles on the channel, tR on the die, and a transfer out; a program a transfer in, then tPROG; an
//! erase command cycles, then tBERS. A die serves one operation at a time (two where cache operations are on: one in the
//! cells, one in the cache register), a channel one transfer, the host link one transfer each way. Who goes next is
//! decided by class, then by order of arrival.
//!
//! At one instant: events happen in the order in which they began; what an event frees goes to those that wait already,
//! then what it releases arrives, in the order of numbers. Operations issued together take effect one by one. A die is
//! taken before its channel, so an operation that waits for the bus holds its die; only cells at work are suspended, and
//! only while the cache register is empty. Busy time is booked when a resource is taken: let the drive settle before you
//! divide by elapsed time.

use crate::nodes::{NIL, Node, Nodes, Work};
use crate::resources::{Bus, Die, Phase};
use crate::{Statistics, Times};
use flashatlas_types::{Class, Dur, Layout, Op, OpId, OpKind, Plan, Ps, Tag};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A host command that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    /// Which.
    pub tag: Tag,
    /// When.
    pub at: Ps,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    /// The cells of a die are done, unless its generation has moved on.
    Cells(u32, u32),
    /// The cells of a die have stopped for a read.
    Suspended(u32, u32),
    /// A channel is free.
    Channel(u32),
    /// The host link is free, towards the drive (0) or from it (1).
    Link(u32),
    /// A timer has run out.
    Timer(u32),
}

/// Resolves plans on the resources of a drive.
#[derive(Debug)]
pub struct Engine {
    times: Times,
    now: Ps,
    events: BinaryHeap<Reverse<(Ps, u64, What)>>,
    event_count: u64,
    nodes: Nodes,
    dies: Vec<Die>,
    die_channel: Vec<u32>,
    channels: Vec<Bus>,
    links: [Bus; 2],
    statistics: Statistics,
    /// Operations that nothing holds back, in order; empty between calls.
    ready: Vec<u32>,
    finished: Vec<Finished>,
}

impl Engine {
    /// An engine with the dies, channels and blocks of `layout`, at time zero.
    pub fn new(layout: &Layout, times: Times) -> Engine {
        let dies = layout.geometry.die_count();
        let channels = layout.geometry.channels as usize;
        Engine {
            times,
            now: Ps::ZERO,
            events: BinaryHeap::with_capacity(2 * dies as usize + 64),
            event_count: 0,
            nodes: Nodes::new(layout.blocks() * layout.dies_per_frame),
            dies: vec![Die::new(); dies as usize],
            die_channel: (0..dies).map(|d| layout.channel_of(d)).collect(),
            channels: vec![Bus::new(); channels],
            links: [Bus::new(), Bus::new()],
            statistics: Statistics::new(dies as usize, channels),
            ready: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// The time up to which events were handled.
    pub fn now(&self) -> Ps {
        self.now
    }

    /// When the next event happens; now, where a command has completed that [`Engine::advance`] has not reported yet.
    #[inline]
    pub fn next_event(&self) -> Option<Ps> {
        if !self.finished.is_empty() {
            return Some(self.now);
        }
        self.events.peek().map(|e| e.0.0)
    }

    /// Operations that are not complete.
    pub fn unfinished(&self) -> usize {
        self.nodes.live
    }

    /// Every operation below this number is complete.
    pub fn oldest_unfinished(&self) -> OpId {
        if self.nodes.live == 0 { OpId(u64::MAX) } else { self.nodes.oldest() }
    }

    /// Whether an operation that was issued is complete.
    #[inline]
    pub fn is_complete(&self, op: OpId) -> bool {
        self.nodes.find(op).is_none()
    }

    /// Busy times so far.
    pub fn statistics(&mut self) -> &Statistics {
        self.statistics.dies_change(self.now, 0);
        &self.statistics
    }

    /// Forget busy times so far.
    pub fn reset_statistics(&mut self) {
        self.statistics.reset(self.now);
    }

    /// Take over the operations of `plan` at `now`, and start what can start.
    ///
    /// # Panics
    /// When `now` lies before an event that was handled already.
    pub fn issue(&mut self, now: Ps, plan: &Plan) {
        assert!(now >= self.now, "operations issued in the past");
        assert!(
            self.events.peek().map(|e| e.0.0).is_none_or(|at| at >= now),
            "events before the issue were not handled"
        );
        self.now = now;
        for (id, op, after) in plan.iter() {
            let node = self.node(id, op);
            let n = self.nodes.add(id, op, node, after);
            if self.nodes.at(n).waiting == 0 {
                self.ready.push(n);
                self.drain();
            }
        }
    }

    /// Handle every event up to and including `until`; completed host commands are appended to `out` in order.
    pub fn advance(&mut self, until: Ps, out: &mut Vec<Finished>) {
        while let Some(&Reverse((at, _, what))) = self.events.peek() {
            if at > until {
                break;
            }
            self.events.pop();
            self.now = at;
            match what {
                What::Timer(n) => self.complete(n),
                What::Link(way) => self.link_done(way),
                What::Channel(channel) => self.channel_done(channel),
                What::Cells(die, generation) => {
                    if self.dies[die as usize].generation == generation {
                        self.cells_done(die);
                        self.note_work(die);
                    }
                }
                What::Suspended(die, generation) => {
                    if self.dies[die as usize].generation == generation {
                        self.dies[die as usize].phase = Phase::Idle;
                        self.next_on_die(die);
                    }
                }
            }
            self.drain();
        }
        if until != Ps::MAX {
            self.now = self.now.max(until);
        }
        out.append(&mut self.finished);
    }

    /// What the oldest unfinished operations wait for, for the message of a run that stands still.
    pub fn explain(&self) -> String {
        let list: Vec<String> = self
            .nodes
            .unfinished()
            .take(8)
            .map(|n| {
                format!(
                    "operation {} ({:?}, die {}, block {}) waits for {} others",
                    n.id, n.work, n.die, n.block, n.waiting
                )
            })
            .collect();
        list.join("; ")
    }

    fn node(&self, id: OpId, op: &Op) -> Node {
        let t = &self.times;
        let bus = |bytes: u32| Dur::transfer(u64::from(bytes), t.channel_rate);
        let rank = t.rank[op.class as usize];
        let mut node = Node::new(id, Work::Join, rank);
        match op.kind {
            OpKind::Read { die, block, page, level, bytes } => {
                (node.work, node.die, node.block, node.page) = (Work::Read, die, block, page);
                (node.time, node.transfer) = (t.read[level as usize], bus(bytes));
                node.host_read = op.class == Class::HostRead;
            }
            OpKind::Program { die, block, page, level, bytes } => {
                (node.work, node.die, node.block, node.page) = (Work::Program, die, block, page);
                (node.time, node.transfer) = (t.program[level as usize], t.command + bus(bytes));
            }
            OpKind::Erase { die, block } => {
                (node.work, node.die, node.block) = (Work::Erase, die, block);
                node.time = t.erase;
            }
            OpKind::Memory { kind, accesses, bytes, write } => {
                node.work = Work::Timer;
                node.time = t.memory_time(kind, accesses, bytes, write);
            }
            OpKind::Link { inbound, bytes } => {
                node.work = if inbound { Work::LinkIn } else { Work::LinkOut };
                node.time = Dur::transfer(bytes, t.link_rate);
            }
            OpKind::Delay(time) => (node.work, node.time) = (Work::Timer, time),
            OpKind::Join => {}
            OpKind::Complete(tag) => (node.work, node.tag) = (Work::Complete, tag),
        }
        node
    }

    #[inline]
    fn at(&mut self, at: Ps, what: What) {
        self.event_count += 1;
        self.events.push(Reverse((at, self.event_count, what)));
    }

    /// Start or queue everything that nothing holds back.
    fn drain(&mut self) {
        let mut next = 0;
        while next < self.ready.len() {
            let n = self.ready[next];
            next += 1;
            let node = self.nodes.at(n);
            match node.work {
                Work::Read | Work::Program | Work::Erase => self.queue_on_die(n),
                Work::Timer if node.time > Dur::ZERO => self.at(self.now.after(node.time), What::Timer(n)),
                Work::LinkIn | Work::LinkOut if node.time > Dur::ZERO => self.queue_on_link(n),
                _ => self.complete(n),
            }
        }
        self.ready.clear();
    }

    fn complete(&mut self, n: u32) {
        let node = self.nodes.at(n);
        if node.work == Work::Complete {
            self.finished.push(Finished { tag: node.tag, at: self.now });
        }
        self.nodes.remove(n, &mut self.ready);
    }

    // ---- the host link

    fn way(&self, work: Work) -> u32 {
        u32::from(self.times.full_duplex && work == Work::LinkOut)
    }

    fn queue_on_link(&mut self, n: u32) {
        let way = self.way(self.nodes.at(n).work);
        self.links[way as usize].queue.push(&mut self.nodes, n);
        self.next_on_link(way);
    }

    fn next_on_link(&mut self, way: u32) {
        let link = &mut self.links[way as usize];
        if link.current != NIL {
            return;
        }
        let Some(n) = link.queue.first() else { return };
        link.queue.pop(&self.nodes, n);
        link.current = n;
        let node = self.nodes.at(n);
        let (time, out) = (node.time, usize::from(node.work == Work::LinkOut));
        self.statistics.link_busy[out] = self.statistics.link_busy[out] + time;
        self.at(self.now.after(time), What::Link(way));
    }

    fn link_done(&mut self, way: u32) {
        let n = std::mem::replace(&mut self.links[way as usize].current, NIL);
        self.complete(n);
        self.next_on_link(way);
    }

    // ---- channels

    fn queue_on_channel(&mut self, n: u32) {
        let channel = self.die_channel[self.nodes.at(n).die as usize];
        self.channels[channel as usize].queue.push(&mut self.nodes, n);
        self.next_on_channel(channel);
    }

    fn next_on_channel(&mut self, channel: u32) {
        let bus = &mut self.channels[channel as usize];
        if bus.current != NIL {
            return;
        }
        let Some(n) = bus.queue.first() else { return };
        bus.queue.pop(&self.nodes, n);
        bus.current = n;
        let time = self.channel_time(n);
        let busy = &mut self.statistics.channel_busy[channel as usize];
        *busy = *busy + time;
        self.at(self.now.after(time), What::Channel(channel));
    }

    /// A read that is not sensed yet, and an erase, put their command on the channel; others their data.
    fn channel_time(&self, n: u32) -> Dur {
        let node = self.nodes.at(n);
        let command = node.work == Work::Erase || (node.work == Work::Read && !node.sensed);
        if command { self.times.command } else { node.transfer }
    }

    fn channel_done(&mut self, channel: u32) {
        let n = std::mem::replace(&mut self.channels[channel as usize].current, NIL);
        self.on_channel_done(n);
        self.next_on_channel(channel);
    }

    fn on_channel_done(&mut self, n: u32) {
        let Node { die: d, work, sensed, .. } = *self.nodes.at(n);
        let die = &mut self.dies[d as usize];
        match work {
            Work::Read if sensed => {
                if die.cached == n {
                    die.cached = NIL;
                    if die.phase == Phase::WaitCache {
                        self.read_to_cache(d);
                    }
                } else {
                    die.current = NIL;
                    die.phase = Phase::Idle;
                }
                self.complete(n);
                self.next_on_die(d);
            }
            Work::Program if die.cached == n => {
                die.loaded = true;
                if die.current == NIL {
                    self.promote(d);
                }
            }
            _ => self.start_cells(d),
        }
        self.note_work(d);
    }

    // ---- dies

    fn queue_on_die(&mut self, n: u32) {
        let d = self.nodes.at(n).die;
        let die = &mut self.dies[d as usize];
        die.queue.push(&mut self.nodes, n);
        if die.current == NIL && die.phase == Phase::Idle {
            self.next_on_die(d);
        } else if self.nodes.at(n).host_read {
            self.try_suspend(d);
        } else {
            self.try_preload(d);
        }
        self.note_work(d);
    }

    /// Give an idle die its next operation.
    fn next_on_die(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        if die.current != NIL || die.phase != Phase::Idle {
            return;
        }
        let next = if die.suspended != NIL {
            match die.queue.first_host_read(&self.nodes) {
                Some(read) => Some(read),
                None if die.cached == NIL => return self.resume(d),
                None => None,
            }
        } else if die.cached != NIL {
            // the cache register still holds a page on its way out: only another read can go beside it
            die.queue
                .first()
                .filter(|&n| self.nodes.at(n).work == Work::Read && self.nodes.at(die.cached).work == Work::Read)
        } else {
            die.queue.first()
        };
        if let Some(n) = next {
            self.start(d, n);
        }
    }

    /// Keep the count of dies at work.
    fn note_work(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        let at_work = die.at_work();
        if at_work != die.counted {
            die.counted = at_work;
            self.statistics.dies_change(self.now, if at_work { 1 } else { -1 });
        }
    }

    fn start(&mut self, d: u32, n: u32) {
        let die = &mut self.dies[d as usize];
        die.queue.pop(&self.nodes, n);
        die.current = n;
        let work = self.nodes.at(n).work;
        self.release_successor(n);
        if work == Work::Program || self.times.command > Dur::ZERO {
            self.dies[d as usize].phase = Phase::Channel;
            self.use_channel(n);
        } else {
            self.start_cells(d);
        }
    }

    /// A program or erase has its die: the next one of its block may queue behind it.
    fn release_successor(&mut self, n: u32) {
        if self.nodes.at(n).work != Work::Read
            && let Some(next) = self.nodes.started(n)
        {
            self.ready.push(next);
        }
    }

    /// Put `n` on its channel; a transfer that takes no time does not queue.
    fn use_channel(&mut self, n: u32) {
        if self.channel_time(n) == Dur::ZERO { self.on_channel_done(n) } else { self.queue_on_channel(n) }
    }

    fn start_cells(&mut self, d: u32) {
        let n = self.dies[d as usize].current;
        let time = self.nodes.at(n).time;
        self.run_cells(d, time);
    }

    fn run_cells(&mut self, d: u32, time: Dur) {
        let until = self.now.after(time);
        let die = &mut self.dies[d as usize];
        die.phase = Phase::Cells { until };
        die.generation = die.generation.wrapping_add(1);
        let generation = die.generation;
        let busy = &mut self.statistics.die_busy[d as usize];
        *busy = *busy + time;
        self.at(until, What::Cells(d, generation));
        self.try_preload(d);
        if self.dies[d as usize].queue.first_host_read(&self.nodes).is_some() {
            self.try_suspend(d);
        }
    }

    fn cells_done(&mut self, d: u32) {
        let n = self.dies[d as usize].current;
        if self.nodes.at(n).work == Work::Read {
            self.nodes.at_mut(n).sensed = true;
            if !self.times.cache_read {
                self.dies[d as usize].phase = Phase::Channel;
                return self.use_channel(n);
            }
            if self.dies[d as usize].cached == NIL {
                self.read_to_cache(d);
            } else {
                self.dies[d as usize].phase = Phase::WaitCache;
            }
            return;
        }
        self.dies[d as usize].current = NIL;
        self.dies[d as usize].phase = Phase::Idle;
        self.complete(n);
        if self.dies[d as usize].loaded {
            self.promote(d);
        } else {
            self.next_on_die(d);
        }
    }

    /// The sensed page moves to the cache register and from there to the channel; the cells are free.
    fn read_to_cache(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        let n = std::mem::replace(&mut die.current, NIL);
        die.cached = n;
        die.phase = Phase::Idle;
        // the command of the next read goes before the data, or the cells would stand still until the data has left
        self.next_on_die(d);
        self.use_channel(n);
    }

    /// Cache program: while the cells program one page, the next one comes over the channel.
    fn try_preload(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        let programming = matches!(die.phase, Phase::Cells { .. }) && self.nodes.at(die.current).work == Work::Program;
        if !self.times.cache_program || !programming || die.cached != NIL || die.suspended != NIL {
            return;
        }
        let Some(n) = die.queue.first().filter(|&n| self.nodes.at(n).work == Work::Program) else { return };
        die.queue.pop(&self.nodes, n);
        die.cached = n;
        self.release_successor(n);
        self.use_channel(n);
    }

    /// The program in the cache register goes on to the cells.
    fn promote(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        die.current = std::mem::replace(&mut die.cached, NIL);
        die.loaded = false;
        self.start_cells(d);
    }

    /// A host read waits: stop a program or an erase for it, where that is on and still worth it.
    fn try_suspend(&mut self, d: u32) {
        let s = self.times.suspend;
        let die = &mut self.dies[d as usize];
        let Phase::Cells { until } = die.phase else { return };
        let node = self.nodes.at_mut(die.current);
        let allowed = match node.work {
            Work::Program => s.program,
            Work::Erase => s.erase,
            _ => false,
        };
        let remaining = until.since(self.now);
        if !allowed || node.suspends >= s.max || die.cached != NIL || die.suspended != NIL || remaining <= s.latency {
            return;
        }
        node.suspends += 1;
        die.suspended = std::mem::replace(&mut die.current, NIL);
        die.remaining = remaining;
        die.phase = Phase::Suspending;
        die.generation = die.generation.wrapping_add(1);
        let generation = die.generation;
        let busy = &mut self.statistics.die_busy[d as usize];
        *busy = Dur(busy.0 - remaining.0.min(busy.0));
        self.statistics.suspends += 1;
        self.at(self.now.after(s.latency), What::Suspended(d, generation));
    }

    fn resume(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        die.current = std::mem::replace(&mut die.suspended, NIL);
        let time = die.remaining + self.times.suspend.resume;
        self.run_cells(d, time);
    }
}
