//! Tables of a run: they agree with the record, and sampling does not change the run.

use crate::environment;
use flashatlas_sim::{Column, Outcome, RunSpec, Stream, Table, run};
use serde_json::{Value, json};

pub(super) fn open(path: &str) -> std::io::Result<Stream> {
    Err(std::io::Error::other(format!("{path}: no test needs a file")))
}

pub(super) fn outcome(spec: &Value) -> Outcome {
    let spec: RunSpec = serde_json::from_value(spec.clone()).unwrap();
    run(&spec, &environment(&open), &mut |_| true).unwrap()
}

fn with(base: &Value, key: &str, value: Value) -> Value {
    let mut spec = base.clone();
    spec[key] = value;
    spec
}

fn table<'a>(outcome: &'a Outcome, name: &str) -> &'a Table {
    outcome.tables.iter().find(|t| t.name == name).unwrap_or_else(|| panic!("no table {name}"))
}

fn ints<'a>(table: &'a Table, name: &str) -> &'a [i64] {
    match table.column(name) {
        Some(Column::Int(values)) => values,
        other => panic!("{}.{name}: {other:?}", table.name),
    }
}

fn floats<'a>(table: &'a Table, name: &str) -> &'a [f64] {
    match table.column(name) {
        Some(Column::Float(values)) => values,
        other => panic!("{}.{name}: {other:?}", table.name),
    }
}

/// Returns a run with bursts, and with pauses in which the drive collects.
fn bursty() -> Value {
    json!({
        "drive": "tiny", "mode": "open", "precondition": "fill", "warmup": 100,
        "set": ["cache.mode=write-through", "ftl.idle_free=4", "ftl.idle_valid=0.9",
            "host.idle_after=1ms"],
        "workload": "uniform:requests=3000,size=2KiB,interval=7ms,read=0.4,trim=0.05,flush_every=50"
    })
}

#[test]
fn rows_sum_up_to_the_record() {
    for spec in [
        bursty(),
        with(&bursty(), "mode", json!("untimed")),
        with(&bursty(), "interval", json!("1ms")),
    ] {
        let outcome = outcome(&spec);
        let (record, series) = (&outcome.record, table(&outcome, "series"));
        for (op, count) in
            [("read", "reads"), ("write", "writes"), ("trim", "trims"), ("flush", "flushes")]
        {
            let sum: i64 = ints(series, &format!("{op}_requests")).iter().sum();
            assert_eq!(json!(sum), record["host"][count], "{op}");
        }
        assert_eq!(
            json!(ints(series, "read_bytes").iter().sum::<i64>()),
            record["host"]["read_bytes"]
        );
        for kind in ["reads", "programs", "erases"] {
            let counts = record["nand"][kind].as_object().unwrap();
            assert!(
                counts.contains_key("idle") || spec["mode"] == "untimed",
                "{kind}: the drive must work in idle time"
            );
            for (cause, count) in counts {
                let sum: i64 = ints(series, &format!("{kind}_{cause}")).iter().sum();
                assert_eq!(json!(sum), *count, "{kind} {cause}");
            }
        }
        assert_eq!(ints(series, "requests_from")[0], 1);
        if spec["mode"] == "untimed" {
            assert!(series.column("start_ns").is_none());
            continue;
        }
        let (starts, widths) = (ints(series, "start_ns"), ints(series, "width_ns"));
        assert!(
            starts.windows(2).zip(widths).all(|(s, w)| s[1] == s[0] + w),
            "rows follow each other without a gap"
        );
        assert!(
            widths[..widths.len() - 1].windows(2).all(|w| w[0] == w[1]),
            "all rows except the last have the same width"
        );
        // the busy time of dies, summed over rows, equals the busy time of the whole run
        let busy: f64 =
            floats(series, "die_busy").iter().zip(widths).map(|(b, &w)| b * w as f64).sum();
        let total: i64 = widths.iter().sum();
        let whole = record["utilisation"]["dies"]["mean"].as_f64().unwrap();
        assert!((busy / total as f64 / whole - 1.0).abs() < 1e-6, "{busy} {total} {whole}");
        assert!(floats(series, "die_busy").iter().all(|&b| (0.0..=1.0).contains(&b)));
        let maximum = floats(series, "write_max_ns").iter().copied().fold(0.0, f64::max);
        assert_eq!(json!(maximum), record["latency_ns"]["write"]["max"]);
    }
}

