//! The parts of plug-ins, beside those that come with the project.

use flashatlas_serve::STANDARD_PARTS;
use flashatlas_sim::{AnyPart, Origin, Parts};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// After so long a callback of a plug-in that has not returned ends the server.
const PATIENCE: Duration = Duration::from_secs(30);

/// All parts, with those of these shared libraries.
pub fn with_plugins(paths: &[PathBuf]) -> Result<Parts, String> {
    paths.iter().try_fold(STANDARD_PARTS, with_plugin)
}

fn with_plugin(parts: Parts, path: impl AsRef<Path>) -> Result<Parts, String> {
    let shown = path.as_ref().display().to_string();
    let said = |why: &dyn std::fmt::Display| format!("{shown}: {why}");
    let bytes = std::fs::read(&path).map_err(|error| said(&error))?;
    let library = flashatlas_plugin::load(&shown, &bytes, PATIENCE).map_err(|e| e.to_string())?;
    let origin = Origin {
        distribution: library.name.into(),
        version: library.version.into(),
        digest: library.digest,
    };
    let add = |parts: Parts, part| parts.with(AnyPart::Drive(part), &origin);
    library.parts.into_iter().try_fold(parts, add).map_err(|error| said(&error))
}
