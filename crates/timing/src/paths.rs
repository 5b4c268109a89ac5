//! Critical paths of commands: the reasons for the latency of a command.
//!
//! While paths are recorded, the engine notes the times at which each operation was issued, was
//! released, and changed its state. It also notes which operation released each operation last. An
//! operation is released when it no longer waits for any operation. A path goes back in time from
//! the completion of a command. It passes the states of an operation back to the release of that
//! operation. From there it continues with the operation that released it, and so on until the time
//! at which the command was issued. So the steps of a path follow each other without a gap, and add
//! up to the latency.
//!
//! Each step has a [`Reason`]. For example, the operations of collection on the path count as
//! collection. The time that an operation waits for a die on which collection works counts as
//! collection, too.

use flashatlas_types::{Cause, Class, Dur, Op, OpId, OpKind, Ps, Tag};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Reason for a part of a latency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The request waits at the host, because the drive has no room for another command.
    HostQueue,
    /// A layer above the drive delays the request, or a command that it sends for the request.
    Layer,
    /// Fixed times of the controller, its work on the operation, waits for a core, and data in the
    /// shared DRAM.
    Controller,
    /// The drive does not accept the data of a write yet, because free blocks run low.
    Throttle,
    /// Accesses to tables in memory.
    Tables,
    /// Another transfer is on the host link.
    LinkQueue,
    /// Data on the host link.
    Link,
    /// The write cache has no free slot for this request, because freed slots go to earlier
    /// requests.
    Cache,
    /// Another operation of the host is on the die.
    DieQueue,
    /// Another transfer is on the channel.
    ChannelQueue,
    /// Data or a command on the channel.
    Channel,
    /// Cells are sensed.
    Read,
    /// Cells are programmed.
    Program,
    /// An operation that was under way is suspended for a read.
    Suspension,
    /// Garbage collection in the foreground, or a fold of an SLC cache, without its erases.
    Collection,
    /// Merges and rewrites, without their erases.
    Merge,
    /// Map pages.
    Map,
    /// Erases, for any cause.
    Erase,
    /// Wear levelling.
    Wear,
    /// Work that began in idle time.
    Idle,
    /// A spare block replaces another block, data is refreshed, or the drive is mounted.
    Repair,
}

impl Reason {
    /// All reasons, in the order of a record.
    pub const ALL: [Reason; 21] = [
        Reason::HostQueue,
        Reason::Layer,
        Reason::Controller,
        Reason::Throttle,
        Reason::Tables,
        Reason::LinkQueue,
        Reason::Link,
        Reason::Cache,
        Reason::DieQueue,
        Reason::ChannelQueue,
        Reason::Channel,
        Reason::Read,
        Reason::Program,
        Reason::Suspension,
        Reason::Collection,
        Reason::Merge,
        Reason::Map,
        Reason::Erase,
        Reason::Wear,
        Reason::Idle,
        Reason::Repair,
    ];

    /// Returns the name of the reason in a run record.
    pub const fn name(self) -> &'static str {
        [
            "host_queue",
            "layer",
            "controller",
            "throttle",
            "tables",
            "link_queue",
            "link",
            "cache",
            "die_queue",
            "channel_queue",
            "channel",
            "read",
            "program",
            "suspension",
            "collection",
            "merge",
            "map",
            "erase",
            "wear",
            "idle",
            "repair",
        ][self as usize]
    }

    /// Returns the reason of all steps of an operation, or `None` if the operation works for the
    /// host and its steps have different reasons.
    fn of(op: OpKind, cause: Option<Cause>, class: Class) -> Option<Reason> {
        if matches!(op, OpKind::Erase { .. }) {
            return Some(Reason::Erase);
        }
        match cause? {
            Cause::Host | Cause::CacheEvict | Cause::Rmw => None,
            Cause::Gc | Cause::Fold => Some(Reason::Collection),
            Cause::Map => Some(Reason::Map),
            Cause::Merge => Some(Reason::Merge),
            Cause::Wear => Some(Reason::Wear),
            Cause::Idle => Some(Reason::Idle),
            Cause::Recovery | Cause::Replace | Cause::Refresh => Some(Reason::Repair),
            // parity belongs to an operation of its class
            Cause::Parity => match class {
                Class::HostRead | Class::HostWrite => None,
                Class::Map => Some(Reason::Map),
                Class::Gc => Some(Reason::Collection),
                Class::Idle => Some(Reason::Idle),
            },
        }
    }
}

/// A part of a critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Time at which the step began.
    pub from: Ps,
    /// Time at which the step ended.
    pub to: Ps,
    /// Reason for the step.
    pub reason: Reason,
    /// The operation on the path; `None` before the first operation was issued.
    pub op: Option<(OpKind, Option<Cause>)>,
}