/// Checks that a closed loop keeps its depth from the first row on.
///
/// Commands that were in flight when measuring began count, too.
#[test]
fn a_closed_loop_keeps_its_depth_in_every_row() {
    let outcome = outcome(
        &json!({ "drive": "tiny", "mode": "closed", "depth": 16, "warmup": 500, "interval": "1ms",
        "precondition": "fill", "workload": "uniform:requests=3000,size=2KiB,read=0.5" }),
    );
    let level = floats(table(&outcome, "series"), "in_flight_mean");
    let before_the_end = &level[..level.len() - 40];
    assert!(
        before_the_end.iter().all(|&l| (15.9..=16.0 + 1e-9).contains(&l)),
        "{before_the_end:?}"
    );
}

/// Checks that busy shares are at most 1 in rows that are far shorter than an erase.
///
/// The work of a resource counts in the row in which it is done.
#[test]
fn nothing_is_busy_for_longer_than_there_is_time() {
    let short = with(&bursty(), "interval", json!("20us"));
    let suspending = json!([
        "timing.suspend=both",
        "cache.mode=write-through",
        "timing.cache_read=true",
        "timing.cache_program=true"
    ]);
    for spec in [
        short.clone(),
        with(
            &with(&short, "set", suspending),
            "workload",
            json!("uniform:requests=2000,size=2KiB,read=0.4"),
        ),
    ] {
        let spec = with(&with(&spec, "mode", json!("asap")), "warmup", json!(50));
        let outcome = outcome(&spec);
        let series = table(&outcome, "series");
        assert!(series.rows() > 1000);
        for column in ["die_busy", "channel_busy", "link_in_busy", "link_out_busy"] {
            let values = floats(series, column);
            let (least, most) =
                values.iter().fold((0.0f64, 0.0f64), |(a, b), &v| (a.min(v), b.max(v)));
            assert!(least >= 0.0 && most <= 1.0 + 1e-9, "{column}: {least} to {most}");
            assert!(most > 0.0 || column.starts_with("link"), "{column} is never busy");
        }
    }
}

#[test]
fn the_number_of_rows_stays_bounded_whatever_the_length() {
    for requests in [10, 1000, 60_000] {
        let workload = format!("uniform:requests={requests},size=2KiB,interval=3ms");
        let outcome = outcome(
            &with(&bursty(), "workload", json!(workload))
                .as_object_mut()
                .map(|o| {
                    o["warmup"] = json!(0);
                    json!(o)
                })
                .unwrap(),
        );
        let rows = table(&outcome, "series").rows();
        assert!((10..=512).contains(&rows), "{requests} requests: {rows} rows");
        assert!(table(&outcome, "blocks").rows() <= 64 * 4096);
    }
    // a user's interval is kept
    let outcome = outcome(&with(&bursty(), "interval", json!("10ms")));
    assert_eq!(outcome.record["series"]["width_ns"], 10_000_000.0);
    assert!(table(&outcome, "series").rows() > 1500);
}

#[test]
fn looking_more_often_changes_nothing() {
    let without_series = |spec: &Value| {
        let mut record = outcome(spec).record;
        record.as_object_mut().unwrap().remove("series").expect("a series was kept");
        record["config"].as_object_mut().unwrap().remove("interval");
        let notes = record["approximations"].as_array_mut().unwrap();
        let all = notes.len();
        notes.retain(|note| note["code"] != "rows-longer");
        (all - notes.len(), record)
    };
    let (_, plain) = without_series(&bursty());
    // if there are too many rows, they become longer, and a note reports this
    for (interval, said) in [("10us", 1), ("333333ns", 0), ("5s", 0)] {
        let found = without_series(&with(&bursty(), "interval", json!(interval)));
        assert_eq!(found, (said, plain.clone()));
    }
}

#[test]
fn histograms_count_every_request_and_block() {
    let outcome = outcome(&bursty());
    let latency = table(&outcome, "latency");
    let Some(Column::Words { of, codes }) = latency.column("op") else { panic!("words") };
    for (op, name) in of.iter().enumerate() {
        let rows = || {
            codes
                .iter()
                .zip(ints(latency, "count"))
                .filter(|(c, _)| usize::from(**c) == op)
                .map(|(_, n)| n)
        };
        assert_eq!(
            json!(rows().sum::<i64>()),
            outcome.record["latency_ns"][name]["count"],
            "{name}"
        );
    }
    let wear = table(&outcome, "wear");
    assert_eq!(json!(ints(wear, "blocks").iter().sum::<i64>()), outcome.record["wear"]["blocks"]);
    let erases: i64 =
        ints(wear, "erases").iter().zip(ints(wear, "blocks")).map(|(e, b)| e * b).sum();
    let mean = erases as f64 / outcome.record["wear"]["blocks"].as_f64().unwrap();
    assert!((mean - outcome.record["wear"]["mean"].as_f64().unwrap()).abs() < 1e-9);
}

