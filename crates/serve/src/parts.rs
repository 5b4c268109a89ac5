//! The parts of a served drive, and the build that its record names.

use crate::ServeSpec;
use flashatlas_host::STANDARD;
use flashatlas_plugin::{PluginError, load};
use flashatlas_sim::Stream;
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{AnyPart, Build, Environment, Opener, Origin, Parts};
use flashatlas_types::Entries;
use flashatlas_workload::Registry;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The parts that are built in.
pub const STANDARD_PARTS: Parts = Parts {
    drives: STANDARD,
    workloads: Registry::STANDARD,
    metrics: Entries::of(METRICS),
    added: &[],
};

/// Time that a callback of a plug-in may take. A callback that takes longer ends the server.
const PATIENCE: Duration = Duration::from_secs(30);

/// Loads a shared library made with `flashatlas_plugin.h`. Returns its parts and their origin.
///
/// # Errors
/// Returns a message if the file cannot be read or loaded.
pub fn library(path: &Path, patience: Duration) -> Result<(Vec<AnyPart>, Origin), String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(said)?;
    // the dynamic linker would search the system's library folders for a name without a folder
    let absolute = std::fs::canonicalize(path).map_err(said)?;
    let shown = absolute.to_string_lossy();
    let named = |error: PluginError| error.to_string().replace(&*shown, &path.to_string_lossy());
    let library = load(&shown, &bytes, patience).map_err(named)?;
    let origin = Origin {
        distribution: library.name.into(),
        version: library.version.into(),
        digest: library.digest,
    };
    Ok((library.parts.into_iter().map(AnyPart::Drive).collect(), origin))
}

/// Returns the standard parts and the parts of shared libraries.
///
/// # Errors
/// Returns the errors of [`library`], and an error if names or keys clash.
pub fn with_plugins(paths: &[PathBuf]) -> Result<Parts, String> {
    paths.iter().try_fold(STANDARD_PARTS, |parts, path| {
        let (added, origin) = library(path, PATIENCE)?;
        let all = added.into_iter().try_fold(parts, |parts, part| parts.with(part, &origin));
        all.map_err(|error| format!("{}: {error}", path.display()))
    })
}

/// Opener that opens no file, because requests come from clients and not from a trace.
struct NoFiles;

impl Opener for NoFiles {
    fn open(&self, path: &str) -> io::Result<Stream> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{path}: a served drive opens no trace"),
        ))
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// Returns the environment of `parts`, with the build that the plan's record names.
pub fn environment<'a>(parts: &'a Parts, plan: &'a ServeSpec) -> Environment<'a> {
    Environment {
        registry: &parts.drives,
        workloads: parts.workloads,
        metrics: parts.metrics,
        opener: &NoFiles,
        build: Build {
            version: env!("CARGO_PKG_VERSION"),
            sources: plan.build.as_deref().unwrap_or("unknown"),
            commit: None,
        },
        added: parts.added,
    }
}
