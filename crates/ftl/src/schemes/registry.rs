//! The registry of the parts from which an FTL is built.

use super::{SCHEMES, SchemeDef};
use crate::caching::{CACHE_POLICIES, CachePolicyDef};
use crate::classifiers::{CLASSIFIERS, ClassifierDef};
use crate::maps::{MAPS, MapStoreDef};
use crate::victims::{VICTIMS, VictimDef};
use flashatlas_types::{ConfigError, Entries, Entry, Kinds, ParamDef};

/// Schemes, map stores, victim policies, classifiers, and the parts that stores choose from. Each
/// is found by its name.
#[derive(Clone, Copy)]
pub struct Registry {
    /// Mapping schemes.
    pub schemes: Entries<SchemeDef>,
    /// Map stores of page mapping.
    pub stores: Entries<MapStoreDef>,
    /// Victim policies of page mapping, and of other code that collects garbage.
    pub victims: Entries<VictimDef>,
    /// Classifiers of page mapping.
    pub classifiers: Entries<ClassifierDef>,
    /// Cache policies of the map store `demand`.
    pub caching: Entries<CachePolicyDef>,
    /// Additional kinds of parts that stores choose from.
    pub kinds: Kinds,
}

impl Registry {
    /// The parts of this crate.
    pub const STANDARD: Registry = Registry {
        schemes: Entries::of(SCHEMES),
        stores: Entries::of(MAPS),
        victims: Entries::of(VICTIMS),
        classifiers: Entries::of(CLASSIFIERS),
        caching: Entries::of(CACHE_POLICIES),
        kinds: Kinds::of(&[]),
    };

    /// Returns the scheme called `name`.
    ///
    /// # Errors
    /// Returns an error that names the unknown scheme and lists the schemes that exist.
    pub fn scheme(&self, name: &str) -> Result<&'static SchemeDef, ConfigError> {
        self.schemes.named(name)
    }

    /// Returns the map store called `name`.
    ///
    /// # Errors
    /// Returns an error that names the unknown store and lists the stores that exist.
    pub fn store(&self, name: &str) -> Result<&'static MapStoreDef, ConfigError> {
        self.stores.named(name)
    }

    /// Returns the victim policy called `name`.
    ///
    /// # Errors
    /// Returns an error that names the unknown policy and lists the policies that exist.
    pub fn victim(&self, name: &str) -> Result<&'static VictimDef, ConfigError> {
        self.victims.named(name)
    }

    /// Returns the classifier called `name`.
    ///
    /// # Errors
    /// Returns an error that names the unknown classifier and lists the classifiers that exist.
    pub fn classifier(&self, name: &str) -> Result<&'static ClassifierDef, ConfigError> {
        self.classifiers.named(name)
    }

    /// Returns the parameters of a map store and of the parts that it uses. These parts are the
    /// chosen cache policy, and every part of the additional kinds that it chooses from. `text`
    /// returns the value that is set for a key.
    ///
    /// # Errors
    /// Returns an error that names the unknown part and lists the parts that exist.
    pub fn store_params(
        &self,
        store: &MapStoreDef,
        text: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<&'static ParamDef>, ConfigError> {
        let mut all: Vec<&'static ParamDef> = store.params.iter().collect();
        let chosen = |param: &ParamDef| {
            text(param.key).or(param.default.map(str::to_owned)).unwrap_or_default()
        };
        for param in store.params {
            if param.key == CachePolicyDef::KEY {
                all.extend(self.caching.named(&chosen(param))?.params);
            } else if let Some(kind) = self.kinds.chosen_by(param.key) {
                kind.check(&chosen(param))?;
                all.extend(kind.params());
            }
        }
        Ok(all)
    }
}
