//! Surroundings of runs in this process: the project's parts, the added parts, and this machine.

use crate::{BUILD, InputError, opener::ThisProcess};
use flashatlas_serve::{STANDARD_PARTS, library};
use flashatlas_sim::{AnyPart, Environment, Origin, Parts};
use flashatlas_types::ConfigError;
use pyo3::prelude::*;
use serde_json::json;
use std::path::Path;
use std::sync::RwLock;
use std::time::Duration;

/// Parts of this process. A registry never changes, so adding a part replaces the registry.
struct Present {
    parts: &'static Parts,
    /// Parts that were added to the standard parts, in order.
    added: Vec<(AnyPart, Origin)>,
}

impl Present {
    fn of(added: Vec<(AnyPart, Origin)>) -> Result<Present, ConfigError> {
        let with = |parts: Parts, (part, origin): &(AnyPart, Origin)| parts.with(*part, origin);
        let parts = added.iter().try_fold(STANDARD_PARTS, with)?;
        Ok(Present { parts: Box::leak(Box::new(parts)), added })
    }
}

static PRESENT: RwLock<Present> =
    RwLock::new(Present { parts: &STANDARD_PARTS, added: Vec::new() });

/// Returns the current parts.
pub fn parts() -> &'static Parts {
    PRESENT.read().expect("no thread panics while it holds the lock").parts
}

/// Returns the environment of a run that begins now.
pub fn environment() -> Environment<'static> {
    let parts = parts();
    Environment {
        registry: &parts.drives,
        workloads: parts.workloads,
        metrics: parts.metrics,
        opener: &ThisProcess,
        build: BUILD,
        added: parts.added,
    }
}

/// Adds either all the given parts or, if there is an error, none.
///
/// With `replace`, the parts replace earlier added parts of the same kind and name. If all parts
/// were added before from the same file, nothing changes.
///
/// # Errors
/// Returns the errors of [`Parts::with`].
pub fn add(all: &[AnyPart], origin: &Origin, replace: bool) -> Result<(), ConfigError> {
    let mut present = PRESENT.write().expect("no thread panics while it holds the lock");
    let twin =
        |part: &AnyPart| present.added.iter().find(|(other, _)| other.named() == part.named());
    if all.iter().all(|part| twin(part).is_some_and(|(_, from)| from.digest == origin.digest)) {
        return Ok(());
    }
    let mut added = present.added.clone();
    for part in all {
        let twin = added.iter_mut().find(|(other, _)| replace && other.named() == part.named());
        match twin {
            Some(twin) => *twin = (*part, origin.clone()),
            None => added.push((*part, origin.clone())),
        }
    }
    *present = Present::of(added)?;
    Ok(())
}

/// Keeps the first `first` added parts, and removes all later ones.
#[pyfunction]
pub fn keep_parts(first: usize) {
    let mut present = PRESENT.write().expect("no thread panics while it holds the lock");
    let kept = present.added.iter().take(first).cloned().collect();
    *present = Present::of(kept).expect("both locks were held together");
}

/// Loads a shared library made with `flashatlas_plugin.h`, adds its parts, and returns them (JSON).
#[pyfunction]
pub fn load_plugin(path: &str, patience_s: f64) -> PyResult<String> {
    let input = |why: String| InputError::new_err(why);
    let patience = Duration::try_from_secs_f64(patience_s).ok().filter(|p| !p.is_zero());
    let patience = patience.ok_or_else(|| {
        input(format!("patience: {patience_s} s is not a positive number of seconds"))
    })?;
    let (parts, origin) = library(Path::new(path), patience).map_err(input)?;
    let named: Vec<_> = parts.iter().map(|part| part.named()).collect();
    add(&parts, &origin, false).map_err(|e| input(format!("{path}: {e}")))?;
    Ok(json!(named).to_string())
}

/// Returns the parts that were added to this process, with their origins (JSON).
#[pyfunction]
pub fn added_parts() -> String {
    json!(environment().added).to_string()
}
