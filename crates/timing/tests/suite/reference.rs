//! Tests that compare the engine with the naive simulator of `naive`, on random plans for small
//! boards. Every operation must be complete at the same picosecond in both simulators, and the busy
//! times must be equal.
//!
//! Cases with higher numbers are larger, so the first case that fails is a small case. The failure
//! message contains the whole case.

use crate::common::{Player, block, board, times_with};
use crate::naive::{Naive, Step, Totals};
use flashatlas_timing::{CoreTimes, MemoryTimes, Reason, SharedDramTimes, Suspend, Times};
use flashatlas_types::{
    Class, CopySource, Dur, MemoryKind, OpId, OpKind, PAGE_KINDS, Ps, Rng, Seed, Tag,
};

const CASES: u64 = 3_000;

/// Features that a family of cases switches on.
#[derive(Clone, Copy, Default)]
struct Family {
    name: &'static str,
    /// Upper bound of times in picoseconds. With a small bound, many events coincide.
    span: u64,
    command: bool,
    cache_read: bool,
    cache_program: bool,
    suspend: bool,
    /// `true` if some reads are of pages as they were earlier.
    past: bool,
    /// `true` if slots of the write cache are freed and awaited.
    slots: bool,
    /// `true` if the time for which a class is passed is bounded.
    passed: bool,
    /// `true` if most reads are of the map or of the host, and commands complete.
    map: bool,
    /// `true` if pages are of five kinds with times of their own, and otherwise of three.
    five_kinds: bool,
    /// `true` if some programs are copybacks.
    copybacks: bool,
    /// `true` if commands, and sometimes operations on flash, take the time of a core.
    cores: bool,
    /// `true` if data and tables share a DRAM.
    dram: bool,
}

impl Family {
    fn kinds(self) -> usize {
        if self.five_kinds { 5 } else { 3 }
    }
}

fn random_times(rng: &mut Rng, family: Family) -> Times {
    let mut time = |zero: bool| Dur(u64::from(!zero) + rng.below(family.span));
    let mut kinds = |zero: bool| -> [Dur; 5] {
        let drawn: Vec<Dur> = (0..family.kinds()).map(|_| time(zero)).collect();
        // without five kinds, no page is of the last two
        [0, 1, 2, 3, 4].map(|kind| drawn.get(kind).copied().unwrap_or_default())
    };
    let (read, program) = (kinds(true), kinds(false));
    let (erase, command) = (time(false), if family.command { time(true) } else { Dur::ZERO });
    let memory = [(); 3].map(|()| MemoryTimes {
        read: time(true),
        write: time(true),
        rate: 2_000_000_000_000,
    });
    let (latency, resume) = (time(true), time(true));
    let mut rank = [0, 1, 2, 3, 4];
    for i in 1..5 {
        rank.swap(i, rng.below(i as u64 + 1) as usize);
    }
    times_with(|t| {
        t.read = read;
        t.program[..PAGE_KINDS].copy_from_slice(&program); // no steps are drawn
        (t.erase, t.command) = (erase, command);
        (t.memory, t.rank) = (memory, rank);
        (t.link_rate, t.full_duplex) = (1_000_000_000_000 * rng.below(3), rng.below(2) == 0);
        t.channel_rate = [0, 1, 1, 1, 3][rng.below(5) as usize] * 1_000_000_000_000;
        (t.cache_read, t.cache_program) = (family.cache_read, family.cache_program);
        if family.cores {
            let flash = Dur(rng.below(2) * rng.below(family.span));
            t.cores = Some(CoreTimes { count: 1 + rng.below(3) as u32, flash });
        }
        if family.dram {
            let burst = rng.below(1 + family.span / 2) as u32;
            let rate = 1_000_000_000_000 * (1 + rng.below(3));
            t.shared_dram = Some(SharedDramTimes { rate, burst });
        }
        if family.passed {
            t.passed_max = Dur(rng.below(4 * family.span));
        }
        if family.suspend {
            let (program, erase) =
                [(true, true), (true, false), (false, true)][rng.below(3) as usize];
            let longest = Dur(rng.below(3) * 1_500);
            let max = 1 + rng.below(3) as u8;
            t.suspend =
                Suspend { program, erase, latency, resume, max, longest, ..Suspend::default() };
        }
    })
}

