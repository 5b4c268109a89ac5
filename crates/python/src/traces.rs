//! Traces for Python: summaries, conversions to other formats, and tables.

use crate::environment::environment;
use crate::opener::{is_file, names_beside};
use crate::{InputError, Reporter, guarded, tables};
use flashatlas_sim::{
    Column, Environment, Input, Inputs, Progress, Reading, RunError, Table, kinds_skipped,
    summarize,
};
use flashatlas_types::{HostOp, Ps, SECTOR_BYTES};
use flashatlas_workload::{
    Account, Bounds, MapUnits, RecordSource, Reuse, Slice, WriteError, WriteOptions, atlas,
};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::sync::Mutex;

/// Number of records between two calls of the progress function.
const PROGRESS_EVERY: u64 = 65_536;

fn parse<T: for<'a> Deserialize<'a>>(what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| InputError::new_err(format!("{what}: {e}")))
}

fn account_json(account: &Account) -> Value {
    json!({
        "skipped_bad": account.skipped_bad, "duplicates_dropped": account.duplicates_dropped,
        "skipped_kinds": Map::from_iter(
            kinds_skipped(account).into_iter().map(|(kind, n)| (kind.to_owned(), n.into()))
        ),
        "wrapped": account.wrapped, "not_selected": account.not_selected,
        "gaps_cut": account.gaps_cut,
        "backward_steps": account.backward_steps,
        "first_jump": account.first_jump.map(|j| json!({ "place": j.place.to_string(),
            "seconds": j.seconds() })),
        "device_names": account.device_names,
    })
}

/// Returns the summary of a trace (JSON). Releases the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (path, reading, progress=None))]
pub fn trace_info(
    py: Python<'_>,
    path: &str,
    reading: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let reading: Reading = parse("reading options", reading)?;
    let value = guarded(py, progress, |reporter| {
        let inputs = inputs(&reading)?;
        let mut input = inputs.trace(path, reading.format.as_deref(), true)?;
        let length = input.length;
        let (summary, extents) = summarize(&mut input, |requests, bytes| {
            let share = length.map(|l| bytes as f64 / l.max(1) as f64);
            reporter.report(Progress { phase: "scan", requests, share })
        })?;
        let mut value = json!({
            "path": input.name, "format": input.format, "compression": input.compression,
            "parts": input.parts_json()?, "guesses": input.guesses(),
            "digest": input.digest()?.map(|d| format!("sha256:{d}")),
            "timed": input.timed, "operations": input.operations,
            "compacted_bytes": extents, "account": account_json(&input.source.account()),
        });
        let (Value::Object(all), Value::Object(more)) = (&mut value, summary.to_json()) else {
            unreachable!("objects")
        };
        all.extend(more);
        Ok(value)
    })?;
    Ok(value.to_string())
}

/// Returns the files that the trace called `name` is read from.
#[pyfunction]
pub fn trace_files(name: &str) -> PyResult<Vec<String>> {
    flashatlas_sim::trace_files(name).map_err(|e| crate::to_python(&e))
}

/// Returns the name of the whole trace that `name` belongs to.
///
/// If `name` is the file of one CPU, the whole trace consists of the files of all CPUs in the same
/// folder.
#[pyfunction]
pub fn whole_trace(name: &str) -> PyResult<String> {
    flashatlas_sim::whole_trace(name, &names_beside).map_err(|e| crate::to_python(&e))
}

/// Returns the name of the trace `name` with `files` in place of its files.
#[pyfunction]
pub fn trace_with_files(name: &str, files: Vec<String>) -> PyResult<String> {
    flashatlas_sim::trace_with_files(name, &files).map_err(|e| crate::to_python(&e))
}

