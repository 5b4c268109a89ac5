//! Reference counts of FAST and BAST on five traces, on which independent programs agree.
//!
//! The traces come from a linear congruential generator, which this file repeats from the
//! reference. The counts come from programs that were written independently of this one: two
//! programs for FAST, and one for BAST.

use crate::environment;
use flashatlas_sim::{RunSpec, Stream, run};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Cursor;

const PAGES: u64 = 16_384;
const WRITES: u64 = 50_000;
const PAGES_PER_BLOCK: u64 = 64;

struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns the first page and the number of pages of each write.
fn requests(kind: &str) -> Vec<(u64, u64)> {
    let mut rng = Lcg(1);
    let (mut all, mut written) = (Vec::new(), 0);
    while written < WRITES {
        let request = match kind {
            "seq" => (written % PAGES, 1),
            "uniform" => (rng.below(PAGES), 1),
            "hotcold" => {
                let hot = PAGES / 10;
                let first =
                    if rng.below(10) < 9 { rng.below(hot) } else { hot + rng.below(PAGES - hot) };
                (first, 1)
            }
            "mixed" if rng.below(4) == 0 => {
                let count = PAGES_PER_BLOCK * (1 + rng.below(4));
                (rng.below(PAGES / PAGES_PER_BLOCK - 4) * PAGES_PER_BLOCK, count)
            }
            "mixed" => (rng.below(PAGES), 1),
            _ => {
                let count = 1 + rng.below(PAGES_PER_BLOCK);
                (rng.below(PAGES / PAGES_PER_BLOCK) * PAGES_PER_BLOCK, count)
            }
        };
        written += request.1;
        all.push(request);
    }
    all
}

fn record(scheme: &str, kind: &str) -> Value {
    let mut log = "fio version 2 iolog\n/dev/golden add\n/dev/golden open\n".to_owned();
    for (first, count) in requests(kind) {
        writeln!(log, "/dev/golden write {} {}", first * 2048, count * 2048).unwrap();
    }
    let spec: RunSpec = serde_json::from_value(json!({
        "drive": "mast-4gb", "trace": "golden.iolog", "precondition": "fill", "mode": "untimed",
        "set": ["drive.logical_pages=16384", "ftl.log_blocks=16", format!("ftl.scheme={scheme}")],
    }))
    .unwrap();
    let opener = |_: &str| -> std::io::Result<Stream> {
        Ok((Box::new(Cursor::new(log.clone().into_bytes())), None))
    };
    let record = run(&spec, &environment(&opener), &mut |_| true)
        .unwrap_or_else(|e| panic!("{scheme}, {kind}: {e}"))
        .record;
    assert_eq!(record["oracle"]["violations"], 0);
    record
}

/// Returns the counts of a record that the reference contains.
///
/// The reference counts full merges of the sequential log block separately from the other full
/// merges.
fn counts(record: &Value) -> [u64; 8] {
    let m = &record["merges"];
    let n = |of: &str, class: &str| m[of][class].as_u64().unwrap();
    let sequential = m["sequential_full"].as_u64().unwrap();
    let dead = n("log_blocks", "dead");
    [
        n("data_blocks", "switch"),
        n("data_blocks", "partial"),
        sequential,
        n("data_blocks", "full") - sequential,
        n("log_blocks", "full") - sequential + dead,
        dead,
        m["copies"].as_u64().unwrap(),
        record["nand"]["erases"]["merge"].as_u64().unwrap_or(0),
    ]
}

#[test]
fn fast_counts_what_two_other_programs_count() {
    // switch, partial, full_sw, full, log_victims, dead, copies, erases
    for (kind, expected) in [
        ("seq", [781, 0, 0, 0, 0, 0, 0, 781]),
        ("uniform", [0, 835, 0, 9960, 751, 0, 689_889, 11_546]),
        ("hotcold", [0, 805, 0, 4369, 747, 2, 329_848, 5921]),
        ("mixed", [766, 19, 0, 0, 0, 0, 1197, 785]),
        ("partial", [28, 1510, 0, 0, 0, 0, 48_456, 1538]),
    ] {
        assert_eq!(counts(&record("fast", kind)), expected, "{kind}");
    }
}

#[test]
fn bast_counts_what_another_program_counts() {
    // switch, partial, full, copies, erases
    for (kind, [switch, partial, full, copies, erases]) in [
        ("seq", [766, 0, 0, 0, 766]),
        ("uniform", [0, 728, 46_177, 3_001_192, 93_082]),
        ("hotcold", [0, 219, 25_749, 1_661_730, 51_717]),
        ("mixed", [732, 15, 935, 60_785, 2617]),
        ("partial", [27, 1316, 142, 51_802, 1627]),
    ] {
        // in BAST, every reclaimed log block costs one merge, and no log block is dead
        let expected = [switch, partial, 0, full, full, 0, copies, erases];
        assert_eq!(counts(&record("bast", kind)), expected, "{kind}");
    }
}

/// Checks the two extremes of N:K association, which are BAST and nearly FAST.
///
/// With one logical block and one log block in a group, N:K association is BAST. With one group
/// over the whole drive, it is FAST without a sequential log block, and uniform writes cause no
/// partial merges.
#[test]
fn the_ends_of_the_family_meet() {
    let settings = |scheme: &str, set: &[&str]| {
        let mut all = vec!["drive.logical_pages=16384", "ftl.log_blocks=16"];
        all.extend(set);
        let scheme = format!("ftl.scheme={scheme}");
        all.push(&scheme);
        let spec: RunSpec = serde_json::from_value(json!({
            "drive": "mast-4gb", "workload": "uniform:requests=20000,size=2KiB,read=0.2",
            "precondition": "fill", "mode": "untimed", "set": all,
        }))
        .unwrap();
        let none = |_: &str| -> std::io::Result<Stream> { unreachable!("nothing is read") };
        run(&spec, &environment(&none), &mut |_| true).unwrap_or_else(|e| panic!("{e}")).record
    };
    let bast = settings("bast", &[]);
    let one = settings("sast", &["ftl.group_blocks=1", "ftl.group_log_blocks=1"]);
    assert_eq!(bast["merges"], one["merges"]);
    assert_eq!(bast["nand"], one["nand"]);
    let all = settings("sast", &["ftl.group_blocks=256", "ftl.group_log_blocks=16"]);
    let fast = settings("fast", &[]);
    let full = |r: &Value| r["merges"]["data_blocks"]["full"].as_f64().unwrap();
    assert!((full(&all) / full(&fast) - 1.0).abs() < 0.1, "{} {}", full(&all), full(&fast));
}
