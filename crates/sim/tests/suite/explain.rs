//! Reasons for latencies.
//!
//! The times of the reasons add up to the latencies of the histograms. Explaining latencies changes
//! nothing else in a run. If the settings of a drive make one cause dominate, the reasons show this
//! cause.

use crate::environment;
use flashatlas_sim::{RunError, RunSpec, run};
use serde_json::{Value, json};

fn no_files(_: &str) -> std::io::Result<flashatlas_sim::Stream> {
    Err(std::io::Error::other("no file is read here"))
}

fn try_record(changes: Value) -> Result<Value, RunError> {
    let mut spec = json!({
        "drive": "tiny", "precondition": "fill", "mode": "closed", "depth": 4,
        "workload": "uniform:requests=6000,size=2KiB,read=0.4,flush_every=100",
    });
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    run(&spec, &environment(&no_files), &mut |_| true).map(|outcome| outcome.record)
}

fn record(changes: Value) -> Value {
    try_record(changes.clone()).unwrap_or_else(|e| panic!("{changes}: {e}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks that the times of the reasons in a group add up to the group's mean latency.
fn adds_up(group: &Value) {
    let parts: f64 = group["parts_ns"].as_object().unwrap().values().map(number).sum();
    let mean = number(&group["mean_ns"]);
    assert!((parts - mean).abs() <= mean * 1e-9, "{group}");
}

#[test]
fn parts_add_up_to_the_latencies_and_nothing_else_changes() {
    for more in [
        json!({}),
        json!({ "set": ["map.store=demand", "map.page_bytes=64", "map.cache_bytes=256"] }),
        json!({ "set": ["ftl.scheme=mast", "drive.blocks=64", "drive.logical_pages=640"] }),
        json!({ "set": ["timing.suspend=both", "timing.cache_read=true"] }),
        json!({ "mode": "open", "depth": null, "warmup": 500,
                "workload": "uniform:requests=6000,size=2KiB,read=0.4,interval=300us" }),
    ] {
        let mut asked = more.clone();
        asked["explain"] = json!("p99");
        let (before, mut after) = (record(more.clone()), record(asked));
        let explained = after.as_object_mut().unwrap().shift_remove("explain").unwrap();
        assert_eq!(before, after, "{more}");
        for (op, latency) in before["latency_ns"].as_object().unwrap() {
            let found = &explained["ops"][op];
            adds_up(found);
            let bands = found["bands"].as_array().unwrap();
            bands.iter().for_each(adds_up);
            let (mut requests, mut total) = (0.0, 0.0);
            for band in bands {
                requests += number(&band["requests"]);
                total += number(&band["requests"]) * number(&band["mean_ns"]);
            }
            assert_eq!(requests, number(&latency["count"]), "{more} {op}");
            let mean = number(&latency["mean"]);
            assert!((total / requests - mean).abs() <= mean * 1e-9, "{more} {op}");
            // the width of a bin is a thousandth of its latency
            let from = number(&found["from_ns"]);
            let p99 = number(&latency["p99"]);
            assert!((from - p99).abs() <= p99 * 2e-3, "{more} {op}: {found}");
        }
        let longest = &explained["longest"][0];
        let maximum = before["latency_ns"].as_object().unwrap().values();
        let maximum = maximum.map(|latency| number(&latency["max"])).fold(0.0, f64::max);
        assert_eq!(number(&longest["latency_ns"]), maximum, "{more}");
        let mut at = 0.0;
        for step in longest["steps"].as_array().unwrap() {
            assert_eq!(number(&step["from_ns"]), at, "{more}: {longest}");
            at = number(&step["to_ns"]);
        }
        assert_eq!(at, maximum, "{more}");
    }
}

/// Returns the share of a reason in the mean of the slowest requests of an operation.
fn share(record: &Value, op: &str, reason: &str) -> f64 {
    let found = &record["explain"]["ops"][op];
    found["parts_ns"][reason].as_f64().unwrap_or(0.0) / number(&found["mean_ns"])
}

#[test]
fn the_reason_is_the_one_that_was_set_up() {
    // with reads alone, one at a time, no request waits: cells and channel take nearly all of the
    // time
    let reads = json!({ "workload": "uniform:requests=500,size=2KiB,read=1", "depth": 1,
                        "explain": "p0", "set": ["host.link_rate=0"] });
    let reads = record(reads);
    let own = ["read", "channel", "controller", "tables"].map(|why| share(&reads, "read", why));
    assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-9 && own[0] > 0.1, "{own:?}");
    // requests arrive faster than the drive completes them, so they wait at the host
    let flood = json!({ "mode": "open", "depth": null, "explain": "p50",
                        "workload": "uniform:requests=4000,size=2KiB,interval=1us" });
    assert!(share(&record(flood), "write", "host_queue") > 0.9);
    // each erase takes a second
    let slow = json!({ "explain": "p99", "set": ["timing.t_erase=1s"] });
    let slow = record(slow);
    assert!(share(&slow, "write", "erase") > 0.9, "{}", slow["explain"]["ops"]);
    // reads of map pages take as long as other reads, so they are a large part of the latency
    let maps = json!({ "explain": "p50",
        "workload": "uniform:requests=3000,size=2KiB,read=1",
        "set": ["map.store=demand", "map.page_bytes=64", "map.cache_bytes=256"] });
    assert!(share(&record(maps), "read", "map") > 0.3);
    let mut merges = json!({ "explain": "p90", "set": ["ftl.scheme=bast", "drive.blocks=64",
        "drive.logical_pages=640"] });
    // with a write cache, the time spent waiting for a slot that another die frees counts as well
    let cached = record(merges.clone());
    assert!(share(&cached, "write", "cache") > 0.1, "{}", cached["explain"]["ops"]);
    merges["set"].as_array_mut().unwrap().push(json!("cache.mode=write-through"));
    let merges = record(merges);
    let [merge, erase, collection] =
        ["merge", "erase", "collection"].map(|why| share(&merges, "write", why));
    assert!(merge > 0.2 && merge + erase > 0.8 && collection == 0.0, "{merge} {erase}");
}

#[test]
fn under_a_mirror_the_drive_that_was_waited_for_is_asked() {
    let mirror = json!({ "explain": "p90", "set": ["layers=mirror", "mirror.reserve=32KiB"] });
    let mirror = record(mirror);
    adds_up(&mirror["explain"]["ops"]["read"]);
    assert_eq!(share(&mirror, "read", "layer"), 0.0);
    assert!(share(&mirror, "write", "collection") > 0.1, "{}", mirror["explain"]["ops"]);
}

#[test]
fn what_is_no_percentile_is_refused() {
    for text in ["99", "p100", "p-1", "pp", "p", ""] {
        let said = try_record(json!({ "explain": text })).unwrap_err().to_string();
        assert!(said.contains("explain: ") && said.contains("p99.9"), "{text}: {said}");
    }
    let untimed = json!({ "explain": "p99", "mode": "untimed", "depth": null });
    let said = try_record(untimed).unwrap_err().to_string();
    assert!(said.contains("no time passes"), "{said}");
}
