//! The options of a run, declared once: the fields of [`RunSpec`](crate::RunSpec) with type,
//! default, choices and help. Python's keyword arguments and the command line are made of this
//! list.

use OptionKind::{Choice, Count, CountOr, Factor, File, Flag, Number, Text};
use flashatlas_workload::BadKind;

/// The type of an option.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OptionKind {
    /// A path of a file.
    File,
    /// Text of its own syntax.
    Text,
    /// A whole number, at least this.
    Count(u64),
    /// A whole number, or one or several of these words with commas.
    CountOr(&'static [&'static str]),
    /// A whole number of either sign.
    Number,
    /// A number above 0.
    Factor,
    /// One of these words; those that end in `:FILE` are followed by a path.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
}

impl OptionKind {
    /// Returns the word for the type that Python and the command line show.
    pub const fn name(self) -> &'static str {
        match self {
            File => "file",
            Text => "text",
            Count(_) => "count",
            CountOr(_) => "count-or",
            Number => "number",
            Factor => "factor",
            Choice(_) => "choice",
            Flag => "flag",
        }
    }
}

/// Subject of an option, which decides the commands that take it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionGroup {
    /// Reading of a trace: the fields of [`Reading`](crate::Reading).
    Reading,
    /// The workload, and how it meets a drive.
    Workload,
    /// Playing and measuring; these options play no part in preconditioning.
    Playing,
}

impl OptionGroup {
    /// Returns the heading of the group.
    pub const fn title(self) -> &'static str {
        match self {
            OptionGroup::Reading => "Reading a trace",
            OptionGroup::Workload => "Workload",
            OptionGroup::Playing => "Playing and measuring",
        }
    }
}

/// One option of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOption {
    /// The field; the command line writes `device_map` as `--device-map`.
    pub name: &'static str,
    /// Letter of the option on the command line.
    pub letter: Option<char>,
    /// Group of the option.
    pub group: OptionGroup,
    /// Type and range.
    pub kind: OptionKind,
    /// Default as JSON; `null` where the option is not given.
    pub default: &'static str,
    /// Placeholder for its value in help texts; empty: the word for the type.
    pub metavar: &'static str,
    /// Meaning of the option.
    pub doc: &'static str,
}

const READING: OptionGroup = OptionGroup::Reading;
const WORKLOAD: OptionGroup = OptionGroup::Workload;
const PLAYING: OptionGroup = OptionGroup::Playing;

const fn option(
    group: OptionGroup,
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    doc: &'static str,
) -> RunOption {
    RunOption { name, letter: None, group, kind, default, metavar: "", doc }
}

const fn metavar(option: RunOption, metavar: &'static str) -> RunOption {
    RunOption { metavar, ..option }
}

const fn letter(option: RunOption, letter: char) -> RunOption {
    RunOption { letter: Some(letter), ..option }
}

