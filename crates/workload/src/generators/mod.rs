//! Synthetic load: one file a generator, listed in [`GENERATORS`].
//!
//! The file of a generator has the addresses of its requests (a `Pattern`) and its parameters.
//! Everything else (the number, kinds and times of requests) is the same for all generators: see
//! `common`.

mod common;
mod desktop;
mod ext4_sync;
mod hotcold;
pub mod math;
mod mixed;
mod sequential;
mod uniform;
mod zipf;

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
    /// `true` if each of its requests waits until the request before it is complete: the generator
    /// is played in a closed loop with one request in flight.
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
