//! The suite on the project's own parts, and on parts that break one promise each.

mod broken;
mod own_parts;
#[cfg(feature = "seeded-bugs")]
mod seeded_bugs;
mod swarm;

use flashatlas_sim::Parts;
use flashatlas_sim::metrics::METRICS;
use flashatlas_types::Entries;

/// Returns the parts that come with the project.
fn standard() -> Parts {
    Parts {
        drives: flashatlas_host::STANDARD,
        workloads: flashatlas_workload::Registry::STANDARD,
        metrics: Entries::of(METRICS),
        added: &[],
    }
}