fn random_kind(rng: &mut Rng, family: Family, dies: u32) -> OpKind {
    let below = |rng: &mut Rng, n: u32| rng.below(n.into()) as u32;
    let die = below(rng, dies);
    let block = block(die, below(rng, 2));
    let (page, level) = (below(rng, 3), below(rng, family.kinds() as u32) as u8);
    let bytes = rng.below(family.span) as u32;
    match rng.below(100) {
        0..45 => OpKind::Read { die, block, page, level, bytes, back: 0 },
        45..80 => OpKind::Program { die, block, page, level, bytes },
        80..91 if family.cores && rng.below(2) == 0 => OpKind::Core(Dur(rng.below(family.span))),
        80..88 => OpKind::Erase { die, block },
        88..91 if page == 0 => OpKind::Throttle(Dur(rng.below(3 * family.span))),
        88..91 => OpKind::Delay(Dur(rng.below(3 * family.span))),
        91..94 => {
            let kind = [MemoryKind::Sram, MemoryKind::Dram, MemoryKind::Nvm][rng.below(3) as usize];
            OpKind::Memory { kind, accesses: below(rng, 4), bytes, write: level == 0 }
        }
        94..98 => OpKind::Link { inbound: level == 0, bytes: u64::from(bytes) },
        _ => OpKind::Join,
    }
}

/// Makes some programs copybacks, of one to three pages of the other block of the die.
fn copies(rng: &mut Rng, family: Family, kind: OpKind) -> (OpKind, Vec<CopySource>) {
    let OpKind::Program { die, block: on, page, level, bytes } = kind else {
        return (kind, Vec::new());
    };
    if !family.copybacks || rng.below(2) == 0 {
        return (kind, Vec::new());
    }
    let other = if on == block(die, 0) { block(die, 1) } else { block(die, 0) };
    let source = |rng: &mut Rng| CopySource {
        block: other,
        page: rng.below(3) as u32,
        level: rng.below(family.kinds() as u64) as u8,
    };
    let sources = (0..1 + rng.below(3)).map(|_| source(rng)).collect();
    (OpKind::Copyback { die, block: on, page, level, bytes, first: 0, count: 0 }, sources)
}

fn random_steps(rng: &mut Rng, family: Family, dies: u32, count: u64) -> Vec<Step> {
    let (mut at, mut freed) = (0, 0);
    (0..count)
        .map(|i| {
            if rng.below(4) == 0 {
                at += 1 + rng.below(2 * family.span);
            }
            let kind = match rng.below(8) {
                0 if family.slots => OpKind::AwaitSlots(rng.below(freed + 1)),
                1 if family.slots => {
                    let count = 1 + rng.below(3) as u32;
                    freed += u64::from(count);
                    OpKind::FreeSlots(count)
                }
                2 if family.map => OpKind::Complete(Tag(u64::MAX - i)),
                _ => random_kind(rng, family, dies),
            };
            // a drive issues programs and erases only with other classes than host read
            let lowest = if matches!(kind, OpKind::Read { .. }) { 0 } else { 1 };
            let some = if family.map { 2 } else { 5 };
            let class = Class::ALL[(lowest + rng.below(some - lowest)) as usize];
            let after = if i == 0 {
                Vec::new()
            } else {
                (0..rng.below(3)).map(|_| rng.below(i) as usize).collect()
            };
            let (kind, sources) = copies(rng, family, kind);
            let (kind, after) = match kind {
                OpKind::Read { die, block, page, level, bytes, .. } if family.past => {
                    // this read names no operation, because it could otherwise wait for an erase
                    // that waits for it
                    let back = rng.below(i.min(12) + 1) as u32;
                    (OpKind::Read { die, block, page, level, bytes, back }, Vec::new())
                }
                kind => (kind, after),
            };
            Step { at, kind, class, after, sources }
        })
        .collect()
}

/// Returns the completion times and the totals of the engine. Without paths, an operation that
/// takes no time shares the node of the operation that it follows.
fn engine(
    steps: &[Step],
    times: &Times,
    (channels, dies): (u32, u32),
    paths: bool,
) -> (Vec<u64>, Totals) {
    let mut player = Player::new(&board(channels, dies), times.clone());
    if paths {
        player.engine.keep_paths();
    }
    let mut ids: Vec<OpId> = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let after: Vec<OpId> = step.after.iter().map(|&i| ids[i]).collect();
        ids.push(match step.sources[..] {
            [] => player.op(step.kind, step.class, &after),
            _ => player.copyback(step.kind, &step.sources, step.class, &after),
        });
        if steps.get(i + 1).is_none_or(|next| next.at > step.at) {
            player.issue(step.at);
        }
    }
    player.finish();
    for (step, &op) in steps.iter().zip(&ids).filter(|_| paths) {
        follows(&player, op, step.at);
    }
    let s = player.statistics();
    let ps = |times: &[Dur]| times.iter().map(|t| t.0).collect::<Vec<_>>();
    let shared = [s.core_busy, s.shared_dram.unwrap_or_default()];
    let bus_busy = [ps(&s.channel_busy), ps(&s.link_busy), ps(&shared)].concat();
    let (die_busy, active) = (ps(&s.die_busy), s.active.0);
    let totals = Totals { die_busy, bus_busy, die_time: s.die_time, active, suspends: s.suspends };
    (ids.into_iter().map(|op| player.done(op)).collect(), totals)
}

