//! The event engine, which defines correct timing.
//!
//! A read takes command cycles on the channel, then tR on the die, then a transfer out. A program
//! takes a transfer in, then tPROG. An erase takes command cycles, then tBERS. A copyback takes tR
//! and tPROG with command cycles before each (`copybacks.rs`). A die serves one
//! operation at a time, or two if cache operations are on: one in the cells and one in the cache
//! register. A channel serves one transfer at a time, and the host link one transfer each way. The
//! next operation is chosen by class, then by order of arrival. If `passed_max` is set, it is the
//! longest time for which the first operation of a class lets other classes pass. A read of the map
//! becomes a host read as soon as a host read waits for it.
//!
//! At one instant, events happen in the order in which they were set. A resource that an event
//! frees goes to an operation that already waits for it. After that, the operations that the event
//! releases arrive, in the order of their numbers. Operations issued together take effect one by
//! one. An operation takes its die before its channel, so an operation that waits for the bus holds
//! its die. Only cells at work are suspended, and only while the cache register is empty. The busy
//! time of an operation is counted when the operation takes the resource. [`Engine::statistics`]
//! subtracts the part that has not passed yet.

use crate::agenda::{Agenda, Event};
use crate::map_waits::{HostRead, MapWaits};
use crate::memory::Memory;
use crate::nodes::{Copyback, NIL, Node, NodeKind, Nodes, Slab};
use crate::paths::{Paths, State, Step};
use crate::resources::{Bus, Cores, Die, Planes, SharedDram, Slots};
use crate::{CoreTimes, Statistics, Times, Trajectory};
use flashatlas_types::{
    Class, DieBlock, Dur, Layout, MemoryKind, Op, OpId, OpKind, Plan, Ps, Tag, beat,
};

/// A host command that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    /// The command.
    pub tag: Tag,
    /// Time at which the command completed.
    pub at: Ps,
}

/// Engine that times the operations of plans on the resources of a drive.
#[derive(Debug)]
pub struct Engine {
    pub(crate) times: Times,
    pub(crate) now: Ps,
    pub(crate) agenda: Agenda,
    pub(crate) nodes: Nodes,
    pub(crate) dies: Vec<Die>,
    pub(crate) die_channel: Vec<u32>,
    pub(crate) channels: Vec<Bus>,
    pub(crate) links: [Bus; 2],
    pub(crate) planes: Planes,
    memory: Option<Memory>,
    pub(crate) cores: Option<Box<Cores>>,
    pub(crate) shared_dram: Option<Box<SharedDram>>,
    /// Time up to which the time at work is counted. While no operation is unfinished, it is the
    /// time since which the drive rests.
    pub(crate) counted: Ps,
    slots: Slots,
    pub(crate) copybacks: Slab<Copyback>,
    pub(crate) statistics: Statistics,
    /// Hash of the flash operations so far and the times of their ends.
    trajectory: Trajectory,
    /// Operations that wait for no other operation, in order; empty between calls.
    pub(crate) ready: Vec<u32>,
    finished: Vec<Finished>,
    paths: Option<Box<Paths>>,
    pub(crate) map_waits: MapWaits,
}

/// Returns the kind and the value of an operation that can follow another operation in the same
/// node. Returns `None` for an operation that cannot.
///
/// An operation that can follow takes no time, and mostly waits for one operation only.
#[inline]
fn follower(kind: OpKind) -> Option<(NodeKind, u64)> {
    match kind {
        OpKind::Complete(tag) => Some((NodeKind::Complete, tag.0)),
        OpKind::FreeSlots(count) => Some((NodeKind::FreeSlots, count.into())),
        _ => None,
    }
}

