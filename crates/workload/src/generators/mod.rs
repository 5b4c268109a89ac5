//! Synthetic load: one file a generator, listed in [`GENERATORS`].
//!
//! A generator's file says where its requests go (a `Pattern`) and which parameters that takes.
//! Everything else (how many requests, which kinds, when) is the same for all and is in
//! `common`.

mod common;
mod desktop;
mod ext4_sync;
mod hotcold;
pub(crate) mod math;
mod mixed;
mod sequential;
mod uniform;
mod zipf;

use crate::Registry;
use crate::settings::{parse, split_name};
use crate::source::RecordSource;
use flashatlas_types::{ConfigError, ParamDef, Params, Seed};

/// Makes a generator from parameters, the sectors of the drive, and a seed.
pub type Build = fn(&Params, u64, Seed) -> Result<Box<dyn RecordSource>, ConfigError>;

/// A generator of requests.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorDef {
    /// The name, before the colon of a specification.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its parameters, those that all generators share among them. Keys have no section.
    pub params: &'static [ParamDef],
    /// Each of its requests waits until the one before is complete: it is played in a closed loop
    /// of one.
    pub serial: bool,
    /// Make the source, for a drive of so many sectors. The same parameters, capacity and seed give
    /// the same requests.
    ///
    /// # Errors
    /// Parameters that contradict each other or the capacity.
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
    /// Whether `spec` names a generator whose requests wait for each other.
    pub fn is_serial(&self, spec: &str) -> bool {
        self.generators.named(split_name(spec).0).is_ok_and(|g| g.serial)
    }

    /// Make the generator that `spec` describes, `name` or `name:key=value,key=value`, for a drive
    /// of `capacity_sectors`.
    ///
    /// # Errors
    /// An unknown generator or parameter (with the nearest name), a parameter given twice or
    /// without a value, and values that are out of range or contradict each other or the capacity.
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

/// The generator of this crate called `name`.
///
/// # Errors
/// Names the nearest and all others when there is none.
pub fn generator_by_name(name: &str) -> Result<&'static GeneratorDef, ConfigError> {
    Registry::STANDARD.generators.named(name)
}

/// [`Registry::generate`] with the generators of this crate.
///
/// # Errors
/// As there.
pub fn generate(
    spec: &str,
    capacity_sectors: u64,
    seed: Seed,
) -> Result<Box<dyn RecordSource>, ConfigError> {
    Registry::STANDARD.generate(spec, capacity_sectors, seed)
}
