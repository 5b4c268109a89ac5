//! Victim policies, classifiers and map cache policies in Python.
//!
//! The Python side is `python/flashatlas/parts.py`.

mod arrays;
mod caching;
mod classifier;
mod tables;
mod victim;

use crate::environment::add;
use crate::{InputError, PartError};
use flashatlas_device::Part;
use flashatlas_sim::{AnyPart, Origin};
use flashatlas_types::{Dur, ParamDef, ParamKind, Params, PartFault, Ps, Value};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;

pub use arrays::PyArray;
pub use tables::PyTables;
pub use victim::PyLane;

thread_local! {
    /// The Python exception that caused the current fault.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Returns the error for a fault of a part; its cause is the exception that led to the fault.
pub fn part_error(fault: &PartFault) -> PyErr {
    let Some(cause) = RAISED.take() else { return PartError::new_err(fault.to_string()) };
    Python::attach(|py| {
        if cause.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
            return cause;
        }
        let error = PartError::new_err(fault.to_string());
        error.set_cause(py, Some(cause));
        error
    })
}

/// Ends the run because a policy raised an exception.
fn raised(who: &str, method: &str, now: Option<Ps>, py: Python<'_>, error: PyErr) -> ! {
    let text = (|| {
        let format = py.import("traceback")?.getattr("format_exception")?;
        format
            .call1((error.get_type(py), error.value(py), error.traceback(py)))?
            .extract::<Vec<String>>()
    })();
    let text: String = text.map_or_else(|_| error.to_string(), |lines| lines.concat());
    RAISED.set(Some(error));
    let at = now.map_or(String::new(), |now| format!(" at {}", Dur(now.0)));
    PartFault::raise(who, format!("`{method}`{at} raised\n{}", text.trim_end()))
}

/// A parameter declared in Python: key, kind, minimum, maximum, default and description.
type Declared = (String, String, f64, f64, String, String);

fn declared(params: Vec<Declared>) -> PyResult<&'static [ParamDef]> {
    let mut all = Vec::new();
    for (key, kind, low, high, default, doc) in params {
        let key: &'static str = key.leak();
        let wrong = |why: String| InputError::new_err(format!("parameter `{key}`: {why}"));
        let kind = match kind.as_str() {
            "whole" => ParamKind::Int(low as u64, high as u64),
            "real" => ParamKind::Ratio(low, high),
            "flag" => ParamKind::Bool,
            other => return Err(wrong(format!("`{other}` is not a kind of parameter"))),
        };
        let def = ParamDef { key, kind, default: Some(default.leak()), doc: doc.leak() };
        def.parse(def.default.expect("just set"))
            .map_err(|e| wrong(format!("the default is wrong: {e}")))?;
        all.push(def);
    }
    Ok(all.leak())
}

/// Returns the values of a policy's parameters, by key.
fn values<'py>(
    py: Python<'py>,
    params: &Params,
    declared: &[ParamDef],
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for def in declared {
        match params.value(def.key) {
            Some(Value::Int(n)) => all.set_item(def.key, n)?,
            Some(Value::Ratio(x)) => all.set_item(def.key, x)?,
            Some(Value::Bool(flag)) => all.set_item(def.key, flag)?,
            other => unreachable!("{}: {other:?}", def.key),
        }
    }
    Ok(all)
}

/// Description of a policy in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Described {
    kind: String,
    name: String,
    summary: String,
    paper: String,
    params: Vec<Declared>,
    /// Origin of the policy: distribution, version and digest.
    origin: (String, String, String),
    /// Python function that makes a policy.
    make: Py<PyAny>,
    /// Numbers of streams for host writes and for collection, for a classifier.
    streams: Option<(u32, u32)>,
    /// `true` if a classifier needs ages, or a cache policy needs hits.
    history: bool,
    /// Number of writes or misses after which the policy changes its tables. With 0 there are no
    /// tables, and the policy is asked every time.
    batch: usize,
}

/// Adds a policy that is written in Python.
#[pyfunction]
pub fn add_policy(described: Described, replace: bool) -> PyResult<()> {
    let (distribution, version, digest) = described.origin.clone();
    let params = declared(described.params.clone())?;
    let part = match described.kind.as_str() {
        "victim" => Part::Victim(Box::leak(Box::new(victim::definition(described, params)))),
        "classifier" => {
            Part::Classifier(Box::leak(Box::new(classifier::definition(described, params))))
        }
        "caching" => Part::Caching(Box::leak(Box::new(caching::definition(described, params)))),
        other => return Err(InputError::new_err(format!("kind `{other}` is not known"))),
    };
    let origin = Origin { distribution, version, digest };
    add(&[AnyPart::Drive(part)], &origin, replace).map_err(|e| InputError::new_err(e.to_string()))
}

/// Leaks a text for a definition, which is never freed.
fn leaked(text: &str) -> &'static str {
    text.to_owned().leak()
}
