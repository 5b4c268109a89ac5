//! Tests of the table, and of a small table with an additional option.

use super::declaration::{option, options};
use super::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The fields of `RunSpec` that are not options: the drive, its settings, and `reading`.
const DRIVE: [&str; 4] = ["drive", "drive_toml", "set", "reading"];

fn names(of: &Value) -> BTreeSet<&str> {
    of.as_object().unwrap().keys().map(String::as_str).collect()
}

fn is_of_reading(option: &RunOption) -> bool {
    option.group == OptionGroup::Reading
}

#[test]
fn every_field_is_an_option_with_its_default() {
    let spec: RunSpec = serde_json::from_value(json!({ "drive": "tiny" })).unwrap();
    let fields = json!(spec);
    let of = |reading: bool| OPTIONS.iter().filter(move |o| is_of_reading(o) == reading);
    let whole: BTreeSet<&str> = of(false).map(|o| o.name).chain(DRIVE).collect();
    assert_eq!(names(&fields), whole);
    assert_eq!(names(&fields["reading"]), of(true).map(|o| o.name).collect());
    for option in OPTIONS {
        let group = if is_of_reading(option) { &fields["reading"] } else { &fields };
        assert_eq!(group[option.name], (option.default)(), "{}", option.name);
    }
}

#[test]
fn choices_are_those_that_are_understood() {
    for option in OPTIONS {
        let Choice(words) = option.kind else { continue };
        for word in words {
            let value = match word.split_once(":FILE") {
                Some((kind, _)) => json!({ kind: "a file" }),
                None => json!(word),
            };
            let spec = json!({ "drive": "tiny", option.name: value });
            assert!(serde_json::from_value::<RunSpec>(spec).is_ok(), "{} {word}", option.name);
        }
        let wrong = json!({ "drive": "tiny", option.name: "nonsense" });
        let error = serde_json::from_value::<RunSpec>(wrong).unwrap_err().to_string();
        for word in words {
            let name = word.split(':').next().unwrap();
            assert!(error.contains(&format!("`{name}`")), "{name} is missing: {error}");
        }
        assert_eq!(error.matches('`').count(), 2 * words.len() + 2, "{error}");
    }
}

/// Digests of configurations depend on the order, so every place is taken by exactly one option.
#[test]
fn places_count_from_one() {
    let in_order = |places: &mut Vec<u8>, what: &str| {
        places.sort_unstable();
        assert_eq!(*places, (1..=places.len() as u8).collect::<Vec<_>>(), "{what}");
    };
    for reading in [false, true] {
        let of_group = OPTIONS.iter().filter(|o| is_of_reading(o) == reading);
        let mut places = of_group.filter_map(|o| o.recorded.place()).collect();
        in_order(&mut places, if reading { "`recorded` of reading" } else { "`recorded`" });
    }
    in_order(&mut OPTIONS.iter().filter_map(|o| o.by_job_file).collect(), "`by_job_file`");
}

/// The order of records since the schema `flashatlas.run/2`.
#[test]
fn a_configuration_has_the_options_in_the_order_of_records() {
    let all = json!({
        "drive": "tiny", "trace": "t", "mode": "open", "precondition": "fill", "fit": "compact",
        "warmup": 5, "workload": "w", "filesystem": "ext4", "interval": "1ms", "depth": 4,
        "until": "steady", "limit": 9, "flush_every": 3, "extent": "4KiB", "speed": 2.0,
        "explain": "p99", "fingerprint": true, "seed": 4, "job": "j",
        "reading": {
            "shift": 1, "skip_bad": "too-far", "assume_op": "read", "time_gap_max": "1s",
            "drop_duplicates": "1ms", "device_map": "collapse", "format": "blktrace",
        },
    });
    let keys = |spec: Value| {
        let spec: RunSpec = serde_json::from_value(spec).unwrap();
        let keys = |of: &serde_json::Map<String, Value>| of.keys().cloned().collect::<Vec<_>>();
        let [run, reading] = recorded(&spec.settings());
        [keys(&run).join(" "), keys(&reading).join(" ")]
    };
    assert_eq!(
        keys(all),
        [
            "mode precondition fit warmup workload filesystem interval depth until limit \
             flush_every extent speed",
            "format device_map drop_duplicates time_gap_max assume_op skip_bad shift"
        ]
    );
    assert_eq!(keys(json!({ "drive": "tiny" })), ["mode precondition fit warmup", ""]);
    let slow = json!({ "drive": "tiny", "mode": "open" });
    assert_eq!(keys(slow)[0], "mode precondition fit warmup speed");
}

