//! Registry of formats and generators.

use crate::formats::FORMATS;
use crate::generators::GENERATORS;
use crate::settings::{parse, split_name};
use crate::source::RecordSource;
use crate::{FormatDef, GeneratorDef};
use flashatlas_types::{ConfigError, Entries, Seed};

flashatlas_types::entry!(FormatDef, "trace format", "format");

flashatlas_types::entry!(GeneratorDef, "generator", "workload.generator");

/// Trace formats and generators, each by its name.
///
/// Its methods open traces, generate requests and write traces. The functions of the same names at
/// the crate's root use [`Registry::STANDARD`].
#[derive(Clone, Copy)]
pub struct Registry {
    /// Trace formats.
    pub formats: Entries<FormatDef>,
    /// Generators of requests.
    pub generators: Entries<GeneratorDef>,
}

impl Registry {
    /// Formats and generators of this crate.
    pub const STANDARD: Registry =
        Registry { formats: Entries::of(FORMATS), generators: Entries::of(GENERATORS) };

    /// Returns the registry with one more format. No other format may recognise content that the
    /// new format recognises.
    ///
    /// # Errors
    /// Returns an error if another format has the name.
    pub fn with_format(self, format: &'static FormatDef) -> Result<Registry, ConfigError> {
        Ok(Registry { formats: self.formats.with(format)?, ..self })
    }

    /// Returns the registry with one more generator.
    ///
    /// # Errors
    /// Returns an error if another generator has the name.
    pub fn with_generator(self, generator: &'static GeneratorDef) -> Result<Registry, ConfigError> {
        Ok(Registry { generators: self.generators.with(generator)?, ..self })
    }
}

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

/// Returns the format of this crate with the name `name`.
///
/// # Errors
/// Returns an error that names the unknown format, the nearest format and all others.
pub fn format_by_name(name: &str) -> Result<&'static FormatDef, ConfigError> {
    Registry::STANDARD.formats.named(name)
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