/// Asserts that the critical path of an operation has no gap, and begins when the operation was
/// issued.
fn follows(player: &Player, op: OpId, issued: u64) {
    let done = player.done(op);
    let path = player.engine.path(Some(Tag(op.0)), Ps(done), Ps(issued)).expect("it is complete");
    let mut upto = done;
    for step in &path {
        assert!(step.to.0 == upto && step.from < step.to, "{path:?}");
        assert!(step.reason != Reason::Layer, "{path:?}");
        upto = step.from.0;
    }
    assert_eq!(upto, issued, "{path:?}");
}

fn compare(family: Family) {
    let (mut suspends, mut raised, mut passed) = (0, (0, 0), 0);
    for case in 0..CASES {
        let mut rng = Rng::stream(Seed(case), family.name);
        let times = random_times(&mut rng, family);
        let (channels, dies) = (1 + rng.below(2) as u32, 1 + rng.below(3) as u32);
        let steps = random_steps(&mut rng, family, channels * dies, 2 + case / 75);
        let naive = Naive::run(&steps, &times, (channels, dies));
        let expected = naive.done();
        let (done, totals) = engine(&steps, &times, (channels, dies), case % 2 == 0);
        let list = || {
            let line = |(i, s): (usize, &Step)| {
                format!(
                    "{i} at {}: {:?} {:?} after {:?}: {} in the simulator, {} in the engine\n",
                    s.at, s.kind, s.class, s.after, expected[i], done[i]
                )
            };
            format!(
                "{}, case {case}, {channels} channels of {dies} dies\n{times:?}\n{}",
                family.name,
                steps.iter().enumerate().map(line).collect::<String>()
            )
        };
        assert!(done == expected, "completion times differ: {}", list());
        assert!(
            totals == naive.totals,
            "busy times differ: {totals:?} in the engine, {:?}; {}",
            naive.totals,
            list()
        );
        suspends += totals.suspends;
        raised = (raised.0 + naive.raised.0, raised.1 + naive.raised.1);
        passed += naive.passed;
    }
    assert_eq!(suspends > CASES / 10, family.suspend, "{}: {suspends} suspensions", family.name);
    assert_eq!(passed > CASES / 10, family.passed, "{}: {passed} went first", family.name);
    // reads of pages as they were name no operation, so there are few chains
    let enough = family.past || raised.0 > CASES / 5 && raised.1 > CASES / 20;
    assert!(enough || !family.map, "{}: {raised:?} reads of the map", family.name);
}

#[test]
fn plain() {
    compare(Family { name: "plain", span: 1_000_000, ..Family::default() });
}

#[test]
fn plain_with_coincidences() {
    compare(Family { name: "plain, ties", span: 4, ..Family::default() });
}

#[test]
fn cores() {
    let cores = Family { name: "cores", span: 1_000_000, cores: true, ..Family::default() };
    compare(cores);
    compare(Family { name: "cores, ties", span: 4, passed: true, ..cores });
    compare(Family { name: "cores, suspension", span: 6, command: true, suspend: true, ..cores });
    compare(Family { name: "cores, map", span: 50, command: true, map: true, ..cores });
}

#[test]
fn shared_dram() {
    let dram = Family { name: "dram", span: 1_000_000, dram: true, ..Family::default() };
    compare(dram);
    compare(Family { name: "dram, ties", span: 4, passed: true, ..dram });
    compare(Family { name: "dram, suspension", span: 6, command: true, suspend: true, ..dram });
    compare(Family { name: "dram, map", span: 50, command: true, map: true, ..dram });
    compare(Family { name: "dram, map, cores", span: 9, map: true, cores: true, ..dram });
    let more = Family { command: true, cache_read: true, cache_program: true, ..dram };
    compare(Family { name: "dram, caches, ties", span: 5, slots: true, ..more });
    compare(Family { name: "dram, copybacks", copybacks: true, past: true, ..more });
}

#[test]
fn commands() {
    compare(Family { name: "commands", span: 1_000_000, command: true, ..Family::default() });
    compare(Family { name: "commands, ties", span: 4, command: true, ..Family::default() });
}

