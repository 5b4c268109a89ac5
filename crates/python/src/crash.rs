//! Functions for `flashatlas crash`: trials of power failures.

use crate::environment::environment;
use crate::{InputError, guarded};
use flashatlas_crash::{CrashSpec, Fault, Interface, nvme, subject, workloads};
use flashatlas_sim::{Progress, RunError};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Tries the power failures of a plan (JSON of a `CrashSpec`).
///
/// Returns the report (JSON) with the duration `wall_s`.
///
/// `progress(phase, done, share)` is called from time to time. Releases the interpreter's lock.
#[pyfunction]
#[pyo3(signature = (plan, progress=None))]
pub fn crash(py: Python<'_>, plan: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let plan: CrashSpec = serde_json::from_str(plan)
        .map_err(|e| InputError::new_err(format!("the plan cannot be read: {e}")))?;
    let begin = std::time::Instant::now();
    let report = guarded(py, progress, |reporter| {
        let mut tell = |done: usize, of: usize| {
            let share = Some(done as f64 / of as f64);
            reporter.report(Progress { phase: "crash", requests: done as u64, share })
        };
        match flashatlas_crash::run(environment().registry, &plan, &mut tell) {
            Ok(report) if report.stopped => Err(RunError::Interrupted),
            report => Ok(report),
        }
    })?;
    let report = report.map_err(|error| InputError::new_err(error.to_string()))?;
    let mut report = serde_json::to_value(report).expect("plain data");
    report["wall_s"] = begin.elapsed().as_secs_f64().into();
    Ok(report.to_string())
}

/// Runs one failure again, by its identity; returns the finding (JSON), or `null` without a
/// failure.
#[pyfunction]
pub fn crash_rerun(py: Python<'_>, id: &str, set: Vec<String>) -> PyResult<String> {
    let found = guarded(py, None, |_| {
        Ok::<_, RunError>(flashatlas_crash::rerun(environment().registry, id, &set))
    })?;
    let found = found.map_err(|error| InputError::new_err(error.to_string()))?;
    Ok(serde_json::to_string(&found).expect("plain data"))
}

/// Returns the names of interfaces, geometries, workloads and faults, each with its summary.
pub fn names() -> Value {
    let entry = |name: &str, summary: &str| json!({ "name": name, "summary": summary });
    json!({
        "interfaces": Interface::all().map(|i| entry(i.name(), i.summary())).collect::<Vec<_>>(),
        "geometries": subject::GEOMETRIES.iter().map(|g| entry(g.name,
            g.summary)).collect::<Vec<_>>(),
        "workloads": workloads::WORKLOADS.iter().map(|w| entry(w.name,
            w.summary)).collect::<Vec<_>>(),
        "workloads of nvme": nvme::WORKLOADS.iter().map(|w| entry(w.name,
            w.summary)).collect::<Vec<_>>(),
        "faults": Fault::all().map(|f| entry(f.name(), f.summary())).collect::<Vec<_>>(),
    })
}
