//! Parts from plug-ins. Every drive that is made after a plug-in was loaded can use its parts.

use crate::abi::FaCode;
use crate::command::{Refusal, refuse};
use flashatlas_device::Registry;
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{AnyPart, Origin, Parts};
use flashatlas_types::Entries;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time that a callback of a part may take. A callback that takes longer ends the process, and a
/// message names the callback.
const PATIENCE: Duration = Duration::from_secs(30);

/// Parts that the settings of a drive can name: the built-in parts and the parts of loaded
/// plug-ins.
static PARTS: Mutex<Parts> = Mutex::new(Parts {
    drives: flashatlas_host::STANDARD,
    workloads: flashatlas_workload::Registry::STANDARD,
    metrics: Entries::of(METRICS),
    added: &[],
});

/// Returns the current parts.
pub fn parts() -> Parts {
    *PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the current registry, from which new drives choose their parts.
pub fn registry() -> Registry {
    parts().drives
}

/// Loads a plug-in: `fa_plugin_load`.
pub fn load(path: &str) -> Result<(), Refusal> {
    let refused = |why: String| refuse(FaCode::FA_ERR_ARGUMENT, why);
    let bytes = std::fs::read(path).map_err(|error| refused(format!("{path}: {error}")))?;
    let library = flashatlas_plugin::load(path, &bytes, PATIENCE);
    let library = library.map_err(|error| refused(error.to_string()))?;
    let origin = Origin {
        distribution: library.name.into(),
        version: library.version.into(),
        digest: library.digest,
    };
    let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    // either all parts of the library are added or none
    let mut each = library.parts.iter();
    let with = each.try_fold(*parts, |parts, &part| parts.with(AnyPart::Drive(part), &origin));
    *parts = with.map_err(|error| refused(format!("{path}: {error}")))?;
    Ok(())
}
