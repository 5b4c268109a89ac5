//! A summary as JSON, with numbers by hand.

use crate::common::*;
use flashatlas_types::HostOp::{Flush, Read, Trim, Write};
use flashatlas_workload::{Record, TraceSummary};
use serde_json::{Value, json};

fn summed(records: &[Record]) -> Value {
    let mut summary = TraceSummary::new();
    records.iter().for_each(|record| summary.add(record));
    summary.to_json()
}

#[test]
fn every_key_of_a_timed_trace() {
    let records = [
        record(0, Write, 0, 8, 0),        // page 0
        record(100 * MS, Write, 8, 9, 0), // sequential, pages 1 and 2, unaligned
        record(90 * MS, Write, 0, 8, 0),  // out of order, overwrites page 0
        record(1500 * MS, Read, 8, 1, 1), // page 1 of another device, unaligned, 512 bytes
        record(1500 * MS, Trim, 800, 8, 1),
        record(86_402 * S, Flush, 0, 0, 0), // more than a day later
    ];
    let got = summed(&records);
    let expected = json!({
        "requests": 6, "reads": 1, "writes": 3, "trims": 1, "flushes": 1,
        "read_share": 0.25, "mean_bytes": 26.0 * 512.0 / 4.0, "read_bytes": 512,
        "written_bytes": 25 * 512,
        "footprint_bytes": 4 * 4096, "pages_written": 4, "distinct_pages_written": 3,
        "overwrite_ratio": 4.0 / 3.0,
        "highest_bytes": 808 * 512, "devices": 2, "duration_s": 86_402.0,
        "unaligned_share": 0.4, "sequential_share": 0.2, "out_of_order": 1, "zero_time": false,
        "jumps": 1, "repeats": 0,
        "sizes": { "read": [[512, 1]], "write": [[4096, 2], [8192, 1]], "trim": [[4096, 1]] },
        "device_counts": [
            { "device": 0, "reads": 0, "writes": 3, "trims": 0, "flushes": 1, "read_bytes": 0,
                "written_bytes": 12_800 },
            { "device": 1, "reads": 1, "writes": 0, "trims": 1, "flushes": 0, "read_bytes": 512,
                "written_bytes": 0 },
        ],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&got[key], value, "{key}");
    }
    let mut keys: Vec<&str> = expected.as_object().unwrap().keys().map(String::as_str).collect();
    keys.extend(["intervals", "dispersion", "peak_to_mean"]);
    let mut seen: Vec<&str> = got.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, keys);
    // seconds with 3, 2 and 1 requests among 86,403: mean 6/86,403, mean of squares 14/86,403
    let mean = 6.0 / 86_403.0;
    let dispersion = (14.0 / 86_403.0 - mean * mean) / mean;
    assert!((got["dispersion"].as_f64().unwrap() - dispersion).abs() < 1e-9);
    assert!((got["peak_to_mean"].as_f64().unwrap() - 3.0 / mean).abs() < 1e-6);
}

#[test]
fn repeats_are_those_of_the_record_before_on_the_same_device() {
    let records = [
        record(0, Write, 0, 8, 0),
        record(5 * MS, Write, 0, 8, 0),  // a repeat, 5 ms later
        record(6 * MS, Write, 0, 8, 1),  // another device
        record(7 * MS, Write, 0, 8, 0),  // a repeat, 2 ms later
        record(13 * MS, Write, 0, 8, 0), // too late
        record(14 * MS, Read, 0, 8, 0),  // another operation
        record(15 * MS, Write, 0, 8, 1), // 9 ms after the record of device 1: too late
    ];
    assert_eq!(summed(&records)["repeats"], 2);
    // without times no record counts as a repeat
    assert_eq!(summed(&[record(0, Write, 0, 8, 0); 3])["repeats"], 0);
}

#[test]
fn the_course_of_a_timed_trace() {
    // the width of 1 ms is doubled until 200 ms lie in one of 128 intervals: 2 ms
    let records = [
        record(0, Write, 0, 16, 0),
        record(MS, Read, 8, 8, 0),
        record(200 * MS, Read, 16, 8, 0),
        record(100 * MS, Read, 24, 8, 0), // too early: counts in the latest interval
    ];
    let intervals = &summed(&records)["intervals"];
    assert_eq!((&intervals["by"], &intervals["width"]), (&json!("time"), &json!(0.002)));
    let row = |key: &str| -> Vec<u64> {
        intervals[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
    };
    let at = |key: &str| (row(key).len(), row(key)[0], row(key)[50], row(key)[100]);
    assert_eq!(at("requests"), (101, 2, 0, 2));
    assert_eq!(at("read_bytes"), (101, 4096, 0, 8192));
    assert_eq!(at("written_bytes"), (101, 8192, 0, 0));
    assert_eq!(at("working_set_bytes"), (101, 8192, 0, 8192));
    assert_eq!(at("footprint_bytes"), (101, 8192, 8192, 16_384));
}

#[test]
fn the_course_of_a_trace_without_times() {
    let records: Vec<Record> = (0..300).map(|n| record(0, Read, n / 2 * 8, 8, 0)).collect();
    let got = summed(&records);
    assert_eq!(
        (&got["zero_time"], &got["intervals"]["by"], &got["intervals"]["width"]),
        (&json!(true), &json!("requests"), &json!(4))
    );
    assert_eq!(got["intervals"]["requests"], json!(vec![4; 75]));
    assert_eq!(got["intervals"]["working_set_bytes"], json!(vec![8192; 75]));
    assert_eq!(got["intervals"]["footprint_bytes"][74], json!(150 * 4096));
    assert!(got.get("dispersion").is_none(), "nothing is said about pace");
}
