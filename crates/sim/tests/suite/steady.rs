//! Which runs count as a steady state.

use crate::environment;
use flashatlas_sim::{RunSpec, input::Stream, run};
use serde_json::{Value, json};

fn record(spec: Value) -> Value {
    let none =
        |path: &str| -> std::io::Result<Stream> { Err(std::io::Error::other(path.to_owned())) };
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    run(&spec, &environment(&none), &mut |_| true).unwrap().record
}

fn reasons(record: &Value) -> Vec<String> {
    let found = record["steadiness"]["reasons"].as_array().unwrap();
    assert_eq!(record["steady"], found.is_empty());
    found.iter().map(|reason| reason.as_str().unwrap().to_owned()).collect()
}

const WRITES: &str = "uniform:requests=60000,size=2KiB";

/// The state that uniform random writes lead to, and more of them.
#[test]
fn random_writes_in_their_steady_state_are_steady() {
    for mode in ["untimed", "closed"] {
        let found = record(json!({ "drive": "tiny", "mode": mode, "precondition": "steady",
            "workload": WRITES, "warmup": 10000 }));
        assert_eq!(reasons(&found), [""; 0], "{mode}");
        let waf = found["steadiness"]["rounds"]["waf"].as_array().unwrap();
        let mean = waf.iter().map(|w| w.as_f64().unwrap()).sum::<f64>() / 5.0;
        let whole = found["waf"].as_f64().unwrap();
        assert!((mean / whole - 1.0).abs() < 0.001, "rounds are fifths of the writes: {mean}");
    }
}

/// A drive that was filled and has not begun to collect: nothing is erased, and no round differs.
#[test]
fn a_drive_that_lives_on_free_blocks_is_not() {
    let found = record(json!({ "drive": "tiny", "mode": "closed", "precondition": "fill",
        "workload": "uniform:requests=60,size=2KiB", "set": ["cache.mode=write-through"] }));
    assert_eq!(found["nand"]["programs"]["host"], 60);
    let found = reasons(&found);
    assert!(found[0].starts_with("60 pages were programmed and 0 erased"), "{found:?}");
}

/// The same, for long enough that it begins to collect on the way.
#[test]
fn a_drive_that_begins_to_collect_is_not() {
    let found = record(json!({ "drive": "tiny", "mode": "closed", "precondition": "fill",
        "workload": "uniform:requests=900,size=2KiB", "set": ["cache.mode=write-through"] }));
    let found = reasons(&found);
    assert!(found.iter().any(|r| r.starts_with("write amplification by fifths")), "{found:?}");
    assert!(found.iter().any(|r| r.starts_with("requests a second by fifths")), "{found:?}");
}

/// 251.2 us a request (`replay.rs`), and one every 200 us: after n of them the last one waits for
/// n * 51.2 us, a fifth of the run. One every 300 us waits for nobody.
#[test]
fn requests_that_pile_up_are_not() {
    let every = |us: u32| {
        record(json!({ "drive": "tiny", "mode": "open",
            "workload": format!("uniform:requests=100,size=2KiB,read=1,interval={us}us"),
            "precondition": "fill", "set": ["host.queue_depth=1", "timing.t_read=250us"] }))
    };
    let late = reasons(&every(200));
    assert!(late[0].starts_with("requests arrive faster than the drive"), "{late:?}");
    assert_eq!(reasons(&every(400)), [""; 0]);
}

/// Write amplification says nothing of reads.
#[test]
fn reads_alone_are_judged_by_their_pace() {
    let found = record(json!({ "drive": "tiny", "mode": "closed", "precondition": "fill",
        "workload": "uniform:requests=5000,size=2KiB,read=1" }));
    assert_eq!(reasons(&found), [""; 0]);
    assert!(found["steadiness"]["rounds"].get("waf").is_none());
    let iops = found["steadiness"]["rounds"]["iops"].as_array().unwrap();
    let whole = found["iops"].as_f64().unwrap();
    assert!(iops.iter().all(|r| (r.as_f64().unwrap() / whole - 1.0).abs() < 0.05), "{iops:?}");
}
