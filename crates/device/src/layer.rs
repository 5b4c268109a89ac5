//! What a host puts over a drive: the entry of a layer in a registry, what it reports, and why it
//! cannot go on.

use crate::{DeviceShape, DriveConfig, Registry, Storage, SubmitError};
use flashatlas_types::{ConfigError, Mechanism, Note, ParamDef, Params};

/// What a layer is put on.
pub struct LayersBelow<'a> {
    /// What that exports.
    pub shape: DeviceShape,
    /// The layers there, from the top down.
    pub layers: &'a [&'static LayerDef],
    /// The parts that names choose from.
    pub registry: &'a Registry,
}

/// What a mount of a layer does at most, in mapping units of the lower device.
#[derive(Clone, Copy, Debug)]
pub struct LayerLimit {
    /// Units read.
    pub reads: u64,
    /// Units written.
    pub writes: u64,
}

/// Builds a layer over a device.
pub type BuildOver = fn(&DriveConfig, Box<dyn Storage>) -> Result<Box<dyn Storage>, SubmitError>;

/// Builds a layer over several devices.
pub type BuildOverSeveral =
    fn(&DriveConfig, Vec<Box<dyn Storage>>) -> Result<Box<dyn Storage>, SubmitError>;

/// Puts a layer over what is below, and mounts what is there; formats what is blank. Commands are
/// instant meanwhile ([`crate::PowerCycle::set_instant`]), on what is handed over and on what is
/// built.
#[derive(Clone, Copy)]
pub enum Build {
    /// Over one device.
    Over(BuildOver),
    /// Over several that are alike: a tree of drives.
    OverSeveral {
        /// How many.
        count: fn(&Params) -> u32,
        /// Build it over so many.
        build: BuildOverSeveral,
    },
}

impl Build {
    /// Devices right below the layer.
    pub fn count(&self, params: &Params) -> u32 {
        match self {
            Build::Over(_) => 1,
            Build::OverSeveral { count, .. } => count(params),
        }
    }
}

/// Drives at the bottom of `layers`.
pub fn drives_below(layers: &[&'static LayerDef], params: &Params) -> u32 {
    layers.iter().map(|layer| layer.build.count(params)).product()
}

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
    /// What it exports over what is below, or why it cannot be put there.
    pub fits: fn(&Params, &LayersBelow<'_>) -> Result<DeviceShape, ConfigError>,
    /// How it is built.
    pub build: Build,
    /// What a mount does at most, on all devices right below.
    pub mount_limit: fn(&Params, &LayersBelow<'_>) -> LayerLimit,
    /// Settings with which it takes each of its paths on a drive of a few hundred pages; each is
    /// tried at every power failure.
    pub small: &'static [&'static [&'static str]],
    /// What its paper describes and a run may or may not reach, each with its counter.
    pub mechanisms: &'static [Mechanism],
}

flashatlas_types::entry!(LayerDef, "layer", "layers");

/// What `layers` export over a drive that exports `drive`.
///
/// # Errors
/// The first, from the bottom up, that cannot be put where it is.
pub fn exported(
    layers: &[&'static LayerDef],
    registry: &Registry,
    params: &Params,
    drive: DeviceShape,
) -> Result<DeviceShape, ConfigError> {
    let mut shape = drive;
    for at in (0..layers.len()).rev() {
        shape =
            (layers[at].fits)(params, &LayersBelow { shape, layers: &layers[at + 1..], registry })?;
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
    /// Units that it answered without asking the lower device, because nobody had written them.
    pub unmapped_units: u64,
    /// Tables in the host's memory, with their bytes.
    pub memory: Vec<(&'static str, u64)>,
    /// Notes on what it leaves out or simplifies.
    pub approximations: Vec<Note>,
}

impl LayerReport {
    /// Add what the same layer counted over another drive.
    pub(crate) fn add(&mut self, other: &LayerReport) {
        debug_assert_eq!(self.layer, other.layer);
        for (sum, other) in self.counters.iter_mut().zip(&other.counters) {
            sum.1 += other.1;
        }
        for (sum, other) in self.memory.iter_mut().zip(&other.memory) {
            sum.1 += other.1;
        }
        self.unmapped_units += other.unmapped_units;
    }
}

/// Why a layer cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayerError {
    /// The lower device holds what this layer did not write. Nothing was changed.
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
                    "{layer}: the lower device was not written by this layer: {what}; nothing \
                     was overwritten"
                )
            }
            LayerError::Mismatch { layer, key, found, expected } => write!(
                f,
                "{layer}: the lower device was written with {key} = {found}, here it is \
                 {expected}; nothing was overwritten"
            ),
            LayerError::Unfit { layer, what } => write!(f, "{layer}: {what}"),
            LayerError::Damaged { layer, what } => write!(f, "{layer}: damage: {what}"),
        }
    }
}

impl std::error::Error for LayerError {}
