//! Functions for `flashatlas check`: tests of the promises of a part, and the swarm.

use crate::environment::parts;
use crate::{InputError, guarded};
use flashatlas_conformance::swarm::Swarm;
use flashatlas_conformance::{Effort, all, check};
use flashatlas_sim::{Progress, RunError};
use pyo3::prelude::*;
use serde_json::json;
use std::time::Instant;

/// Tests the promises of the part called `name`; returns the report (JSON).
///
/// `progress(phase, done, share)` is called after each promise. Releases the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (name, one_in, requests, seed, progress=None))]
pub fn check_part(
    py: Python<'_>,
    name: &str,
    one_in: u32,
    requests: u32,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let effort = Effort { one_in, requests, seed };
    let report = guarded(py, progress, |reporter| {
        let mut tell = |done: usize| {
            reporter.report(Progress { phase: "promises", requests: done as u64, share: None })
        };
        Ok::<_, RunError>(check(parts(), name, &effort, &mut tell))
    })?;
    let report = report.map_err(|e| InputError::new_err(e.to_string()))?;
    Ok(json!(report).to_string())
}

/// Returns every part of every kind, as pairs of kind and name (JSON).
#[pyfunction]
pub fn all_parts() -> String {
    json!(all(parts()).iter().map(|part| part.named()).collect::<Vec<_>>()).to_string()
}

/// Runs `count` cases of the swarm, beginning with the number `first`; returns JSON.
///
/// The result contains the tally and the findings. With `seconds`, the swarm stops after this time.
/// Releases the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (first, count, seconds, progress=None))]
pub fn run_swarm(
    py: Python<'_>,
    first: u64,
    count: u64,
    seconds: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (tally, found) = guarded(py, progress, |reporter| {
        let began = Instant::now();
        let swarm = Swarm::over(&parts().drives);
        let mut tell = |done: u64| {
            let spent = began.elapsed().as_secs_f64();
            let share = seconds.map_or(done as f64 / count as f64, |most| spent / most);
            reporter.report(Progress { phase: "swarm", requests: done, share: Some(share) })
                && seconds.is_none_or(|most| spent < most)
        };
        Ok::<_, RunError>(swarm.run_all(first..first.saturating_add(count), &mut tell))
    })?;
    Ok(json!({ "tally": tally, "found": found }).to_string())
}
