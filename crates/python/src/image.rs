//! Functions for `flashatlas image`, which describes the image of a served drive.

use crate::{InputError, guarded};
use flashatlas_serve::{ServeError, ServeSpec, age, check, info};
use flashatlas_sim::RunError;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::Path;

fn looked(
    py: Python<'_>,
    look: impl FnOnce() -> Result<Value, ServeError> + Send,
) -> PyResult<String> {
    let said = guarded(py, None, |_| {
        look().map_err(|error| match error {
            ServeError::Run(error) => error,
            ServeError::Image(..) | ServeError::PowerLost => RunError::Unusable(error.to_string()),
        })
    })?;
    Ok(said.to_string())
}

/// Returns the description of an image from its header (JSON, see `flashatlas_serve::info`).
#[pyfunction]
pub fn image_info(py: Python<'_>, path: &str) -> PyResult<String> {
    looked(py, || info(Path::new(path)))
}

/// Returns the findings of a mount of an image (JSON, see `flashatlas_serve::check`).
///
/// `plan` is the JSON of a `ServeSpec`. The file stays unchanged. Releases the interpreter's lock.
#[pyfunction]
pub fn image_check(py: Python<'_>, plan: &str) -> PyResult<String> {
    let plan: ServeSpec = serde_json::from_str(plan)
        .map_err(|e| InputError::new_err(format!("the plan cannot be read: {e}")))?;
    looked(py, || check(&plan))
}

/// Lets an image rest for some seconds, and returns its clock in seconds
/// (see `flashatlas_serve::age`).
///
/// `plan` is the JSON of a `ServeSpec`.
#[pyfunction]
pub fn image_age(py: Python<'_>, plan: &str, seconds: u32) -> PyResult<String> {
    let plan: ServeSpec =
        serde_json::from_str(plan).map_err(|e| InputError::new_err(format!("plan: {e}")))?;
    looked(py, || age(&plan, seconds).map(Value::from))
}
