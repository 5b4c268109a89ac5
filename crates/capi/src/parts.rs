//! Parts of others, from shared libraries: for every drive that is made afterwards.

use crate::abi::FaCode;
use crate::command::{Refusal, refuse};
use flashatlas_device::Registry;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A callback of a part that has not returned for so long ends the process, with a line that names
/// it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the names of drives choose from.
static REGISTRY: Mutex<Registry> = Mutex::new(flashatlas_host::STANDARD);

/// What they choose from now.
pub fn registry() -> Registry {
    *REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As `fa_plugin_load`.
pub fn load(path: &str) -> Result<(), Refusal> {
    let refused = |why: String| refuse(FaCode::FA_ERR_ARGUMENT, why);
    let bytes = std::fs::read(path).map_err(|error| refused(format!("{path}: {error}")))?;
    let library = flashatlas_plugin::load(path, &bytes, PATIENCE);
    let library = library.map_err(|error| refused(error.to_string()))?;
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    // all of its parts or none
    let with = library.parts.iter().try_fold(*registry, |registry, &part| registry.with(part));
    *registry = with.map_err(|error| refused(format!("{path}: {error}")))?;
    Ok(())
}
