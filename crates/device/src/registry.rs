//! Registry of the parts from which a drive and its layers are built.

use crate::params::common_params;
use crate::{DriveConfig, LayerDef, PRESETS, Preset};
use flashatlas_ftl::SchemeDef;
use flashatlas_ftl::caching::CachePolicyDef;
use flashatlas_ftl::classifiers::ClassifierDef;
use flashatlas_ftl::maps::MapStoreDef;
use flashatlas_ftl::victims::VictimDef;
use flashatlas_lookup::hashes::HashDef;
use flashatlas_types::{ConfigError, Entries, Entry, ParamDef};

/// Presets, parts of FTLs, and layers. Each is found by its name.
///
/// Code that needs one of these lists gets the registry as an argument. A configuration keeps the
/// registry with which it was loaded.
#[derive(Clone, Copy)]
pub struct Registry {
    /// Presets of drives.
    pub presets: Entries<Preset>,
    /// Schemes, map stores, victim policies and classifiers.
    pub ftl: flashatlas_ftl::Registry,
    /// Layers that a host may put over a drive.
    pub layers: Entries<LayerDef>,
}

/// A part that can be added to a registry: see [`Registry::with`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Part {
    /// A mapping scheme.
    Scheme(&'static SchemeDef),
    /// A map store of page mapping.
    Store(&'static MapStoreDef),
    /// A victim policy.
    Victim(&'static VictimDef),
    /// A classifier.
    Classifier(&'static ClassifierDef),
    /// A policy for the cache of the map.
    Caching(&'static CachePolicyDef),
    /// A hash function of the lookup engine.
    Hash(&'static HashDef),
    /// A layer.
    Layer(&'static LayerDef),
    /// A preset of a drive.
    Preset(&'static Preset),
}

impl Registry {
    /// Returns the same registry with one more part.
    ///
    /// The new part is like the parts that come with the project: a name chooses it, its parameters
    /// are checked and listed, and errors suggest its name.
    ///
    /// # Errors
    /// Returns an error if a part of the same kind has this name already. Returns an error if
    /// another part that may be in use with the new part declares one of its keys with another
    /// meaning. That error names both parts.
    pub fn with(mut self, part: impl Into<Part>) -> Result<Registry, ConfigError> {
        let part = part.into();
        let (name, own) = part.declares(&self)?;
        for param in own {
            if let Some(owner) = self.declared_otherwise(param, part) {
                let why = format!(
                    "{name} and {owner} declare this key with different meanings: use another key \
                     in one of the two"
                );
                return Err(ConfigError::new(param.key, why));
            }
        }
        match part {
            Part::Scheme(def) => self.ftl.schemes = self.ftl.schemes.with(def)?,
            Part::Store(def) => self.ftl.stores = self.ftl.stores.with(def)?,
            Part::Victim(def) => self.ftl.victims = self.ftl.victims.with(def)?,
            Part::Classifier(def) => self.ftl.classifiers = self.ftl.classifiers.with(def)?,
            Part::Caching(def) => self.ftl.caching = self.ftl.caching.with(def)?,
            Part::Hash(def) => self.ftl.kinds = self.ftl.kinds.with(def)?,
            Part::Layer(def) => self.layers = self.layers.with(def)?,
            Part::Preset(def) => self.presets = self.presets.with(def)?,
        }
        Ok(self)
    }

    /// Returns a part that declares the key of `param` with another range or another text.
    ///
    /// `param` is a parameter of `own`. The returned part may be in use together with `own`. If all
    /// drives have the parameter, "every drive" is returned.
    ///
    /// A drive has one part of most kinds, so two parts of such a kind may declare a key with two
    /// meanings. For layers and hash functions this is not allowed. Several layers are used
    /// together, and the parameters of all hash functions are declared together.
    fn declared_otherwise(&self, param: &ParamDef, own: Part) -> Option<String> {
        let differs = |other: &ParamDef| {
            other.key == param.key && (other.doc != param.doc || other.range() != param.range())
        };
        if common_params().into_iter().any(differs) {
            return Some("every drive".to_owned());
        }
        let ftl = &self.ftl;
        let parts = (ftl.victims.iter().map(Part::Victim))
            .chain(ftl.classifiers.iter().map(Part::Classifier))
            .chain(ftl.stores.iter().map(Part::Store))
            .chain(ftl.schemes.iter().map(Part::Scheme))
            .chain(self.hashes().iter().map(Part::Hash))
            .chain(ftl.caching.iter().map(Part::Caching))
            .chain(self.layers.iter().map(Part::Layer));
        let kind = std::mem::discriminant(&own);
        let together = |part: &Part| {
            matches!(part, Part::Layer(_) | Part::Hash(_)) || std::mem::discriminant(part) != kind
        };
        parts
            .filter(together)
            .filter_map(|part| part.declares(self).ok())
            .find_map(|(name, params)| params.into_iter().any(differs).then_some(name))
    }

    /// Registry of the parts of this crate and of the crates that it uses, without layers.
    pub const DRIVES: Registry = Registry {
        presets: Entries::of(PRESETS),
        ftl: flashatlas_ftl::Registry::STANDARD,
        layers: Entries::of(&[]),
    };

    /// Loads a preset by name and applies `settings` of the form `key=value`. If `file` is given,
    /// loads its TOML text instead; the file is called `name`.
    ///
    /// The file may build on a preset with `drive.base = "…"`.
    ///
    /// # Errors
    /// Returns an error for an unknown preset, key or name, for a value of the wrong type or out of
    /// range, and for a layout that cannot work.
    pub fn load(
        &self,
        name: &str,
        file: Option<&str>,
        settings: &[String],
    ) -> Result<DriveConfig, ConfigError> {
        DriveConfig::load(*self, name, file, settings)
    }

    /// Returns the configuration of a preset overridden by `settings`, or `None` if
    /// [`Registry::load`] refuses it.
    ///
    /// A caller that tries many configurations uses this function: [`Registry::load`] takes many
    /// times as long for a refusal, because its error names the setting that is to blame.
    pub fn load_if_accepted(&self, preset: &Preset, settings: &[String]) -> Option<DriveConfig> {
        DriveConfig::if_accepted(*self, preset, settings)
    }

    /// Returns the preset called `name`.
    ///
    /// # Errors
    /// Returns an error if the name is unknown. The error lists the names that exist.
    pub fn preset(&self, name: &str) -> Result<&'static Preset, ConfigError> {
        self.presets.named(name)
    }

    /// Returns the hash functions from which a map store in hardware tables chooses.
    pub fn hashes(&self) -> Entries<HashDef> {
        self.ftl.kinds.get()
    }

    /// Returns the allowed values of a parameter in words, or the names of the parts that it can
    /// choose.
    pub fn range(&self, def: &ParamDef) -> String {
        let names = match def.key {
            SchemeDef::KEY => self.ftl.schemes.names(),
            MapStoreDef::KEY => self.ftl.stores.names(),
            VictimDef::KEY => self.ftl.victims.names(),
            ClassifierDef::KEY => self.ftl.classifiers.names(),
            CachePolicyDef::KEY => self.ftl.caching.names(),
            HashDef::KEY => self.hashes().names(),
            _ => return def.range(),
        };
        names.join(", ")
    }

    /// Returns the kind of the part called `name` and the key that chooses it, or `None` if there
    /// is no such part.
    pub fn kind_of(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let ftl = &self.ftl;
        [
            (ftl.schemes.iter().any(|s| s.name == name), ("mapping scheme", "ftl.scheme")),
            (ftl.stores.iter().any(|m| m.name == name), ("map store", "map.store")),
            (ftl.victims.iter().any(|v| v.name == name), ("victim policy", "ftl.victim")),
            (ftl.classifiers.iter().any(|c| c.name == name), ("classifier", "ftl.classifier")),
            (ftl.caching.iter().any(|c| c.name == name), ("map cache policy", "map.policy")),
            (self.hashes().iter().any(|h| h.name == name), ("hash function", "lookup.hash")),
            (self.layers.iter().any(|l| l.name == name), ("layer", "layers")),
        ]
        .into_iter()
        .find_map(|(there, kind)| there.then_some(kind))
    }

    /// Returns the layers that `text` names, separated by commas, from the top down.
    ///
    /// # Errors
    /// Returns an error if a name is unknown. The error lists the names that exist.
    pub fn layers_named(&self, text: &str) -> Result<Vec<&'static LayerDef>, ConfigError> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| self.layers.named(name)).collect()
    }
}

impl Part {
    /// Returns the kind of the part, in words, and the name of the part.
    pub fn named(self) -> (&'static str, &'static str) {
        fn of<T: Entry>(def: &T) -> (&'static str, &'static str) {
            (T::KIND, def.name())
        }
        match self {
            Part::Scheme(def) => of(def),
            Part::Store(def) => of(def),
            Part::Victim(def) => of(def),
            Part::Classifier(def) => of(def),
            Part::Caching(def) => of(def),
            Part::Hash(def) => of(def),
            Part::Layer(def) => of(def),
            Part::Preset(def) => of(def),
        }
    }

    /// Returns the name of the part in error messages, and the parameters that the part declares.
    fn declares(
        self,
        registry: &Registry,
    ) -> Result<(String, Vec<&'static ParamDef>), ConfigError> {
        fn of<T: Entry>(def: &T) -> (String, Vec<&'static ParamDef>) {
            (format!("{} `{}`", T::KIND, def.name()), def.params().iter().collect())
        }
        Ok(match self {
            Part::Scheme(def) => (of(def).0, (def.params)(&registry.ftl, &|_| None)?),
            Part::Store(def) => of(def),
            Part::Victim(def) => of(def),
            Part::Classifier(def) => of(def),
            Part::Caching(def) => of(def),
            Part::Hash(def) => of(def),
            Part::Layer(def) => of(def),
            Part::Preset(def) => of(def),
        })
    }
}

/// Implements `From` for each kind of part.
macro_rules! parts {
    ($($kind:ident($def:ty)),*) => {
        $(impl From<&'static $def> for Part {
            fn from(def: &'static $def) -> Part {
                Part::$kind(def)
            }
        })*
    };
}

parts!(
    Scheme(SchemeDef),
    Store(MapStoreDef),
    Victim(VictimDef),
    Classifier(ClassifierDef),
    Caching(CachePolicyDef),
    Hash(HashDef),
    Layer(LayerDef),
    Preset(Preset)
);

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layers: Vec<&str> = self.layers.iter().map(|l| l.name).collect();
        f.debug_struct("Registry").field("layers", &layers).finish_non_exhaustive()
    }
}
