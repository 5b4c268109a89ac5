//! Comparison of the steady state with a long simulation, and of checkpoints with preconditioning.

use crate::environment;
use flashatlas_sim::{Column, Outcome, RunError, RunSpec, Stream, Table, run, save_checkpoint};
use flashatlas_types::{Rng, Seed};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Cursor;

/// Files of a test, in memory.
#[derive(Default)]
struct Files(HashMap<String, Vec<u8>>);

impl flashatlas_sim::Opener for Files {
    fn open(&self, path: &str) -> std::io::Result<Stream> {
        let bytes = self.0.get(path).ok_or_else(|| std::io::Error::other("no such file"))?.clone();
        let length = bytes.len() as u64;
        Ok((Box::new(Cursor::new(bytes)), Some(length)))
    }
}

fn spec(value: &Value) -> RunSpec {
    serde_json::from_value(value.clone()).unwrap()
}

fn try_run(files: &Files, value: &Value) -> Result<Outcome, RunError> {
    run(&spec(value), &environment(files), &mut |_| true)
}

fn outcome(files: &Files, value: &Value) -> Outcome {
    let outcome = try_run(files, value).unwrap_or_else(|e| panic!("{value}: {e}"));
    assert_eq!(outcome.record["oracle"]["violations"], 0, "{value}");
    outcome
}

fn save(files: &Files, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    save_checkpoint(&spec(value), &environment(files), ("memory", &mut bytes), &mut |_| true)
        .unwrap_or_else(|e| panic!("{value}: {e}"));
    bytes
}

fn with(base: &Value, changes: Value) -> Value {
    let mut value = base.clone();
    for (key, change) in changes.as_object().unwrap() {
        value[key] = change.clone();
    }
    value
}

/// Returns the cumulative distribution of valid slots at the beginning of the measured part.
///
/// Item `i` is the share of the closed blocks with at most `i` 64ths of their slots valid.
fn distribution(outcome: &Outcome) -> Vec<f64> {
    let table: &Table = outcome.tables.iter().find(|t| t.name == "blocks").unwrap();
    let Some(Column::Int(frames)) = table.column("frame") else { panic!("frames") };
    let Some(Column::Float(valid)) = table.column("valid") else { panic!("valid") };
    let Some(Column::Words { codes, .. }) = table.column("role") else { panic!("role") };
    let closed: Vec<f64> =
        (0..frames.len()).filter(|&i| frames[i] == 0 && codes[i] == 2).map(|i| valid[i]).collect();
    (0..=64)
        .map(|i| {
            closed.iter().filter(|&&v| v <= f64::from(i) / 64.0).count() as f64
                / closed.len() as f64
        })
        .collect()
}

const UNITS: u32 = 51_200;

/// Returns settings for 1,000 blocks of 64 slots with 80 % of the slots used, and a unit's size.
///
/// The drive has one lane of whole-page units, or four lanes of units that share a page.
fn shape(lanes: u32) -> (Vec<&'static str>, &'static str) {
    let logical = "drive.logical_pages=51200";
    if lanes == 1 {
        let one = [
            "drive.channels=1",
            "drive.ways=1",
            "drive.blocks=1001",
            "drive.pages=64",
            "cache.mode=write-through",
        ];
        ([&one[..], &[logical]].concat(), "2KiB")
    } else {
        let four = ["drive.blocks=253", "drive.pages=32", "map.unit=1KiB", "cache.bytes=32KiB"];
        ([&four[..], &[logical]].concat(), "1KiB")
    }
}

