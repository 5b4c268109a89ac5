//! Whole runs: records worked out by hand, runs of every preset, and determinism.

use crate::environment;
use flashatlas_sim::{RunError, RunSpec, Stream, run};
use serde_json::{Value, json};
use std::io::Cursor;

/// Opens a file of a test, in memory.
fn open(path: &str) -> std::io::Result<Stream> {
    let text: String = match path {
        "four.csv" => {
            (0..4u64).map(|i| format!("{},host,0,Write,{},4096,0\n", 1000 * i, 4096 * i)).collect()
        }
        "far.csv" => {
            "0,host,0,Write,1099511627776,4096,0\n10,host,0,Read,1099511627776,4096,0\n".into()
        }
        "disks.csv" => {
            "0,host,0,Write,0,2048,0\n10,host,1,Write,0,2048,0\n20,host,0,Read,0,2048,0\n".into()
        }
        "untimed.log" => {
            "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a write 0 2048\n/dev/a close\n"
                .into()
        }
        // writes to three map pages, eight entries each; then reads of the first two in turn, and
        // of the third
        "prefetch.csv" => {
            let writes = [0, 128, 256].map(|first| (first..first + 8).map(|page| (page, 1, "W")));
            let reads = (0..8).flat_map(|i| [(i, 1, "R"), (128 + i, 1, "R")]);
            let all = writes.into_iter().flatten().chain(reads).chain([(256, 8, "R")]);
            let line = |(time, (page, pages, op)): (usize, (u64, u64, &str))| {
                let op = if op == "W" { "Write" } else { "Read" };
                format!("{time},host,0,{op},{},{},0\n", 2048 * page, 2048 * pages)
            };
            all.enumerate().map(line).collect()
        }
        "again.csv" => {
            let line = |(i, (op, page)): (usize, (&str, u64))| {
                format!("{i},host,0,{op},{},2048,0\n", 2048 * page)
            };
            let requests = [("Write", 0), ("Write", 1), ("Read", 0)];
            requests.into_iter().enumerate().map(line).collect()
        }
        // one page of 4 KiB in each of a thousand consecutive mebibytes
        "sparse.csv" => {
            (0..1000u64).map(|i| format!("{i},host,0,Write,{},4096,0\n", i << 20)).collect()
        }
        "early.csv" => {
            let line = |time| format!("{time},host,0,Write,0,2048,0\n");
            [1000, 900, 2000].map(line).concat()
        }
        "utf16.csv" => {
            let text = "0,host,0,Write,0,2048,0\n".repeat(4);
            return Ok((
                Box::new(Cursor::new(
                    text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
                )),
                None,
            ));
        }
        "returns.csv" => "0,host,0,Write,0,2048,0\r1,host,0,Write,0,2048,0\r".into(),
        real => return Ok((Box::new(std::fs::File::open(real)?), None)),
    };
    let length = text.len() as u64;
    Ok((Box::new(Cursor::new(text.into_bytes())), Some(length)))
}

fn try_run(spec: Value) -> Result<Value, RunError> {
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    run(&spec, &environment(&open), &mut |_| true).map(|outcome| outcome.record)
}

fn record(spec: Value) -> Value {
    let record = try_run(spec.clone()).unwrap_or_else(|e| panic!("{spec}: {e}"));
    assert_eq!(record["oracle"]["violations"], 0, "{spec}");
    assert_eq!(record["conservation"]["submitted"], record["conservation"]["completed"], "{spec}");
    record
}

fn error(spec: Value) -> String {
    try_run(spec.clone()).expect_err(&spec.to_string()).to_string()
}

