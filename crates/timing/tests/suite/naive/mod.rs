//! A naive simulator that shares no code with the engine. It stores one stage for each operation in
//! a plain list. A scan of this list finds everything else each time: the operation that holds a
//! die, the first operation in a queue, and the operations that wait for each other. These rules
//! are the specification:
//!
//! 1. An operation is *released* when all operations that it names are complete. A read also waits
//!    until the earlier programs of its page are complete, and an erase until every earlier
//!    operation on its block is complete. A program or an erase also waits until all earlier
//!    programs and erases of its block have started on their die. A read of a page as it was `back`
//!    operations ago waits only for the programs issued before then. The first unfinished erase of
//!    its block since then waits for the read, unless the erase was already released. An operation
//!    that awaits slots is released when that number of slots has been freed.
//! 2. Released operations arrive in the order in which they were released. Operations that one step
//!    releases arrive in the order of their numbers. Each operation takes effect before the next
//!    operation arrives. Operations issued together are issued one by one.
//! 3. A die and a bus serve by class, then by arrival. With a bound on passing, a class is overdue
//!    if its first operation has been the first for at least the bound. Overdue classes come before
//!    all others. Of several overdue classes, the class whose first operation has been the first
//!    for the longest time comes first. An operation is the first of its class from its arrival on,
//!    or from the time at which the last operation before it left the queue.
//! 4. Events of one instant happen in the order in which they were begun. If an event frees a
//!    resource, the resource goes immediately to an operation that already waits for it. The
//!    operations that the event released arrive after that.
//! 5. A transfer or a command that takes no time does not wait for its bus.
//! 6. Cache read: a sensed page moves to the register when the register is free. If a read is next,
//!    the die then begins it before the page asks for the channel. Any other operation waits until
//!    the register is free.
//! 7. Cache program: while a program is in the cells, the next operation takes the register if it
//!    is a program, the register is free and no operation is suspended. When the cells end, the
//!    operation in the register gets them before all others.
//! 8. Suspension: a host read suspends the operation in the cells when the read arrives, or when
//!    the cells begin while the read waits. A read is not suspended. Nothing is suspended while the
//!    register is taken, or if no more time is left than the latency. Only host reads go before the
//!    operation resumes. After the shorter of the bounds on passing and on suspension, the
//!    operation resumes at the first chance and is not suspended again.
//! 9. Inheritance: a read, data to the host, or the end of a command raises reads of the map when
//!    it is issued, if its class is host read. Each unfinished read of class map that it waits for
//!    becomes a host read, in order of number. The raising operation waits for the operations that
//!    it names, for the newest program of its page if it is a read, and for the operations that
//!    these wait for. An operation that waits for the end of a command waits only for that end. A
//!    raised read that is in a queue arrives there anew. On a die, a program may then be loaded
//!    ahead, or an operation may be suspended. A raised read may leave a die on which only a
//!    suspended operation is left. That operation then resumes by a new event of this instant. So
//!    the operations that the read released come before it.
//! 10. Copyback: it is a program of its page, and a read of each of its sources: it waits until
//!     their earlier programs are complete, and an erase of their block waits for it. It holds its
//!     die from its first command on. Each source takes a command on the bus and tR. A command with
//!     the bytes and tPROG follow. Only tPROG is suspended. It takes no register, and nothing goes
//!     into the register beside it.
//! 11. Cores: an operation that takes a time of a core waits for one of the cores, and is complete
//!     after this time. With a time of a core for each operation on flash, a released operation on
//!     flash first waits for a core, and arrives at its die after this time. The cores are a bus
//!     with places for as many operations at the same time.
//! 12. Shared DRAM: it is a bus. Data that came over the link, and a page that came over the
//!     channel, goes over it before its operation is complete. The data of a program goes over it
//!     before the program arrives at its die, after its core. Data for the host goes over it before
//!     it asks for the link. Accesses to tables in DRAM go over it immediately, each with at least
//!     the bytes of a burst. Their latency follows.

mod buses;
mod dies;
mod inherit;

use flashatlas_timing::Times;
use flashatlas_types::{Class, CopySource, DieBlock, MemoryKind, OpKind};

