//! What a run finds around it.

use crate::Opener;
use crate::metrics::MetricDef;
use crate::parts::AddedPart;
use flashatlas_device::Registry;
use flashatlas_types::Entries;

/// The program that a record names.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// Its version.
    pub version: &'a str,
    /// `sha256:` and the digest of its sources.
    pub sources: &'a str,
    /// The commit that it was built from, with `+` behind it if the sources had been changed since;
    /// `None` where there was no repository.
    pub commit: Option<&'a str>,
}

/// The parts that names choose from, the files of this machine, and the build that records name.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Presets, schemes, map stores, victim policies, classifiers, layers.
    pub registry: &'a Registry,
    /// Trace formats and generators.
    pub workloads: flashatlas_workload::Registry,
    /// What is measured.
    pub metrics: Entries<MetricDef>,
    /// How files and environment variables are reached.
    pub opener: &'a dyn Opener,
    /// What this program was built from.
    pub build: Build<'a>,
    /// Where those parts came from that did not come with the project.
    pub added: &'a [AddedPart],
}
