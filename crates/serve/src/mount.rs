//! Powering a drive on: a blank one, or what an image holds, mounted as after a power failure.

use crate::disk::{Disk, Open};
use crate::error::ImageError;
use crate::header::CAPACITY;
use crate::image::{Found, Image, Verify};
use crate::plan::{Plan, ServeError};
use flashatlas_device::DriveConfig;
use flashatlas_nand::Medium;
use flashatlas_sim::{Environment, Kept, Live, RunError, RunSpec};
use flashatlas_types::{Rng, SECTOR_BYTES, Seed};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

type AnyImage = Image<Box<dyn Disk>>;

/// The drive of a plan, mounted; with a disk to `open`, the image there and what was found in it.
pub fn powered_on(
    plan: &Plan,
    env: &Environment<'_>,
    open: Option<Open<'_>>,
    verify: Verify,
) -> Result<(Live, Option<AnyImage>, Found), ServeError> {
    let mut set = plan.set.clone();
    set.push("nand.data=ram".into());
    let spec = json!({
        "drive": plan.drive, "drive_toml": plan.drive_toml, "set": set, "seed": plan.seed,
    });
    let spec: RunSpec = serde_json::from_value(spec).expect("its keys are those of a run");
    let mut kept = KeptOn { plan, open, verify, image: None, found: Found::default() };
    let mut live = Live::begin::<ServeError>(&spec, env, &mut kept)?;
    if let (Some(operations), None) = (plan.cut_after, &kept.image) {
        live.drive().ssd_mut().faults().cut_power_after(operations);
    }
    Ok((live, kept.image, kept.found))
}

/// The disk of an image, and what becomes of it while the drive is powered on.
struct KeptOn<'a> {
    plan: &'a Plan,
    open: Option<Open<'a>>,
    verify: Verify,
    image: Option<AnyImage>,
    found: Found,
}

impl KeptOn<'_> {
    fn failed(&self, error: ImageError) -> ServeError {
        let path = self.plan.image.clone();
        ServeError::Image(path.unwrap_or_else(|| PathBuf::from("the image")), error)
    }
}

impl Kept<ServeError> for KeptOn<'_> {
    fn lay_out(
        &mut self,
        config: &DriveConfig,
        medium: &mut Medium,
        on_flash: &Map<String, Value>,
    ) -> Result<bool, ServeError> {
        let Some(open) = self.open.take() else { return Ok(false) };
        let inner = medium.layout();
        if config.shape().unit_sectors * SECTOR_BYTES < inner.unit_bytes {
            let why = format!(
                "with an image the pages of a layer must be whole mapping units ({} bytes): what \
                 it puts together in one it knows only while it runs. Take a smaller map.unit, or \
                 larger pages of the layer",
                inner.unit_bytes
            );
            return Err(RunError::Unusable(why).into());
        }
        let identity = identity(config, on_flash);
        let opened = Image::open(open()?, &self.plan.drive, &identity, medium, self.verify);
        let (image, found) = opened.map_err(|error| self.failed(error))?;
        (self.image, self.found) = (Some(image), found);
        if let Some(operations) = self.plan.cut_after {
            medium.cut_power_after(operations);
        }
        Ok(true)
    }

    fn mount_failed(&mut self, medium: &mut Medium) -> Result<(), ServeError> {
        let (Some(image), true) = (&mut self.image, medium.has_lost_power()) else {
            return Ok(());
        };
        let mut rng = Rng::stream(Seed(self.plan.seed), "serve.power");
        let left = image.lose_power(medium, self.plan.cut_mode, &mut rng);
        left.map_err(|error| self.failed(error.into()))?;
        Err(ServeError::PowerLost)
    }
}

/// What an image is of: what is where on flash, the capacity, and the layers with their settings.
fn identity(config: &DriveConfig, on_flash: &Map<String, Value>) -> Map<String, Value> {
    let mut all = on_flash.clone();
    all.insert(CAPACITY.into(), config.shape().sectors.into());
    let names: Vec<&str> = config.layers().iter().map(|layer| layer.name).collect();
    all.insert("layers".into(), names.join(",").into());
    let of_layer = |key: &str| names.iter().any(|n| key.starts_with(&format!("{n}.")));
    for (key, value) in config.pairs().filter(|(key, _)| of_layer(key)) {
        all.insert(key.into(), value.to_string().into());
    }
    all
}
