//! Tests that the table of transitions and the engine serve the same operations in the same clocks.

use super::brute_force::{random_device, rules};
use flashatlas_dram::{Device, Dram, PRESETS, Rules, Timings, Transitions};
use flashatlas_types::{DramAccess, Rng, Seed};

/// A kind of operations. The numbers are: the banks that an operation visits in turn, the bursts of
/// an access, the rows to draw from, the odd accesses in a million, and the longest gap between
/// operations in clocks. With 0 banks, the banks are random, and the table is soon no longer used.
/// `odd` accesses in a million are writes, and as many wait for earlier accesses.
struct Kind {
    name: &'static str,
    banks: u64,
    bursts: u64,
    rows: u64,
    odd: u32,
    gap: u64,
    /// `true` if nearly every operation is found in the table.
    returns: bool,
}

const KINDS: &[Kind] = &[
    Kind { name: "sets", banks: 4, bursts: 2, rows: 1 << 14, odd: 0, gap: 0, returns: true },
    Kind { name: "bursts", banks: 4, bursts: 1, rows: 1 << 14, odd: 0, gap: 0, returns: true },
    Kind { name: "one bank", banks: 1, bursts: 8, rows: 1 << 14, odd: 0, gap: 0, returns: true },
    Kind { name: "few rows", banks: 4, bursts: 2, rows: 2, odd: 0, gap: 0, returns: false },
    Kind { name: "waits", banks: 2, bursts: 1, rows: 2, odd: 100_000, gap: 0, returns: false },
    Kind { name: "known late", banks: 4, bursts: 2, rows: 64, odd: 0, gap: 40, returns: false },
    Kind { name: "rests", banks: 2, bursts: 3, rows: 3, odd: 50_000, gap: 9000, returns: false },
    Kind { name: "random", banks: 0, bursts: 4, rows: 3, odd: 50_000, gap: 0, returns: false },
];

struct Pair {
    plain: Dram,
    table: Transitions,
}

impl Pair {
    fn new(device: &Device, timings: &Timings, rules: Rules) -> Pair {
        let plain = Dram::new(device, timings, rules);
        Pair { table: Transitions::new(plain.clone()), plain }
    }

    fn play(&mut self, kind: &Kind, device: &Device, count: u64, rng: &mut Rng) {
        let (mut clock, mut turned) = (0, 0);
        for turn in 0..count {
            clock = (self.plain.newest() - 300).max(clock + rng.below(kind.gap + 1) as i64);
            // sometimes a gap of 2^32 clocks, which does not fit in 32 bits
            clock += i64::from(rng.chance(5_000)) << 32;
            let from = if kind.gap > 0 { clock.max(0) } else { 0 };
            let access = |bank: u64, rng: &mut Rng| DramAccess {
                bank: (bank % u64::from(device.banks)) as u8,
                row: rng.below(kind.rows) as u32,
                bursts: kind.bursts as u16,
                write: rng.chance(kind.odd),
                dependent: rng.chance(kind.odd),
            };
            let accesses: Vec<DramAccess> = match kind.banks {
                0 => (0..=rng.below(2)).map(|_| access(rng.below(64), rng)).collect(),
                banks => (0..banks).map(|n| access(n + turned, rng)).collect(),
            };
            turned += u64::from(rng.chance(1_000));
            let what = format!("{} {turn}, {accesses:?} from {from}", kind.name);
            let expected = self.plain.serve_all(&accesses, from, &mut |_| {});
            assert_eq!(self.table.serve_all(&accesses, from), expected, "{what}");
            let counts = (self.plain.activations, self.plain.refreshes);
            assert_eq!(self.table.counts(), counts, "{what}");
            if rng.chance(2_000) {
                // between the operations that the table serves, the device itself serves an
                // operation
                let one = [access(rng.below(64), rng)];
                let served = self.table.dram().serve_all(&one, from, &mut |_| {});
                assert_eq!(served, self.plain.serve_all(&one, from, &mut |_| {}), "{what}");
                assert_eq!(self.table.dram().bursts, self.plain.bursts, "{what}");
            }
        }
    }
}

/// Plays every kind on every preset with all rules, with no rule and with some rules. Each table
/// starts empty.
#[test]
fn a_table_serves_as_the_engine_does() {
    let mut rng = Rng::stream(Seed(1), "transitions");
    let mut found = [0; KINDS.len()];
    for preset in PRESETS {
        for bits in [63, 0, rng.below(64), rng.below(64)] {
            let rules = rules(bits);
            for (kind, of_kind) in KINDS.iter().zip(&mut found) {
                let mut pair = Pair::new(&preset.device, &preset.timings, rules);
                pair.play(kind, &preset.device, 6_000, &mut rng);
                let (hits, misses) = pair.table.hits_and_misses();
                let name = format!("{} on {}, rules {bits}", kind.name, preset.name);
                *of_kind += hits;
                assert!(!kind.returns || hits > 5 * misses, "{name}: {hits} of {misses}");
            }
        }
    }
    for (kind, hits) in KINDS.iter().zip(found) {
        assert!(hits > 0 || kind.banks == 0, "{}: no transition was ever used", kind.name);
    }
}

/// Plays operations of every kind on one table, one kind after the other.
#[test]
fn a_table_serves_whatever_comes() {
    let mut rng = Rng::stream(Seed(2), "transitions");
    for preset in PRESETS {
        let mut pair = Pair::new(&preset.device, &preset.timings, Rules::ALL);
        for kind in KINDS.iter().chain(KINDS) {
            pair.play(kind, &preset.device, 1_500, &mut rng);
        }
    }
}

/// Plays random devices, on which other constraints decide than on the presets.
#[test]
fn a_table_serves_on_any_device() {
    let mut rng = Rng::stream(Seed(3), "transitions");
    for _ in 0..60 {
        let (device, timings, rules) = random_device(&mut rng);
        let mut pair = Pair::new(&device, &timings, rules);
        KINDS.iter().for_each(|kind| pair.play(kind, &device, 400, &mut rng));
    }
}
