//! The run record: all findings of a run, as JSON. See `docs/FORMATS.md`.

use crate::config_hash::config_hash;
use crate::environment::Build;
use crate::oracle::Oracle;
use crate::trace_name::merge_settings;
use crate::{Fit, Mode, Precondition, RunSpec, notes, options};
use flashatlas_device::DriveConfig;
use flashatlas_types::{Note, Value as Param};
use serde_json::{Map, Value, json};

/// Name and version of the record's layout.
pub const SCHEMA: &str = "flashatlas.run/2";

/// Returns a parameter's value as JSON; a time becomes a text with its unit.
pub(crate) fn param(value: &Param) -> Value {
    match value {
        Param::Int(n) => (*n).into(),
        Param::Time(time) => time.to_string().into(),
        Param::Ratio(x) => (*x).into(),
        Param::Bool(b) => (*b).into(),
        Param::Text(s) => s.as_str().into(),
    }
}

/// Returns the configuration of a run, by the names of the options.
///
/// With a seed and a trace, the configuration describes the whole run. The declaration of an option
/// decides whether the configuration contains the option ([`crate::Recorded`]).
pub(crate) fn config(spec: &RunSpec, drive: &DriveConfig) -> Value {
    let [options, reading] = options::recorded(&spec.settings());
    let before = match &spec.precondition {
        Precondition::Trace(path) => Some(path.as_str()),
        _ => None,
    };
    let merged = |path: Option<&str>| path.and_then(merge_settings).map(|merge| json!(merge));
    let reading = (!reading.is_empty()).then_some(Value::Object(reading));
    let beside = [
        ("merge", merged(spec.trace.as_deref())),
        ("merge_before", merged(before)),
        ("reading", reading),
    ];
    let mut run = Map::new();
    run.insert("drive".into(), spec.drive.as_str().into());
    run.extend(options);
    run.extend(beside.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    let params = drive.pairs().map(|(key, value)| (key.to_owned(), param(value))).collect();
    run.insert("params".into(), Value::Object(params));
    Value::Object(run)
}

/// Returns the first part of the record: the configuration and the build of the run.
pub(crate) fn head(spec: &RunSpec, drive: &DriveConfig, build: Build<'_>) -> Map<String, Value> {
    let config = config(spec, drive);
    let mut record = Map::new();
    record.insert("schema".into(), SCHEMA.into());
    record.insert("version".into(), build.version.into());
    record.insert("build".into(), json!({ "sources": build.sources, "commit": build.commit }));
    record.insert("config_hash".into(), config_hash(&config).into());
    record.insert("config".into(), config);
    record.insert("seed".into(), spec.seed.into());
    record
}

/// Returns the notes on omissions and simplifications of the run, with `extra` last.
pub(crate) fn approximations(spec: &RunSpec, extra: Vec<Note>) -> Vec<Note> {
    let mut list: Vec<Note> = Vec::new();
    match spec.mode {
        Mode::Untimed => list.push(notes::UNTIMED.note()),
        Mode::Open => list.push(notes::OPEN_LOOP.note()),
        Mode::Closed | Mode::Asap if spec.trace.is_some() => {
            list.push(notes::TIMES_IGNORED.note());
        }
        Mode::Closed | Mode::Asap => {}
    }
    if spec.mode != Mode::Untimed {
        list.push(notes::NO_ECC_TIME.note());
    }
    match spec.fit {
        Fit::Error => {}
        Fit::Wrap => list.push(notes::ADDRESSES_WRAPPED.note()),
        Fit::Compact => list.push(notes::EXTENTS_PACKED.note()),
    }
    match &spec.precondition {
        Precondition::Fill => list.push(notes::FILLED.note()),
        Precondition::Trace(path) => {
            list.push(notes::PRECONDITION_TRACE.with([("path", path.as_str().into())]));
        }
        Precondition::Steady => list.push(notes::PRECONDITION_STEADY.note()),
        Precondition::Checkpoint(path) => {
            list.push(notes::PRECONDITION_CHECKPOINT.with([("path", path.as_str().into())]));
        }
        Precondition::None => {}
    }
    if spec.precondition != Precondition::None {
        list.push(notes::POWER_CYCLED.note());
    }
    if spec.flush_every > 0 {
        list.push(notes::FLUSHES_ADDED.with([("writes", spec.flush_every.into())]));
    }
    list.extend(extra);
    list
}

pub(crate) fn oracle(oracle: &Oracle) -> Value {
    json!({
        "units_checked": oracle.units_checked,
        "units_swept": oracle.swept.units(),
        "violations": oracle.violations,
        "examples": oracle.described,
    })
}
