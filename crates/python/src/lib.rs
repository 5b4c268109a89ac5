//! The Python binding: one function for each task of the library, with JSON as input and output.
//!
//! The binding makes no decisions for the simulation. Unlike the simulation's crates, it opens
//! files and reads the clock (for progress and wall time).
#![allow(clippy::disallowed_methods)]

mod check;
mod crash;
mod device;
mod environment;
mod gym;
mod image;
mod lookup;
mod names;
mod nvme;
mod opener;
mod papers;
mod policies;
mod tables;
mod timed;
mod traces;

pub use environment::add;
use environment::environment;
use flashatlas_sim::{AnyPart, Build, Opener as _, Origin, Progress, RunError, RunSpec};
use flashatlas_types::{Interrupted, NoteValue, PartFault, attentive};
pub use pyo3;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

create_exception!(flashatlas, FlashAtlasError, PyException, "Any error that FlashAtlas reports.");
create_exception!(
    flashatlas,
    InputError,
    FlashAtlasError,
    "Bad input: a file, a key, a value or a combination of them."
);
create_exception!(
    flashatlas,
    DriveError,
    FlashAtlasError,
    "The simulated drive could not go on, for example for lack of space."
);
create_exception!(
    flashatlas,
    PowerLost,
    DriveError,
    "The power of a drive failed on request; its image contains the state after the failure."
);
create_exception!(
    flashatlas,
    PartError,
    FlashAtlasError,
    "An added part broke its contract, or raised an exception."
);
create_exception!(
    flashatlas,
    InternalError,
    FlashAtlasError,
    "A broken invariant: a bug of FlashAtlas."
);

/// Shortest time between two calls of the progress function.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Origin of this module, from the build script.
const BUILD: Build<'static> = Build {
    version: env!("CARGO_PKG_VERSION"),
    sources: env!("FLASHATLAS_SOURCES"),
    commit: option_env!("FLASHATLAS_COMMIT"),
};

/// Returns an [`InputError`] with attributes.
///
/// The attributes are `field`, `place` (where a setting was written), `allowed` (whether the
/// message lists the allowed values), and `on_command_line` (the message with options spelled as on
/// the command line).
fn input_error(error: &RunError) -> PyErr {
    let raised = InputError::new_err(error.to_string());
    let (place, allowed) = match error {
        RunError::Config(error) => (error.place.as_str(), !error.allowed.is_empty()),
        _ => ("", false),
    };
    let set = Python::attach(|py| -> PyResult<()> {
        let value = raised.value(py);
        value.setattr("field", error.field())?;
        value.setattr("place", place)?;
        value.setattr("allowed", allowed)?;
        value.setattr("on_command_line", format!("{error:#}"))
    });
    set.err().unwrap_or(raised)
}

/// Returns the error that an option cannot be used.
///
/// Options in the text `why` are in angle quotes: `‹mode=closed›`.
#[pyfunction]
fn about(option: &str, why: &str) -> PyErr {
    input_error(&RunError::option(option.to_owned(), why))
}

/// Returns the name in `names` that is most similar to `got`, if it may be a misspelling.
///
/// Case is ignored.
#[pyfunction]
fn nearest(got: &str, names: Vec<String>) -> Option<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    flashatlas_types::nearest(got, &names).map(str::to_owned)
}

fn to_python(error: &RunError) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        "input" => input_error(error),
        "drive" => DriveError::new_err(text),
        "part" => match error {
            RunError::Part(fault) => policies::part_error(fault),
            _ => PartError::new_err(text),
        },
        "interrupted" => PyKeyboardInterrupt::new_err(text),
        _ => InternalError::new_err(text),
    }
}

/// Caller of the progress function, at most every [`PROGRESS_EVERY`].
///
/// If the function or a signal raises an exception, the run stops, and the reporter stores the
/// exception.
struct Reporter {
    function: Option<Py<PyAny>>,
    last: Instant,
    phase: &'static str,
    raised: Option<PyErr>,
}

impl Reporter {
    fn new(function: Option<Py<PyAny>>) -> Reporter {
        Reporter { function, last: Instant::now(), phase: "", raised: None }
    }

