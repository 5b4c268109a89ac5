//! Recorded traces, which are no part of the project.

use std::path::PathBuf;

/// Environment variable that names the folder of the traces. No other folder is searched.
pub const VARIABLE: &str = "FLASHATLAS_TRACES";

/// Returns the path of a trace under the folder that [`VARIABLE`] names.
///
/// If the trace is not there, prints a line and returns `None`. The caller then skips its test.
pub fn path(name: &str) -> Option<PathBuf> {
    let Some(folder) = folder() else {
        eprintln!("skipped: {name}: {VARIABLE} names no folder of traces");
        return None;
    };
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

#[allow(clippy::disallowed_methods, reason = "what a test may use is told by the environment")]
fn folder() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}
