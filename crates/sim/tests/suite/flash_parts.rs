//! Whole runs with parts of flash that are off by default: the cost of the defences of lower pages,
//! and suspension beside a published measurement.

use crate::environment;
use flashatlas_sim::{Opener, RunSpec, Stream, run};
use serde_json::{Value, json};

/// No files.
struct NoFiles;

impl Opener for NoFiles {
    fn open(&self, path: &str) -> std::io::Result<Stream> {
        Err(std::io::Error::other(format!("{path}: there are no files")))
    }
}

fn record(value: &Value) -> Value {
    let spec: RunSpec = serde_json::from_value(value.clone()).unwrap();
    let outcome = run(&spec, &environment(&NoFiles), &mut |_| true)
        .unwrap_or_else(|e| panic!("{value}: {e}"));
    assert_eq!(outcome.record["oracle"]["violations"], 0, "{value}");
    outcome.record
}

/// `docs/VALIDATION.md` has the cost of each defence, from longer runs after a warm-up.
#[test]
fn defences_of_lower_pages_cost_what_they_write() {
    let orders = [("mlc", "shadow"), ("mlc", "shadow-even-odd"), ("tlc", "shadow-even-odd")];
    for (cell, order) in orders {
        let of = |defence: &str| {
            record(&json!({
                "drive": "tlc-small",
                "set": [
                    "drive.channels=1", "drive.ways=2", "drive.blocks=24", "drive.pages=192",
                    "drive.over_provisioning=0.5",
                    "map.store=dram", "map.flush=none", "ftl.gc_pace=burst",
                    format!("drive.cell={cell}"),
                    format!("drive.page_order={order}"), defence,
                ],
                "workload": "uniform:requests=60000,size=4KiB,flush_every=32",
                "precondition": "fill",
                "mode": "closed", "depth": 8,
            }))
        };
        let [none, skip, backup, plp] = ["none", "skip", "backup", "plp"].map(|name| match name {
            "plp" => of("nand.plp_bytes=64MiB"),
            name => of(&format!("ftl.lower_pages={name}")),
        });
        let waf = |record: &Value| record["waf"].as_f64().unwrap();
        let iops = |record: &Value| record["iops"].as_f64().unwrap_or_default();
        for (name, found) in [("none", &none), ("skip", &skip), ("backup", &backup), ("plp", &plp)]
        {
            println!("{cell} {order} {name}: waf {:.3}, iops {:.0}", waf(found), iops(found));
        }
        let noted = |record: &Value| {
            let notes = record["approximations"].as_array().unwrap();
            notes.iter().any(|note| note["code"] == "lower-pages-undefended")
        };
        assert_eq!([&none, &skip, &backup, &plp].map(noted), [true, false, false, false]);
        // capacitors change no operation
        assert_eq!(waf(&plp), waf(&none));
        assert!(waf(&backup) > waf(&none), "{cell} {order}");
        assert!(skip["scheme"]["lower_pages_skipped"].as_u64().unwrap() > 0);
        // each backup is an additional program
        let pages = |record: &Value| -> u64 {
            record["nand"]["programs"].as_object().unwrap().values().flat_map(Value::as_u64).sum()
        };
        let backups = backup["scheme"]["lower_pages_backed_up"].as_u64().unwrap();
        assert!(backups > 0 && pages(&backup) >= pages(&none) + backups / 2, "{backups}");
    }
}

/// FEMU #204: 8 x 8 dies, tR 40, tPROG 200 and tBERS 2,000 us, 25 % spare. Reads at the median, at
/// 99 % and at 99.99 %: 150, 55,837 and 111,673 us without suspension, 51, 140 and 2,671 us with
/// it.
///
/// The workload of the issue is not published; ours is half reads, at depth 64. Without suspension,
/// collection has the first priority here. So the two rows differ in suspension and in priority.
/// `docs/VALIDATION.md` has the deviations, which are large at 99 % without suspension.
#[test]
fn suspension_with_reads_first_cuts_the_tail_of_reads() {
    let of = |more: &[&str]| {
        let drive = [
            "drive.channels=8",
            "drive.ways=8",
            "drive.dies=1",
            "drive.planes=1",
            "drive.blocks=32",
            "drive.pages=256",
            "drive.page_bytes=4096",
            "map.unit=4KiB",
            "drive.frame_planes=1",
            "drive.cell=slc",
            "drive.over_provisioning=0.25",
            "map.store=dram",
            "map.flush=none",
            "timing.t_read=40us",
            "timing.t_program=200us",
            "timing.t_erase=2ms",
            "timing.t_read_middle=0",
            "timing.t_read_upper=0",
            "timing.t_program_middle=0",
            "timing.t_program_upper=0",
            "timing.suspended_max=0",
            "drive.frame_channels=8",
            "drive.frame_ways=8",
            "ftl.gc_pace=burst",
        ];
        let set: Vec<&str> = drive.iter().chain(more).copied().collect();
        let found = record(&json!({
            "drive": "tlc-small",
            "set": set,
            "workload": "uniform:requests=300000,size=4KiB,read=0.5",
            "precondition": "steady",
            "mode": "closed", "depth": 64,
        }));
        let read = &found["latency_ns"]["read"];
        println!("{more:?}: {read}");
        ["p50", "p99", "p99_99"].map(|p| read[p].as_f64().unwrap() / 1e3)
    };
    let behind = of(&["timing.passed_max=0", "timing.priority=gc,idle,map,host_write,host_read"]);
    let suspended = of(&["timing.passed_max=0", "timing.suspend=both", "timing.t_suspend=10us"]);
    println!("behind collection {behind:?}, suspended {suspended:?}");
    let (published, published_suspended) = ([150.0, 55_837.0, 111_673.0], [51.0, 140.0, 2_671.0]);
    // the far tail without suspension is a collection of tens of milliseconds
    let tail = behind[2] / published[2];
    assert!((0.3..3.0).contains(&tail), "{behind:?}");
    // with it, a read at the median and at 99 % waits for a few reads at most
    for at in [0, 1] {
        let ratio = suspended[at] / published_suspended[at];
        assert!((0.5..2.0).contains(&ratio), "{suspended:?}");
    }
    assert!(behind[2] / suspended[2] > 10.0, "{behind:?} {suspended:?}");
}