/// Fills in the work of an operation, and the time that it takes.
#[inline]
fn describe(t: &Times, op: &Op, node: &mut Node) {
    let bus = |bytes: u32| Dur::transfer(u64::from(bytes), t.channel_rate);
    node.rank = t.rank[op.class as usize];
    match op.kind {
        OpKind::Read { die, block, page, level, bytes, .. } => {
            (node.work, node.die, node.block, node.page) = (NodeKind::Read, die, block, page);
            (node.time, node.level) = (t.status + bus(bytes), level);
            node.host_read = match op.class {
                Class::HostRead => HostRead::OfItsData,
                _ => HostRead::No,
            };
        }
        OpKind::Program { die, block, page, level, bytes } => {
            (node.work, node.die, node.block, node.page) = (NodeKind::Program, die, block, page);
            (node.time, node.level) = (t.command + bus(bytes), level);
        }
        OpKind::Copyback { die, block, page, level, bytes, .. } => {
            (node.work, node.die, node.block, node.page) = (NodeKind::Copyback, die, block, page);
            (node.time, node.level) = (t.command + bus(bytes), level);
        }
        OpKind::Erase { die, block } => {
            (node.work, node.die, node.block) = (NodeKind::Erase, die, block);
        }
        OpKind::Memory { kind, accesses, bytes, write } => {
            let shares = kind == MemoryKind::Dram && t.shared_dram.is_some();
            node.work = if shares { NodeKind::Dram } else { NodeKind::Timer };
            node.time = t.memory_time(kind, accesses, bytes, write);
        }
        OpKind::Link { inbound, bytes } => {
            node.work = if inbound { NodeKind::LinkIn } else { NodeKind::LinkOut };
            node.time = Dur::transfer(bytes, t.link_rate);
        }
        OpKind::Core(time) => (node.work, node.time) = (NodeKind::Core, time),
        OpKind::Delay(time) | OpKind::Throttle(time) => {
            (node.work, node.time) = (NodeKind::Timer, time);
        }
        OpKind::Join => {}
        OpKind::Dram { .. } => node.work = NodeKind::Dram,
        OpKind::Complete(_) | OpKind::FreeSlots(_) => {
            (node.work, node.value) = follower(op.kind).expect("the operation takes no time");
        }
        OpKind::AwaitSlots(count) => (node.work, node.value) = (NodeKind::AwaitSlots, count),
    }
}

impl Engine {
    /// Returns an engine with the dies, channels and blocks of `layout`, at time zero.
    pub fn new(layout: &Layout, times: Times) -> Engine {
        let dies = layout.geometry.die_count();
        let channels = layout.geometry.channels as usize;
        let memory = times.dram.as_ref().map(Memory::new);
        let cores = times.cores.map(Cores::new);
        let shared_dram = times.shared_dram.map(SharedDram::new);
        let planes =
            if times.plane_reads.is_some() { Planes::new(layout) } else { Planes::default() };
        let mut statistics = Statistics::new(dies as usize, channels);
        statistics.cores = times.cores.map_or(0, CoreTimes::number);
        statistics.dram = memory.is_some().then(Box::default);
        statistics.shared_dram = shared_dram.is_some().then_some(Dur::ZERO);
        Engine {
            times,
            now: Ps::ZERO,
            agenda: Agenda::new(dies as usize),
            nodes: Nodes::new(layout.blocks() * layout.dies_per_frame),
            dies: vec![Die::new(); dies as usize],
            die_channel: (0..dies).map(|d| layout.channel_of(d)).collect(),
            channels: vec![Bus::new(); channels],
            links: [Bus::new(), Bus::new()],
            planes,
            memory,
            cores,
            shared_dram,
            counted: Ps::ZERO,
            slots: Slots::default(),
            copybacks: Slab::default(),
            statistics,
            trajectory: Trajectory::default(),
            ready: Vec::new(),
            finished: Vec::new(),
            paths: None,
            map_waits: MapWaits::default(),
        }
    }

    /// Begins to record critical paths. No operation may be unfinished.
    pub fn keep_paths(&mut self) {
        assert!(self.nodes.live == 0, "paths begin with an engine that is idle");
        self.paths = Some(Box::new(Paths::new(self.dies.len())));
    }