#[test]
fn a_specification_needs_a_drive_and_has_no_other_keys() {
    let error = |spec: Value| serde_json::from_value::<RunSpec>(spec).unwrap_err().to_string();
    assert_eq!(error(json!({})), "missing field `drive`");
    assert!(error(json!({ "drive": "tiny", "dept": 4 })).starts_with("unknown field `dept`"));
    assert!(error(json!({ "drive": "tiny", "warmup": null })).starts_with("invalid type: null"));
    let reading = json!({ "drive": "tiny", "reading": { "shfit": 4 } });
    assert!(error(reading).starts_with("unknown field `shfit`"));
}

/// A small table with an additional option `patience`, which is declared only by its row.
pub(super) mod with_one_more {
    use super::*;

    options! {
        /// Every option of the small table.
        const FEW;

        /// Options for reading a trace.
        struct FewReading {
            /// Format of the trace.
            format: Option<String> = None => option(Text).recorded(IfGiven(1)).by_job_file(3);
        }

        /// One run.
        struct FewOfRun {
            /// Preset name.
            drive: String;
            /// Options for reading the trace.
            #[serde(default)]
            reading: FewReading;
        }

        group Playing {
            /// Rule by which requests are issued.
            mode: Mode = Mode::Asap => option(Choice(&["asap", "open"])).recorded(Always(1));

            /// Number of commands in flight.
            depth: Option<u32> = None => option(Count(1)).recorded(IfGiven(3)).by_job_file(1);

            /// Number of requests that may
            /// fail.
            patience: u64 = 7 =>
                option(Count(2)).letter('p').metavar("N").recorded(IfGiven(2)).by_job_file(2);
        }
    }
}

#[test]
fn one_row_is_all_that_an_option_takes() {
    use with_one_more::{FEW, FewOfRun};
    // the struct, and its JSON
    let run: FewOfRun = serde_json::from_value(json!({ "drive": "tiny" })).unwrap();
    assert_eq!((run.patience, run.drive.as_str()), (7, "tiny"));
    let given = json!({ "drive": "tiny", "depth": 4, "patience": 9 });
    let run: FewOfRun = serde_json::from_value(given).unwrap();
    assert_eq!(run.patience, 9);
    let whole = json!({
        "drive": "tiny", "reading": { "format": null }, "mode": "asap", "depth": 4, "patience": 9,
    });
    assert_eq!(json!(run), whole);
    // the list, from which the command line and Python get their options
    let listed = FEW.iter().find(|option| option.name == "patience").unwrap();
    assert_eq!(listed.doc, "Number of requests that may fail.");
    assert_eq!((listed.letter, listed.metavar, listed.kind), (Some('p'), "N", Count(2)));
    assert_eq!((listed.group, (listed.default)()), (OptionGroup::Playing, json!(7)));
    assert!(python::arguments(FEW).contains("    patience: int\n"));
    assert!(python::configuration(FEW).contains("    patience: NotRequired[int]\n"));
    // the record, in the order of places
    let [recorded_run, reading] = recorded(&settings(FEW, &json!(run)));
    let keys: Vec<&str> = recorded_run.keys().map(String::as_str).collect();
    assert_eq!((keys, reading.len()), (vec!["mode", "patience", "depth"], 0));
    // the refusals beside a job file
    assert_eq!(first_by_job_file(&settings(FEW, &json!(run))), Some("depth"));
    let run: FewOfRun = serde_json::from_value(json!({ "drive": "x", "patience": 8 })).unwrap();
    assert_eq!(first_by_job_file(&settings(FEW, &json!(run))), Some("patience"));
    let run: FewOfRun = serde_json::from_value(json!({ "drive": "x", "patience": 7 })).unwrap();
    assert_eq!(first_by_job_file(&settings(FEW, &json!(run))), None);
}
