//! The parts that a drive and its layers may be built of.

use crate::{DriveConfig, LayerDef, PRESETS, Preset};
use flashatlas_types::{ConfigError, by_name};

/// Presets, the parts of FTLs, and layers, each by its name. Whoever needs one of these lists is
/// given it here; a configuration remembers the registry that it was made with.
#[derive(Clone, Copy)]
pub struct Registry {
    /// The drives that have a name.
    pub presets: &'static [Preset],
    /// Schemes, map stores, victim policies and classifiers.
    pub ftl: flashatlas_ftl::Registry,
    /// What a host may put over a drive.
    pub layers: &'static [LayerDef],
}

impl Registry {
    /// The parts of this crate and those below: no layers.
    pub const DRIVES: Registry =
        Registry { presets: PRESETS, ftl: flashatlas_ftl::Registry::STANDARD, layers: &[] };

    /// Load a preset by name, or, when `file` is given, the TOML text of a file called `name` (it
    /// may build on a preset with `drive.base = "…"`). Then apply `settings` of the form
    /// `key=value`.
    ///
    /// # Errors
    /// Unknown presets, keys and names; values of the wrong type or out of range; a layout that
    /// cannot work.
    pub fn load(
        &self,
        name: &str,
        file: Option<&str>,
        settings: &[String],
    ) -> Result<DriveConfig, ConfigError> {
        DriveConfig::load(*self, name, file, settings)
    }

    /// The preset called `name`.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn preset(&self, name: &str) -> Result<&'static Preset, ConfigError> {
        by_name(self.presets, |p| p.name, "drive", "drive", name)
    }

    /// What kind of part is called `name`, and the key that chooses it.
    pub fn kind_of(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let ftl = &self.ftl;
        [
            (ftl.schemes.iter().any(|s| s.name == name), ("mapping scheme", "ftl.scheme")),
            (ftl.stores.iter().any(|m| m.name == name), ("map store", "map.store")),
            (ftl.victims.iter().any(|v| v.name == name), ("victim policy", "ftl.victim")),
            (ftl.classifiers.iter().any(|c| c.name == name), ("classifier", "ftl.classifier")),
            (self.layers.iter().any(|l| l.name == name), ("layer", "layers")),
        ]
        .into_iter()
        .find_map(|(there, kind)| there.then_some(kind))
    }

    /// The layers that `text` names, from the top down: names, separated by commas.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn layers_named(&self, text: &str) -> Result<Vec<&'static LayerDef>, ConfigError> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| by_name(self.layers, |l| l.name, "layers", "layer", name)).collect()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layers: Vec<&str> = self.layers.iter().map(|l| l.name).collect();
        f.debug_struct("Registry").field("layers", &layers).finish_non_exhaustive()
    }
}
