//! Synthetic load: one file a generator, listed in [`GENERATORS`].
//!
//! The file of a generator has the addresses of its requests (a `Pattern`) and its parameters.
//! Everything else (the number, kinds and times of requests) is the same for all generators, and
//! stands in `common`.

mod common;
mod desktop;
mod ext4_sync;
mod hotcold;
pub mod math;
mod mixed;
mod sequential;
mod uniform;
mod zipf;

use crate::Registry;
use crate::settings::{parse, split_name};
use crate::source::RecordSource;
use flashatlas_types::{ConfigError, ParamDef, Params, Seed};

/// Function that makes a generator from parameters, the sectors of the drive, and a seed.
pub type Build = fn(&Params, u64, Seed) -> Result<Box<dyn RecordSource>, ConfigError>;

/// A generator of requests.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorDef {
    /// The name, before the colon of a specification.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Parameters, including those that all generators share. Keys have no section.
    pub params: &'static [ParamDef],
    /// `true` if each of its requests waits until the one before is complete: it is played in a
    /// closed loop with one request in flight.
    pub serial: bool,
    /// Function that makes the source, for a drive with a given number of sectors. The same
    /// parameters, capacity and seed give the same requests.
    ///
    /// # Errors
    /// Returns an error if parameters contradict each other or the capacity.
    pub build: Build,
}

/// Every generator.
pub const GENERATORS: &[GeneratorDef] = &[
    desktop::GENERATOR,
    ext4_sync::GENERATOR,
    hotcold::GENERATOR,
    mixed::GENERATOR,
    sequential::GENERATOR,
    uniform::GENERATOR,
    zipf::GENERATOR,
];

impl Registry {
    /// Returns `true` if `spec` names a generator whose requests wait for each other.
    pub fn is_serial(&self, spec: &str) -> bool {
        self.generators.named(split_name(spec).0).is_ok_and(|g| g.serial)
    }

    /// Makes the generator that `spec` describes, for a drive of `capacity_sectors` sectors. `spec`
    /// is `name` or `name:key=value,key=value`.
    ///
    /// # Errors
    /// Returns an error for an unknown generator or parameter (with the nearest name), for a
    /// parameter given twice or without a value, and for values that are out of range or contradict
    /// each other or the capacity.
    pub fn generate(
        &self,
        spec: &str,
        capacity_sectors: u64,
        seed: Seed,
    ) -> Result<Box<dyn RecordSource>, ConfigError> {
        let (name, settings) = split_name(spec);
        let generator = self.generators.named(name)?;
        let params = parse(settings, name, generator.params)?;
        (generator.build)(&params, capacity_sectors, seed).map_err(|e| e.at(name))
    }
}

/// Returns the generator of this crate with the name `name`.
///
/// # Errors
/// Returns an error that names the unknown generator, the nearest generator and all others.
pub fn generator_by_name(name: &str) -> Result<&'static GeneratorDef, ConfigError> {
    Registry::STANDARD.generators.named(name)
}

/// Makes a generator as [`Registry::generate`] does, with the generators of this crate.
///
/// # Errors
/// Returns the errors of [`Registry::generate`].
pub fn generate(
    spec: &str,
    capacity_sectors: u64,
    seed: Seed,
) -> Result<Box<dyn RecordSource>, ConfigError> {
    Registry::STANDARD.generate(spec, capacity_sectors, seed)
}