/// Every option, in the order of help texts.
pub const OPTIONS: &[RunOption] = &[
    option(
        READING,
        "format",
        Text,
        "null",
        "Format of the trace, or `columns:…`; by default its content decides.",
    ),
    metavar(
        option(
            READING,
            "device_map",
            Text,
            "null",
            "Treatment of several devices in a trace: `separate` (keep their address spaces apart; \
             the default), `collapse` (let all share one), or `select:N` (take device N alone).",
        ),
        "MAP",
    ),
    metavar(
        option(
            READING,
            "drop_duplicates",
            Text,
            "null",
            "Drop a record that repeats the previous one of its device within this time, such as \
             `5ms`; by default none is dropped.",
        ),
        "TIME",
    ),
    metavar(
        option(
            READING,
            "time_gap_max",
            Text,
            "null",
            "Shorten pauses to at most this time, such as `1s`, and ignore backward steps of the \
             clock that are longer; by default times stay as they are.",
        ),
        "TIME",
    ),
    metavar(
        option(
            READING,
            "assume_op",
            Text,
            "null",
            "Operation of all requests of a trace that names none: `read`, `write` or `trim`.",
        ),
        "OP",
    ),
    option(
        READING,
        "skip_bad",
        CountOr(&BadKind::NAMES),
        "0",
        "Number of bad records that are skipped and counted; the next one is an error. Or kinds, \
         with commas, of which all are skipped: `zero-length`, `too-long`, `too-far`.",
    ),
    option(
        READING,
        "shift",
        Number,
        "0",
        "Number of sectors added to every address (CloudPhysics traces: -7).",
    ),
    letter(
        option(
            WORKLOAD,
            "trace",
            File,
            "null",
            "Trace to replay, plain or compressed (gz, bz2, xz, zst).",
        ),
        't',
    ),
    letter(
        option(
            WORKLOAD,
            "workload",
            Text,
            "null",
            "Generated workload in place of a trace: `uniform:requests=100000,size=4KiB,read=0.5`.",
        ),
        'w',
    ),
    option(WORKLOAD, "job", File, "null", "fio job file to play in place of a trace."),
    metavar(
        option(
            WORKLOAD,
            "filesystem",
            Text,
            "null",
            "With a job file: the file system between its jobs and the drive, `ext4` or \
             `ext4:fua=true,files=written`; by default the jobs use the drive itself.",
        ),
        "FS",
    ),
    option(
        WORKLOAD,
        "precondition",
        Choice(&["none", "fill", "steady", "trace:FILE", "checkpoint:FILE"]),
        "\"none\"",
        "State of the drive before the workload: `none` (blank), `fill` (every page written once, \
         in order), `steady` (the steady state of uniform random writes, set from a model and not \
         simulated), `trace:FILE` (this trace was played), or `checkpoint:FILE` (kept by \
         `flashatlas checkpoint`).",
    ),
    option(
        WORKLOAD,
        "fit",
        Choice(&["error", "wrap", "compact"]),
        "\"error\"",
        "Treatment of addresses beyond the drive: `error` (stop), `wrap` (take them modulo the \
         capacity) or `compact` (pack the touched extents).",
    ),
    option(
        WORKLOAD,
        "extent",
        Choice(&["auto", "1MiB", "256KiB", "64KiB", "16KiB", "4KiB"]),
        "\"auto\"",
        "Size of the extents that `fit=compact` packs; `auto`: the largest with which the workload \
         fits the drive. Distances within an extent are kept.",
    ),
    option(
        WORKLOAD,
        "limit",
        Count(1),
        "null",
        "Number of requests after which the workload ends (warm-up included), or with \
         `until=steady` each pass; by default the whole workload is played.",
    ),
    option(WORKLOAD, "seed", Count(0), "1", "Seed of everything random."),
    option(
        PLAYING,
        "mode",
        Choice(&["asap", "closed", "open", "untimed"]),
        "\"asap\"",
        "Rule by which requests are issued: `asap` (as many commands in flight as the drive takes; \
         the default), `closed` (`depth` commands in flight; the default if `depth` is given), \
         `open` (at the times of the trace), `untimed` (no time passes).",
    ),
    option(
        PLAYING,
        "depth",
        Count(1),
        "null",
        "Number of commands in flight; selects the mode `closed`.",
    ),
    option(
        PLAYING,
        "speed",
        Factor,
        "1.0",
        "Factor by which the times of the trace are divided, in the mode `open`.",
    ),
    option(
        PLAYING,
        "warmup",
        Count(0),
        "0",
        "Number of requests at the start that are not measured.",
    ),
    option(
        PLAYING,
        "until",
        Choice(&["end", "steady"]),
        "\"end\"",
        "End of the run: `end` (of the workload), or `steady`: repeat the workload until five \
         passes in a row are steady, or 25 passes are done; then play it once more and measure \
         that pass.",
    ),
    option(
        PLAYING,
        "flush_every",
        Count(0),
        "0",
        "Number of writes after which a FLUSH is added, for traces that have none; 0: no FLUSH.",
    ),
    metavar(
        option(
            PLAYING,
            "interval",
            Text,
            "null",
            "Length of simulated time that each row of the time series covers, such as `100ms`; by \
             default 1 ms, doubled until the run has at most 512 rows.",
        ),
        "TIME",
    ),
    metavar(
        option(
            PLAYING,
            "explain",
            Text,
            "null",
            "Split the latencies from this percentile on, such as `p99.9`, by reason (waiting, \
             cells, collection, merges, map pages); by default they are not split.",
        ),
        "pN",
    ),
    option(
        PLAYING,
        "fingerprint",
        Flag,
        "false",
        "Add a fingerprint to the record: the number of flash operations, and a hash of all of \
         them and their times.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunSpec;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// The fields of `RunSpec` that are no options: the drive, its settings, and `reading`.
    const DRIVE: [&str; 4] = ["drive", "drive_toml", "set", "reading"];

    fn names(of: &Value) -> BTreeSet<&str> {
        of.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn every_field_is_an_option_with_its_default() {
        let spec: RunSpec = serde_json::from_value(json!({ "drive": "tiny" })).unwrap();
        let fields = json!(spec);
        let of = |reading: bool| OPTIONS.iter().filter(move |o| (o.group == READING) == reading);
        let whole: BTreeSet<&str> = of(false).map(|o| o.name).chain(DRIVE).collect();
        assert_eq!(names(&fields), whole);
        assert_eq!(names(&fields["reading"]), of(true).map(|o| o.name).collect());
        for option in OPTIONS {
            let group = if option.group == READING { &fields["reading"] } else { &fields };
            let default: Value = serde_json::from_str(option.default).unwrap();
            assert_eq!(group[option.name], default, "{}", option.name);
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
}