    /// Returns the critical path to the command `tag` that completed at `at`. The path begins at
    /// `since`, and its latest step comes first.
    ///
    /// Without a tag, the path leads to a command that completed at `at`: the command whose first
    /// operation was issued earliest. Returns `None` if no such command completed at `at`, or if
    /// paths are not recorded.
    pub fn path(&self, tag: Option<Tag>, at: Ps, since: Ps) -> Option<Vec<Step>> {
        self.paths.as_ref()?.to(tag, at, since)
    }

    /// Removes the record of operations that ended before `before`. After this call, no path may be
    /// requested that begins earlier.
    pub fn forget_paths(&mut self, before: Ps) {
        if let Some(paths) = &mut self.paths {
            paths.forget(before);
        }
    }

    /// Calls `tell` with the paths if they are recorded. Otherwise this function costs one
    /// comparison.
    #[inline]
    pub(crate) fn note(&mut self, tell: impl FnOnce(&mut Paths, &Engine)) {
        #[cold]
        #[inline(never)]
        fn told(engine: &mut Engine, tell: impl FnOnce(&mut Paths, &Engine)) {
            let mut paths = engine.paths.take().expect("the paths are kept");
            tell(&mut paths, engine);
            engine.paths = Some(paths);
        }
        if self.paths.is_some() {
            told(self, tell);
        }
    }

    /// Notes that an operation enters a state.
    #[inline]
    pub(crate) fn state(&mut self, n: u32, state: State) {
        self.note(|paths, engine| paths.state(engine.nodes.at(n).id, state, engine.now));
    }

    /// Notes which operation occupies a die.
    #[inline]
    pub(crate) fn note_occupant(&mut self, d: u32) {
        self.note(|paths, engine| {
            let die = &engine.dies[d as usize];
            let holder = [die.current, die.cached, die.suspended].into_iter().find(|&n| n != NIL);
            paths.occupied(d, holder.map(|n| engine.nodes.at(n).id), engine.now);
        });
    }

    /// Notes that operation `by` was the last operation that the operations of `ready` from index
    /// `first` on waited for.
    #[inline]
    pub(crate) fn note_released(&mut self, first: usize, by: OpId) {
        self.note(|paths, engine| {
            for &n in &engine.ready[first..] {
                paths.released(engine.nodes.at(n).id, by, engine.now);
            }
        });
    }

    /// Returns the time up to which all events were handled.
    pub fn now(&self) -> Ps {
        self.now
    }

    /// Returns the time of the next event, or `None` if there is none. If [`Engine::advance`] still
    /// has to report a completed command, the present time is returned.
    #[inline]
    pub fn next_event(&self) -> Option<Ps> {
        if !self.finished.is_empty() {
            return Some(self.now);
        }
        self.agenda.next_at()
    }

    /// Returns the number of operations that are not complete.
    pub fn unfinished(&self) -> usize {
        self.nodes.live
    }

    /// Returns the number of the oldest unfinished operation, or `u64::MAX` if there is none.
    pub fn oldest_unfinished(&self) -> OpId {
        if self.nodes.live == 0 { OpId(u64::MAX) } else { self.nodes.oldest() }
    }

    /// Returns `true` if an operation that was issued is complete.
    #[inline]
    pub fn is_complete(&self, op: OpId) -> bool {
        self.nodes.find(op).is_none()
    }

    /// Returns the number of write cache slots that were freed so far.
    pub fn freed_slots(&self) -> u64 {
        self.slots.freed
    }

    /// Returns the newest unfinished program of a page that was issued before operation `before`,
    /// or `None` if there is none.
    pub fn program_of(&self, block: DieBlock, page: u32, before: OpId) -> Option<OpId> {
        self.nodes.program_of(block, page, before).map(|n| self.nodes.at(n).id)
    }

    /// Counts the time at work up to now.
    pub(crate) fn count_time_at_work(&mut self) {
        self.statistics.at_work = self.statistics.at_work + self.now.since(self.counted);
        self.counted = self.now;
    }