/// One operation: the time of its issue, its kind and class, and the list indices of the operations
/// for which it waits.
#[derive(Clone, Debug)]
pub struct Step {
    pub at: u64,
    pub kind: OpKind,
    pub class: Class,
    pub after: Vec<usize>,
    /// The sources of a copyback.
    pub sources: Vec<CopySource>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    Unissued,
    Held,
    Released,
    /// In the queue of its die.
    Queued,
    /// On the channel: the command, data into the die, or data out of it.
    Command,
    Load,
    Out,
    Cells,
    /// The page is sensed, but the register is taken.
    Sensed,
    /// The page is in the register, but the cells are taken.
    Loaded,
    /// The cells are about to stop for a host read, or have stopped.
    Stopping,
    Resting,
    /// The operation is on a timer, on the host link or on a core.
    Elsewhere,
    /// The operation on flash waits for a core, or is on one.
    Core,
    /// The data waits for the shared DRAM, or is on it.
    Dram,
    Done,
}

/// The stages of an operation that holds its die.
const AT_WORK: &[Stage] = {
    use Stage::*;
    &[Command, Load, Out, Cells, Sensed, Loaded, Stopping, Resting]
};

#[derive(Clone, Debug)]
struct State {
    stage: Stage,
    class: Class,
    /// `true` if the operation is a read of the map that became a host read.
    raised: bool,
    in_register: bool,
    /// Order of arrival at the operation's die or bus, and the time of the arrival.
    arrival: u64,
    arrived_at: u64,
    bus: Option<usize>,
    on_bus: bool,
    cells_from: u64,
    left: u64,
    suspended: u32,
    /// Number of sources that were sensed.
    sensed: usize,
    /// Time at which the operation was last suspended.
    stopped_at: u64,
    done: u64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Cells,
    Stop,
    Bus,
    Timer,
}

/// Totals of the work of the resources. They are the busy times of each die's cells, of each
/// channel and of each direction of the link, the sum over time of the dies at work, the time
/// during which at least one die was at work, and the number of suspensions.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Totals {
    pub die_busy: Vec<u64>,
    pub bus_busy: Vec<u64>,
    pub die_time: u128,
    pub active: u64,
    pub suspends: u64,
}

/// The simulator.
pub struct Naive<'a> {
    steps: &'a [Step],
    t: &'a Times,
    channels: usize,
    dies_per_channel: u32,
    now: u64,
    arrivals: u64,
    ops: Vec<State>,
    released: Vec<usize>,
    /// Pairs of an erase and a read for which the erase waits. The read is of a page as it was.
    held: Vec<(usize, usize)>,
    /// Work under way, each with the time of its end, in the order in which it was begun.
    pending: Vec<(u64, End, usize)>,
    /// Departures from queues: the queue, the class, the order of arrival there, and the time.
    left: Vec<(Where, Class, u64, u64)>,
    pub totals: Totals,
    /// Number of reads of the map that became host reads, and how many of them waited in a queue.
    pub raised: (u64, u64),
    /// Number of times that an operation went before another operation of a higher class.
    pub passed: u64,
}

/// A queue.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Where {
    Die(u32),
    Bus(usize),
}

/// Returns the die, block and page of an operation on flash. An erase has no page.
fn place(kind: OpKind) -> Option<(u32, DieBlock, Option<u32>)> {
    match kind {
        OpKind::Read { die, block, page, .. }
        | OpKind::Program { die, block, page, .. }
        | OpKind::Copyback { die, block, page, .. } => Some((die, block, Some(page))),
        OpKind::Erase { die, block } => Some((die, block, None)),
        _ => None,
    }
}

