//! What a host puts over a drive: layers, each a [`Device`] that owns the next one. A layer is a
//! folder or file here and a line in [`LAYERS`].

mod hard;
mod hpb_host;

use crate::{Cmd, Device, SubmitError};
use flashatlas_types::{ConfigError, Layout, ParamDef, Params};

/// What a device exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Sectors of a mapping unit.
    pub unit_sectors: u32,
    /// Sectors in all.
    pub sectors: u64,
}

impl Shape {
    /// What a drive exports.
    pub fn of(layout: &Layout) -> Shape {
        Shape { unit_sectors: layout.unit_sectors(), sectors: layout.sectors() }
    }

    /// Mapping units.
    pub fn units(&self) -> u32 {
        (self.sectors / u64::from(self.unit_sectors)) as u32
    }

    /// `Ok` when a command has no range, or one that is not empty and lies inside.
    ///
    /// # Errors
    /// [`SubmitError::OutOfRange`].
    pub fn accepts(&self, cmd: &Cmd<'_>) -> Result<(), SubmitError> {
        let Some((lba, sectors)) = cmd.range(self.unit_sectors) else { return Ok(()) };
        let end = lba.0.checked_add(u64::from(sectors));
        match sectors == 0 || end.is_none_or(|end| end > self.sectors) {
            true => Err(SubmitError::OutOfRange { sectors: self.sectors }),
            false => Ok(()),
        }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(flashatlas_types::SECTOR_BYTES)
    }
}

/// What a layer stands on.
pub struct Beneath<'a> {
    /// What that exports.
    pub shape: Shape,
    /// The layers there, from the top down.
    pub layers: &'a [&'static LayerDef],
}

/// What a mount of a layer does at most, in mapping units of the device beneath.
#[derive(Clone, Copy, Debug)]
pub struct LayerLimit {
    /// Units read.
    pub reads: u64,
    /// Units written.
    pub writes: u64,
}

/// Puts a layer over a device.
pub type Build = fn(&Params, Box<dyn Device>) -> Result<Box<dyn Device>, SubmitError>;

/// One layer of the registry.
pub struct LayerDef {
    /// Name in `layers`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is described.
    pub paper: &'static str,
    /// Its own parameters.
    pub params: &'static [ParamDef],
    /// What it exports over what is beneath, or why it cannot stand there.
    pub fits: fn(&Params, &Beneath<'_>) -> Result<Shape, ConfigError>,
    /// Build it over a device and mount what stands there; on a blank one, format it.
    pub build: Build,
    /// What a mount does at most.
    pub mount_limit: fn(&Params, &Beneath<'_>) -> LayerLimit,
    /// Settings with which it takes each of its paths on a drive of a few hundred pages; each is
    /// tried at every power failure.
    pub small: &'static [&'static [&'static str]],
}

/// All layers.
pub const LAYERS: &[LayerDef] = &[hard::DEF, hpb_host::DEF];

/// The layer called `name`.
///
/// # Errors
/// Unknown names, with those that exist.
pub fn layer_by_name(name: &str) -> Result<&'static LayerDef, ConfigError> {
    flashatlas_types::by_name(LAYERS, |l| l.name, "layers", "layer", name)
}

/// The layers that `text` names, from the top down: names, separated by commas.
///
/// # Errors
/// Unknown names.
pub fn parse(text: &str) -> Result<Vec<&'static LayerDef>, ConfigError> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(layer_by_name).collect()
}

/// What `layers` export over a drive that exports `drive`.
///
/// # Errors
/// The first, from the bottom up, that cannot stand where it is put.
pub fn exported(
    layers: &[&'static LayerDef],
    params: &Params,
    drive: Shape,
) -> Result<Shape, ConfigError> {
    let mut shape = drive;
    for at in (0..layers.len()).rev() {
        shape = (layers[at].fits)(params, &Beneath { shape, layers: &layers[at + 1..] })?;
    }
    Ok(shape)
}

/// What a layer counted, and what it keeps in the host's memory.
#[derive(Clone, Debug)]
pub struct LayerReport {
    /// Its name.
    pub layer: &'static str,
    /// Counters by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Tables in the host's memory, with their bytes.
    pub memory: Vec<(&'static str, u64)>,
    /// What it approximates, in words.
    pub approximations: Vec<String>,
}

/// Why a layer cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayerError {
    /// The device beneath holds what this layer did not write. Nothing was changed.
    Foreign {
        /// Which layer.
        layer: &'static str,
        /// What was found, and where.
        what: String,
    },
    /// The layer's own records are of another configuration. Nothing was changed.
    Mismatch {
        /// Which layer.
        layer: &'static str,
        /// The parameter.
        key: &'static str,
        /// What the records say.
        found: u64,
        /// What the configuration says.
        expected: u64,
    },
    /// The layer cannot work over this device. Nothing was changed.
    Unfit {
        /// Which layer.
        layer: &'static str,
        /// Why, in words.
        what: String,
    },
    /// What the layer wrote cannot be read any more.
    Damaged {
        /// Which layer.
        layer: &'static str,
        /// What, and where.
        what: String,
    },
}

impl std::fmt::Display for LayerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LayerError::Foreign { layer, what } => {
                write!(
                    f,
                    "{layer}: the device beneath was not written by this layer: {what}; nothing \
                     was overwritten"
                )
            }
            LayerError::Mismatch { layer, key, found, expected } => write!(
                f,
                "{layer}: the device beneath was written with {key} = {found}, here it is \
                 {expected}; nothing was overwritten"
            ),
            LayerError::Unfit { layer, what } => write!(f, "{layer}: {what}"),
            LayerError::Damaged { layer, what } => write!(f, "{layer}: damage: {what}"),
        }
    }
}

impl std::error::Error for LayerError {}

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_is_registered() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/layers");
        let mut files: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|f| f.unwrap().path().file_stem().unwrap().to_str().unwrap().replace('_', "-"))
            .filter(|f| f != "mod")
            .collect();
        files.sort();
        let mut names: Vec<&str> = super::LAYERS.iter().map(|l| l.name).collect();
        names.sort();
        assert_eq!(files, names);
    }
}
