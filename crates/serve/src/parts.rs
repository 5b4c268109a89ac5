//! What a served drive finds around it: the parts that come with the project.

use crate::Plan;
use flashatlas_host::STANDARD;
use flashatlas_sim::input::Stream;
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{Build, Environment, Opener};
use flashatlas_types::Entries;
use flashatlas_workload::Registry;
use std::io;

/// Requests come from clients: no trace is opened.
struct NoFiles;

impl Opener for NoFiles {
    fn open(&self, path: &str) -> io::Result<Stream> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{path}: a served drive opens none"),
        ))
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// The parts and the build that a plan's record names.
pub fn environment(plan: &Plan) -> Environment<'_> {
    Environment {
        registry: &STANDARD,
        workloads: Registry::STANDARD,
        metrics: Entries::of(METRICS),
        opener: &NoFiles,
        build: Build {
            version: env!("CARGO_PKG_VERSION"),
            sources: plan.build.as_deref().unwrap_or("unknown"),
            commit: None,
        },
        added: &[],
    }
}