/// State of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// A fixed time passes.
    Timer,
    /// The operation waits for the host link.
    LinkQueue,
    /// The operation is on the host link.
    Link,
    /// The operation waits for its die.
    DieQueue,
    /// The operation waits for its channel.
    ChannelQueue,
    /// The operation is on its channel.
    Channel,
    /// The operation's page is in a register of its die, and waits for the cells or the cache
    /// register.
    Register,
    /// The cells work.
    Cells,
    /// The cells were stopped for a read.
    Suspended,
}

/// One operation.
#[derive(Clone, Debug)]
struct Track {
    op: OpKind,
    cause: Option<Cause>,
    class: Class,
    /// Time at which the operation was released.
    released: Ps,
    /// Operation that released this operation last.
    by: OpId,
    states: SmallVec<[(Ps, State); 6]>,
    /// Time of the operation's end, or [`Ps::MAX`] while it is not complete.
    end: Ps,
}

impl Track {
    fn reason(&self) -> Option<Reason> {
        Reason::of(self.op, self.cause, self.class)
    }
}

/// Record of the engine's operations, as far back as a caller may request a path.
#[derive(Debug)]
pub(crate) struct Paths {
    /// Number of the first operation of `tracks`.
    first: u64,
    tracks: VecDeque<Track>,
    /// For each die, the reasons for which it was occupied, each with its start time.
    dies: Vec<VecDeque<(Ps, Option<Reason>)>>,
    /// Commands that completed, in order.
    complete: VecDeque<(Ps, Tag, OpId)>,
    /// Operations that freed slots of the write cache, in order, each with its time.
    freed: VecDeque<(Ps, OpId)>,
}

impl Paths {
    pub fn new(dies: usize) -> Paths {
        let dies = vec![VecDeque::from([(Ps::ZERO, None)]); dies];
        let (tracks, complete, freed) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Paths { first: 0, tracks, dies, complete, freed }
    }

    fn track(&self, id: OpId) -> Option<&Track> {
        self.tracks.get(id.0.checked_sub(self.first)? as usize)
    }

    fn track_mut(&mut self, id: OpId) -> Option<&mut Track> {
        self.tracks.get_mut(id.0.checked_sub(self.first)? as usize)
    }

    /// Notes that an operation is issued.
    pub fn issued(&mut self, id: OpId, op: &Op, now: Ps) {
        if self.tracks.is_empty() {
            self.first = id.0;
        }
        let (op, cause, class) = (op.kind, op.cause, op.class);
        let (by, released) = (OpId::NONE, now);
        let track = |end| Track { op, cause, class, released, by, states: SmallVec::new(), end };
        // operations of abandoned plans have numbers, too
        while self.first + (self.tracks.len() as u64) < id.0 {
            self.tracks.push_back(track(now));
        }
        self.tracks.push_back(track(Ps::MAX));
    }

    /// Notes that operation `id` last waited for operation `by`, which has started or is complete.
    pub fn released(&mut self, id: OpId, by: OpId, now: Ps) {
        if let Some(track) = self.track_mut(id) {
            (track.released, track.by) = (now, by);
        }
    }

    pub fn state(&mut self, id: OpId, state: State, now: Ps) {
        if let Some(track) = self.track_mut(id) {
            track.states.push((now, state));
        }
    }

    /// Notes which operation occupies a die from now on.
    pub fn occupied(&mut self, die: u32, by: Option<OpId>, now: Ps) {
        let who = by
            .and_then(|id| self.track(id))
            .map(|track| track.reason().unwrap_or(Reason::DieQueue));
        let log = &mut self.dies[die as usize];
        if log.back().is_some_and(|&(at, _)| at == now) {
            log.pop_back();
        }
        if log.back().is_none_or(|&(_, before)| before != who) {
            log.push_back((now, who));
        }
    }

    pub fn ended(&mut self, id: OpId, now: Ps) {
        let Some(track) = self.track_mut(id) else { return };
        track.end = now;
        match track.op {
            OpKind::Complete(tag) => self.complete.push_back((now, tag, id)),
            OpKind::FreeSlots(_) => self.freed.push_back((now, id)),
            _ => {}
        }
    }

    /// Removes the record of operations that ended before `before`.
    pub fn forget(&mut self, before: Ps) {
        while self.tracks.front().is_some_and(|track| track.end < before) {
            self.tracks.pop_front();
            self.first += 1;
        }
        while self.complete.front().is_some_and(|&(at, ..)| at < before) {
            self.complete.pop_front();
        }
        while self.freed.front().is_some_and(|&(at, _)| at < before) {
            self.freed.pop_front();
        }
        for log in &mut self.dies {
            while log.get(1).is_some_and(|&(at, _)| at <= before) {
                log.pop_front();
            }
        }
    }