/// Checks the record of 4 writes of two 2 KiB pages each, one at a time, without a cache.
///
/// The transfer of a page takes 51.2 us (2048 bytes at 40 MB/s), and its programming 200 us.
/// Consecutive frames go to channel 0 and channel 1, so both pages of a request are written at the
/// same time, in 251.2 us.
#[test]
fn a_record_worked_out_by_hand() {
    let r =
        record(json!({ "drive": "tiny", "set": ["cache.mode=write-through"], "trace": "four.csv",
            "mode": "closed", "depth": 1 }));
    assert_eq!(r["schema"], "flashatlas.run/2");
    assert_eq!(r["trace"]["requests"], 4);
    assert_eq!((&r["host"]["writes"], &r["host"]["write_bytes"]), (&json!(4), &json!(16384)));
    assert_eq!(r["nand"]["programs"], json!({ "host": 8 }));
    assert_eq!(r["waf"], 1.0);
    assert_eq!(r["latency_ns"]["write"]["mean"], 251_200.0);
    assert_eq!(r["latency_ns"]["write"]["max"], 251_200.0);
    assert_eq!(r["simulated_ns"], 4 * 251_200);
    assert_eq!(r["iops"].as_f64().unwrap(), 4.0 / 1004.8e-6);
    // two of the four dies are programming for 200 us of every 251.2 us
    let busy = r["utilisation"]["dies"]["mean"].as_f64().unwrap();
    assert!((busy - 0.5 * 200.0 / 251.2).abs() < 1e-12, "{busy}");
    assert_eq!(r["utilisation"]["dies_at_work_max"], 2);
    for absent in ["read", "flush", "trim"] {
        assert!(r["latency_ns"].get(absent).is_none(), "{absent}");
    }
    assert!(r.get("merges").is_none() && r.get("gc").is_none());
}

/// Checks the waiting times of the same trace at its own times.
///
/// The requests are 100 us apart (MSR times count units of 100 ns). A request arrives before the
/// previous one is complete and, with a queue depth of 1, waits at the host. In microseconds, the
/// requests arrive at 0, 100, 200 and 300, and complete at 251.2, 502.4, 753.6 and 1004.8.
#[test]
fn open_loop_counts_waiting_at_the_host() {
    let r = record(json!({
        "drive": "tiny", "set": ["cache.mode=write-through", "host.queue_depth=1"],
        "trace": "four.csv", "mode": "open"
    }));
    let w = &r["latency_ns"]["write"];
    assert_eq!(w["max"], 704_800.0);
    assert_eq!(w["mean"], 478_000.0, "(251.2 + 402.4 + 553.6 + 704.8) / 4");
    assert_eq!(w["service_mean"], 251_200.0);
    assert_eq!(w["queue_mean"], 226_800.0, "(0 + 151.2 + 302.4 + 453.6) / 4");
    // at a tenth of the speed, no request waits
    let slow = record(json!({
        "drive": "tiny", "set": ["cache.mode=write-through", "host.queue_depth=1"],
        "trace": "four.csv", "mode": "open", "speed": 0.1
    }));
    assert_eq!(slow["latency_ns"]["write"]["max"], 251_200.0);
}

#[test]
fn warm_up_is_not_measured() {
    let r =
        record(json!({ "drive": "tiny", "set": ["cache.mode=write-through"], "trace": "four.csv",
            "depth": 1, "mode": "closed", "warmup": 3 }));
    assert_eq!((&r["host"]["writes"], &r["nand"]["programs"]["host"]), (&json!(1), &json!(2)));
    assert_eq!(r["latency_ns"]["write"]["count"], 1);
    assert_eq!(r["simulated_ns"], 251_200);
    assert!(
        error(json!({ "drive": "tiny", "trace": "four.csv", "warmup": 4 }))
            .contains("leaves no request to measure")
    );
}

#[test]
fn preconditioning_costs_nothing_and_is_there() {
    let r = record(json!({ "drive": "tiny", "workload": "uniform:requests=500,size=2KiB,read=1",
            "precondition": "fill" }));
    assert_eq!(r["host"]["unmapped_reads"], 0);
    assert!(r["nand"]["programs"].as_object().unwrap().is_empty());
    let blank =
        record(json!({ "drive": "tiny", "workload": "uniform:requests=500,size=2KiB,read=1" }));
    assert_eq!(blank["host"]["unmapped_reads"], 500, "reads of unwritten units are counted");
    assert!(blank["nand"]["reads"].as_object().unwrap().is_empty(), "and cost no flash operation");
    let traced = record(json!({
        "drive": "tiny", "trace": "four.csv", "precondition": { "trace": "four.csv" },
        "set": ["cache.mode=write-through"]
    }));
    assert_eq!(traced["nand"]["programs"]["host"], 8, "the trace's own writes only");
}

