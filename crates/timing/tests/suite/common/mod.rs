//! Player of plans that are written in a short notation.
//!
//! A script consists of lines. A line `at 500` sets the time at which the operations below it are
//! issued, after the events of that instant. Every other line is one operation,
//! `name = what where how after other names`:
//!
//! ```text
//! at 0
//!   a = read 0.1.2 upper x100        # die 0, its block 1, page 2, page kind, 100 bytes
//!   b = read 0.1.2 back-3 x100       # the page as it was three operations ago
//!   b = program 0.1.3 x100 gc        # a class takes the place of the usual one
//!   c = copyback 0.1.4 x16 of 0.2.3:upper 0.2.4   # die, block, page; 16 bytes; its sources
//!   c = erase 0.1 after a b
//!   d = sram 3 x8 store              # also dram, nvm: accesses, bytes of each
//!   e = in x512                      # host link towards the drive; out: from it
//!   f = delay 40 after e
//!   g = join after d f
//! ```
//!
//! Times are picoseconds. With the [`times`] of these tests, a byte takes 1 ps on a channel.

// every test file uses other parts of this module

use flashatlas_timing::{Engine, Finished, Statistics, Times};
use flashatlas_types::{
    AllocationOrder, Cause, Cell, Class, CopySource, DieBlock, Dur, Geometry, Layout, MemoryKind,
    OpId, OpKind, Plan, Ps, Span, Tag,
};
use std::collections::BTreeMap;

/// Number of blocks on each die of a board.
pub const BLOCKS: u32 = 8;

/// Returns a board of `channels` channels with `dies` dies each. Dies 0 to `dies - 1` are on
/// channel 0, the next dies on channel 1, and so on.
pub fn board(channels: u32, dies: u32) -> Layout {
    let geometry = Geometry {
        channels,
        ways: dies,
        dies: 1,
        planes: 1,
        blocks: BLOCKS,
        pages: 16,
        page_bytes: 4096,
        spare_bytes: 128,
        cell: Cell::Tlc,
    };
    // with ways before channels, a lane and its die have the same number
    Layout::new(geometry, Span::ONE, 4096, AllocationOrder::parse("WDPC").unwrap(), 1).unwrap()
}

/// Returns the usual times in picoseconds: tR 1000, 1300, 1700 and 2200, 400 in SLC mode; tPROG
/// 5000, 6000, 8000 and 9000, 700 in SLC mode, 2000, 2500 and 4000 for steps; tBERS 20000; 1 a byte
/// on a channel. Commands and the link take no time. There are no cache operations and no
/// suspensions. The classes rank in this order: host reads, map, host writes, collection, idle
/// work.
pub fn times() -> Times {
    Times {
        read: [Dur(1_000), Dur(1_300), Dur(1_700), Dur(2_200), Dur(400)],
        program: [5_000, 6_000, 8_000, 9_000, 700, 2_000, 2_500, 4_000].map(Dur),
        erase: Dur(20_000),
        channel_rate: 1_000_000_000_000,
        rank: [0, 1, 2, 3, 4],
        full_duplex: true,
        ..Times::default()
    }
}

/// Returns [`times`] with changes.
pub fn times_with(change: impl FnOnce(&mut Times)) -> Times {
    let mut t = times();
    change(&mut t);
    t
}

/// Returns block `block` of a die.
pub fn block(die: u32, block: u32) -> DieBlock {
    DieBlock::new(die * BLOCKS + block)
}

/// Returns a read of the lower page 0 of a die's block.
pub fn read(die: u32, at: u32, bytes: u32) -> OpKind {
    OpKind::Read { die, block: block(die, at), page: 0, level: 0, bytes, back: 0 }
}

/// Returns a program of a lower page of a die's block.
pub fn program(die: u32, at: u32, page: u32, bytes: u32) -> OpKind {
    OpKind::Program { die, block: block(die, at), page, level: 0, bytes }
}

/// An engine, the next plan for it, and the time at which each operation was complete.
pub struct Player {
    pub engine: Engine,
    pub plan: Plan,
    done: BTreeMap<OpId, u64>,
    names: BTreeMap<String, OpId>,
}

