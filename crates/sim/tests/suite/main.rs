//! Whole runs, tried.

mod damaged_texts;
mod golden;
mod jobs;
mod precondition;
mod real_traces;
mod replay;
mod steady;
mod tables;

use flashatlas_host::STANDARD;
use flashatlas_sim::{Build, Environment, Opener};

/// What a run finds in tests.
fn environment(opener: &dyn Opener) -> Environment<'_> {
    let build = Build { version: "test", sources: "sha256:test", commit: None };
    Environment { registry: &STANDARD, opener, build }
}