/// Checks that prefetching replaces the entries of one node.
///
/// The cache of 134 bytes has room for two nodes of 16 bytes with eight entries of 6 bytes each,
/// and 6 bytes more. A read of eight pages of a third node evicts eight entries, all from the node
/// that was the coldest at first. Once that node has lost some entries, it is no longer the
/// coldest, but it is still the victim. So the read has one miss and seven hits.
#[test]
fn prefetching_takes_all_of_one_node() {
    let settings = [
        "cache.mode=write-through",
        "map.store=tpftl",
        "map.page_bytes=512",
        "map.cache_bytes=134",
        "map.prefetch_threshold=0",
        "drive.blocks=64",
        "map.unit=2KiB",
    ];
    let counts = |limit: u64| {
        let found = record(json!({ "drive": "tiny", "trace": "prefetch.csv", "mode": "untimed",
            "limit": limit, "set": settings }));
        ["hits", "misses", "loads", "entries_prefetched_request"]
            .map(|key| found["map"][key].as_u64().unwrap())
    };
    let (before, after) = (counts(40), counts(41));
    let last: Vec<u64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
    assert_eq!(last, [7, 1, 1, 7]);
}

/// Checks the time of a read of a unit that is being programmed.
///
/// Two units are written, and the cache sends both to flash, which takes 251.2 us each. The first
/// unit is read immediately. Its slot of the cache holds the unit until its program is complete, so
/// the read takes as long as a read of a unit that was not sent to flash.
#[test]
fn a_unit_is_read_from_its_slot_until_it_is_programmed() {
    let read = |settings: &[&str]| {
        let found = record(json!({ "drive": "tiny", "trace": "again.csv", "mode": "closed",
            "depth": 1, "set": settings }));
        assert_eq!(found["controller"]["read_hits"], 1);
        (
            found["latency_ns"]["read"]["max"].clone(),
            found["nand"]["programs"]["cache_evict"].clone(),
        )
    };
    let (kept, none) = read(&["cache.bytes=16KiB"]);
    let (sent, two) = read(&["cache.bytes=4KiB", "cache.high=0.5", "cache.low=0"]);
    assert_eq!((none, two), (Value::Null, json!(2)));
    assert_eq!(sent, kept);
}

#[test]
fn commands_that_nvme_would_split_are_counted() {
    let said = |kib: u32| {
        let found = record(json!({ "drive": "tlc-small", "mode": "closed", "depth": 1,
            "workload": format!("sequential:requests=3,size={kib}KiB") }));
        let notes = found["approximations"].as_array().unwrap().clone();
        notes.into_iter().find(|note| note["code"] == "longer-than-nvme")
    };
    // 65,536 blocks of 512 bytes are 32 MiB
    assert_eq!(said(32 << 10), None);
    let note = said((32 << 10) + 4).expect("with one more block, NVMe splits the request");
    assert_eq!(note["values"]["requests"], 3);
    assert!(note["text"].as_str().unwrap().starts_with("3 reads and writes are longer"), "{note}");
}

/// Checks that suspensions of a program are bounded.
///
/// Without a bound, reads of other pages overtook a suspended program, while reads of its own page
/// waited for the program. With this workload, the longest read then took 11.6 ms.
#[test]
fn no_read_waits_long_for_a_program_that_is_suspended() {
    let found = record(json!({ "drive": "tlc-small", "mode": "closed", "depth": 32,
        "workload": "uniform:requests=30000,size=4KiB,read=0.7", "precondition": "fill",
        "set": ["drive.blocks=24", "drive.logical_pages=80000"] }));
    assert!(found["nand"]["erases"].as_object().unwrap().is_empty());
    assert!(found["utilisation"]["suspends"].as_u64().unwrap() > 1000);
    let longest = found["latency_ns"]["read"]["max"].as_f64().unwrap();
    // the bound consists of 31 earlier reads on the same die (60 us each, and 10 us each for the
    // channel), a suspension of 1 ms, and the suspended program of 0.5 ms
    assert!(longest < 31.0 * 70e3 + 1e6 + 0.5e6 + 0.1e6, "{longest} ns");
}