impl Player {
    pub fn new(layout: &Layout, times: Times) -> Player {
        let engine = Engine::new(layout, times);
        Player { engine, plan: Plan::default(), done: BTreeMap::new(), names: BTreeMap::new() }
    }

    /// Adds an operation and, after it, an [`OpKind::Complete`] whose tag is the operation's
    /// number. The distance `back` of a read counts operations that were added with this function.
    pub fn op(&mut self, mut kind: OpKind, class: Class, after: &[OpId]) -> OpId {
        if let OpKind::Read { back, .. } = &mut kind {
            *back *= 2;
        }
        let op = self.plan.push(kind, class, after);
        // with class host read, this operation would raise the reads of the map for which it waits
        self.plan.push(OpKind::Complete(Tag(op.0)), Class::HostWrite, &[op]);
        op
    }

    /// Adds a copyback of these sources as [`Player::op`] adds an operation.
    pub fn copyback(
        &mut self,
        kind: OpKind,
        sources: &[CopySource],
        class: Class,
        after: &[OpId],
    ) -> OpId {
        let cause = match class {
            Class::Map => Cause::Map,
            Class::Gc => Cause::Gc,
            Class::Idle => Cause::Idle,
            Class::HostRead | Class::HostWrite => Cause::Host,
        };
        let op = self.plan.push_copyback(kind, sources, cause, after);
        self.plan.push(OpKind::Complete(Tag(op.0)), Class::HostWrite, &[op]);
        op
    }

    /// Handles the events up to `at`, and then issues the added operations.
    pub fn issue(&mut self, at: u64) {
        self.advance(Ps(at));
        self.engine.issue(Ps(at), &self.plan);
        self.plan.clear();
        self.advance(Ps(at));
    }

    pub fn advance(&mut self, until: Ps) {
        let mut out = Vec::new();
        self.engine.advance(until, &mut out);
        for Finished { tag, at } in out {
            assert_eq!(self.done.insert(OpId(tag.0), at.0), None, "operation {tag} completes once");
        }
    }

    /// Handles all events.
    pub fn finish(&mut self) {
        self.advance(Ps::MAX);
        assert_eq!(self.engine.unfinished(), 0, "{}", self.engine.explain());
    }

    /// Returns the time at which an operation was complete.
    #[track_caller]
    pub fn done(&self, op: OpId) -> u64 {
        *self.done.get(&op).unwrap_or_else(|| panic!("operation {op} is not complete"))
    }

    /// Returns the busy times so far.
    pub fn statistics(&mut self) -> Statistics {
        self.engine.statistics()
    }

    fn line(&mut self, line: &str) {
        let (name, what) = line.split_once('=').unwrap_or_else(|| panic!("`{line}` has no name"));
        let (what, after) = what.split_once(" after ").unwrap_or((what, ""));
        let after: Vec<OpId> = after.split_whitespace().map(|n| self.names[n]).collect();
        let (what, of) = what.split_once(" of ").unwrap_or((what, ""));
        let (kind, class) = operation(&what.split_whitespace().collect::<Vec<_>>());
        let sources: Vec<CopySource> = of.split_whitespace().map(source).collect();
        let op = match sources[..] {
            [] => self.op(kind, class, &after),
            _ => self.copyback(kind, &sources, class, &after),
        };
        assert!(
            self.names.insert(name.trim().to_owned(), op).is_none(),
            "{name} names two operations"
        );
    }
}