/// Compares a simulated steady state with the steady state that the model makes.
///
/// Five drive writes bring a filled drive close to its steady state, and the sixth is measured. The
/// drive that begins in the steady state is measured from its first write on. The distributions of
/// the valid slots of 1,000 blocks may differ by the critical value of the two-sample Kolmogorov
/// test at 1 %, `1.63 sqrt(2 / 1000) = 0.073`. The write amplification may differ by 1 %. With
/// random victims it may differ by 5 %, because the amplification of a single drive write then has
/// a standard deviation of 1.2 %: a victim's valid share has a standard deviation of 0.15, 4,000
/// victims are averaged, and the amplification is 5.
#[test]
fn the_steady_state_is_that_of_a_long_simulation() {
    let files = Files::default();
    for (lanes, mode) in [(1, "single"), (1, "dual"), (4, "dual")] {
        for (policy, tolerance) in
            [("greedy", 0.01), ("fifo", 0.01), ("random", 0.05), ("d-choices", 0.01)]
        {
            let (mut set, unit) = shape(lanes);
            let chosen = [format!("ftl.victim={policy}"), format!("ftl.gc_mode={mode}")];
            set.extend(chosen.iter().map(String::as_str));
            let uniform = |requests: u32| format!("uniform:requests={requests},size={unit}");
            let base = json!({ "drive": "tiny", "set": set, "mode": "untimed" });
            let long = with(
                &base,
                json!({ "precondition": "fill", "warmup": 5 * UNITS,
                    "workload": uniform(6 * UNITS) }),
            );
            let steady =
                with(&base, json!({ "precondition": "steady", "workload": uniform(UNITS) }));
            let (long, steady) = (outcome(&files, &long), outcome(&files, &steady));
            let waf = |o: &Outcome| o.record["waf"].as_f64().unwrap();
            let error = waf(&steady) / waf(&long) - 1.0;
            assert!(
                error.abs() < tolerance,
                "{policy} {mode}, {lanes} lanes: {} {}",
                waf(&long),
                waf(&steady)
            );
            let (a, b) = (distribution(&long), distribution(&steady));
            let distance = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(distance < 0.073, "{policy} {mode}, {lanes} lanes: {distance}");
        }
    }
}

#[test]
fn what_has_no_model_is_refused_by_name() {
    let files = Files::default();
    let error = |set: Value| {
        let value = json!({ "drive": "tlc-small", "set": set, "precondition": "steady",
            "workload": "uniform:requests=10" });
        try_run(&files, &value).unwrap_err().to_string()
    };
    for (set, key) in [
        (json!(["ftl.victim=cost-benefit"]), "ftl.victim: the steady state of `cost-benefit`"),
        (
            json!(["ftl.streams=2", "ftl.classifier=dac"]),
            "ftl.streams: the steady state of several streams",
        ),
    ] {
        let error = error(set);
        assert!(error.starts_with(key) && error.contains("`precondition=fill`"), "{error}");
    }
    let block = json!({ "drive": "tiny", "set": ["ftl.scheme=block"], "precondition": "steady",
        "workload": "uniform:requests=10,size=2KiB" });
    assert!(
        try_run(&files, &block)
            .unwrap_err()
            .to_string()
            .contains("ftl.scheme: the steady state of `block`")
    );
}

/// Writes and a trim, partly far apart: units 0 and 1 stay, unit 2 is trimmed, unit 3 is
/// overwritten.
const TRACE: &str = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a write 0 4096\n/dev/a \
                     write 4096 4096\n/dev/a trim 4096 2048\n/dev/a write 1073741824 2048\n/dev/a \
                     write 6144 2048\n";

/// Returns a log that writes single pages among the first 300, most of them among the first 30.
///
/// Afterwards the drive has log blocks of every kind.
fn life() -> String {
    let mut rng = Rng::stream(Seed(1), "life");
    let mut log = "fio version 2 iolog\n/dev/a add\n/dev/a open\n".to_owned();
    for _ in 0..2000 {
        let among = if rng.chance(700_000) { 30 } else { 300 };
        let page = rng.below(among);
        log += &format!("/dev/a write {} 2048\n", page * 2048);
    }
    log
}

fn files() -> Files {
    let texts = [("before.log", TRACE.to_owned()), ("life.log", life())];
    Files(texts.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect())
}

/// Returns a run for each way of preconditioning, on schemes that place pages differently.
fn specs() -> Vec<Value> {
    let set = ["cache.mode=write-through", "drive.blocks=64"];
    let base = json!({ "drive": "tiny", "set": set,
        "workload": "mixed:requests=2000,read=0.4,sizes=2KiB/4KiB,flush_every=9" });
    let traced = json!({ "trace": "before.log" });
    let block = json!(["ftl.scheme=block", "drive.blocks=64"]);
    vec![
        with(&base, json!({ "precondition": "fill" })),
        with(&base, json!({ "precondition": "steady" })),
        with(&base, json!({ "precondition": traced.clone(), "fit": "wrap" })),
        with(
            &base,
            json!({ "precondition": traced, "fit": "compact", "trace": "before.log",
                "workload": null }),
        ),
        with(&base, json!({ "precondition": "fill", "set": block })),
    ]
    .into_iter()
    .chain(["bast", "sast", "fast", "faster", "superblock", "last", "mast"].map(|scheme| {
        let set = [
            &format!("ftl.scheme={scheme}"),
            "ftl.log_blocks=12",
            "cache.mode=write-through",
            "drive.blocks=64",
        ];
        with(&base, json!({ "precondition": { "trace": "life.log" }, "set": set }))
    }))
    .collect()
}

