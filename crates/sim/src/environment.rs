//! Surroundings of a run: its files, its parts and its build.

use crate::Opener;
use crate::metrics::MetricDef;
use crate::parts::AddedPart;
use flashatlas_device::Registry;
use flashatlas_types::Entries;

/// The program that a record names.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// `sha256:` and the digest of its sources.
    pub sources: &'a str,
    /// The commit that the program was built from, followed by `+` if the sources had been changed
    /// after it; `None` if there was no repository.
    pub commit: Option<&'a str>,
}

/// The parts that can be chosen by name, the files of this machine, and the build for records.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Presets, schemes, map stores, victim policies, classifiers, layers.
    pub registry: &'a Registry,
    /// Trace formats and generators.
    pub workloads: flashatlas_workload::Registry,
    /// The metrics of runs.
    pub metrics: Entries<MetricDef>,
    /// Access to files and environment variables.
    pub opener: &'a dyn Opener,
    /// The build of this program.
    pub build: Build<'a>,
    /// The origins of the parts that did not come with the project.
    pub added: &'a [AddedPart],
}