#[test]
fn cache_program() {
    compare(Family {
        name: "cache program",
        span: 1_000_000,
        command: true,
        cache_program: true,
        ..Family::default()
    });
    compare(Family {
        name: "cache program, ties",
        span: 4,
        command: true,
        cache_program: true,
        ..Family::default()
    });
}

#[test]
fn suspension() {
    compare(Family {
        name: "suspension",
        span: 1_000_000,
        command: true,
        suspend: true,
        ..Family::default()
    });
    compare(Family {
        name: "suspension, ties",
        span: 6,
        command: true,
        suspend: true,
        ..Family::default()
    });
}

#[test]
fn cache_read_without_commands() {
    compare(Family { name: "cache read", span: 1_000_000, cache_read: true, ..Family::default() });
}

#[test]
fn cache_read_with_commands() {
    compare(Family {
        name: "cache read, commands",
        span: 1_000_000,
        command: true,
        cache_read: true,
        ..Family::default()
    });
    compare(Family {
        name: "cache read, ties",
        span: 4,
        command: true,
        cache_read: true,
        ..Family::default()
    });
}

#[test]
fn pages_as_they_were() {
    let past = Family { name: "past", span: 1_000_000, past: true, ..Family::default() };
    compare(past);
    compare(Family { name: "past, ties", span: 4, ..past });
    let more = Family { command: true, cache_read: true, cache_program: true, ..past };
    compare(Family { name: "past, caches", ..more });
    compare(Family { name: "past, all, ties", span: 6, suspend: true, ..more });
}

#[test]
fn slots_of_the_write_cache() {
    let slots = Family { name: "slots", span: 1_000_000, slots: true, ..Family::default() };
    compare(slots);
    compare(Family { name: "slots, ties", span: 4, ..slots });
}

#[test]
fn classes_that_are_passed_for_long() {
    let passed = Family { name: "passed", span: 1_000_000, passed: true, ..Family::default() };
    compare(passed);
    compare(Family { name: "passed, ties", span: 4, ..passed });
    let more = Family { command: true, cache_read: true, cache_program: true, ..passed };
    compare(Family { name: "passed, caches", ..more });
    compare(Family { name: "passed, suspension", command: true, suspend: true, ..passed });
    compare(Family { name: "passed, all, ties", span: 6, suspend: true, ..more });
}

#[test]
fn reads_of_the_map_that_host_reads_wait_for() {
    let map = Family { name: "map", span: 1_000_000, map: true, ..Family::default() };
    compare(map);
    compare(Family { name: "map, ties", span: 4, ..map });
    compare(Family { name: "map, suspension", command: true, suspend: true, ..map });
    let more = Family { command: true, cache_read: true, cache_program: true, ..map };
    compare(Family { name: "map, caches", ..more });
    compare(Family { name: "map, past", past: true, ..more });
    compare(Family { name: "map, passed, ties", span: 6, suspend: true, passed: true, ..more });
}

#[test]
fn copybacks() {
    let copies =
        Family { name: "copybacks", span: 1_000_000, copybacks: true, ..Family::default() };
    compare(copies);
    compare(Family { name: "copybacks, ties", span: 4, ..copies });
    let more = Family { command: true, cache_read: true, cache_program: true, ..copies };
    compare(Family { name: "copybacks, caches, ties", span: 5, ..more });
    compare(Family { name: "copybacks, past", past: true, ..more });
    compare(Family { name: "copybacks, suspension", command: true, suspend: true, ..copies });
}

#[test]
fn everything_at_once() {
    let all = Family {
        name: "all",
        span: 1_000_000,
        command: true,
        cache_read: true,
        cache_program: true,
        suspend: true,
        slots: true,
        past: false,
        passed: true,
        map: true,
        five_kinds: false,
        copybacks: false,
        cores: false,
        dram: false,
    };
    compare(all);
    compare(Family { name: "all, ties", span: 6, ..all });
    compare(Family { name: "all, many ties", span: 3, ..all });
    compare(Family { name: "all, many ties", span: 3, five_kinds: true, ..all });
    compare(Family { name: "all, copybacks", copybacks: true, five_kinds: true, ..all });
    compare(Family { name: "all, copybacks, ties", span: 6, copybacks: true, ..all });
    compare(Family { name: "all, cores", cores: true, copybacks: true, ..all });
    compare(Family { name: "all, cores, ties", span: 6, cores: true, ..all });
    compare(Family { name: "all, dram", dram: true, copybacks: true, cores: true, ..all });
    compare(Family { name: "all, dram, ties", span: 6, dram: true, ..all });
}