#[test]
fn a_trace_larger_than_the_drive() {
    let message = error(json!({ "drive": "tiny", "trace": "far.csv" }));
    assert!(message.contains("`fit=compact`") && message.contains("`fit=wrap`"), "{message}");
    record(json!({ "drive": "tiny", "trace": "far.csv", "fit": "wrap" }));
    assert!(error(json!({ "drive": "tiny", "trace": "disks.csv" })).contains("address space"));
    let compact = json!({ "drive": "tiny", "trace": "disks.csv", "fit": "compact",
        "set": ["drive.blocks=64"] });
    assert_eq!(record(compact)["host"]["unmapped_reads"], 0);
}

#[test]
fn extents_are_as_large_as_fits_and_the_record_names_their_size() {
    let settings = ["drive.blocks=128"];
    let packed = |extent: &str| {
        json!({ "drive": "tiny", "trace": "sparse.csv", "fit": "compact", "extent": extent,
            "mode": "untimed", "set": settings })
    };
    let found = record(packed("auto"));
    // the 8 MiB of flash have room for 1000 extents of 4 KiB each, but not of 16 KiB each
    assert_eq!(found["trace"]["extent_bytes"], 4096);
    assert_eq!(record(packed("4KiB"))["nand"], found["nand"]);
    let message = error(packed("64KiB"));
    assert!(message.contains("need 63 MiB"), "{message}");
    assert!(message.contains("mast-4gb") && message.contains("`extent`"), "{message}");
    // a trace that fits with the largest extents is packed with these
    let near = record(json!({ "drive": "tiny", "trace": "four.csv", "fit": "compact" }));
    assert_eq!(near["trace"]["extent_bytes"], 1 << 20);
}

#[test]
fn a_complaint_names_the_line_and_what_helps() {
    assert!(error(json!({ "drive": "tiny", "trace": "far.csv" })).starts_with("far.csv:1:1: "));
    let early = record(json!({ "drive": "tiny", "trace": "early.csv" }));
    let said = early["approximations"].to_string();
    assert!(said.contains("1 records carry an earlier time than the first"), "{said}");
    assert!(error(json!({ "drive": "tiny", "trace": "utf16.csv" })).contains("iconv -f UTF-16"));
    assert!(error(json!({ "drive": "tiny", "trace": "returns.csv" })).contains("carriage returns"));
}

#[test]
fn keys_of_a_drive_give_way_to_the_scheme_that_is_chosen() {
    let run = |settings: &[&str]| {
        let all = [settings, &["map.unit=32KiB", "drive.blocks=96", "drive.logical_pages=65536"]]
            .concat();
        json!({ "drive": "ufs-128gb", "workload": "uniform:requests=10,size=4KiB", "set": all })
    };
    let found = record(run(&["ftl.scheme=block"]));
    let said = found["approximations"].to_string();
    assert!(
        said.contains("not in use, and were left out: ") && said.contains("map.store"),
        "{said}"
    );
    assert!(found["config"]["params"].get("map.store").is_none());
    // a setting of the user that the scheme does not use is refused
    let message = error(run(&["ftl.scheme=block", "map.cache_bytes=1MiB"]));
    assert!(message.contains("map.cache_bytes"), "{message}");
}

#[test]
fn what_a_format_lacks_is_refused_where_it_matters() {
    record(json!({ "drive": "tiny", "trace": "four.csv", "mode": "open" }));
    assert!(
        error(json!({ "drive": "tiny", "trace": "no-such-file" })).starts_with("no-such-file: ")
    );
    assert!(
        error(json!({ "drive": "tiny", "trace": "four.csv", "mode": "closed", "depth": 1000 }))
            .contains("host.queue_depth")
    );
    assert!(error(json!({ "drive": "tiny", "trace": "four.csv", "depth": 3 })).contains("closed"));
    assert!(error(json!({ "drive": "tiny" })).starts_with("workload: a run needs a workload"));
    assert!(
        error(json!({ "drive": "tiny", "trace": "four.csv", "mode": "open", "speed": 0.0 }))
            .contains("speed: 0")
    );
    assert!(
        error(json!({ "drive": "tiny", "trace": "four.csv", "speed": 2.0 }))
            .contains("only open mode")
    );
    assert!(
        error(json!({ "drive": "tiny", "workload": "uniform", "reading": { "shift": 2 } }))
            .contains("shift: ")
    );
    assert!(
        error(json!({ "drive": "tiny", "workload": "uniform", "trace": "four.csv" }))
            .contains("one of the two")
    );
    assert!(serde_json::from_value::<RunSpec>(json!({ "drive": "tiny", "tarce": "x" })).is_err());
}

