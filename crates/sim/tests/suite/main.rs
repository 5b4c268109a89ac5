//! Tests of whole runs.

mod base;
mod beside_fio;
mod damaged_texts;
mod energy;
mod explain;
mod flash_parts;
mod golden;
mod jobs;
mod jobs_batch;
mod jobs_ext4;
mod jobs_order;
mod jobs_replay;
mod jobs_together;
mod own_parts;
mod precondition;
mod real_traces;
mod registries;
mod replay;
mod rest;
mod shared_dram;
mod smart;
mod steady;
mod tables;

use flashatlas_host::STANDARD;
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{Build, Environment, Opener};
use flashatlas_types::Entries;

/// Returns the environment of a run in tests.
fn environment(opener: &dyn Opener) -> Environment<'_> {
    let build = Build { version: "test", sources: "sha256:test", commit: None };
    Environment {
        registry: &STANDARD,
        workloads: flashatlas_workload::Registry::STANDARD,
        metrics: Entries::of(METRICS),
        opener,
        build,
        added: &[],
    }
}
