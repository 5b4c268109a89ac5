//! Tests of values that were worked out without the engine: in closed form from the recurrence, or
//! from the definition of each hash.

use flashatlas_dram::{CommandKind, Dram, PRESETS, Queue, Rules};
use flashatlas_lookup::hashes::STANDARD;
use flashatlas_lookup::study::{LookupRequest, Study, Summary, params, settings};
use flashatlas_types::{DramAccess, RawConfig, Rng, Seed};

fn uniform_sets(lookups: u64, set: &[&str]) -> Summary {
    let given: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    let mut study = Study::new(STANDARD, &settings(STANDARD, &given).unwrap()).unwrap();
    let mut rng = Rng::stream(Seed(1), "uniform sets");
    for _ in 0..lookups {
        study.ask(LookupRequest::Set(rng.below(1 << 17) as u32)).unwrap();
    }
    study.finish()
}

fn clocks(set: &[&str]) -> f64 {
    uniform_sets(100_000, set).clocks_per_lookup()
}

const PAPER: &str = "dram.constraints=none";
const REAL: &str = "dram.constraints=ras,rrd,faw,ccd_l";

fn near(found: f64, expected: f64, within: f64) {
    assert!(
        (found - expected).abs() <= within,
        "{found} clocks a lookup, {expected} were expected"
    );
}

/// The eight reads of a set follow each other at intervals of CCD (7 x 4). The first read of the
/// next set follows after RTP + RP + RCD = 23 in the same bank, and after CCD in another bank. For
/// a hundred thousand random sets, the standard error of the share in the same bank is 0.0014,
/// which is 0.03 clocks of 19.
#[test]
fn the_recurrence_alone() {
    near(clocks(&["lookup.policy=single", PAPER]), 28.0 + 23.0, 0.03);
    // in a quarter of all cases, a set is in the bank of the previous set
    near(clocks(&["lookup.policy=set-mod", PAPER]), 32.0 + 19.0 / 4.0, 0.1);
    // each bank is idle during six reads, which hides the whole row change
    near(clocks(&["lookup.policy=dynamic", PAPER]), 32.0, 0.03);
    near(clocks(&["lookup.policy=striped", PAPER]), 32.0, 0.03);
    // the second read of the first bank is the fifth read; three other reads hide 12 of 23 clocks,
    // and 4 are its own, so 7 clocks remain
    near(clocks(&["lookup.policy=dynamic", "lookup.probe=abcd", PAPER]), 39.0, 0.03);
}

/// The same with tRAS 24, tRRD 4, tFAW 17 and tCCD_L 5, so that reads of one bank are 5 clocks
/// apart.
#[test]
fn with_realistic_constraints() {
    near(clocks(&["lookup.policy=single", REAL]), 35.0 + 23.0, 0.03);
    near(clocks(&["lookup.policy=set-mod", REAL]), 35.0 + 4.0 + 19.0 / 4.0, 0.1);
    near(clocks(&["lookup.policy=dynamic", REAL]), 4.0 * (5.0 + 4.0), 0.03);
    near(clocks(&["lookup.policy=dynamic", "lookup.probe=abcd", REAL]), 39.0, 0.03);
}

/// Three reads of one bank. The first read and the last read are of the same row. In order, each
/// read opens its row, and comes 23 clocks after the previous read. A queue first serves the read
/// whose row is open, so the reads follow after 4 and then 23 clocks.
#[test]
fn a_queue_takes_the_open_row_first() {
    let preset = PRESETS.iter().find(|p| p.name == "table-1").unwrap();
    let read = |row| DramAccess { bank: 0, row, bursts: 1, write: false, dependent: false };
    let mut dram = Dram::new(&preset.device, &preset.timings, Rules::NONE);
    let mut queue = Queue::new(3);
    (0..).zip([7, 8, 7]).for_each(|(owner, row)| queue.push(read(row), owner, 0));
    let mut served = Vec::new();
    while let Some(burst) = queue.serve_one(&mut dram, &mut |_| {}) {
        served.push((burst.owner, burst.served.last));
    }
    let first = i64::from(preset.timings.rcd);
    assert_eq!(served, [(0, first), (2, first + 4), (1, first + 4 + 23)]);
}

