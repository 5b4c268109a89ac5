//! Verdicts on the steady state of runs.

use crate::environment;
use flashatlas_sim::{RunSpec, Stream, run};
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
    found.iter().map(|reason| reason["text"].as_str().unwrap().to_owned()).collect()
}

const WRITES: &str = "uniform:requests=60000,size=2KiB";

/// Judges a run that begins in the steady state of uniform random writes and continues these
/// writes.
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

/// Judges a filled drive that has not begun to collect: it erases nothing, and all rounds are
/// equal.
#[test]
fn a_drive_that_lives_on_free_blocks_is_not() {
    let found = record(json!({ "drive": "tiny", "mode": "closed", "precondition": "fill",
        "workload": "uniform:requests=60,size=2KiB", "set": ["cache.mode=write-through"] }));
    assert_eq!(found["nand"]["programs"]["host"], 60);
    let found = reasons(&found);
    assert!(found[0].starts_with("60 pages were programmed and 0 erased"), "{found:?}");
}

/// Judges the same run, but long enough for the drive to begin to collect.
#[test]
fn a_drive_that_begins_to_collect_is_not() {
    let found = record(json!({ "drive": "tiny", "mode": "closed", "precondition": "fill",
        "workload": "uniform:requests=900,size=2KiB", "set": ["cache.mode=write-through"] }));
    let found = reasons(&found);
    assert!(found.iter().any(|r| r.starts_with("write amplification by fifths")), "{found:?}");
    assert!(found.iter().any(|r| r.starts_with("requests a second by fifths")), "{found:?}");
}

/// Judges a run whose reads arrive faster than the drive completes them.
///
/// A read takes at least 301.2 us: 250 us for the cells and 51.2 us for the transfer. With one read
/// every 200 us, the last of n reads waits for n * 101.2 us, which is a third of the run. With one
/// read every 400 us, no read waits.
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

/// Checks that reads are judged by throughput alone, since they cause no write amplification.
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

const COLUMNS: &str = "columns:time=0:us,op=1,offset=2:bytes,size=3:bytes";

/// Returns a trace of 200 writes, repeated `times` times.
///
/// The writes are 300 us apart and go to 64 pages of 2 KiB.
fn replayed(times: u64) -> impl Fn(&str) -> std::io::Result<Stream> {
    move |_: &str| {
        let place = |i: u64| i % 200 * 37 % 64 * 2048;
        let line = |i: u64| format!("{},W,{},2048\n", i * 300, place(i));
        let text: String = (0..times * 200).map(line).collect();
        Ok((Box::new(std::io::Cursor::new(text.into_bytes())), None))
    }
}

fn run_of(spec: Value, opener: &dyn flashatlas_sim::Opener) -> Result<Value, String> {
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let outcome = run(&spec, &environment(opener), &mut |_| true);
    outcome.map(|o| o.record).map_err(|e| e.to_string())
}

/// Checks that a run measured with `until=steady` equals the end of one long run.
///
/// A generator goes on drawing in the next pass, and a trace is replayed again behind its end.
#[test]
fn passes_are_one_long_run() {
    let alike = ["simulated_ns", "waf", "host", "nand", "latency_ns"];
    let none =
        |path: &str| -> std::io::Result<Stream> { Err(std::io::Error::other(path.to_owned())) };
    let workload = "uniform:requests=3000,size=2KiB,read=0.3";
    let spec = |workload: String, more: Value| {
        let mut spec = json!({ "drive": "tiny", "precondition": "fill", "workload": workload });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let short = run_of(spec(workload.into(), json!({ "until": "steady" })), &none).unwrap();
    let passes = short["settling"]["passes"].as_u64().unwrap();
    assert!((6..25).contains(&passes), "{passes}: in the first five passes the drive is fresh");
    assert_eq!(short["settling"]["steady"], true);
    let all = 3000 * (passes + 1);
    let workload = workload.replace("3000", &all.to_string());
    let long = run_of(spec(workload, json!({ "warmup": 3000 * passes })), &none).unwrap();
    for key in alike {
        assert_eq!(short[key], long[key], "{key}");
    }
    assert_eq!(short["trace"]["requests"], all);
    // the last of the five rounds is the measured pass; the other four were judged before, too
    let rounds = |of: &str| short[of]["rounds"]["waf"].as_array().unwrap().clone();
    let (judged, before) = (rounds("steadiness"), rounds("settling"));
    assert_eq!(judged[..4], before[1..]);
    let waf = short["waf"].as_f64().unwrap();
    assert!((judged[4].as_f64().unwrap() / waf - 1.0).abs() < 0.01, "{judged:?}: {waf}");
    assert_eq!(short["steady"], short["steadiness"]["reasons"].as_array().unwrap().is_empty());

    for mode in ["closed", "open", "untimed"] {
        let spec = |more: Value| {
            let mut spec = json!({ "drive": "tiny", "precondition": "fill", "trace": "t.csv",
                "mode": mode, "reading": { "format": COLUMNS } });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec
        };
        let short = run_of(spec(json!({ "until": "steady" })), &replayed(1)).unwrap();
        let passes = short["settling"]["passes"].as_u64().unwrap();
        let long = run_of(spec(json!({ "warmup": 200 * passes })), &replayed(passes + 1)).unwrap();
        for key in alike {
            assert_eq!(short[key], long[key], "{mode}: {key}");
        }
        // the digest covers the file once, however often it was played
        assert_ne!(short["trace"]["digest"], long["trace"]["digest"]);
    }
}

#[test]
fn what_does_not_settle_is_measured_and_said() {
    let none =
        |path: &str| -> std::io::Result<Stream> { Err(std::io::Error::other(path.to_owned())) };
    let writes = "uniform:requests=10,size=2KiB";
    let spec = |workload: &str| json!({ "drive": "tiny", "workload": workload, "until": "steady" });
    let found = run_of(spec(writes), &none).unwrap();
    assert_eq!(found["settling"]["passes"], 25);
    assert_eq!(found["settling"]["steady"], false);
    assert_eq!(found["trace"]["requests"], 260);
    let reason = found["settling"]["reasons"].to_string();
    assert!(reason.contains("the number of free blocks changes"), "{reason}");
    let said = found["approximations"].to_string();
    assert!(said.contains("after 25 passes of the workload the drive was not steady"), "{said}");
    let with = |more: Value| {
        let mut spec = spec("uniform:requests=10,size=2KiB,read=1");
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        run_of(spec, &none).unwrap_err()
    };
    assert_eq!(
        with(json!({ "warmup": 5 })),
        "warmup: with `until=steady`, all passes before the last one are the warm-up: leave this \
         option out"
    );
    let why = with(json!({ "mode": "untimed" }));
    assert!(why.starts_with("until: neither throughput nor write amplification can show"), "{why}");
}

/// Checks that a run is not steady if requests arrive too fast in every pass.
#[test]
fn passes_that_pile_up_are_not_steady() {
    let none =
        |path: &str| -> std::io::Result<Stream> { Err(std::io::Error::other(path.to_owned())) };
    let spec = |more: Value| {
        let mut spec = json!({ "drive": "tiny", "precondition": "steady", "until": "steady",
            "workload": "uniform:requests=2000,size=2KiB,interval=1us", "mode": "open" });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let found = run_of(spec(json!({})), &none).unwrap();
    assert_eq!(found["steady"], false);
    assert!(reasons(&found).iter().any(|r| r.starts_with("requests arrive faster")));
    let why = run_of(spec(json!({ "fit": "compact" })), &none).unwrap_err();
    assert!(why.starts_with("fit: a generator draws other addresses in each pass"), "{why}");
}
