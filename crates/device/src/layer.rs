//! Layers that a host puts over a drive: their entries in a registry, their reports and their
//! errors.

use crate::{DeviceShape, DriveConfig, Registry, Storage, SubmitError};
use flashatlas_types::{ConfigError, Mechanism, Note, ParamDef, Params};

/// Devices below a layer.
pub struct LayersBelow<'a> {
    /// Shape that each of these devices exports.
    pub shape: DeviceShape,
    /// Layers below, from the top down.
    pub layers: &'a [&'static LayerDef],
    /// Parts that the configuration can name.
    pub registry: &'a Registry,
}

/// Maximum work of a layer's mount, in mapping units of the lower device.
#[derive(Clone, Copy, Debug)]
pub struct LayerLimit {
    /// Greatest number of units that are read.
    pub reads: u64,
    /// Greatest number of units that are written.
    pub writes: u64,
}

/// Function that builds a layer over a device.
pub type BuildOver = fn(&DriveConfig, Box<dyn Storage>) -> Result<Box<dyn Storage>, SubmitError>;

/// Function that builds a layer over several devices.
pub type BuildOverSeveral =
    fn(&DriveConfig, Vec<Box<dyn Storage>>) -> Result<Box<dyn Storage>, SubmitError>;

/// Function that puts a layer over one or several devices and mounts them. Blank devices are
/// formatted.
///
/// While the function runs, commands are instant ([`Storage::set_instant`]) on the lower devices
/// and on the new layer.
#[derive(Clone, Copy)]
pub enum Build {
    /// Over one device.
    Over(BuildOver),
    /// Over several identical devices. The stack is then a tree.
    OverSeveral {
        /// Function that returns the number of devices.
        count: fn(&Params) -> u32,
        /// Function that builds the layer over them.
        build: BuildOverSeveral,
    },
}

impl Build {
    /// Returns the number of devices directly below the layer.
    pub fn count(&self, params: &Params) -> u32 {
        match self {
            Build::Over(_) => 1,
            Build::OverSeveral { count, .. } => count(params),
        }
    }
}

/// Returns the number of drives at the bottom of `layers`.
pub fn drives_below(layers: &[&'static LayerDef], params: &Params) -> u32 {
    layers.iter().map(|layer| layer.build.count(params)).product()
}

/// One layer of the registry.
pub struct LayerDef {
    /// Name in the parameter `layers`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Source that describes the layer.
    pub paper: &'static str,
    /// Parameters of the layer itself.
    pub params: &'static [ParamDef],
    /// Function that returns the shape that the layer exports, or the reason why the layer cannot
    /// be put over the devices below.
    pub fits: fn(&Params, &LayersBelow<'_>) -> Result<DeviceShape, ConfigError>,
    /// Function that builds the layer.
    pub build: Build,
    /// Function that returns the maximum work of a mount on all devices directly below.
    pub mount_limit: fn(&Params, &LayersBelow<'_>) -> LayerLimit,
    /// Settings that together reach all code paths of the layer on a drive of a few hundred pages.
    /// Tests cut the power at every point of a run with each setting.
    pub small: &'static [&'static [&'static str]],
    /// Mechanisms of the layer's paper, each with a counter of its uses.
    pub mechanisms: &'static [Mechanism],
}

flashatlas_types::entry!(LayerDef, "layer", "layers");

/// Returns the shape that `layers` export over a drive that exports `drive`.
///
/// # Errors
/// Returns an error for the first layer, from the bottom up, that does not fit the layers below.
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

/// Counters of a layer, and its tables in the host's memory.
#[derive(Clone, Debug)]
pub struct LayerReport {
    /// Name of the layer.
    pub layer: &'static str,
    /// Counters by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Units that the layer returned as never written, without a command to the lower device.
    pub unmapped_units: u64,
    /// Tables in the host's memory, with their bytes.
    pub memory: Vec<(&'static str, u64)>,
    /// Notes about the parts of a real layer that this layer omits or simplifies.
    pub approximations: Vec<Note>,
}

impl LayerReport {
    /// Adds the counters of the same layer over another device.
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
