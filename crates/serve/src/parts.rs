//! What a served drive finds around it.

use crate::Plan;
use flashatlas_host::STANDARD;
use flashatlas_sim::input::Stream;
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{Build, Environment, Opener, Parts};
use flashatlas_types::Entries;
use flashatlas_workload::Registry;
use std::io;

/// The parts that come with the project.
pub const STANDARD_PARTS: Parts = Parts {
    drives: STANDARD,
    workloads: Registry::STANDARD,
    metrics: Entries::of(METRICS),
    added: &[],
};

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

/// These parts, and the build that a plan's record names.
pub fn environment<'a>(parts: &'a Parts, plan: &'a Plan) -> Environment<'a> {
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
