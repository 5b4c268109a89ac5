//! The SMART log of a run: its counts by hand, and the values that it takes from the flash.

use crate::tables::outcome;
use serde_json::{Value, json};

fn record(drive: &str, set: &[&str], more: &Value) -> Value {
    let mut spec = json!({ "drive": drive, "set": set });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    outcome(&spec).record
}

#[test]
fn data_units_are_thousands_of_512_bytes_rounded_up() {
    for (requests, size, units) in [
        (1000, "500KiB", 1000), // each request has 512,000 bytes
        (1, "512", 1),
        (1000, "512", 1),
        (1001, "512", 2),
    ] {
        for (read, kind) in [(0, "write"), (1, "read")] {
            let workload = format!("sequential:requests={requests},size={size},read={read}");
            let more = json!({ "mode": "untimed", "workload": workload });
            let smart = &record("tlc-small", &[], &more)["smart"];
            let both = [("read", read), ("write", 1 - read)];
            for (name, share) in both {
                assert_eq!(smart[format!("host_{name}_commands")], share * requests, "{kind}");
            }
            assert_eq!(smart["data_units_read"], read * units, "{workload}");
            assert_eq!(smart["data_units_written"], (1 - read) * units, "{workload}");
            assert_eq!(smart["media_errors"], 0);
        }
    }
}

#[test]
fn only_the_measured_part_is_counted_but_wear_since_the_drive_was_new() {
    let set = ["nand.endurance=100"];
    let workload = "uniform:requests=6000,size=2KiB,read=0.25";
    let more = json!({ "workload": workload, "precondition": "fill", "warmup": 4000 });
    let record = record("tiny", &set, &more);
    let smart = &record["smart"];
    let commands = |name: &str| smart[name].as_u64().unwrap();
    assert_eq!(commands("host_read_commands") + commands("host_write_commands"), 2000);
    assert_eq!(smart["host_write_commands"], record["host"]["writes"]);
    // with an endurance of 100 cycles, each erase is a percent
    let mean = record["wear"]["mean"].as_f64().unwrap();
    assert!(mean > 1.0, "{mean}");
    assert_eq!(smart["percentage_used"], mean as u64);
    assert_eq!((&smart["available_spare"], &smart["critical_warning"]), (&json!(100), &json!(0)));
    assert_eq!(smart["available_spare_threshold"], 10);
}

#[test]
fn hours_count_simulated_time_and_are_absent_without_time() {
    let mut more = json!({ "mode": "open", "workload": "uniform:requests=200,interval=60s" });
    let timed = record("tiny", &[], &more);
    let hours = timed["simulated_ns"].as_f64().unwrap() / 3.6e12;
    assert!((2.0..5.0).contains(&hours), "about 200 minutes: {hours}");
    assert_eq!(timed["smart"]["power_on_hours"], hours as u64);
    more = json!({ "mode": "untimed", "workload": "uniform:requests=200" });
    assert!(record("tiny", &[], &more)["smart"].get("power_on_hours").is_none());
}

/// A run has no heat, no controller with logs, and no power cycle: these fields are absent.
#[test]
fn fields_without_a_value_are_absent() {
    let more = json!({ "workload": "uniform:requests=10" });
    let record = record("tiny", &[], &more);
    let found: Vec<&str> = record["smart"].as_object().unwrap().keys().map(|k| &**k).collect();
    let formats = include_str!("../../../../docs/FORMATS.md");
    for name in [
        "temperature",
        "controller_busy_time",
        "power_cycles",
        "unsafe_shutdowns",
        "num_err_log_entries",
        "warning_temp_time",
        "critical_comp_time",
    ] {
        assert!(!found.contains(&name), "{name}");
        assert!(formats.contains(&format!("`{name}`")), "{name} is said to be absent");
    }
    for name in &found {
        let said = [format!("`smart.{name}`"), format!("`.{name}`")];
        assert!(said.iter().any(|text| formats.contains(text)), "{name} is described");
    }
}

#[test]
fn each_of_several_drives_has_its_own_wear_and_no_log_is_made_up_for_all() {
    let set = ["layers=mirror", "mirror.drives=2", "nand.endurance=100"];
    let more = json!({ "workload": "uniform:requests=8000,size=2KiB" });
    let record = record("tiny", &set, &more);
    assert!(record.get("smart").is_none());
    let drives = record["drives"].as_array().unwrap();
    assert_eq!(drives.len(), 2);
    let mean = record["wear"]["mean"].as_f64().unwrap();
    assert!(mean > 1.0, "{mean}");
    assert_eq!(drives[0]["percentage_used"], mean as u64, "`wear` is of the first drive");
    assert_eq!(drives[1]["available_spare"], 100);
}