/// Returns statistics of the reuse of pages in a trace (JSON).
///
/// An entry of the map maps `page_bytes` bytes, and a map page has `entries` entries. Releases the
/// interpreter's lock.
#[pyfunction]
#[pyo3(signature = (path, reading, page_bytes, entries, progress=None))]
pub fn trace_reuse(
    py: Python<'_>,
    path: &str,
    reading: &str,
    page_bytes: u64,
    entries: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let reading: Reading = parse("reading options", reading)?;
    if page_bytes == 0 || page_bytes % u64::from(SECTOR_BYTES) != 0 {
        let bytes = format!("{page_bytes} bytes are not a whole number of sectors");
        return Err(crate::about("page", &format!("{bytes}; give a multiple of {SECTOR_BYTES}")));
    }
    if entries == 0 {
        return Err(InputError::new_err("entries: a map page needs at least one entry"));
    }
    let value = guarded(py, progress, |reporter| {
        let inputs = inputs(&reading)?;
        let mut input = inputs.trace(path, reading.format.as_deref(), false)?;
        let mut reuse = Reuse::new(MapUnits { page_bytes, entries });
        let mut requests = 0;
        while let Some(record) = input.next_record()? {
            reuse.add(&record);
            requests += 1;
            let share = input.share_read();
            if requests % PROGRESS_EVERY == 0
                && !reporter.report(Progress { phase: "scan", requests, share })
            {
                return Err(RunError::Interrupted);
            }
        }
        Ok(reuse.to_json())
    })?;
    Ok(value.to_string())
}

/// Returns a reader of traces with the files and formats of this process.
fn inputs(reading: &Reading) -> Result<Inputs<'static>, RunError> {
    let Environment { opener, workloads, .. } = environment();
    Ok(Inputs::new(opener, workloads, reading.options()?))
}

/// Bounds of a part of a trace, as options; times count from the first record.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceSlice {
    from: Option<String>,
    to: Option<String>,
    #[serde(default)]
    skip: u64,
    count: Option<u64>,
}

impl TraceSlice {
    fn bounds(&self) -> Result<Bounds, RunError> {
        let time = |key, text: &Option<String>| {
            text.as_deref().map(|t| flashatlas_sim::spec::duration(key, t)).transpose()
        };
        let (from, to) = (time("from", &self.from)?, time("to", &self.to)?);
        if let (Some(first), Some(end)) = (from, to)
            && first >= end
        {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let (first, end) = (text(&self.from), text(&self.to));
            let why = format!("{first} is not before ‹to›, which is {end}");
            return Err(RunError::option("from", why));
        }
        Ok(Bounds {
            from: from.map_or(Ps::ZERO, |d| Ps(d.0)),
            to: to.map(|d| Ps(d.0)),
            skip: self.skip,
            count: self.count,
        })
    }
}

/// Returns the part of a trace within `bounds`.
///
/// In an uncompressed file of the format `atlas`, a part with a start time is read without the
/// records before it, unless pauses are cut.
fn part(path: &str, reading: &Reading, bounds: Bounds) -> Result<Input<'static>, RunError> {
    let inputs = inputs(reading)?;
    let mut input = inputs.trace(path, reading.format.as_deref(), bounds == Bounds::default())?;
    // if pauses are cut, the time of a record depends on all earlier records
    let by_index = reading.time_gap_max.is_none() && bounds.from > Ps::ZERO;
    if input.format == "atlas" && input.compression == "none" && by_index && is_file(path) {
        let io = |error| RunError::Io { path: path.to_owned(), error };
        let mut file = File::open(path).map_err(io)?;
        // a pipe has no accessible index, so it is read from its start
        if file.metadata().map_err(io)?.is_file() {
            let position = atlas::seek(&mut file, bounds.from).map_err(|error| {
                RunError::Trace { path: path.to_owned(), error: Box::new(error) }
            })?;
            if position.records_before == position.records {
                return Err(RunError::Unusable(format!(
                    "{path}: the slice holds no request, because the trace ends before the slice \
                     begins"
                )));
            }
            input.source = atlas::resume(Box::new(file), &position, &inputs.options);
        }
    }
    if bounds != Bounds::default() {
        let source = std::mem::replace(&mut input.source, Box::new(EmptySource));
        input.source = Box::new(Slice::new(source, bounds));
    }
    Ok(input)
}

/// Source without records, in place of a source that is being wrapped.
struct EmptySource;

impl RecordSource for EmptySource {
    fn next(
        &mut self,
    ) -> Result<Option<flashatlas_workload::Record>, flashatlas_workload::TraceError> {
        Ok(None)
    }

    fn account(&self) -> Account {
        Account::default()
    }

    fn bytes_read(&self) -> u64 {
        0
    }

    fn expected(&self) -> Option<u64> {
        None
    }
}

