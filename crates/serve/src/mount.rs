//! Powering on a drive. The drive is blank, or it comes from an image and is mounted as after a
//! power failure.

use crate::aged::lay;
use crate::disk::{Disk, Open};
use crate::error::ImageError;
use crate::header::CAPACITY;
use crate::image::{Found, Image};
use crate::mark::Verify;
use crate::spec::{ServeError, ServeSpec};
use flashatlas_device::DriveConfig;
use flashatlas_nand::Medium;
use flashatlas_nand::image::Image as Held;
use flashatlas_sim::{Environment, Kept, Live, Made, RunError, RunSpec, checkpointed};
use flashatlas_types::{Rng, SECTOR_BYTES, Seed};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

type AnyImage = Image<Box<dyn Disk>>;

/// Mounts the drive of a plan. If `open` is given, also returns the image and the findings in it.
pub fn powered_on(
    plan: &ServeSpec,
    env: &Environment<'_>,
    open: Option<Open<'_>>,
    verify: Verify,
) -> Result<(Live, Option<AnyImage>, Found), ServeError> {
    let mut set = plan.set.clone();
    set.push("nand.data=ram".into());
    let spec = json!({
        "drive": plan.drive, "drive_toml": plan.drive_toml, "set": set, "seed": plan.seed,
    });
    let spec: RunSpec = serde_json::from_value(spec).expect("the keys belong to a run");
    let was_there = plan.image.as_deref().is_none_or(Path::exists);
    let (image, found) = (None, Found::default());
    let mut kept = KeptOn { plan, env, open, verify, image, found, origin: None };
    let mut live = match Live::begin::<ServeError>(&spec, env, &mut kept) {
        Ok(live) => live,
        Err(error) => {
            kept.undo(&error, was_there);
            return Err(error);
        }
    };
    if let Some(origin) = kept.origin.take() {
        live.began_as(plan.precondition.clone(), origin);
    }
    if let (Some(operations), None) = (plan.cut_after, &kept.image) {
        live.drive().ssd_mut().faults().cut_power_after(operations);
    }
    Ok((live, kept.image, kept.found))
}

/// The disk of an image, and the results of powering the drive on.
struct KeptOn<'a> {
    plan: &'a ServeSpec,
    env: &'a Environment<'a>,
    open: Option<Open<'a>>,
    verify: Verify,
    image: Option<AnyImage>,
    found: Found,
    /// The header of the checkpoint from which the drive starts.
    origin: Option<Made>,
}

impl KeptOn<'_> {
    /// Removes a new image if its drive did not start, because the next start may use another
    /// drive.
    ///
    /// After a power failure the image stays, because the plan requested the failure.
    fn undo(&mut self, error: &ServeError, was_there: bool) {
        let made = self.image.as_ref().is_some_and(Image::is_new);
        if let (Some(path), false) = (&self.plan.image, was_there)
            && !matches!(error, ServeError::PowerLost)
            && (made || std::fs::metadata(path).is_ok_and(|file| file.len() == 0))
        {
            drop(std::fs::remove_file(path));
        }
    }

    /// Returns the content of the plan's checkpoint, if it names one.
    ///
    /// The checkpoint belongs to the same drive, but contains no bytes.
    fn aged(&mut self, config: &DriveConfig) -> Result<Option<Held>, ServeError> {
        let Some(path) = &self.plan.checkpoint else { return Ok(None) };
        if !config.layers().is_empty() {
            let why = "a checkpoint cannot hold layers: serve the drive without layers, or let a \
                       client age the drive";
            return Err(RunError::option("precondition", why).into());
        }
        let named = path.display().to_string();
        let file = File::open(path).map_err(|error| RunError::Io { path: named.clone(), error })?;
        let (plan, mut set) = (self.plan, self.plan.set.clone());
        set.push("nand.data=none".into());
        let loaded = self.env.registry.load(&plan.drive, plan.drive_toml.as_deref(), &set);
        let own = loaded.map_err(RunError::from)?;
        let (held, origin) = checkpointed(&own, self.env.added, &mut BufReader::new(file))
            .map_err(|error| RunError::Checkpoint { path: named.clone(), error: error.into() })?;
        // this medium is built only to check that the content obeys the rules of flash
        own.medium_from(held.clone()).map_err(|why| {
            RunError::Unusable(format!("{named}: no drive can be in the saved state: {why}"))
        })?;
        self.origin = Some(origin);
        Ok(Some(held))
    }

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
        let aged = self.aged(config)?;
        let Some(open) = self.open.take() else {
            if let Some(held) = &aged {
                lay(held, medium);
            }
            return Ok(aged.is_some());
        };
        let inner = medium.layout();
        if config.shape().unit_sectors * SECTOR_BYTES < inner.unit_bytes {
            let why = format!(
                "with an image, the pages of a layer must be whole mapping units ({} bytes): a \
                 layer that puts several pages into one unit knows their places only while it \
                 runs. Use a smaller map.unit, or larger pages of the layer",
                inner.unit_bytes
            );
            return Err(RunError::Unusable(why).into());
        }
        for (key, off, what) in [
            ("ftl.program_steps", "1", "word lines between the steps of their programs"),
            ("ecc.parity", "none", "the parts of frames that are lost"),
            ("ftl.copyback", "none", "the copybacks of a page and the wrong bits that they carry"),
        ] {
            if config.params.value(key).is_some_and(|value| value.to_string() != off) {
                return Err(RunError::Unusable(format!(
                    "{key}: an image does not keep {what}; leave the key out, or serve the drive \
                     without an image"
                ))
                .into());
            }
        }
        let identity = identity(config, on_flash);
        let drive = &self.plan.drive;
        let opened = Image::open(open()?, drive, &identity, medium, self.verify, aged.as_ref());
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

/// Returns the parameters that must be equal in a drive and its image.
///
/// These are the parameters that determine the places of pages on flash, the capacity, and the
/// layers with their settings.
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