/// A queue of 32 bursts holds four lookups. With a queue, sets that are each in one bank are as
/// fast as sets spread over all banks. The reason is that the reads of another lookup are ready
/// when a bank must be closed. A single bank does not become faster, because its rows come in the
/// same order. The data bus alone takes 32 clocks. Ramulator 2.1 (commit c5b1c3a, `FRFCFSRowHit`, a
/// queue of 32) took 33.1 clocks for sets in one of four banks, and 34.4 with refreshes. In order,
/// the sets take 43.7 and 45.4 clocks.
#[test]
fn a_queue_makes_up_for_the_order_of_banks() {
    const QUEUE: &str = "lookup.queue=32";
    let queued = |policy, rules| clocks(&[policy, rules, QUEUE]);
    near(queued("lookup.policy=single", REAL), 58.0, 0.1);
    near(queued("lookup.policy=set-mod", "dram.constraints=all"), 34.43, 0.35);
    near(queued("lookup.policy=set-mod", REAL), 33.13, 0.4);
    for policy in ["lookup.policy=set-mod", "lookup.policy=dynamic", "lookup.policy=striped"] {
        near(queued(policy, PAPER), 32.0, 0.2);
        near(queued(policy, REAL), 33.0, 0.5);
        let (all, lookups) = (uniform_sets(10_000, &[policy, REAL, QUEUE]), 10_000);
        assert_eq!((all.lookups, all.reads), (lookups, 8 * lookups), "{policy}");
    }
}

/// A chain that waits for its sets takes as long in a queue as without one.
#[test]
fn what_depends_on_what_was_read_waits_for_it() {
    let files = |set: &[&str]| {
        let given: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let mut study = Study::new(STANDARD, &settings(STANDARD, &given).unwrap()).unwrap();
        let mut rng = Rng::stream(Seed(1), "files");
        for _ in 0..2_000 {
            study.ask(LookupRequest::Pages(rng.below(1 << 20) as u32, 1)).unwrap();
        }
        study.finish()
    };
    let tables = ["lookup.sets=256", "lookup.ways=8", "lookup.secondary_sets=256", PAPER];
    let clocks = |more: &[&str]| files(&[&tables[..], more].concat()).clocks_per_lookup();
    let (stream, wait) = ("lookup.chain=stream", "lookup.chain=wait");
    let gain = clocks(&[wait]) / clocks(&[wait, "lookup.queue=16"]);
    assert!(clocks(&[wait]) > 1.2 * clocks(&[stream]), "chains wait");
    assert!((0.9..2.0).contains(&gain), "{gain}");
    let queued = |chain| clocks(&[chain, "lookup.queue=16"]);
    assert!(queued(wait) > queued(stream), "in a queue as well");
}

#[test]
fn a_queue_needs_lookups_that_are_known() {
    for (with, said) in [
        ("lookup.look_ahead=4", "lookup.look_ahead above 0"),
        ("lookup.changes=timed", "lookup.changes = timed"),
    ] {
        let params = settings(STANDARD, &["lookup.queue=8".to_owned(), with.to_owned()]).unwrap();
        let error = Study::new(STANDARD, &params).err().expect("refused").to_string();
        assert!(error.contains("lookup.queue") && error.contains(said), "{error}");
    }
}

/// The table of Fig. 6, taken literally, returns 23 + 7 x 4 clocks for one bank. In rotation over
/// four banks, it returns four reads at distance 4 (11 clocks each) and four row hits. This is
/// more, although the commands overlap. Because of this paradox, the table cannot be used as an
/// engine.
#[test]
fn the_paper_table_taken_literally() {
    let paper = |set: &[&str]| {
        let s = uniform_sets(100_000, set);
        s.paper_clocks as f64 / s.lookups as f64
    };
    near(paper(&["lookup.policy=single", PAPER]), 51.0, 0.03);
    near(
        paper(&["lookup.policy=dynamic", "lookup.probe=abcd", PAPER]),
        4.0 * 11.0 + 4.0 * 4.0,
        0.03,
    );
    near(paper(&["lookup.policy=dynamic", PAPER]), 32.0, 0.03);
}

