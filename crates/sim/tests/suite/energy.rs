//! Energy of a run: its parts by hand, and that they add up.

use crate::environment;
use crate::tables::outcome;
use flashatlas_sim::{RunSpec, run};
use serde_json::{Value, json};

const RATES: [&str; 11] = [
    "energy.read_nj=3000",
    "energy.program_nj=50000",
    "energy.erase_nj=1000000",
    "power.channel_mw=20",
    "power.link_mw=30",
    "power.core_mw=40",
    "power.work_mw=500",
    "power.idle_mw=100",
    "power.ps3_after=20ms",
    "power.ps3_exit=1ms",
    "power.ps3_mw=5",
];

/// Returns the record of a run whose requests have pauses of 30 ms on average.
fn record(more: &[&str]) -> Value {
    let set = [&RATES[..], &["firmware.cores=1", "host.command_time=10us"], more].concat();
    let spec = json!({ "drive": "tiny", "set": set, "mode": "open", "precondition": "fill",
        "workload": "uniform:requests=3000,size=2KiB,read=0.4,interval=30ms" });
    outcome(&spec).record
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn sum(value: &Value) -> f64 {
    value.as_object().unwrap().values().map(number).sum()
}

fn is(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}, expected {expected}");
}

#[test]
fn the_parts_of_the_energy_are_counts_and_times_by_their_rates() {
    let record = record(&[]);
    let energy = &record["energy"];
    let joules = |name: &str| number(&energy["joules"][name]);
    for (part, counts, nj) in
        [("reads", "reads", 3e3), ("programs", "programs", 50e3), ("erases", "erases", 1e6)]
    {
        assert!(sum(&record["nand"][counts]) > 0.0);
        is(joules(part), sum(&record["nand"][counts]) * nj / 1e9);
    }
    let seconds = |name: &str| number(&energy["seconds"][name]);
    for (part, watts) in [("work", 0.5), ("idle", 0.1), ("ps3", 0.005)] {
        assert!(seconds(part) > 0.0, "{energy}");
        is(joules(part), seconds(part) * watts);
    }
    // each request takes 10 us of the core, and no request has more work for it
    is(joules("cores"), 3000.0 * 10e-6 * 0.04);
    assert!(joules("channels") > 0.0);
    is(number(&energy["total_j"]), sum(&energy["joules"]));
    is(sum(&energy["cells_by_cause"]), joules("reads") + joules("programs") + joules("erases"));
    is(number(&energy["mean_w"]) * sum(&energy["seconds"]), number(&energy["total_j"]));
    assert!(energy["entered"]["ps3"].as_u64().unwrap() > 100, "{energy}");
}

/// Time at work and at rest is all time until the drive has come to rest: the time that the record
/// says, and the work of the last program behind it.
#[test]
fn the_states_of_power_share_all_of_the_time() {
    let record = record(&[]);
    let all = sum(&record["energy"]["seconds"]);
    let elapsed = number(&record["simulated_ns"]) / 1e9;
    assert!(
        all > elapsed - 1e-9 && all < elapsed + 0.01,
        "{all} s, {elapsed} s until the last request"
    );
}

/// Reads of one page that needed a retry read it again.
#[test]
fn retries_take_the_energy_of_reads() {
    let errors = ["drive.cell=tlc", "drive.pages=12", "drive.page_bytes=2048"];
    let worn = ["errors.model=tlc-72l", "errors.cycles=2500", "errors.rest_days=365"];
    let record = record(&[&errors[..], &worn].concat());
    let further = number(&record["faults"]["further_reads"]);
    assert!(further > 100.0, "{}", record["faults"]);
    is(number(&record["energy"]["joules"]["retries"]), further * 3e3 / 1e9);
}

#[test]
fn a_drive_without_rates_has_no_energy() {
    let spec = json!({ "drive": "tiny", "workload": "uniform:requests=10,size=2KiB" });
    assert_eq!(outcome(&spec).record["energy"], Value::Null);
}

/// The error names a key that was set.
#[test]
fn several_drives_are_refused_by_the_key_that_was_set() {
    for key in ["power.idle_mw", "energy.erase_nj", "power.ps4_after"] {
        let value = if key.ends_with("after") { "1ms" } else { "5" };
        let set = ["layers=mirror".to_owned(), format!("{key}={value}")];
        let spec = json!({ "drive": "tiny", "set": set,
            "workload": "uniform:requests=10,size=2KiB" });
        let spec: RunSpec = serde_json::from_value(spec).unwrap();
        let none = |path: &str| Err(std::io::Error::other(path.to_owned()));
        let refused = run(&spec, &environment(&none), &mut |_| true).err().unwrap().to_string();
        assert!(refused.contains(key) && refused.contains("of one drive"), "{refused}");
    }
}