/// Plays `script`. Asserts that each operation named in `expected` is complete at its time, and not
/// complete one picosecond earlier.
#[track_caller]
pub fn expect(layout: &Layout, times: Times, script: &str, expected: &[(&str, u64)]) -> Player {
    let mut groups: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut at = 0;
    for line in
        script.lines().map(|l| l.split('#').next().unwrap().trim()).filter(|l| !l.is_empty())
    {
        match line.strip_prefix("at ") {
            Some(instant) => at = instant.trim().parse().unwrap(),
            None => groups.entry(at).or_default().push(line),
        }
    }
    let mut stops: Vec<u64> = groups.keys().copied().collect();
    stops.extend(expected.iter().flat_map(|&(_, t)| [t.saturating_sub(1), t]));
    stops.sort_unstable();
    stops.dedup();
    let mut player = Player::new(layout, times);
    for stop in stops {
        player.advance(Ps(stop));
        if let Some(lines) = groups.get(&stop) {
            lines.iter().for_each(|line| player.line(line));
            player.issue(stop);
        }
        for &(name, time) in expected {
            let Some(&op) = player.names.get(name) else {
                assert!(stop < time, "{name} is due at {time} and not yet issued at {stop}");
                continue;
            };
            let complete = player.engine.is_complete(op);
            assert_eq!(
                complete,
                stop >= time,
                "{name} is due at {time}; at {stop} complete is {complete}"
            );
        }
    }
    player.finish();
    for &(name, time) in expected {
        assert_eq!(player.done(player.names[name]), time, "completion of {name}");
    }
    player
}

/// Plays a script as [`expect`] does, on two channels of two dies.
#[track_caller]
pub fn expect_small(times: Times, script: &str, expected: &[(&str, u64)]) -> Player {
    expect(&board(2, 2), times, script, expected)
}

const KINDS: [&str; 5] = ["lower", "middle", "upper", "top", "slc"];

/// Returns the source of a copyback, which is given as a place and a page kind.
fn source(text: &str) -> CopySource {
    let (place, kind) = text.split_once(':').unwrap_or((text, "lower"));
    let numbers: Vec<u32> = place.split('.').map(|n| n.parse().unwrap()).collect();
    let level = KINDS.iter().position(|&k| k == kind).unwrap() as u8;
    CopySource { block: block(numbers[0], numbers[1]), page: numbers[2], level }
}

fn operation(words: &[&str]) -> (OpKind, Class) {
    let place = |i: usize| words[1].split('.').nth(i).and_then(|n| n.parse::<u32>().ok()).unwrap();
    let on = || block(place(0), place(1));
    let level = KINDS.iter().position(|l| words.contains(l)).unwrap_or(0) as u8;
    let bytes = words.iter().find_map(|w| w.strip_prefix('x')).map_or(0, |n| n.parse().unwrap());
    let back = words.iter().find_map(|w| w.strip_prefix("back-")).map_or(0, |n| n.parse().unwrap());
    let number = || words[1].parse::<u32>().unwrap();
    let memory = |kind| {
        let memory =
            OpKind::Memory { kind, accesses: number(), bytes, write: words.contains(&"store") };
        (memory, Class::HostWrite)
    };
    let (kind, usual) = match words[0] {
        "read" => (
            OpKind::Read { die: place(0), block: on(), page: place(2), level, bytes, back },
            Class::HostRead,
        ),
        "program" => (
            OpKind::Program { die: place(0), block: on(), page: place(2), level, bytes },
            Class::HostWrite,
        ),
        "copyback" => {
            let (die, block, page, first, count) = (place(0), on(), place(2), 0, 0);
            (OpKind::Copyback { die, block, page, level, bytes, first, count }, Class::Gc)
        }
        "erase" => (OpKind::Erase { die: place(0), block: on() }, Class::Gc),
        "sram" => memory(MemoryKind::Sram),
        "dram" => memory(MemoryKind::Dram),
        "nvm" => memory(MemoryKind::Nvm),
        "in" => (OpKind::Link { inbound: true, bytes: u64::from(bytes) }, Class::HostWrite),
        "out" => (OpKind::Link { inbound: false, bytes: u64::from(bytes) }, Class::HostRead),
        "delay" => (OpKind::Delay(Dur(number().into())), Class::HostWrite),
        "join" => (OpKind::Join, Class::HostWrite),
        "free" => (OpKind::FreeSlots(number()), Class::HostWrite),
        // the tag is not the number of any operation of the script
        "complete" => (OpKind::Complete(Tag(u64::MAX)), Class::HostWrite),
        "await" => (OpKind::AwaitSlots(number().into()), Class::HostWrite),
        other => panic!("no operation is called `{other}`"),
    };
    (kind, Class::ALL.into_iter().find(|c| words.contains(&c.name())).unwrap_or(usual))
}
