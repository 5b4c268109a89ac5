//! The parts that an FTL may be built of.

use crate::classifiers::{CLASSIFIERS, ClassifierDef};
use crate::maps::{MAPS, MapStoreDef};
use crate::schemes::{SCHEMES, SchemeDef};
use crate::victims::{VICTIMS, VictimDef};
use flashatlas_lookup::hashes::{self, HashDef};
use flashatlas_types::{ConfigError, Entries};

/// Schemes, map stores, victim policies, classifiers and hash functions, each by its name.
#[derive(Clone, Copy)]
pub struct Registry {
    /// Mapping schemes.
    pub schemes: Entries<SchemeDef>,
    /// Map stores of page mapping.
    pub stores: Entries<MapStoreDef>,
    /// Victim policies of page mapping, and of whoever else collects.
    pub victims: Entries<VictimDef>,
    /// Classifiers of page mapping.
    pub classifiers: Entries<ClassifierDef>,
    /// Hash functions of the store `lpmt`.
    pub hashes: Entries<HashDef>,
}

impl Registry {
    /// The parts of this crate.
    pub const STANDARD: Registry = Registry {
        schemes: Entries::of(SCHEMES),
        stores: Entries::of(MAPS),
        victims: Entries::of(VICTIMS),
        classifiers: Entries::of(CLASSIFIERS),
        hashes: hashes::STANDARD,
    };

    /// The scheme called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn scheme(&self, name: &str) -> Result<&'static SchemeDef, ConfigError> {
        self.schemes.named(name)
    }

    /// The map store called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn store(&self, name: &str) -> Result<&'static MapStoreDef, ConfigError> {
        self.stores.named(name)
    }

    /// The victim policy called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn victim(&self, name: &str) -> Result<&'static VictimDef, ConfigError> {
        self.victims.named(name)
    }

    /// The classifier called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn classifier(&self, name: &str) -> Result<&'static ClassifierDef, ConfigError> {
        self.classifiers.named(name)
    }

    /// The hash function called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn hash(&self, name: &str) -> Result<&'static HashDef, ConfigError> {
        self.hashes.named(name)
    }
}