/// Writes a trace, or a part of a trace, to the file `to` in `format`.
///
/// Returns the number of written records, and counts of dropped and rounded values (JSON). Releases
/// the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (path, reading, to, format, compression, lossy, bounds, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn trace_convert(
    py: Python<'_>,
    path: &str,
    reading: &str,
    to: &str,
    format: &str,
    compression: &str,
    lossy: bool,
    bounds: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let reading: Reading = parse("reading options", reading)?;
    let bounds: TraceSlice = parse("bounds", bounds)?;
    let value = guarded(py, progress, |reporter| {
        let mut input = part(path, &reading, bounds.bounds()?)?;
        input.must_say(&reading)?;
        convert(&mut input, to, format, compression, lossy, reporter)
    })?;
    Ok(value.to_string())
}

fn convert(
    input: &mut Input<'_>,
    to: &str,
    format: &str,
    compression: &str,
    lossy: bool,
    reporter: &mut Reporter,
) -> Result<Value, RunError> {
    let name = input.name.clone();
    let written = |error| match error {
        WriteError::Io(error) => RunError::Io { path: to.to_owned(), error },
        error => RunError::Unusable(format!("{name}: {error}")),
    };
    let file = File::create(to).map_err(|error| RunError::Io { path: to.to_owned(), error })?;
    let mut sink = environment().workloads.create(
        format,
        Box::new(file),
        compression,
        &WriteOptions { lossy },
    )?;
    let mut records = 0;
    while let Some(record) = input.next_record()? {
        sink.put(&record).map_err(written)?;
        records += 1;
        let share = input.share_read();
        if records % PROGRESS_EVERY == 0
            && !reporter.report(Progress { phase: "run", requests: records, share })
        {
            return Err(RunError::Interrupted);
        }
    }
    let account = input.source.account();
    sink.describe(&flashatlas_workload::Origin {
        format: input.format.to_owned(),
        digest: input.digest()?.map_or(String::new(), |d| format!("sha256:{d}")),
        device_names: account.device_names.clone(),
    });
    let done = sink.finish().map_err(written)?;
    Ok(json!({
        "records": done.records, "bytes": done.bytes, "trims_dropped": done.trims_dropped,
        "flushes_dropped": done.flushes_dropped, "devices_dropped": done.devices_dropped,
        "fua_dropped": done.fua_dropped, "times_rounded": done.times_rounded,
        "account": account_json(&account),
    }))
}

/// Reader of a trace in batches.
#[pyclass]
pub struct TraceReader(Mutex<Input<'static>>);

#[pymethods]
impl TraceReader {
    #[new]
    fn new(path: &str, reading: &str) -> PyResult<TraceReader> {
        let reading: Reading = parse("reading options", reading)?;
        let input = part(path, &reading, Bounds::default()).map_err(|e| crate::to_python(&e))?;
        Ok(TraceReader(Mutex::new(input)))
    }

    /// Returns at most `rows` further requests as a table, or `None` at the end.
    fn next_batch<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
    ) -> PyResult<Option<tables::PyTable<'py>>> {
        let table = guarded(py, None, |_| {
            let mut input = self.0.lock().expect("no reader panics");
            let mut columns: [Vec<i64>; 5] = std::array::from_fn(|_| Vec::new());
            let mut ops = Vec::new();
            while ops.len() < rows
                && let Some(record) = input.next_record()?
            {
                let r = record.request;
                let at = i64::try_from(r.at.0).map_err(|_| {
                    RunError::Unusable(format!(
                        "{}: a request is {:.0} days after the first request, but the column \
                         time_ps ends after 106 days; cut pauses (time_gap_max)",
                        input.name,
                        r.at.0 as f64 / 86_400e12
                    ))
                })?;
                let values = [
                    at,
                    r.lba.0 as i64 * 512,
                    i64::from(r.sectors) * 512,
                    i64::from(r.fua),
                    i64::from(record.device),
                ];
                columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
                ops.push(r.op as u8);
            }
            if ops.is_empty() {
                return Ok(None);
            }
            let mut table = Table::new("requests");
            let [times, offsets, bytes, fua, devices] = columns.map(Column::Int);
            table.add("time_ps", times);
            table.add(
                "op",
                Column::Words { of: HostOp::ALL.iter().map(|op| op.name()).collect(), codes: ops },
            );
            table.add("offset", offsets);
            table.add("bytes", bytes);
            table.add("fua", fua);
            table.add("device", devices);
            Ok(Some(table))
        })?;
        Ok(table.and_then(|table| tables::to_python(py, &[table]).pop()))
    }
}
