//! Replays of the public traces in the folder that `FLASHATLAS_TRACES` names, if there are any.
//!
//! Every replay must end without a violation. A trace is replayed on a drive that is large enough
//! for its addresses, or packed on a small drive.

use crate::environment;
use flashatlas_fixtures::traces;
use flashatlas_sim::{RunSpec, Stream, run};
use serde_json::{Value, json};

fn open(name: &str) -> std::io::Result<Stream> {
    let path = traces::path(name).expect("the trace is at hand");
    Ok((Box::new(std::fs::File::open(path)?), None))
}

/// Runs `spec`; returns `None` if its trace is not at hand.
fn replay(spec: &Value, requests: u64) -> Option<Value> {
    let name = spec["trace"].as_str().unwrap();
    traces::path(name)?;
    let parsed: RunSpec = serde_json::from_value(spec.clone()).unwrap();
    let record = run(&parsed, &environment(&open), &mut |_| true)
        .unwrap_or_else(|e| panic!("{spec}: {e}"))
        .record;
    assert_eq!(record["oracle"]["violations"], 0, "{spec}");
    assert_eq!(record["trace"]["requests"], requests, "{spec}");
    assert_eq!(record["conservation"]["submitted"], record["conservation"]["completed"], "{spec}");
    assert!(record["oracle"]["units_swept"].as_u64().unwrap() > 0, "{spec}");
    Some(record)
}

/// Traces, each with its format (if its content does not show the format) and number of requests.
const SMALL: &[(&str, Option<&str>, u64)] = &[
    ("blkreplay_natural/linux-mysql.load.gz", None, 80_794),
    ("blkreplay_natural/windows-shared-server.load.gz", None, 1_371),
    ("cloudphysics/cloudPhysicsIO.vscsi.xz", None, 113_872),
    ("msr_cambridge/msr-cambridge1-sample.csv", None, 1_000),
    ("mobile_nexus5/Movie_log121.txt.xz", None, 4_781),
    ("mobile_nexus5/Booting_log176.txt.xz", None, 18_417),
    ("ssdsim/example.ascii.xz", Some("ssdsim"), 10_000),
    ("umass_spc_excerpts/uflip_web1.trace.xz", Some("disksim:size=4KiB"), 50_000),
    ("mqsim_samples/wsrch-small.trace.xz", Some("mqsim"), 24_783),
    ("mqsim_samples/tpcc-small.trace.xz", Some("mqsim"), 6_999),
    ("disksim_ssd/ssd-iozone-aligned2-100K.trace.xz", Some("disksim"), 100_000),
    ("systor17/systor17-additional-sample.csv.gz", None, 999),
    ("blkparse_misc/wiscsee_sqlitewal_events.txt.xz", None, 5_008),
    ("blkparse_misc/wiscsee_blkparse-output.txt", None, 673),
    ("blkparse_misc/blkparseout_ext4.txt.xz", None, 9_887),
];

#[test]
fn traces_packed_on_a_small_drive() {
    for &(trace, format, requests) in SMALL {
        let reading = json!({ "format": format, "time_gap_max": "1min" });
        // this trace overwrites heavily, and a timed run would take minutes
        let mode = if trace.starts_with("disksim") { "untimed" } else { "asap" };
        // these traces touch more than 4 GiB of extents
        let wide = trace.starts_with("umass") || trace.starts_with("mqsim");
        let drive = if wide { "ufs-128gb" } else { "mast-4gb" };
        let precondition = if wide { "fill" } else { "steady" };
        let spec = json!({
            "drive": drive, "trace": trace, "reading": reading, "fit": "compact",
            "precondition": precondition,
            "mode": mode
        });
        replay(&spec, requests);
    }
}

/// Replays the traces with few requests, and one trace of a database, on a block-mapped drive.
///
/// Longer traces would take too long, because block mapping rewrites a block for almost every
/// write.
#[test]
fn traces_on_a_block_mapped_drive() {
    for &(trace, format, requests) in
        SMALL.iter().filter(|(_, _, requests)| *requests < 1_500).chain(&SMALL[..1])
    {
        let spec = json!({
            "drive": "mast-4gb", "set": ["ftl.scheme=block"], "trace": trace,
            "reading": { "format": format },
            "fit": "compact", "precondition": "fill", "mode": "untimed"
        });
        replay(&spec, requests);
    }
}

/// Replays a database on every log-block scheme, on the drive of the MAST paper.
///
/// The trace causes every kind of merge that a scheme has.
#[test]
fn a_database_on_log_blocks() {
    for scheme in ["bast", "sast", "fast", "faster", "superblock", "last", "mast"] {
        let spec = json!({
            "drive": "mast-4gb", "set": [format!("ftl.scheme={scheme}"), "ftl.log_blocks=256"],
            "trace": "blkreplay_natural/linux-mysql.load.gz", "fit": "compact",
            "precondition": "fill", "mode": "open"
        });
        let Some(record) = replay(&spec, 80_794) else { return };
        let reclaimed = record["merges"]["log_blocks"]
            .as_object()
            .unwrap()
            .values()
            .map(|n| n.as_u64().unwrap());
        assert!(reclaimed.sum::<u64>() > 5_000, "{scheme}: {}", record["merges"]);
    }
}

/// Replays a phone's trace after its preconditioning trace, on a drive of 128 GB.
///
/// Addresses are not packed, and repeated records are dropped. The expected number of requests is
/// the number in the list of traces less the number of repeats. The repeats were counted by other
/// means.
#[test]
fn phones_with_their_state_before() {
    for (app, requests) in [("cod", 205_426), ("pubg", 61_478)] {
        let reading = json!({ "drop_duplicates": "5ms", "time_gap_max": "1s" });
        let spec = json!({
            "drive": "ufs-128gb", "trace": format!("mobile_pixel6a/{app}_exec.csv.gz"),
            "reading": reading, "mode": "open",
            "precondition": { "trace": format!("mobile_pixel6a/{app}_precond.csv.gz") }
        });
        let Some(record) = replay(&spec, requests) else { continue };
        assert!(record["trace"]["duplicates_dropped"].as_u64().unwrap() > 0);
        assert!(
            record["host"]["unmapped_reads"].as_u64().unwrap() > 0,
            "some reads hit pages that no request wrote"
        );
    }
}

/// Replays a trace that contains only addresses, as reads and as writes.
#[test]
fn addresses_alone() {
    for (op, count) in [("read", "reads"), ("write", "writes")] {
        let spec = json!({
            "drive": "mast-4gb", "trace": "arc_ibm/OLTP.lis.zst", "reading": { "assume_op": op },
            "fit": "compact",
            "precondition": "fill", "mode": "untimed"
        });
        if let Some(record) = replay(&spec, 914_145) {
            assert_eq!(record["host"][count], 914_145);
        }
    }
}