    /// Returns the path to the command that completed at `at`. The path begins at `since`, and its
    /// latest step comes first.
    ///
    /// With a `tag`, the path leads to that command. Without a tag, it leads to a command that
    /// completed at `at`: the command whose first operation was issued earliest. Returns `None` if
    /// no such command completed at `at`.
    pub fn to(&self, tag: Option<Tag>, at: Ps, since: Ps) -> Option<Vec<Step>> {
        let later = self.complete.iter().rev().take_while(|&&(end, ..)| end >= at);
        let those =
            later.filter(|&&(end, found, _)| end == at && tag.is_none_or(|tag| tag == found));
        let paths = those.map(|&(.., id)| self.path(id, at, since));
        paths.min_by_key(|steps| before_issue(steps))
    }

    fn path(&self, mut id: OpId, at: Ps, since: Ps) -> Vec<Step> {
        let (mut steps, mut upto) = (Vec::new(), at);
        // `held` is an operation that waited for a later operation: an erase that waited for a
        // later read of its block, or a wait for a slot. Before the later operation was issued,
        // `held` waited for other operations
        let mut held = None;
        while let Some(track) = self.track(id) {
            let mut end = upto;
            for &(from, state) in track.states.iter().rev() {
                if from < end {
                    self.add(track, state, (from.max(since), end), &mut steps);
                    end = from;
                }
                if end <= since {
                    return steps;
                }
            }
            upto = track.released;
            if upto <= since {
                break;
            }
            if track.by > id {
                held = Some((track.op, track.cause));
            }
            id = match (track.by, held) {
                // the slots that were freed earlier went to operations that were issued earlier
                (OpId::NONE, Some((OpKind::AwaitSlots(_), _))) => {
                    let Some((end, by)) = self.freed_before(upto) else { break };
                    let from = end.max(since);
                    steps.push(Step { from, to: upto, reason: Reason::Cache, op: held });
                    upto = from;
                    by
                }
                (OpId::NONE, _) => break,
                (by, _) => by,
            };
        }
        if upto > since {
            let reason = match held {
                Some((OpKind::AwaitSlots(_), _)) => Reason::Cache,
                Some(_) => Reason::Erase,
                None => Reason::Layer,
            };
            steps.push(Step { from: since, to: upto, reason, op: held });
        }
        steps
    }

    /// Returns the last operation before a time that freed slots of the write cache, with its time.
    fn freed_before(&self, time: Ps) -> Option<(Ps, OpId)> {
        let later = self.freed.partition_point(|&(at, _)| at < time);
        later.checked_sub(1).map(|last| self.freed[last])
    }

    /// Adds the steps of one state, the latest first.
    fn add(&self, track: &Track, state: State, (from, to): (Ps, Ps), steps: &mut Vec<Step>) {
        let op = Some((track.op, track.cause));
        let whose = track.reason();
        let reason = match (state, whose) {
            (State::Suspended, _) => Reason::Suspension,
            (State::DieQueue | State::Register, _) => {
                return self.add_waits(track, whose, (from, to), steps);
            }
            (_, Some(whose)) => whose,
            (State::Timer, None) => match track.op {
                OpKind::Memory { .. } | OpKind::Dram { .. } => Reason::Tables,
                OpKind::Throttle(_) => Reason::Throttle,
                _ => Reason::Controller,
            },
            (State::LinkQueue, None) => Reason::LinkQueue,
            (State::Link, None) => Reason::Link,
            (State::ChannelQueue, None) => Reason::ChannelQueue,
            (State::Channel, None) => Reason::Channel,
            (State::Cells, None) if matches!(track.op, OpKind::Read { .. }) => Reason::Read,
            (State::Cells, None) => Reason::Program,
        };
        steps.push(Step { from, to, reason, op });
    }

    /// Adds the steps of an operation that waits for its die, in the queue or in a register of the
    /// die. There is one step for each operation that occupies the die during the wait.
    fn add_waits(
        &self,
        track: &Track,
        whose: Option<Reason>,
        (from, to): (Ps, Ps),
        steps: &mut Vec<Step>,
    ) {
        let (OpKind::Read { die, .. }
        | OpKind::Program { die, .. }
        | OpKind::Copyback { die, .. }
        | OpKind::Erase { die, .. }) = track.op
        else {
            unreachable!("only operations on flash wait for a die")
        };
        let op = Some((track.op, track.cause));
        let own = whose.unwrap_or(Reason::DieQueue);
        let mut end = to;
        for &(began, who) in self.dies[die as usize].iter().rev() {
            if began < end {
                let reason = who.filter(|&who| who != Reason::DieQueue).unwrap_or(own);
                steps.push(Step { from: began.max(from), to: end, reason, op });
                end = began;
            }
            if end <= from {
                return;
            }
        }
        steps.push(Step { from, to: end, reason: own, op });
    }
}

/// Returns the time on a path that passed before its first operation was issued.
pub fn before_issue(steps: &[Step]) -> Dur {
    let first = steps.last().filter(|step| step.reason == Reason::Layer);
    first.map_or(Dur::ZERO, |step| step.to.since(step.from))
}
