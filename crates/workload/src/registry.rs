//! Registry of formats and generators.

use crate::formats::FORMATS;
use crate::generators::GENERATORS;
use crate::{FormatDef, GeneratorDef};
use flashatlas_types::{ConfigError, Entries};

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

    /// Returns the registry with one more format. No other format may recognise content that this
    /// one recognises.
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
