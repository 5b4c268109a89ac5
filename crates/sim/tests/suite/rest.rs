//! Runs on drives that rested until pages, or all of their data, could not be read.
//!
//! A unit whose newest copy cannot be read gives an error. It never reads as zeros or as an older
//! version. The run itself checks this: after the rest, every unit holds what it held before, or is
//! lost.

use crate::environment;
use flashatlas_sim::{Outcome, RunError, RunSpec, Stream, run};
use flashatlas_types::{Rng, Seed};
use serde_json::{Value, json};
use std::io::Cursor;

/// Returns a trace that writes 200 units in order, and then 400 units at random.
fn overwritten() -> String {
    let mut rng = Rng::stream(Seed(1), "test");
    let mut log = "fio version 2 iolog\n/dev/a add\n/dev/a open\n".to_owned();
    for n in 0..600_u64 {
        let unit = if n < 200 { n } else { rng.below(200) };
        log += &format!("/dev/a write {} 2048\n", 2048 * unit);
    }
    log
}

fn try_run(drive: &str, precondition: &Value, more: &[&str]) -> Result<Outcome, RunError> {
    let set = ["errors.model=tlc-72l", "errors.rest_days=365"];
    let set: Vec<&str> = set.iter().chain(more).copied().collect();
    let spec: RunSpec = serde_json::from_value(json!({
        "drive": drive, "set": set, "precondition": precondition, "depth": 8, "mode": "closed",
        "workload": "uniform:requests=2000,size=4KiB,read=0.7",
    }))
    .unwrap();
    let written = |_: &str| {
        let bytes = overwritten().into_bytes();
        let length = bytes.len() as u64;
        Ok::<Stream, std::io::Error>((Box::new(Cursor::new(bytes)), Some(length)))
    };
    run(&spec, &environment(&written), &mut |_| true)
}

/// Runs on a drive that rested, and returns the number of units that were lost by then.
fn lost(drive: &str, precondition: &Value, more: &[&str]) -> u64 {
    let outcome = try_run(drive, precondition, more)
        .unwrap_or_else(|e| panic!("{more:?}, {precondition}: {e}"));
    assert_eq!(outcome.record["oracle"]["violations"], 0, "{more:?}, {precondition}");
    let record = &outcome.record;
    let (smart, failed) = (&record["smart"], record["conservation"]["failed"].as_u64().unwrap());
    assert_eq!(smart["media_errors"], failed, "{more:?}, {precondition}");
    let reads = record["host"]["reads"].as_u64().unwrap();
    assert_eq!(smart["host_read_commands"], reads - failed, "commands that succeeded");
    let units = ((reads - failed) * 8).div_ceil(1000);
    assert_eq!(smart["data_units_read"], units, "each read asks for eight blocks");
    outcome.record["faults"]["units_lost_at_rest"].as_u64().unwrap()
}

#[test]
fn a_worn_drive_loses_pages_in_a_year_and_says_so() {
    for (cycles, code) in [("2000", "bch"), ("2500", "ldpc"), ("3000", "ldpc"), ("3000", "bch")] {
        let cycles = format!("errors.cycles={cycles}");
        let code = format!("ecc.code={code}");
        let lost = lost("tlc-small", &json!("fill"), &[&cycles, &code]);
        // no code corrects less than bch, and no drive is worn more than the last
        let all = 720_896;
        assert!(lost > 0, "{cycles}, {code}");
        assert_eq!(lost == all, (&*cycles, &*code) == ("errors.cycles=3000", "ecc.code=bch"));
    }
}

#[test]
fn no_scheme_returns_zeros_or_an_older_version_for_what_it_lost() {
    let kinds: [&[&str]; 12] = [
        &[],
        &["map.store=dram", "map.flush=pages"],
        &["map.store=dram", "map.flush=whole"],
        &["map.store=lpmt"],
        &["ftl.scheme=block"],
        &["ftl.scheme=bast"],
        &["ftl.scheme=fast"],
        &["ftl.scheme=faster"],
        &["ftl.scheme=sast"],
        &["ftl.scheme=superblock"],
        &["ftl.scheme=last"],
        &["ftl.scheme=mast"],
    ];
    let formula = [
        "errors.rest_days=1",
        "errors.e=0",
        "errors.a=0",
        "errors.m=0",
        "errors.g=0",
        "errors.block_spread=0.8",
        "ecc.retry_gain=1",
        "ecc.code=bch",
    ];
    for kind in kinds {
        let all: Vec<&str> = formula.iter().chain(kind).copied().collect();
        let with = |rate| [&all[..], &[rate]].concat();
        let trace = json!({ "trace": "written.log" });
        // 8192 x 0.2 wrong bits lose every unit; 8192 x 0.0044 = 36 in the mean, with a factor of
        // 0.2 to 1.8 for each block, lose some: the code corrects 40
        assert_eq!(lost("tiny", &trace, &with("errors.b=0.2")), 200, "{kind:?}");
        let some = lost("tiny", &trace, &with("errors.b=0.0044"));
        assert!((1..200).contains(&some), "{kind:?}: {some}");
        assert!(lost("tiny", &json!("fill"), &with("errors.b=0.0044")) > 0, "{kind:?}");
    }
}