#[test]
fn a_run_from_a_checkpoint_is_the_run_that_preconditions_itself() {
    for spec in specs() {
        let mut files = files();
        let direct = outcome(&files, &spec);
        files.0.insert("drive.ckpt".into(), save(&files, &spec));
        let loaded = outcome(
            &files,
            &with(&spec, json!({ "precondition": { "checkpoint": "drive.ckpt" } })),
        );
        for key in [
            "nand",
            "waf",
            "latency_ns",
            "simulated_ns",
            "wear",
            "oracle",
            "gc",
            "host",
            "map",
            "merges",
            "log_areas",
        ] {
            assert_eq!(direct.record.get(key), loaded.record.get(key), "{key} of {spec}");
        }
        // compare texts, because missing values are NaN, which does not equal itself
        assert_eq!(format!("{:?}", direct.tables), format!("{:?}", loaded.tables), "{spec}");
        assert_eq!(loaded.record["checkpoint"]["precondition"], spec["precondition"]);
    }
}

#[test]
fn a_trace_that_is_placed_in_another_way_than_its_checkpoint_says_so() {
    let mut files = files();
    let spec = specs().remove(3);
    files.0.insert("drive.ckpt".into(), save(&files, &spec));
    let load = with(&spec, json!({ "precondition": { "checkpoint": "drive.ckpt" } }));
    for (fit, said) in [("compact", false), ("wrap", true)] {
        let r = outcome(&files, &with(&load, json!({ "fit": fit }))).record;
        assert_eq!(
            r["approximations"].to_string().contains("different places on the drive"),
            said,
            "{fit}"
        );
    }
}

#[test]
fn a_workload_that_leaves_nothing_to_measure_is_an_error() {
    let mut files = files();
    let log = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a trim 4096 2048\n/dev/a trim \
               8192 2048\n";
    files.0.insert("trims.log".into(), log.into());
    let written = format!("{log}/dev/a write 1073741824 2048\n/dev/a trim 4096 2048\n");
    files.0.insert("written.log".into(), written.into());
    for (trace, warmup) in [("trims.log", 0), ("written.log", 3)] {
        let error = try_run(
            &files,
            &json!({ "drive": "tiny", "trace": trace, "fit": "compact", "warmup": warmup }),
        );
        let error = error.expect_err(trace).to_string();
        assert!(
            error.contains("leaves no request to measure")
                && error.contains("`fit=compact` leaves out"),
            "{error}"
        );
    }
}

/// The option `shift` also applies to a preconditioning trace, even if the workload is generated.
#[test]
fn reading_options_are_for_the_preconditioning_trace_when_the_workload_is_generated() {
    // the trace writes unit 0, and with a shift of four sectors it writes unit 1
    for (shift, unmapped) in [(0, 0), (4, 1)] {
        let spec = json!({ "drive": "tiny", "precondition": { "trace": "before.log" },
            "fit": "wrap",
            "reading": { "shift": shift }, "workload": "sequential:requests=1,size=2KiB,read=1" });
        assert_eq!(
            outcome(&files(), &spec).record["host"]["unmapped_reads"],
            unmapped,
            "shift {shift}"
        );
    }
    let plain = try_run(
        &files(),
        &json!({ "drive": "tiny", "reading": { "shift": 4 },
            "workload": "uniform:requests=1,size=2KiB" }),
    );
    assert!(
        plain.unwrap_err().to_string().contains("shift: this option changes how a trace is read")
    );
}