    /// Returns the time since which no operation is unfinished, or `None` if an operation is.
    #[inline]
    pub fn rests_since(&self) -> Option<Ps> {
        (self.nodes.live == 0).then_some(self.counted)
    }

    /// Returns a hash of all flash operations so far and the times of their ends, in order.
    pub fn trajectory(&self) -> Trajectory {
        self.trajectory
    }

    /// Adds the operations of `plan` at time `now`, and starts the operations that can start.
    ///
    /// # Panics
    /// Panics if `now` is before an event that was already handled, or if an event before `now` was
    /// not handled.
    pub fn issue(&mut self, now: Ps, plan: &Plan) {
        assert!(now >= self.now, "the plan was issued in the past");
        assert!(
            self.agenda.next_at().is_none_or(|at| at >= now),
            "events before the time of issue were not handled"
        );
        self.now = now;
        if self.nodes.live == 0 {
            self.counted = now;
        }
        for (id, op, after) in plan.iter() {
            beat(1); // a plan may hold millions of operations
            self.inherit(id, op, after);
            if let (Some((work, value)), [on]) = (follower(op.kind), after)
                && self.paths.is_none() // recorded paths need two separate operations
                && self.nodes.follow(id, work, value, *on)
            {
                continue;
            }
            self.note(|paths, _| paths.issued(id, op, now));
            let (times, memory) = (&self.times, &mut self.memory);
            let n = self.nodes.add(id, op, after, |node| {
                describe(times, op, node);
                if let OpKind::Dram { first, count, update } = op.kind {
                    let memory = memory.as_mut().expect(
                        "the configuration names the timed DRAM of the tables (dram.preset)",
                    );
                    node.page = memory.keep(plan.dram(first, count), update);
                }
            });
            if let Some(dram) = &mut self.shared_dram {
                dram.enter(n, op);
            }
            if let OpKind::Copyback { .. } = op.kind {
                self.begin_copyback(n, plan, op);
            }
            if self.nodes.at(n).waiting == 0 {
                self.ready.push(n);
                self.drain();
            }
        }
    }

    /// Handles every event up to and including `until`, and appends completed host commands to
    /// `out` in order.
    pub fn advance(&mut self, until: Ps, out: &mut Vec<Finished>) {
        self.run(until, false);
        if until != Ps::MAX {
            self.now = self.now.max(until);
        }
        out.append(&mut self.finished);
    }

    /// Advances as [`Engine::advance`] does, but stops at the first instant at which host commands
    /// complete. Returns the time that the engine has reached.
    pub fn advance_to_completion(&mut self, until: Ps, out: &mut Vec<Finished>) -> Ps {
        self.run(until, true);
        if self.finished.is_empty() && until != Ps::MAX {
            self.now = self.now.max(until);
        }
        out.append(&mut self.finished);
        self.now
    }

    /// Handles every event up to and including `until`. With `to_completion`, it stops after the
    /// first instant at which commands complete.
    #[inline]
    fn run(&mut self, until: Ps, to_completion: bool) {
        loop {
            let stop = to_completion && !self.finished.is_empty();
            let end = if stop { self.now } else { until };
            let Some((at, event)) = self.agenda.take(end) else { return };
            self.now = at;
            match event {
                Event::Timer(n) if self.is_of_a_plane(n) => self.plane_sensed(n),
                Event::Timer(n) => self.complete(n),
                Event::Link(way) => self.link_done(way),
                Event::Core(n) => self.core_done(n),
                Event::Dram => self.dram_done(),
                Event::Channel(channel) => self.channel_done(channel),
                Event::Die(die) => self.die_done(die),
                Event::Void => {}
            }
            self.drain();
        }
    }

    /// Returns a list of the oldest unfinished operations, each with the number of operations that
    /// it waits for. The list is for the error message of a run that makes no progress.
    pub fn explain(&self) -> String {
        let list: Vec<String> = self
            .nodes
            .unfinished()
            .take(8)
            .map(|n| {
                format!(
                    "operation {} ({:?}, die {}, block {}) waits for {} other operations",
                    n.id, n.work, n.die, n.block, n.waiting
                )
            })
            .collect();
        list.join("; ")
    }