#[test]
fn keys() {
    let key = |set: &str, la: u32| {
        let mut raw = RawConfig::default();
        let name = set.split(' ').next().unwrap();
        raw.set("lookup.hash", name, "test");
        for setting in set.split(' ').skip(1) {
            let (key, value) = setting.split_once('=').unwrap();
            raw.set(&format!("lookup.{key}"), value, "test");
        }
        let params = raw.resolve(&params(STANDARD), |_| None).unwrap();
        (STANDARD.named(name).unwrap().build)(&params, 20, 17).unwrap().key(la)
    };
    let top = 0b101 << 17;
    assert_eq!(key("shifting", top + 345), 345);
    assert_eq!(key("shifting shift=3", 345 << 3 | 5), 345);
    assert_eq!(key("division", 131_071 * 3 + 7), 7);
    assert_eq!(key("division divisor=131_072", 131_072 * 3 + 7), 7);
    assert_eq!(key("division divisor=100", 12_345), 45);
    // the parts of 17 bits are 5 and 345; the sum wraps at 2^17
    assert_eq!(key("folding", top + 345), 350);
    assert_eq!(key("folding", top + 131_070), 3);
    assert_eq!(key("folding fold=xor", top + 345), 345 ^ 5);
    // the address consists of parts of 9 bits: 0x0a3 | 0x1ff << 9 | 2 << 18
    assert_eq!(key("folding fold_bits=9", 0x0a3 + (0x1ff << 9) + (2 << 18)), 0x0a3 + 0x1ff + 2);
    // the bits of the second part are reversed: 0b000000011 becomes 0b110000000
    assert_eq!(key("folding fold=boundary fold_bits=9", 1 + (3 << 9)), 1 + 0b1_1000_0000);
    // Lin (1963): 345 in base 10 is 3 x 121 + 4 x 11 + 5 in base 11
    assert_eq!(key("radix", 345), 412);
    assert_eq!(key("radix radix_from=9 radix_to=11", 9 * 9 + 2 * 9 + 1), 121 + 22 + 1);
    assert_eq!(key("radix", 999_999), (9 * (161_051 + 14_641 + 1331 + 121 + 11 + 1)) % (1 << 17));
}

/// Requests that are served together give the same results as requests served one by one.
#[test]
fn batches_change_nothing() {
    let run = |one_by_one: bool| {
        let mut study = Study::new(
            STANDARD,
            &settings(STANDARD, &["lookup.sets=4096".into(), "lookup.hash=mixer".into()]).unwrap(),
        )
        .unwrap();
        let mut rng = Rng::stream(Seed(5), "asks");
        let asks: Vec<LookupRequest> = (0..60_000)
            .map(|_| match rng.below(30) {
                0 => LookupRequest::Delete(rng.below(1 << 15) as u32),
                1 => LookupRequest::Set(rng.below(4096) as u32),
                _ => LookupRequest::Pages(rng.below(1 << 15) as u32, 1),
            })
            .collect();
        if one_by_one {
            asks.iter().for_each(|&ask| study.ask(ask).unwrap())
        } else {
            study.ask_all(&asks).unwrap()
        }
        study.tables().check().unwrap();
        format!("{:?}", study.finish())
    };
    assert_eq!(run(true), run(false));
}

/// By Table I, the data of a read has arrived 13 clocks after its command (CL + DL), and a row
/// opens in 9 clocks.
#[test]
fn what_depends_on_data_waits_for_it() {
    let preset = &PRESETS[0];
    let at = |bank, row, write, dependent| DramAccess { row, bank, bursts: 1, write, dependent };
    let serve = |accesses: &[DramAccess]| {
        let mut dram = Dram::new(&preset.device, &preset.timings, Rules::NONE);
        let mut commands = Vec::new();
        let served = dram.serve_all(accesses, 100, &mut |c| commands.push((c.at, c.what)));
        (commands, served.data)
    };
    let (side_by_side, end) = serve(&[at(0, 1, false, false), at(1, 1, false, false)]);
    assert_eq!(side_by_side.iter().map(|c| c.0).collect::<Vec<_>>(), [100, 109, 100, 113]);
    assert_eq!(end, 113 + 13);
    let (in_turn, end) =
        serve(&[at(0, 1, false, false), at(1, 1, false, true), at(2, 1, true, true)]);
    // the data arrives at 109 + 13 and at 122 + 9 + 13; a store waits for the last load, and its
    // data follows CWL later
    assert_eq!(in_turn.iter().map(|c| c.0).collect::<Vec<_>>(), [100, 109, 122, 131, 144, 153]);
    assert_eq!((in_turn[5].1, end), (CommandKind::Write, 153 + 9 + 4));
    // a store returns no data for which another store could wait
    let (stores, _) = serve(&[at(0, 1, true, true), at(1, 1, true, true)]);
    assert_eq!(stores.iter().map(|c| c.0).collect::<Vec<_>>(), [100, 109, 100, 113]);
}