    fn report(&mut self, p: Progress) -> bool {
        if self.last.elapsed() < PROGRESS_EVERY && p.phase == self.phase {
            return true;
        }
        (self.last, self.phase) = (Instant::now(), p.phase);
        let called = Python::attach(|py| {
            py.check_signals()?;
            match &self.function {
                Some(function) => function.call1(py, (p.phase, p.requests, p.share)).map(|_| ()),
                None => Ok(()),
            }
        });
        called.map_err(|error| self.raised = Some(error)).is_ok()
    }
}

/// Returns a function that checks for signals from the user, at most every [`PROGRESS_EVERY`].
///
/// If a signal handler raises an exception, the function stores the exception in `heard` and
/// returns `false`.
fn signals(heard: Arc<Mutex<Option<PyErr>>>) -> impl FnMut() -> bool + 'static {
    let mut last = Instant::now();
    move || {
        if last.elapsed() < PROGRESS_EVERY {
            return true;
        }
        last = Instant::now();
        let checked = Python::attach(|py| py.check_signals());
        checked
            .map_err(|error| {
                *heard.lock().expect("no thread panics while it holds the lock") = Some(error)
            })
            .is_ok()
    }
}

/// Runs `work` without the interpreter's lock; a broken invariant becomes an [`InternalError`].
fn guarded<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Reporter) -> Result<T, RunError> + Send,
) -> PyResult<T> {
    let mut reporter = Reporter::new(progress);
    let heard = Arc::new(Mutex::new(None));
    let look = signals(heard.clone());
    let outcome =
        py.detach(|| catch_unwind(AssertUnwindSafe(|| attentive(look, || work(&mut reporter)))));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(reporter.raised.take().unwrap_or_else(|| to_python(&error))),
        Err(panic) => {
            if panic.is::<Interrupted>() {
                let raised = heard.lock().expect("no thread panics while it holds the lock").take();
                return Err(raised.unwrap_or_else(|| to_python(&RunError::Interrupted)));
            }
            if let Some(fault) = panic.downcast_ref::<PartFault>() {
                return Err(to_python(&fault.clone().into()));
            }
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
            Err(InternalError::new_err(format!("broken invariant: {}", text.unwrap_or_default())))
        }
    }
}

/// Carries out a run (JSON of a `RunSpec`).
///
/// Returns the record (JSON), the tables (see [`tables`]) and, for a job file, the statistics of
/// the jobs (JSON). `progress(phase, requests, share)` is called from time to time. If `within`
/// names a folder, the run reads nothing outside it. Releases the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (spec, progress=None, within=None))]
fn run<'py>(
    py: Python<'py>,
    spec: &str,
    progress: Option<Py<PyAny>>,
    within: Option<&str>,
) -> PyResult<(String, Vec<tables::PyTable<'py>>, Option<String>)> {
    let spec = parse(spec)?;
    let confined = within.map(opener::Confined::to).transpose()?;
    let mut outcome = guarded(py, progress, |reporter| {
        let mut env = environment();
        if let Some(confined) = &confined {
            env.opener = confined;
        }
        flashatlas_sim::run(&spec, &env, &mut |p| reporter.report(p))
    })?;
    if notes_are_codes() {
        flashatlas_sim::say_codes(&mut outcome.record, outcome.jobs.as_mut());
    }
    let jobs = outcome.jobs.map(|jobs| jobs.to_string());
    Ok((outcome.record.to_string(), tables::to_python(py, &outcome.tables), jobs))
}

/// Preconditions the drive of a run (JSON of a `RunSpec`), and writes it as a checkpoint to `path`.
///
/// The file is created. Releases the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (spec, path, progress=None))]
fn save_checkpoint(
    py: Python<'_>,
    spec: &str,
    path: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let spec = parse(spec)?;
    guarded(py, progress, |reporter| {
        let io = |error| RunError::Io { path: path.to_owned(), error };
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path).map_err(io)?);
        flashatlas_sim::save_checkpoint(&spec, &environment(), (path, &mut out), &mut |p| {
            reporter.report(p)
        })?;
        out.into_inner().map_err(|e| io(e.into_error()))?.sync_all().map_err(io)
    })
}

