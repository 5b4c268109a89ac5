//! What a run finds around it.

use crate::Opener;
use flashatlas_device::Registry;

/// The parts that names choose from, the files of this machine, and the version that records name.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Presets, schemes, map stores, victim policies, classifiers, layers.
    pub registry: &'a Registry,
    /// How files and environment variables are reached.
    pub opener: &'a dyn Opener,
    /// Version of the program.
    pub version: &'a str,
}
