//! The parts that an FTL may be built of.

use crate::classifiers::{CLASSIFIERS, ClassifierDef};
use crate::maps::{MAPS, MapStoreDef};
use crate::schemes::{SCHEMES, SchemeDef};
use crate::victims::{VICTIMS, VictimDef};
use flashatlas_types::{ConfigError, by_name};

/// Schemes, map stores, victim policies and classifiers, each by its name.
#[derive(Clone, Copy)]
pub struct Registry {
    /// Mapping schemes.
    pub schemes: &'static [SchemeDef],
    /// Map stores of page mapping.
    pub stores: &'static [MapStoreDef],
    /// Victim policies of page mapping, and of whoever else collects.
    pub victims: &'static [VictimDef],
    /// Classifiers of page mapping.
    pub classifiers: &'static [ClassifierDef],
}

impl Registry {
    /// The parts of this crate.
    pub const STANDARD: Registry =
        Registry { schemes: SCHEMES, stores: MAPS, victims: VICTIMS, classifiers: CLASSIFIERS };

    /// The scheme called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn scheme(&self, name: &str) -> Result<&'static SchemeDef, ConfigError> {
        by_name(self.schemes, |s| s.name, "ftl.scheme", "scheme", name)
    }

    /// The map store called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn store(&self, name: &str) -> Result<&'static MapStoreDef, ConfigError> {
        by_name(self.stores, |m| m.name, "map.store", "map store", name)
    }

    /// The victim policy called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn victim(&self, name: &str) -> Result<&'static VictimDef, ConfigError> {
        by_name(self.victims, |v| v.name, "ftl.victim", "victim policy", name)
    }

    /// The classifier called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn classifier(&self, name: &str) -> Result<&'static ClassifierDef, ConfigError> {
        by_name(self.classifiers, |c| c.name, "ftl.classifier", "classifier", name)
    }
}