    /// Starts or queues the operations that wait for no other operation.
    #[inline(always)] // mostly one operation is ready, and a call would take as long as the work
    pub(crate) fn drain(&mut self) {
        let mut next = 0;
        while next < self.ready.len() {
            beat(1);
            let n = self.ready[next];
            next += 1;
            let node = self.nodes.at(n);
            match node.work {
                NodeKind::Read | NodeKind::Program | NodeKind::Erase | NodeKind::Copyback => {
                    if self.cores.is_none() || !self.queue_on_core(n) {
                        self.send_to_die(n);
                    }
                }
                NodeKind::Core => {
                    if !self.queue_on_core(n) {
                        self.complete(n);
                    }
                }
                NodeKind::Dram | NodeKind::LinkIn | NodeKind::LinkOut
                    if self.shared_dram.is_some() =>
                {
                    self.begin_with_dram(n)
                }
                NodeKind::Dram => self.begin_on_dram(n),
                NodeKind::AwaitSlots if node.value > self.slots.freed => {
                    self.slots.wait(node.value, n);
                }
                NodeKind::FreeSlots => self.free_slots(n, next),
                NodeKind::Timer if node.time > Dur::ZERO => {
                    let end = self.now.after(node.time);
                    self.state(n, State::Timer);
                    self.agenda.set_timer(end, n);
                }
                NodeKind::LinkIn | NodeKind::LinkOut if node.time > Dur::ZERO => {
                    self.queue_on_link(n)
                }
                _ => self.complete(n),
            }
        }
        self.ready.clear();
    }

    /// Completes an operation that frees slots. Operations of `ready` from index `rest` on have not
    /// been handled yet.
    ///
    /// Operations among these that await slots were not released before these slots were freed. So
    /// they come in order of number with all others that the slots release.
    fn free_slots(&mut self, n: u32, rest: usize) {
        if self.ready.len() > rest {
            let (nodes, slots, mut place) = (&self.nodes, &mut self.slots, 0);
            self.ready.retain(|&other| {
                place += 1;
                let node = nodes.at(other);
                let awaits = node.work == NodeKind::AwaitSlots && node.value > slots.freed;
                let waits = place > rest && awaits;
                if waits {
                    slots.wait(node.value, other);
                }
                !waits
            });
        }
        self.complete(n);
    }

    pub(crate) fn complete(&mut self, n: u32) {
        let node = self.nodes.at(n);
        let id = node.id;
        match node.work {
            NodeKind::Complete => {
                self.finished.push(Finished { tag: Tag(node.value), at: self.now });
            }
            NodeKind::Read | NodeKind::Program | NodeKind::Erase | NodeKind::Copyback => {
                let place = u64::from(node.block.number()) << 32 | u64::from(node.page);
                self.trajectory.add(node.work as u64, place, self.now);
            }
            _ => {}
        }
        let (work, value) = (node.work, node.value);
        let first = self.ready.len();
        self.nodes.remove(n, &mut self.ready);
        if self.nodes.live == 0 {
            self.count_time_at_work();
        }
        if work == NodeKind::FreeSlots {
            self.slots.free(value, &mut self.ready);
            self.ready[first..].sort_unstable_by_key(|&n| self.nodes.at(n).id);
        }
        self.note(|paths, engine| paths.ended(id, engine.now));
        self.note_released(first, id);
    }

    fn begin_on_dram(&mut self, n: u32) {
        let (Some(memory), Some(statistics)) = (&mut self.memory, &mut self.statistics.dram) else {
            unreachable!("the memory was there when the operation was issued");
        };
        let end = memory.begin(self.nodes.at(n).page, self.now, statistics);
        self.state(n, State::Timer);
        self.agenda.set_timer(end, n);
    }
}
