//! The lookup engine alone, for Python.

use crate::{InputError, guarded, tables, to_python};
use flashatlas_sim::lookup::LookupSpec;
use pyo3::prelude::*;

/// Carries out a study of the lookup engine (JSON of a `LookupSpec`).
///
/// Returns the record (JSON), and the commands of the DRAM as a table if they were asked for.
/// Releases the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (spec, progress=None))]
pub fn lookup<'py>(
    py: Python<'py>,
    spec: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<tables::PyTable<'py>>)> {
    let spec = parsed(spec)?;
    let outcome = guarded(py, progress, |reporter| {
        flashatlas_sim::lookup::lookup(&spec, &crate::environment::environment(), &mut |p| {
            reporter.report(p)
        })
    })?;
    Ok((outcome.record.to_string(), tables::to_python(py, outcome.commands.as_slice())))
}

/// Returns the checked plan of a study (JSON of a `LookupSpec`): its settings and files (JSON).
#[pyfunction]
pub fn lookup_planned(spec: &str) -> PyResult<String> {
    let planned =
        flashatlas_sim::lookup::planned(&parsed(spec)?, &crate::environment::environment());
    Ok(planned.map_err(|e| to_python(&e))?.to_string())
}

fn parsed(spec: &str) -> PyResult<LookupSpec> {
    let mut text = serde_json::Deserializer::from_str(spec);
    serde_path_to_error::deserialize(&mut text)
        .map_err(|e| InputError::new_err(format!("the lookup specification cannot be read: {e}")))
}