#[test]
fn trimmed_pages_stay_trimmed() {
    let (mut files, spec) = (files(), specs().remove(2));
    let read = with(&spec, json!({ "workload": "sequential:requests=4,size=2KiB,read=1" }));
    files.0.insert("drive.ckpt".into(), save(&files, &read));
    for precondition in [read["precondition"].clone(), json!({ "checkpoint": "drive.ckpt" })] {
        let r = outcome(&files, &with(&read, json!({ "precondition": precondition }))).record;
        assert_eq!(r["host"]["unmapped_reads"], 1, "of pages 0 to 3, page 2 is trimmed");
    }
}

#[test]
fn one_checkpoint_serves_drives_that_differ_in_speed_and_policy_only() {
    let mut files = files();
    let spec = specs().remove(0);
    files.0.insert("drive.ckpt".into(), save(&files, &spec));
    let load = with(&spec, json!({ "precondition": { "checkpoint": "drive.ckpt" } }));
    let other = |setting: &str| {
        with(&load, json!({ "set": ["cache.mode=write-through", "drive.blocks=64", setting] }))
    };
    for setting in
        ["timing.t_program=1ms", "ftl.victim=fifo", "host.queue_depth=2", "cache.mode=write-back"]
    {
        outcome(&files, &other(setting));
    }
    for (setting, expected) in [
        ("drive.pages=16", "its drive.pages is 8, but here it is 16"),
        ("drive.allocation=WCDP", "its drive.allocation is \"CWDP\", but here it is \"WCDP\""),
        ("ftl.scheme=block", "its ftl.scheme is \"page\", but here it is \"block\""),
        ("ftl.gc_mode=single", "its ftl.gc_mode is \"dual\", but here it is \"single\""),
        ("nand.data=ram", "its nand.data is \"none\", but here it is \"ram\""),
        ("drive.over_provisioning=0.9", "its number of logical pages is"),
    ] {
        let error = try_run(&files, &other(setting)).unwrap_err().to_string();
        assert!(
            error.starts_with("drive.ckpt: the checkpoint is of another drive")
                && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn no_damage_goes_unseen() {
    for (base, layout) in [("dense", 4), ("computed", 5)] {
        let tiny = json!({ "drive": "tiny", "workload": "uniform:requests=5,size=2KiB",
            "precondition": "steady", "base": base });
        let good = save(&files(), &tiny);
        assert_eq!(good[8], layout);
        no_damage_of(good, &tiny);
    }
}

fn no_damage_of(good: Vec<u8>, spec: &Value) {
    let mut files = files();
    let load = with(spec, json!({ "precondition": { "checkpoint": "drive.ckpt" } }));
    let mut error = |bytes: Vec<u8>| {
        files.0.insert("drive.ckpt".into(), bytes);
        try_run(&files, &load).expect_err("damage must be seen").to_string()
    };
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(error(bad).starts_with("drive.ckpt: byte "), "byte {at}");
    }
    for length in (0..good.len()).step_by(7) {
        let why = error(good[..length].to_vec());
        assert!(
            why.starts_with("drive.ckpt: byte ") && why.contains("truncated"),
            "{length} bytes: {why}"
        );
    }
    assert!(
        error([&good[..], b"x"].concat()).contains("the file has more bytes than were written")
    );
    assert_eq!(
        error(b"once upon a time there was".to_vec()),
        "drive.ckpt: byte 0: the file is not a checkpoint; a checkpoint begins with the bytes \
         `FACHKPT` and a line end"
    );
    let mut future = good.clone();
    future[8] = 6;
    assert_eq!(
        error(future),
        "drive.ckpt: byte 8: the checkpoint has layout 6, but this program reads the layouts 4 and \
         5: make the checkpoint again"
    );
    // a header that claims to be longer than the file causes no allocation
    let mut huge = good[..16].to_vec();
    huge[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(error(huge).contains("the header has 4294967295 bytes"));
}

#[test]
fn preconditioning_can_be_stopped() {
    let all = ["fill", "steady"].map(|begin| [("dense", 3), ("computed", 2)].map(|of| (begin, of)));
    // what is computed is there at the second call
    for (precondition, (base, last)) in all.concat() {
        let value = json!({ "drive": "tlc-small", "precondition": precondition, "base": base,
            "workload": "uniform:requests=10" });
        let mut calls = 0;
        let stopped = run(&spec(&value), &environment(&Files::default()), &mut |p| {
            calls += u32::from(p.phase == "precondition");
            calls < last
        });
        assert!(matches!(stopped, Err(RunError::Interrupted)), "{precondition} {base}");
    }
}
