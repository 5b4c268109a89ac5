//! Which formats and generators there are.

use crate::formats::FORMATS;
use crate::generators::GENERATORS;
use crate::{FormatDef, GeneratorDef};
use flashatlas_types::{ConfigError, Entries};

flashatlas_types::entry!(FormatDef, "trace format", "format");

flashatlas_types::entry!(GeneratorDef, "generator", "workload.generator");

/// Trace formats and generators, each by its name. What opens, makes or writes records is a method:
/// the functions of the same names at the crate's root use [`Registry::STANDARD`].
#[derive(Clone, Copy)]
pub struct Registry {
    /// Trace formats.
    pub formats: Entries<FormatDef>,
    /// Generators of requests.
    pub generators: Entries<GeneratorDef>,
}

impl Registry {
    /// Those of this crate.
    pub const STANDARD: Registry =
        Registry { formats: Entries::of(FORMATS), generators: Entries::of(GENERATORS) };

    /// The same with one more format. What it recognises, no other format may.
    ///
    /// # Errors
    /// A format has its name already.
    pub fn with_format(self, format: &'static FormatDef) -> Result<Registry, ConfigError> {
        Ok(Registry { formats: self.formats.with(format)?, ..self })
    }

    /// The same with one more generator.
    ///
    /// # Errors
    /// A generator has its name already.
    pub fn with_generator(self, generator: &'static GeneratorDef) -> Result<Registry, ConfigError> {
        Ok(Registry { generators: self.generators.with(generator)?, ..self })
    }
}