fn parse(spec: &str) -> PyResult<RunSpec> {
    let mut text = serde_json::Deserializer::from_str(spec);
    serde_path_to_error::deserialize(&mut text)
        .map_err(|e| InputError::new_err(format!("the run specification cannot be read: {e}")))
}

/// Returns the plan of a run (JSON of a `RunSpec`) without running it.
///
/// See [`flashatlas_sim::planned`].
#[pyfunction]
fn planned(spec: &str) -> PyResult<String> {
    let planned = flashatlas_sim::planned(&parse(spec)?, &environment());
    Ok(planned.map_err(|e| to_python(&e))?.to_string())
}

/// Returns the `config_hash` of a record whose `config` is this JSON.
#[pyfunction]
fn config_hash(config: &str) -> PyResult<String> {
    let config = serde_json::from_str(config)
        .map_err(|e| InputError::new_err(format!("configuration: {e}")))?;
    Ok(flashatlas_sim::config_hash(&config))
}

/// Checks a run's drive without running anything; returns its layout (JSON).
#[pyfunction]
#[pyo3(signature = (drive, drive_toml, settings))]
fn check_drive(drive: &str, drive_toml: Option<&str>, settings: Vec<String>) -> PyResult<String> {
    let config = environment().registry.load(drive, drive_toml, &settings);
    let config = config.map_err(|error| to_python(&error.into()))?;
    let layout = flashatlas_sim::layout(&config);
    Ok(layout.map_err(|error| to_python(&error.into()))?.to_string())
}

/// Returns everything that a run can name, with its parameters (JSON).
///
/// This includes drives, schemes, victim policies, classifiers, map stores, formats, generators and
/// metrics.
#[pyfunction]
fn registries() -> PyResult<String> {
    Ok(names::all().map_err(|e| InternalError::new_err(e.to_string()))?.to_string())
}

/// Returns a time such as `25us` in picoseconds, or a size such as `4KiB` in bytes.
#[pyfunction]
fn quantity(text: &str) -> PyResult<u64> {
    flashatlas_types::quantity::quantity(text, true)
        .or_else(|_| flashatlas_types::quantity::quantity(text, false))
        .map_err(InputError::new_err)
}

/// Returns the value of a count such as `100k` or `1e6`.
#[pyfunction]
fn count(text: &str) -> PyResult<u64> {
    flashatlas_types::quantity::count(text).map_err(InputError::new_err)
}

/// Returns the bytes of memory that this process may take; `None` if the system does not report it.
#[pyfunction]
fn free_memory() -> Option<u64> {
    opener::ThisProcess.free_memory()
}

/// Returns `true` if records must contain the codes of notes in place of their texts.
fn notes_are_codes() -> bool {
    opener::ThisProcess.variable("FLASHATLAS_NOTES").as_deref() == Some("codes")
}

/// Returns every note that a run may have (JSON): code, rank, text and advice.
#[pyfunction]
fn notes() -> String {
    names::notes().to_string()
}

/// Returns the text of a note with its values filled in from the JSON object `values`.
///
/// # Errors
/// Returns an error if a value that the text names is missing, or is neither a number nor a text.
#[pyfunction]
fn note_text(text: &str, values: &str) -> PyResult<String> {
    let wrong = |e: String| InputError::new_err(format!("values of a note: {e}"));
    let values: std::collections::HashMap<String, NoteValue> =
        serde_json::from_str(values).map_err(|e| wrong(e.to_string()))?;
    flashatlas_types::note::said(text, |name| values.get(name))
        .map_err(|name| wrong(format!("`{name}` is missing")))
}

/// Returns the sources and the settings that this module was built from (JSON).
#[pyfunction]
fn build() -> String {
    json!({
        "version": BUILD.version, "sources": BUILD.sources, "commit": BUILD.commit,
        "target": env!("FLASHATLAS_TARGET"), "profile": env!("FLASHATLAS_PROFILE"),
    })
    .to_string()
}

/// Returns the options of a run (JSON), without the rest of [`registries`].
///
/// The command line needs them at every start.
#[pyfunction]
fn run_options() -> String {
    names::run_options().to_string()
}