#[test]
fn idle_time_is_used_between_requests_and_not_beyond_its_limits() {
    let spec = |idle: u32| {
        json!({
            "drive": "tiny", "mode": "open", "precondition": "fill",
            "set": ["cache.mode=write-through", format!("ftl.idle_free={idle}"),
                "ftl.idle_valid=0.9", "host.idle_after=1ms"],
            "workload": "uniform:requests=4000,size=2KiB,interval=20ms"
        })
    };
    let (with, without) = (record(spec(4)), record(spec(0)));
    assert!(with["nand"]["programs"]["idle"].as_u64().unwrap() > 0);
    assert!(without["nand"]["programs"].get("idle").is_none());
    let max = |r: &Value| r["latency_ns"]["write"]["max"].as_f64().unwrap();
    assert!(
        max(&with) < max(&without),
        "collection in idle time must shorten the longest write: {} {}",
        max(&with),
        max(&without)
    );
}

/// Checks the record of a worn-out drive: it ends before the request that found no room.
///
/// The data on the drive is checked.
#[test]
fn a_drive_that_wears_out_ends_the_run_with_its_record() {
    // every block wears out after its second erase, so the 128 blocks are erased at most 256 times
    let mut spec = json!({
        "drive": "tiny", "set": ["nand.endurance=2", "cache.mode=write-through"],
        "precondition": "fill",
        "workload": "uniform:requests=100000,size=2KiB"
    });
    let record = record(spec.clone());
    let erases = record["nand"]["erases"]["gc"].as_u64().unwrap();
    assert!((128..=256).contains(&erases), "{erases}");
    let played = record["trace"]["requests"].as_u64().unwrap();
    assert_eq!(record["worn_out"]["request"], played + 1);
    // the 640 pages need 80 of the 128 blocks
    let retired = record["worn_out"]["retired_blocks"].as_u64().unwrap();
    assert!((1..=48).contains(&retired), "{retired}");
    assert_eq!(record["oracle"]["violations"], 0);
    assert_eq!(record["oracle"]["units_swept"], 640);
    // a drive that becomes read-only instead has counted the same
    let mut read_only = spec.clone();
    read_only["set"].as_array_mut().unwrap().push("ftl.worn_out=read-only".into());
    let same = self::record(read_only);
    for part in ["worn_out", "wear", "gc", "oracle"] {
        assert_eq!(same[part], record[part], "{part}");
    }
    // if the drive wears out before the measured part, there is no record
    spec["warmup"] = 50_000.into();
    let message = error(spec);
    assert!(message.contains("worn out"), "{message}");
}

#[test]
fn the_same_configuration_gives_the_same_bytes() {
    let spec = |seed| {
        json!({
            "drive": "tiny", "seed": seed, "precondition": "fill",
            "set": ["ftl.victim=d-choices", "ftl.d=3", "ftl.classifier=two-lru", "ftl.streams=2",
                "map.unit=1KiB"],
            "workload": "mixed:requests=3000,flush_every=100"
        })
    };
    let text = |seed| record(spec(seed)).to_string();
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

/// Runs every preset with reads, writes of odd sizes, trims and flushes.
#[test]
fn every_preset_runs() {
    for preset in flashatlas_device::PRESETS {
        let config = flashatlas_device::Registry::DRIVES.load(preset.name, None, &[]).unwrap();
        let layout = config.layout().unwrap();
        let bytes = u64::from(layout.logical_units) * u64::from(layout.unit_bytes);
        // a run of an empty drive reads all of its units at the end; what a steady drive holds is
        // computed
        let precondition = if bytes > 200_000_000_000 { "steady" } else { "none" };
        for extra in [None, Some("nand.program_order=any")] {
            let set: Vec<&str> = extra.into_iter().collect();
            let r = record(json!({
                "drive": preset.name, "set": set, "precondition": precondition,
                "workload":
                    "hotcold:requests=3000,size=3KiB,read=0.3,trim=0.02,flush_every=200,range=0.1"
            }));
            assert!(r["latency_ns"]["flush"]["count"].as_u64().unwrap() > 0);
        }
    }
}