#[test]
fn the_last_frame_shows_the_drive_as_it_is_at_the_end() {
    let outcome = outcome(&json!({ "drive": "tiny", "mode": "untimed", "precondition": "fill",
        "workload": "uniform:requests=5000,size=2KiB,trim=0.1" }));
    let blocks = table(&outcome, "blocks");
    let frames = ints(blocks, "frame");
    let last = frames[frames.len() - 1];
    let at_end: Vec<usize> = (0..frames.len()).filter(|&i| frames[i] == last).collect();
    let (valid, erases) = (floats(blocks, "valid"), floats(blocks, "erases"));
    // the drive has 128 blocks of 8 pages; every logical page that is not trimmed has exactly one
    // valid copy
    let units: f64 = at_end.iter().map(|&i| valid[i] * 8.0).sum();
    assert_eq!(at_end.len(), 128);
    let written = outcome.record["oracle"]["units_swept"].as_f64().unwrap();
    assert!(units > 0.8 * written && units <= written, "{units} of {written}");
    let worn: f64 = at_end.iter().map(|&i| erases[i]).sum();
    assert_eq!(worn / 128.0, outcome.record["wear"]["mean"].as_f64().unwrap());
    assert_eq!(ints(blocks, "request")[frames.len() - 1], 5000);
}

/// Checks that the merges of all rows sum up to the record.
///
/// The last row must show the areas of the log with the same values as the record.
#[test]
fn merges_and_areas_over_time() {
    let spec = json!({
        "drive": "mast-4gb", "workload": "hotcold:requests=40000,size=2KiB,hot_space=0.05,read=0.1",
        "precondition": "fill", "mode": "untimed",
        "set": ["drive.logical_pages=8192", "ftl.scheme=mast", "ftl.log_blocks=40",
            "ftl.resize_window=256"],
    });
    let outcome = outcome(&spec);
    let (merges, series) = (&outcome.record["merges"], table(&outcome, "series"));
    for class in ["switch", "partial", "full", "dead", "moved"] {
        let reclaimed: i64 = ints(series, &format!("reclaimed_{class}")).iter().sum();
        assert_eq!(reclaimed, merges["log_blocks"][class].as_i64().unwrap(), "{class}");
        if class != "switch" {
            assert!(reclaimed > 0, "{class}: {merges}");
        }
    }
    for class in ["switch", "partial", "full"] {
        let merged: i64 = ints(series, &format!("merges_{class}")).iter().sum();
        assert_eq!(merged, merges["data_blocks"][class].as_i64().unwrap(), "{class}");
    }
    let copies: i64 = ints(series, "merge_copies").iter().sum();
    let moved: i64 = ints(series, "moved_pages").iter().sum();
    assert_eq!([copies, moved], ["copies", "moved_pages"].map(|key| merges[key].as_i64().unwrap()));
    // every copy and every move is a read and a program with the cause `merge`
    let nand = &outcome.record["nand"];
    assert_eq!(nand["programs"]["merge"].as_i64().unwrap(), copies + moved);
    assert_eq!(nand["reads"]["merge"].as_i64().unwrap(), copies + moved);
    let mean = merges["association"]["mean"].as_f64().unwrap();
    assert!(mean > 0.0 && mean <= merges["association"]["max"].as_f64().unwrap());
    let areas = outcome.record["log_areas"].as_object().unwrap();
    assert_eq!(areas.keys().collect::<Vec<_>>(), ["sequential", "locality", "hot", "cold"]);
    let mut sums = vec![0; series.rows()];
    for (name, area) in areas {
        let budgets = ints(series, &format!("area_{name}_budget"));
        let blocks = ints(series, &format!("area_{name}_blocks"));
        let valid = floats(series, &format!("area_{name}_utilisation"));
        let last = |values: &[i64]| values[values.len() - 1];
        assert_eq!(
            (last(budgets), last(blocks)),
            (area["budget"].as_i64().unwrap(), area["blocks"].as_i64().unwrap())
        );
        if let Some(share) = area["utilisation"].as_f64() {
            assert_eq!(valid[valid.len() - 1], share, "{name}");
            assert_eq!(
                share,
                area["valid_pages"].as_f64().unwrap() / (area["blocks"].as_f64().unwrap() * 64.0)
            );
        }
        assert!(blocks.iter().zip(budgets).all(|(used, may)| used <= may), "{name}");
        sums.iter_mut().zip(budgets).for_each(|(sum, budget)| *sum += budget);
    }
    assert!(sums.iter().all(|&sum| sum == 40), "the budgets of the areas always add up to the log");
    let budgets = ints(series, "area_locality_budget");
    assert!(budgets.iter().any(|&b| b != budgets[0]), "the sizes change in this run");
}