/// Extension: a separate native module with added parts.
pub struct Extension {
    /// The distribution, its version, and the digest of its sources.
    pub origin: Origin,
    /// Parts of the extension.
    pub parts: Vec<AnyPart>,
}

/// Fills a native module with the whole binding, and with the parts of an extension, if any.
///
/// # Errors
/// Returns an error if names or keys of the parts clash.
pub fn populate(module: &Bound<'_, PyModule>, extension: Option<Extension>) -> PyResult<()> {
    let py = module.py();
    if let Some(Extension { origin, parts }) = extension {
        let added = add(&parts, &origin, false);
        added.map_err(|e| {
            let Origin { distribution, version, .. } = &origin;
            InputError::new_err(format!("extension {distribution} {version}: {e}"))
        })?;
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("RUN_SCHEMA", flashatlas_sim::SCHEMA)?;
    for (name, class) in [
        ("FlashAtlasError", py.get_type::<FlashAtlasError>()),
        ("InputError", py.get_type::<InputError>()),
        ("DriveError", py.get_type::<DriveError>()),
        ("PowerLost", py.get_type::<PowerLost>()),
        ("PartError", py.get_type::<PartError>()),
        ("InternalError", py.get_type::<InternalError>()),
    ] {
        module.add(name, class)?;
    }
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(save_checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(planned, module)?)?;
    module.add_function(wrap_pyfunction!(check_drive, module)?)?;
    module.add_function(wrap_pyfunction!(free_memory, module)?)?;
    module.add_function(wrap_pyfunction!(config_hash, module)?)?;
    module.add_function(wrap_pyfunction!(about, module)?)?;
    module.add_function(wrap_pyfunction!(nearest, module)?)?;
    module.add_function(wrap_pyfunction!(notes, module)?)?;
    module.add_function(wrap_pyfunction!(note_text, module)?)?;
    module.add_function(wrap_pyfunction!(environment::load_plugin, module)?)?;
    module.add_function(wrap_pyfunction!(environment::added_parts, module)?)?;
    module.add_function(wrap_pyfunction!(environment::keep_parts, module)?)?;
    module.add_function(wrap_pyfunction!(policies::add_policy, module)?)?;
    module.add_function(wrap_pyfunction!(check::check_part, module)?)?;
    module.add_function(wrap_pyfunction!(check::all_parts, module)?)?;
    module.add_function(wrap_pyfunction!(check::run_swarm, module)?)?;
    module.add_class::<device::Device>()?;
    module.add_class::<gym::Episode>()?;
    module.add_class::<nvme::NvmeServer>()?;
    module.add_class::<policies::PyArray>()?;
    module.add_class::<policies::PyLane>()?;
    module.add_class::<policies::PyTables>()?;
    module.add_function(wrap_pyfunction!(crash::crash, module)?)?;
    module.add_function(wrap_pyfunction!(crash::crash_rerun, module)?)?;
    module.add_function(wrap_pyfunction!(image::image_info, module)?)?;
    module.add_function(wrap_pyfunction!(image::image_check, module)?)?;
    module.add_function(wrap_pyfunction!(image::image_age, module)?)?;
    module.add_function(wrap_pyfunction!(lookup::lookup, module)?)?;
    module.add_function(wrap_pyfunction!(lookup::lookup_planned, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_files, module)?)?;
    module.add_function(wrap_pyfunction!(traces::whole_trace, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_with_files, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_info, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_reuse, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_convert, module)?)?;
    module.add_class::<timed::TimedDrive>()?;
    module.add_class::<traces::TraceReader>()?;
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add("TABLE", opener::TABLE)?;
    module.add_function(wrap_pyfunction!(opener::is_file, module)?)?;
    module.add_function(wrap_pyfunction!(opener::is_table_at, module)?)?;
    module.add_function(wrap_pyfunction!(quantity, module)?)?;
    module.add_function(wrap_pyfunction!(count, module)?)?;
    module.add_function(wrap_pyfunction!(run_options, module)?)?;
    module.add_function(wrap_pyfunction!(registries, module)?)
}