impl Naive<'_> {
    /// Plays `steps` on `channels` channels with `dies` dies each.
    pub fn run<'a>(steps: &'a [Step], t: &'a Times, (channels, dies): (u32, u32)) -> Naive<'a> {
        let new = State {
            stage: Stage::Unissued,
            class: Class::Idle,
            raised: false,
            in_register: false,
            arrival: 0,
            arrived_at: 0,
            bus: None,
            on_bus: false,
            cells_from: 0,
            left: 0,
            suspended: 0,
            sensed: 0,
            stopped_at: 0,
            done: u64::MAX,
        };
        let totals = Totals {
            die_busy: vec![0; (channels * dies) as usize],
            bus_busy: vec![0; channels as usize + 4],
            ..Totals::default()
        };
        let mut naive = Naive {
            steps,
            t,
            channels: channels as usize,
            dies_per_channel: dies,
            now: 0,
            arrivals: 0,
            ops: vec![new; steps.len()],
            released: Vec::new(),
            held: Vec::new(),
            pending: Vec::new(),
            left: Vec::new(),
            totals,
            raised: (0, 0),
            passed: 0,
        };
        for (i, step) in steps.iter().enumerate() {
            if i == 0 || steps[i - 1].at < step.at {
                naive.pass(step.at);
            }
            naive.ops[i].class = step.class;
            naive.raise_for(i);
            naive.ops[i].stage = Stage::Held;
            naive.hold(i);
            naive.release();
            naive.arrive();
        }
        naive.pass(u64::MAX);
        naive
    }

    /// Returns the time at which each operation was complete.
    pub fn done(&self) -> Vec<u64> {
        self.ops.iter().map(|op| op.done).collect()
    }

    /// Handles all events up to `until`.
    fn pass(&mut self, until: u64) {
        while let Some(first) = (0..self.pending.len()).min_by_key(|&i| self.pending[i].0) {
            if self.pending[first].0 > until {
                break;
            }
            let (at, end, op) = self.pending.remove(first);
            self.clock(at);
            match end {
                End::Timer => self.complete(op),
                End::Cells => self.cells_end(op),
                End::Stop => {
                    self.ops[op].stage = Stage::Resting;
                    self.hand_over(self.die(op));
                }
                End::Bus => {
                    let bus = self.bus_of(op);
                    (self.ops[op].on_bus, self.ops[op].bus) = (false, None);
                    self.off_bus(op);
                    self.grant(bus);
                }
            }
            self.arrive();
        }
        if until != u64::MAX {
            self.clock(until);
        }
    }

    fn clock(&mut self, to: u64) {
        let dies = self.totals.die_busy.len() as u32;
        let busy = (0..dies).filter(|&die| !self.on_die(die, AT_WORK).is_empty()).count();
        self.totals.die_time += u128::from(to - self.now) * busy as u128;
        self.totals.active += if busy > 0 { to - self.now } else { 0 };
        self.now = to;
    }

    fn die(&self, op: usize) -> u32 {
        place(self.steps[op].kind).unwrap().0
    }

    /// Returns the operations of a die whose stage is one of `stages`.
    fn on_die(&self, die: u32, stages: &[Stage]) -> Vec<usize> {
        let here = |&i: &usize| place(self.steps[i].kind).is_some_and(|p| p.0 == die);
        (0..self.steps.len())
            .filter(|i| stages.contains(&self.ops[*i].stage))
            .filter(here)
            .collect()
    }

    fn is_read(&self, op: usize) -> bool {
        matches!(self.steps[op].kind, OpKind::Read { .. })
    }

    fn is_program(&self, op: usize) -> bool {
        matches!(self.steps[op].kind, OpKind::Program { .. })
    }

    /// Returns `true` if an operation programs its page, from the channel or from another page.
    fn programs(&self, op: usize) -> bool {
        self.is_program(op) || matches!(self.steps[op].kind, OpKind::Copyback { .. })
    }

    /// Returns the source that a copyback senses next.
    fn next_source(&self, op: usize) -> Option<&CopySource> {
        self.steps[op].sources.get(self.ops[op].sensed)
    }

    fn is_host_read(&self, op: usize) -> bool {
        self.is_read(op) && self.ops[op].class == Class::HostRead
    }

    // ---- release and arrival

    fn free_to_go(&self, op: usize) -> bool {
        let done = |i: usize| self.ops[i].stage == Stage::Done;
        let had_die = |i: usize| done(i) || AT_WORK.contains(&self.ops[i].stage);
        let step = &self.steps[op];
        let Some((_, block, page)) = place(step.kind) else {
            let freed = (0..self.steps.len()).filter(|&i| done(i)).map(|i| {
                let OpKind::FreeSlots(count) = self.steps[i].kind else { return 0 };
                u64::from(count)
            });
            return step.after.iter().all(|&i| done(i))
                && !matches!(step.kind, OpKind::AwaitSlots(need) if freed.sum::<u64>() < need);
        };
        let mut earlier =
            (0..op).filter(|&i| place(self.steps[i].kind).is_some_and(|p| p.1 == block));
        let senses = |i: usize, block| self.steps[i].sources.iter().any(|s| s.block == block);
        let is_erase = matches!(step.kind, OpKind::Erase { .. });
        let of_sources = |i: usize| {
            let page = place(self.steps[i].kind).map(|(_, block, page)| (block, page));
            self.programs(i) && step.sources.iter().any(|s| page == Some((s.block, Some(s.page))))
        };
        step.after.iter().all(|&i| done(i))
            && (0..op).all(|i| done(i) || !(is_erase && senses(i, block) || of_sources(i)))
            && self.held.iter().all(|&(held, until)| held != op || done(until))
            && earlier.all(|i| match step.kind {
                OpKind::Read { back, .. } => {
                    !self.programs(i)
                        || place(self.steps[i].kind).unwrap().2 != page
                        || back > 0 && i >= op - back as usize
                        || done(i)
                }
                OpKind::Program { .. } | OpKind::Copyback { .. } => self.is_read(i) || had_die(i),
                _ => done(i),
            })
    }

    /// Makes an erase wait for a read of a page as it was, which is issued now. It is the first
    /// unfinished erase of its block since then. An erase that was released does not wait.
    fn hold(&mut self, read: usize) {
        let OpKind::Read { back: back @ 1.., block, .. } = self.steps[read].kind else { return };
        let erase = (read - back as usize + 1..read).find(|&i| {
            matches!(self.steps[i].kind, OpKind::Erase { block: on, .. } if on == block)
                && self.ops[i].stage != Stage::Done
        });
        self.held.extend(erase.filter(|&i| self.ops[i].stage == Stage::Held).map(|i| (i, read)));
    }

    fn release(&mut self) {
        for op in 0..self.steps.len() {
            if self.ops[op].stage == Stage::Held && self.free_to_go(op) {
                self.ops[op].stage = Stage::Released;
                self.released.push(op);
            }
        }
    }

    fn arrive(&mut self) {
        while !self.released.is_empty() {
            let op = self.released.remove(0);
            self.ops[op].stage = Stage::Elsewhere;
            match self.steps[op].kind {
                OpKind::Delay(time) | OpKind::Throttle(time) => self.timer(op, time.0),
                OpKind::Memory { kind: MemoryKind::Dram, .. } => self.pass_dram(op),
                OpKind::Memory { .. } => self.access(op),
                OpKind::Link { inbound: false, .. } => self.pass_dram(op),
                OpKind::Link { .. } | OpKind::Core(_) => self.ask_bus(op),
                OpKind::Join
                | OpKind::Complete(_)
                | OpKind::FreeSlots(_)
                | OpKind::AwaitSlots(_) => self.complete(op),
                _ if self.t.cores.is_some_and(|cores| cores.flash.0 > 0) => {
                    self.ops[op].stage = Stage::Core;
                    self.ask_bus(op);
                }
                _ => self.send_to_die(op),
            }
        }
    }

    /// Lets the time of accesses to a table pass.
    fn access(&mut self, op: usize) {
        let OpKind::Memory { kind, accesses, bytes, write } = self.steps[op].kind else { return };
        let m = self.t.memory[kind as usize];
        let latency = if write { m.write } else { m.read };
        self.timer(op, u64::from(accesses) * (latency.0 + ps(bytes, m.rate)));
    }

    fn timer(&mut self, op: usize, time: u64) {
        if time == 0 {
            self.complete(op)
        } else {
            self.pending.push((self.now + time, End::Timer, op))
        }
    }

    fn complete(&mut self, op: usize) {
        (self.ops[op].stage, self.ops[op].in_register, self.ops[op].done) =
            (Stage::Done, false, self.now);
        self.release();
    }

    fn rank(&self, op: usize) -> u8 {
        self.t.rank[self.ops[op].class as usize]
    }

    /// Returns the first of some operations, by class and then by arrival.
    fn first(&self, among: &[usize]) -> Option<usize> {
        among.iter().copied().min_by_key(|&i| (self.rank(i), self.ops[i].arrival))
    }

    /// Returns the operation that goes next among the operations of a queue.
    fn next(&mut self, queued: Vec<usize>, queue: Where) -> Option<usize> {
        let first = self.first(&queued)?;
        let bound = self.t.passed_max.0;
        if bound == 0 {
            return Some(first);
        }
        // the first operation of each class, and the time since which it has been the first
        let firsts = Class::ALL.into_iter().filter_map(|class| {
            let those: Vec<usize> =
                queued.iter().copied().filter(|&i| self.ops[i].class == class).collect();
            let op = self.first(&those)?;
            let before = |&&(at, of, arrival, _): &&(Where, Class, u64, u64)| {
                (at, of) == (queue, class) && arrival < self.ops[op].arrival
            };
            let left = self.left.iter().filter(before).map(|&(.., when)| when).max();
            Some((self.ops[op].arrived_at.max(left.unwrap_or(0)), op))
        });
        let overdue = firsts.filter(|&(since, _)| self.now - since >= bound);
        let next = overdue.min_by_key(|&(since, op)| (since, self.rank(op))).map(|(_, op)| op);
        let next = next.unwrap_or(first);
        self.passed += u64::from(next != first);
        Some(next)
    }
}

/// Returns the time of `bytes` at a rate in whole bytes a picosecond, rounded up.
fn ps(bytes: impl Into<u64>, bytes_per_s: u64) -> u64 {
    if bytes_per_s == 0 { 0 } else { bytes.into().div_ceil(bytes_per_s / 1_000_000_000_000) }
}
