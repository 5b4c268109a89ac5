//! Runs of a drive whose data and tables share a DRAM.

use crate::environment;
use crate::tables::{open, outcome};
use flashatlas_sim::{RunSpec, run};
use serde_json::{Value, json};

/// Returns the bytes a second that sequential reads get from 64 GB of a drive after the Samsung 980
/// PRO, and the busy share of its DRAM of `rate` bytes a second.
fn reads(rate: f64, burst: f64) -> (f64, Option<f64>) {
    let dram = [format!("memory.dram_shared_rate={rate}"), format!("memory.dram_burst={burst}")];
    let set = ["drive.capacity=64GB", "ftl.slc_dynamic=16", &dram[0], &dram[1]];
    let spec = json!({ "drive": "samsung-980-pro-1tb", "set": set, "mode": "closed", "depth": 256,
        "precondition": "fill", "workload": "sequential:requests=3000,size=128KiB,read=1" });
    let record = outcome(&spec).record;
    (number(&record["bandwidth_bytes_per_s"]), record["utilisation"]["dram"].as_f64())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Each unit of 4 KiB passes the DRAM twice, and its lookup moves a burst. So a DRAM of r bytes a
/// second gives the host 4096 / (2 * 4096 + burst) r bytes a second, if the rest of the drive gives
/// more. With 256 reads in flight, the DRAM is idle only before the first page and after the last.
#[test]
fn half_the_rate_of_the_dram_bounds_sequential_reads() {
    let bound = |rate: f64, burst: f64| rate * 4096.0 / (2.0 * 4096.0 + burst);
    let (free, none) = reads(0.0, 0.0);
    assert_eq!(none, None);
    for (rate, burst) in [(3.2e9, 512.0), (6.4e9, 64.0)] {
        let bound = bound(rate, burst);
        assert!(bound < 0.9 * free, "the flash and the link give {free}");
        let (found, busy) = reads(rate, burst);
        assert!((0.999..=1.0).contains(&(found / bound)), "{found}, expected {bound}");
        let busy = busy.expect("the drive has a shared DRAM");
        assert!((busy - found / bound).abs() < 1e-3, "{busy} of the time");
    }
    // a DRAM of 12.8 GB/s gives more than the flash
    assert!(bound(12.8e9, 64.0) > free);
    let (wide, _) = reads(12.8e9, 64.0);
    assert!((0.99..=1.0).contains(&(wide / free)), "{wide}, expected {free}");
}

/// Host data passes the DRAM once beside the link and once beside the flash, and a page that
/// collection copies passes as it is read and as it is programmed. A copyback passes not at all.
#[test]
fn the_busy_time_is_the_bytes_that_pass() {
    for copyback in ["none", "same-plane"] {
        let set = ["memory.dram_shared_rate=1GB", "memory.dram_burst=64", "host.link_rate=100MB"];
        let copies = format!("ftl.copyback={copyback}");
        let set = [&set[..], &[&copies]].concat();
        let spec = json!({ "drive": "tiny", "set": set, "mode": "closed", "depth": 4,
            "precondition": "fill", "workload": "uniform:requests=4000,size=2KiB,read=0.4" });
        let record = outcome(&spec).record;
        let sum = |counts: &Value| counts.as_object().unwrap().values().map(number).sum::<f64>();
        let copied = record["nand"]["copybacks"].as_f64().unwrap_or(0.0);
        assert_eq!(copied > 100.0, copyback == "same-plane");
        // a copyback counts as a read and as a program
        let pages = sum(&record["nand"]["reads"]) + sum(&record["nand"]["programs"]) - 2.0 * copied;
        let host = number(&record["host"]["read_bytes"]) + number(&record["host"]["write_bytes"]);
        let bytes = 2048.0 * pages + host + 64.0 * number(&record["map"]["lookups"]);
        let busy = &record["utilisation"];
        let link = number(&busy["link_in"]) + number(&busy["link_out"]);
        // the link is busy for 10 ns a byte, and the DRAM for 1 ns
        let found = number(&busy["dram"]) / link * (10.0 * host);
        assert!((found / bytes - 1.0).abs() < 1e-9, "{found} bytes passed, expected {bytes}");
    }
}

#[test]
fn tables_with_a_dram_of_their_own_are_refused_by_name() {
    let set = ["memory.dram_shared_rate=1GB", "map.store=lpmt"];
    let spec = json!({ "drive": "tiny", "set": set, "workload": "uniform:requests=9,size=2KiB" });
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let error = run(&spec, &environment(&open), &mut |_| true).map(drop).unwrap_err().to_string();
    let named = ["memory.dram_shared_rate", "map.store = lpmt"].map(|name| error.contains(name));
    assert_eq!(named, [true; 2], "{error}");
}
