//! The run record: everything that a run found out, as JSON. See `docs/FORMATS.md`.

use crate::config_hash::config_hash;
use crate::environment::Build;
use crate::oracle::Oracle;
use crate::{Extent, Fit, Mode, Precondition, Reading, RunSpec, Until};
use flashatlas_device::DriveConfig;
use flashatlas_types::Value as Param;
use serde_json::{Map, Value, json};

/// Name and version of the record's layout.
pub const SCHEMA: &str = "flashatlas.run/2";

/// A parameter's value as JSON; a time as text with its unit.
pub(crate) fn param(value: &Param) -> Value {
    match value {
        Param::Int(n) => (*n).into(),
        Param::Time(time) => time.to_string().into(),
        Param::Ratio(x) => (*x).into(),
        Param::Bool(b) => (*b).into(),
        Param::Text(s) => s.as_str().into(),
    }
}

/// What was run, in the words of the options: the run again is this, a seed and a trace. What was
/// not given is left out, but for the first five.
pub(crate) fn config(spec: &RunSpec, drive: &DriveConfig) -> Value {
    let params = drive.pairs().map(|(key, value)| (key.to_owned(), param(value))).collect();
    let mut run = Map::new();
    run.insert("drive".into(), spec.drive.as_str().into());
    run.insert("mode".into(), json!(spec.mode));
    run.insert("precondition".into(), json!(spec.precondition));
    run.insert("fit".into(), json!(spec.fit));
    run.insert("warmup".into(), spec.warmup.into());
    let given = [
        ("workload", spec.workload.as_ref().map(|text| json!(text))),
        ("filesystem", spec.filesystem.as_ref().map(|text| json!(text))),
        ("interval", spec.interval.as_ref().map(|text| json!(text))),
        ("depth", spec.depth.map(Value::from)),
        ("until", (spec.until != Until::End).then(|| json!(spec.until))),
        ("limit", spec.limit.map(Value::from)),
        ("flush_every", (spec.flush_every > 0).then(|| spec.flush_every.into())),
        ("extent", (spec.extent != Extent::Auto).then(|| json!(spec.extent))),
        ("speed", (spec.mode == Mode::Open).then(|| spec.speed.into())),
        ("reading", spec.reading.given().map(|_| reading(&spec.reading))),
    ];
    run.extend(given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    run.insert("params".into(), Value::Object(params));
    Value::Object(run)
}

/// The options that were given.
fn reading(reading: &Reading) -> Value {
    let mut given = json!(reading);
    if let Value::Object(options) = &mut given {
        options.retain(|_, value| !(value.is_null() || *value == json!(0)));
    }
    given
}

/// The first part of the record: what was run.
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

/// What the run leaves out or simplifies, in words: a reader must not have to guess.
pub(crate) fn approximations(spec: &RunSpec, extra: Vec<String>) -> Value {
    let mut list: Vec<String> = Vec::new();
    match spec.mode {
        Mode::Untimed => list.push(
            "untimed: no time passes, so there are no latencies and no work in idle time".into(),
        ),
        Mode::Open => list.push(
            "open loop: the host does not slow down when the drive does; it waits for a place in \
             the queue"
                .into(),
        ),
        Mode::Closed | Mode::Asap if spec.trace.is_some() => {
            list.push("closed loop: times of the trace are ignored".into())
        }
        Mode::Closed | Mode::Asap => {}
    }
    if spec.mode != Mode::Untimed {
        list.push("the spare area's transfer, ECC decoding and read retries take no time".into());
    }
    match spec.fit {
        Fit::Error => {}
        Fit::Wrap => list.push(
            "addresses were taken modulo the capacity: distinct pages of the trace may share a \
             page here"
                .into(),
        ),
        Fit::Compact => list.push(
            "the extents that the trace touches were packed (trace.extent_bytes): distances \
             between them are lost"
                .into(),
        ),
    }
    match &spec.precondition {
        Precondition::Fill => list.push(
            "the drive was filled in address order in no time: it starts unaged"
                .into(),
        ),
        Precondition::Trace(path) => list.push(format!(
            "the writes and trims of {path} were applied in no time before the run"
        )),
        Precondition::Steady => list.push(
            "the drive began in the steady state that uniform random writes lead to, by its victim \
             policy's model; no block had been erased before"
                .into(),
        ),
        Precondition::Checkpoint(path) => list.push(format!(
            "the drive began as the checkpoint {path} holds it"
        )),
        Precondition::None => {}
    }
    if spec.precondition != Precondition::None {
        list.push(
            "the preconditioned drive was switched off and on: it began with what stood on flash"
                .into(),
        );
    }
    if spec.flush_every > 0 {
        list.push(format!("a FLUSH was added after every {} writes", spec.flush_every));
    }
    list.extend(extra);
    Value::from(list)
}

pub(crate) fn oracle(oracle: &Oracle) -> Value {
    json!({
        "units_checked": oracle.units_checked,
        "units_swept": oracle.units_swept,
        "violations": oracle.violations,
        "examples": oracle.described,
    })
}
