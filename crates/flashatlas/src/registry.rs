//! Registry of all parts that a run can name, with the project's parts and added parts.

use flashatlas_conformance::{Effort, Report};
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{AnyPart, Build, Environment, Opener, Origin, Parts, RunError, RunSpec};
use flashatlas_types::{ConfigError, Entries};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::path::Path;

/// Opener of the files of this machine.
struct Files;

impl Opener for Files {
    fn open(&self, path: &str) -> io::Result<flashatlas_sim::Stream> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((Box::new(file), Some(length)))
    }

    fn names_beside(&self, path: &str) -> Vec<String> {
        let folder = Path::new(path).parent().filter(|folder| *folder != Path::new(""));
        let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn free_memory(&self) -> Option<u64> {
        flashatlas_sim::free_memory(&|path| std::fs::read_to_string(path).ok())
    }
}

/// Returns `sha256:` and the digest of all sources, concatenated.
pub fn digest(sources: &[&[u8]]) -> String {
    let mut all = Sha256::new();
    sources.iter().for_each(|source| all.update(source));
    let hex: String = all.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Registry of every part that a run may name.
///
/// A registry never changes; [`Registry::with`] returns a new registry.
#[derive(Clone)]
pub struct Registry {
    parts: Parts,
    origin: Origin,
}

impl Registry {
    /// Returns a registry of the parts that come with the project.
    pub fn standard() -> Registry {
        let parts = Parts {
            drives: flashatlas_host::STANDARD,
            workloads: flashatlas_workload::Registry::STANDARD,
            metrics: Entries::of(METRICS),
            added: &[],
        };
        let origin = Origin {
            distribution: "this program".into(),
            version: "0".into(),
            digest: "none".into(),
        };
        Registry { parts, origin }
    }

    /// Returns the same registry, with an origin for the parts that are added from now on.
    ///
    /// In most cases, the origin is `flashatlas::origin!("lib.rs")`.
    pub fn from_origin(self, origin: Origin) -> Registry {
        Registry { origin, ..self }
    }

    /// Returns a registry with one more part.
    ///
    /// The part may be a part of a drive, a trace format, a generator or a metric.
    ///
    /// # Errors
    /// Returns an error if another part of the same kind has the same name, or if one of the part's
    /// keys has another meaning elsewhere.
    pub fn with(self, part: impl Into<AnyPart>) -> Result<Registry, ConfigError> {
        let parts = self.parts.with(part.into(), &self.origin)?;
        Ok(Registry { parts, ..self })
    }

    /// Returns the parts, in the form that the crates below this crate use.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the environment of runs with these parts.
    ///
    /// `opener` opens files and reads environment variables.
    pub fn environment<'a>(&'a self, opener: &'a dyn Opener) -> Environment<'a> {
        Environment {
            registry: &self.parts.drives,
            workloads: self.parts.workloads,
            metrics: self.parts.metrics,
            opener,
            build: Build { version: env!("CARGO_PKG_VERSION"), sources: "facade", commit: None },
            added: self.parts.added,
        }
    }

    /// Carries out a run on files of this machine, and returns its record.
    ///
    /// `spec` is a JSON object with the keys of [`RunSpec`].
    ///
    /// # Errors
    /// Returns an error for bad input, for a drive that cannot go on, and for a part that broke its
    /// contract.
    pub fn run(&self, spec: serde_json::Value) -> Result<serde_json::Value, RunError> {
        let spec: RunSpec = serde_json::from_value(spec)
            .map_err(|e| RunError::Unusable(format!("run specification: {e}")))?;
        let environment = self.environment(&Files);
        flashatlas_sim::run(&spec, &environment, &mut |_| true).map(|outcome| outcome.record)
    }

    /// Tests the promises of a part of this registry (see [`crate::testing`]).
    ///
    /// # Errors
    /// Returns an error if no part of any kind has this name.
    pub fn check(&self, name: &str, effort: &Effort) -> Result<Report, ConfigError> {
        flashatlas_conformance::check(&self.parts, name, effort, &mut |_| true)
    }
}
