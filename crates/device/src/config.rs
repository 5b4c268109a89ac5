//! Configurations of drives, built from presets, files and single settings.

use crate::blame::{Setting, blamed, laid};
use crate::capacity;
use crate::layer::{self, LayerDef, LayerLimit, LayersBelow};
use crate::params::{
    ALLOCATION, BLOCKS, CACHE_BYTES, CACHE_HIGH, CACHE_LOW, CACHE_MODE, CELL, CHANNELS, DIES,
    FRAME_CHANNELS, FRAME_DIES, FRAME_PLANES, FRAME_WAYS, LAYERS, LOGICAL_PAGES, OVER_PROVISIONING,
    PAGE_BYTES, PAGE_ORDER, PAGES, PLANES, PROGRAM_UNIT, SPARE_BYTES, UNSAID, WAYS, drop_of_others,
    resolve,
};
use crate::power;
use crate::{DeviceShape, Preset, Registry, Ssd, Stack};
use flashatlas_ftl::{PROGRAM_STEPS, SCHEME, SchemeConfig, SchemeDef, UNIT};
use flashatlas_nand::errors::params::PARITY;
use flashatlas_nand::params::PLP_BYTES;
use flashatlas_nand::{ErrorRules, Image, Medium, Rules};
use flashatlas_timing::params::{CACHE_PROGRAM, CACHE_READ, PLANE_READS};
use flashatlas_types::base::{Base, BaseParts};
use flashatlas_types::{
    AllocationOrder, Cell, ConfigError, FtlError, Geometry, Layout, Lpn, PageOrder, Params, Plan,
    ProgramUnit, RawConfig, Seed, Span, Stamp,
};
use std::sync::Arc;

/// A drive's configuration, checked.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// Name of the preset or of the file.
    pub name: String,
    /// Checked values.
    pub params: Params,
    /// Parts that the configuration can name.
    pub registry: Registry,
    /// Keys of the drive that were dropped because a setting replaced the part that they belong to
    /// (a scheme, map store, victim policy, classifier or layer).
    pub dropped: Vec<String>,
}

impl DriveConfig {
    /// Loads a configuration, as [`Registry::load`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Registry::load`].
    pub fn load(
        registry: Registry,
        name: &str,
        file: Option<&str>,
        settings: &[String],
    ) -> Result<DriveConfig, ConfigError> {
        let preset =
            |name: &str, toml| DriveConfig::from_preset_text(toml, &format!("devices/{name}.toml"));
        let (base, mut over) = match file {
            None => (preset(name, registry.preset(name)?.toml)?, Vec::new()),
            Some(text) => {
                let mut file = RawConfig::from_toml(text, name)?;
                file.must_be_value("drive.base")?;
                match file.text("drive.base").map(str::to_owned) {
                    None => (file, Vec::new()),
                    Some(base) => {
                        let toml = registry.preset(&base).map_err(|e| ConfigError {
                            key: "drive.base".into(),
                            ..e.at(file.place("drive.base"))
                        })?;
                        file.remove("drive.base");
                        (preset(&base, toml.toml)?, Setting::of_file(file)?)
                    }
                }
            }
        };
        for setting in settings {
            over.push(Setting::parse(setting)?);
        }
        // an error without a line gets the name of the file as its place
        let of_file = |mut e: ConfigError| {
            if e.place.is_empty() && e.why.starts_with("is not given") && file.is_some() {
                e.why += "; give it, or begin with a preset (base = \"tiny\" in [drive])";
            }
            if file.is_some() { e.at(name) } else { e }
        };
        DriveConfig::resolved(registry, name, &base, &over, true).map_err(of_file)
    }

    /// Returns the configuration of a preset overridden by `settings`, or `None` if
    /// [`DriveConfig::load`] refuses it.
    pub(crate) fn if_accepted(
        registry: Registry,
        preset: &Preset,
        settings: &[String],
    ) -> Option<DriveConfig> {
        let base = DriveConfig::from_preset_text(preset.toml, preset.name).ok()?;
        let over: Result<Vec<_>, _> = settings.iter().map(|text| Setting::parse(text)).collect();
        DriveConfig::resolved(registry, preset.name, &base, &over.ok()?, false).ok()
    }

    /// Returns this configuration overridden by `settings` of the form `key=value`.
    ///
    /// # Errors
    /// Returns the errors of [`DriveConfig::load`].
    pub fn with(&self, settings: &[String]) -> Result<DriveConfig, ConfigError> {
        let mut raw = RawConfig::default();
        self.pairs().for_each(|(key, value)| raw.set(key, &value.to_string(), &self.name));
        let over: Vec<Setting> =
            settings.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>()?;
        DriveConfig::resolved(self.registry, &self.name, &raw, &over, true)
    }

    /// Returns the configuration of `base` overridden by `over`. With `blames`, an error names the
    /// setting that is to blame, which takes many times as long as the check itself.
    fn resolved(
        registry: Registry,
        name: &str,
        base: &RawConfig,
        over: &[Setting],
        blames: bool,
    ) -> Result<DriveConfig, ConfigError> {
        let checked = |raw| DriveConfig::checked(registry, name, raw);
        let is_set = |key: &str| over.iter().any(|setting| setting.key() == Some(key));
        let spare = capacity::spare_share(base, is_set, || checked(base.clone())?.layout());
        let checked = |raw| checked(capacity::with_spare_share(raw, spare));
        checked(laid(base, over)?).map_err(|error| {
            if blames { blamed(error, base, over, |raw| checked(raw).err()) } else { error }
        })
    }

    fn checked(
        registry: Registry,
        name: &str,
        mut raw: RawConfig,
    ) -> Result<DriveConfig, ConfigError> {
        let dropped =
            drop_of_others(&registry, &mut raw).map_err(|e| elsewhere(&registry, &raw, e))?;
        let resolved = |raw: &_| resolve(&registry, raw).map_err(|e| elsewhere(&registry, raw, e));
        if capacity::is_given(&raw) {
            raw = capacity::in_blocks_and_pages(raw, resolved, DriveConfig::flash)?;
        }
        let params = resolved(&raw)?;
        let config = DriveConfig { name: name.to_owned(), params, registry, dropped };
        let drives = config.drives();
        let drive = |layout| DeviceShape::of(&layout);
        config
            .layout()
            .map(drive)
            .and_then(|drive| {
                layer::exported(&config.layers(), &config.registry, &config.params, drive)
            })
            .and_then(|_| power::fits(&config.params, drives))
            .map_err(|e| {
                let place = raw.place(&e.key).to_owned();
                e.at(place)
            })?;
        Ok(config)
    }

    /// Returns the mapping scheme.
    pub fn scheme(&self) -> &'static SchemeDef {
        let name = self.params.get(SCHEME);
        self.registry.ftl.scheme(name).expect("the configuration is checked")
    }

    /// Returns the configuration that the scheme is built from.
    pub fn scheme_config(&self) -> SchemeConfig<'_> {
        SchemeConfig { params: &self.params, parts: &self.registry.ftl }
    }

    /// Returns the layers over the drive, from the top down.
    pub fn layers(&self) -> Vec<&'static LayerDef> {
        self.registry.layers_named(self.params.get(LAYERS)).expect("the configuration is checked")
    }

    /// Returns the number of drives at the bottom: one, unless a layer spans several drives.
    pub fn drives(&self) -> u32 {
        layer::drives_below(&self.layers(), &self.params)
    }

    /// Checks that the layers use a single drive, because `what` supports only one drive.
    ///
    /// # Errors
    /// Returns an error that names the layers if they span several drives.
    pub fn single_drive(&self, what: &str) -> Result<(), ConfigError> {
        match self.drives() {
            1 => Ok(()),
            several => {
                let why = format!(
                    "the layers {} span {several} drives, but {what} supports only one drive",
                    self.params.get(LAYERS)
                );
                Err(ConfigError::new("layers", why))
            }
        }
    }

    /// Returns the shape that the drive exports with its layers.
    pub fn shape(&self) -> DeviceShape {
        let drive = DeviceShape::of(&self.layout().expect("the configuration is checked"));
        layer::exported(&self.layers(), &self.registry, &self.params, drive)
            .expect("the configuration is checked")
    }

    /// Returns the maximum work of a mount of all layers, without the mount of the drives.
    pub fn layers_limit(&self) -> LayerLimit {
        let (layers, drive) =
            (self.layers(), DeviceShape::of(&self.layout().expect("the configuration is checked")));
        (0..layers.len()).rev().fold(LayerLimit { reads: 0, writes: 0 }, |sum, at| {
            let layers_beneath = &layers[at + 1..];
            let shape = layer::exported(layers_beneath, &self.registry, &self.params, drive)
                .expect("the configuration is checked");
            let one = (layers[at].mount_limit)(
                &self.params,
                &LayersBelow { shape, layers: layers_beneath, registry: &self.registry },
            );
            // each device directly below a layer repeats the mounts of all layers beneath it
            let devices = u64::from(layers[at].build.count(&self.params));
            LayerLimit {
                reads: devices * sum.reads + one.reads,
                writes: devices * sum.writes + one.writes,
            }
        })
    }

    /// Reads a preset. Every value except `drive.summary` must name its source. This includes words
    /// and flags.
    ///
    /// # Errors
    /// Returns an error for a fault of the syntax, or for the first value without a source.
    pub fn from_preset_text(text: &str, file: &str) -> Result<RawConfig, ConfigError> {
        let raw = RawConfig::from_toml(text, file)?;
        match raw.without_source(&["drive.summary"]) {
            None => Ok(raw),
            Some((key, place)) => Err(ConfigError::new(
                key,
                "a preset's value needs a source: { value = …, source = \"…\" }",
            )
            .at(place)),
        }
    }

    /// Returns the layout that the parameters describe, checked against the scheme.
    ///
    /// # Errors
    /// Returns an error if the parameters of the shape contradict each other, the allocation order
    /// is unknown, or the mapping unit is not a whole number of 512-byte sectors. Returns an error
    /// if there is no logical unit, or if the flash or the scheme cannot store all logical units.
    /// For a write-back cache, returns an error if the cache is smaller than two frames, if
    /// `cache.low` exceeds `cache.high`, or if units are larger than 64 KiB.
    pub fn layout(&self) -> Result<Layout, ConfigError> {
        let p = &self.params;
        let mut layout = DriveConfig::flash(p)?;
        let physical = u64::from(layout.slots());
        let unit = layout.unit_bytes;
        let logical = match p.get(LOGICAL_PAGES) {
            0 => (physical as f64 / (1.0 + p.get(OVER_PROVISIONING))) as u64,
            given => given,
        };
        if logical == 0 || logical > physical {
            return Err(ConfigError::new(
                "drive.logical_pages",
                format!(
                    "{logical} mapping units of {unit} bytes do not fit: the flash holds 1 to \
                     {physical} units"
                ),
            ));
        }
        layout.logical_units = logical as u32;
        self.check_capacitors(&layout)?;
        (self.scheme().fits)(&self.scheme_config(), &layout)?;
        ErrorRules::check(p, &layout.geometry, p.get(CACHE_READ))?;
        self.check_cache(&layout)?;
        self.check_planes(&layout)?;
        Ok(layout)
    }

    /// Returns the layout of the flash, before it is known which share of it the drive exports.
    ///
    /// # Errors
    /// Returns the errors of [`DriveConfig::layout`] about the shape of the flash.
    fn flash(p: &Params) -> Result<Layout, ConfigError> {
        let geometry = Geometry {
            channels: p.get(CHANNELS),
            ways: p.get(WAYS),
            dies: p.get(DIES),
            planes: p.get(PLANES),
            blocks: p.get(BLOCKS),
            pages: p.get(PAGES),
            page_bytes: p.get(PAGE_BYTES),
            spare_bytes: p.get(SPARE_BYTES),
            cell: match p.get(CELL) {
                "slc" => Cell::Slc,
                "mlc" => Cell::Mlc,
                "tlc" => Cell::Tlc,
                _ => Cell::Qlc,
            },
        };
        let span = Span {
            channels: p.get(FRAME_CHANNELS),
            ways: p.get(FRAME_WAYS),
            dies: p.get(FRAME_DIES),
            planes: p.get(FRAME_PLANES),
        };
        let order = p.get(ALLOCATION);
        let order = AllocationOrder::parse(order).ok_or_else(|| {
            ConfigError::new(
                "drive.allocation",
                format!("`{order}` is not an order of the four letters C, W, D and P"),
            )
        })?;
        let unit = p.get(UNIT);
        if unit % flashatlas_types::SECTOR_BYTES != 0 {
            return Err(ConfigError::new(
                "map.unit",
                format!("{unit} bytes are not a whole number of 512-byte sectors"),
            ));
        }
        let program = match p.get(PROGRAM_UNIT) {
            "word-line" => ProgramUnit::WordLine,
            _ => ProgramUnit::Page,
        };
        let pages = PageOrder::parse(p.get(PAGE_ORDER)).expect("resolved");
        let of_frames = match p.get(PARITY) {
            "none" => Layout::of_frames,
            _ => Layout::of_frames_with_parity,
        };
        let layout = of_frames(geometry, span, unit, order, 0, program)?;
        layout.in_page_order(pages)
    }

    /// Checks that the capacitors finish every program that may be in flight.
    fn check_capacitors(&self, layout: &Layout) -> Result<(), ConfigError> {
        let bytes = self.params.get(PLP_BYTES);
        let cached = u64::from(self.params.get(CACHE_PROGRAM));
        let of_a_die = u64::from(layout.pages_per_frame / layout.dies_per_frame)
            * u64::from(layout.geometry.page_bytes);
        let dies = u64::from(layout.geometry.die_count());
        let most = dies * of_a_die * (1 + cached);
        if bytes == 0 || bytes >= most {
            return Ok(());
        }
        let why = format!(
            "{bytes} bytes are less than {most}, which {dies} dies may be programming when the \
             power fails ({of_a_die} bytes each{}); give at least {most}, or 0 for no protection",
            if cached > 0 { ", twice with timing.cache_program" } else { "" }
        );
        Err(ConfigError::new(PLP_BYTES.key(), why))
    }

    /// Checks that a die has planes which can be read independently: the planes of a frame are not.
    fn check_planes(&self, layout: &Layout) -> Result<(), ConfigError> {
        let (of_a_die, of_a_frame) = (layout.geometry.planes, layout.span.planes);
        if self.params.get(PLANE_READS) != "independent" || of_a_frame < of_a_die {
            return Ok(());
        }
        let why = format!(
            "a frame covers the {of_a_die} planes of a die, and the planes of a frame are read \
             together; set drive.frame_planes below drive.planes, or timing.plane_reads = together"
        );
        Err(ConfigError::new(PLANE_READS.key(), why))
    }

    fn check_cache(&self, layout: &Layout) -> Result<(), ConfigError> {
        let p = &self.params;
        if p.get(CACHE_MODE) == "write-through" {
            return Ok(());
        }
        // one frame for each lane's frontier may wait in page buffers while the cache fills the
        // next frame
        let steps = if p.has(PROGRAM_STEPS) { p.get(PROGRAM_STEPS) } else { 1 };
        let between = layout.lanes * (steps - 1);
        let least = u64::from(2 + between) * layout.frame_bytes();
        if p.get(CACHE_BYTES) < least {
            let held = match between {
                0 => String::new(),
                _ => format!(", and holds {between} more between the steps of their programs"),
            };
            return Err(ConfigError::new(
                "cache.bytes",
                format!(
                    "a write-back cache needs at least two frames{held} ({least} bytes); give \
                     more, or use cache.mode = write-through"
                ),
            ));
        }
        if p.get(CACHE_LOW) > p.get(CACHE_HIGH) {
            return Err(ConfigError::new("cache.low", "is above cache.high"));
        }
        if layout.unit_sectors() > 128 {
            return Err(ConfigError::new(
                "map.unit",
                "the write cache supports only units of at most 64 KiB",
            ));
        }
        Ok(())
    }

    /// Builds the drive, blank and at time zero.
    ///
    /// # Errors
    /// Returns an error for a fault that [`DriveConfig::load`] cannot find: a spare area that is
    /// too small, too many factory-bad blocks, or tables for which the system has no memory.
    pub fn build(&self, seed: Seed) -> Result<Ssd, ConfigError> {
        self.must_have_room(1, None)?;
        Ssd::new(self, seed)
    }

    /// Builds the drive with its layers on blank media. If the layers need several drives, builds
    /// all drives.
    ///
    /// # Errors
    /// Returns the errors of [`DriveConfig::build`], or the fault that a layer finds in the device
    /// below.
    pub fn build_stack(&self, seed: Seed) -> Result<Stack, ConfigError> {
        self.must_have_room(self.drives(), None)?;
        self.assemble_stack(seed)
    }

    /// Builds the drive as [`DriveConfig::build_stack`] does, but does not ask the system for the
    /// memory of its tables. A drive whose content is computed needs little of it. For any other
    /// drive, the caller asks first ([`DriveConfig::must_have_room`]).
    ///
    /// # Errors
    /// Returns the errors of [`DriveConfig::build_stack`] but for missing memory.
    pub fn assemble_stack(&self, seed: Seed) -> Result<Stack, ConfigError> {
        let drives = (0..self.drives()).map(|drive| Ssd::new(self, seed.of_drive(drive)));
        Stack::over(drives.collect::<Result<_, _>>()?, self)
    }

    /// Returns the medium that `image` describes, if the image fits this drive.
    ///
    /// # Errors
    /// Returns a sentence that describes the contradiction between image and drive.
    pub fn medium_from(&self, image: Image) -> Result<Medium, String> {
        let layout = self.layout().map_err(|e| e.to_string())?;
        Medium::from_image(Arc::new(layout), Rules::from_params(&self.params), image)
    }

    /// Returns the medium that is as a base says, with the arrays of its lanes and blocks in
    /// `image`, if both fit this drive. `stamp` returns the content of each page.
    ///
    /// # Errors
    /// Returns a sentence that describes the contradiction between base, image and drive.
    pub fn medium_over_base(
        &self,
        image: Image,
        parts: &BaseParts,
        stamp: fn(Lpn) -> Stamp,
    ) -> Result<Medium, String> {
        let layout = Arc::new(self.layout().map_err(|e| e.to_string())?);
        let base = Arc::new(Base::from_parts(&layout, parts)?);
        let rules = Rules::from_params(&self.params);
        Medium::from_image_over_base(layout, rules, image, (base, stamp))
    }

    /// Builds the drive around a medium that was written earlier with the same
    /// [`DriveConfig::on_flash`] parameters.
    ///
    /// The drive mounts the content of the medium at time zero.
    ///
    /// # Errors
    /// Returns an error if the scheme cannot mount the medium.
    pub fn build_on(&self, medium: Medium, seed: Seed) -> Result<Ssd, ConfigError> {
        Ssd::on(medium, self, seed)
    }

    /// Mounts a medium as [`DriveConfig::build_on`] does, and switches the drive off immediately.
    /// Changes that the mount made on flash remain.
    ///
    /// # Errors
    /// Returns an error if the scheme cannot mount the medium, or if the power fails.
    pub fn mount(&self, medium: &mut Medium, seed: Seed) -> Result<(), FtlError> {
        let mut plan = Plan::default();
        plan.set_recording(false);
        crate::ssd::mount(self, seed, medium, &mut plan).map(drop)
    }

    /// Writes the whole map to a medium that is switched off, as [`Ssd::write_map`] does. The
    /// medium is mounted afterwards.
    ///
    /// # Errors
    /// Returns an error if the medium cannot be mounted.
    pub fn write_map(&self, medium: &mut Medium, seed: Seed) -> Result<(), FtlError> {
        let mut plan = Plan::default();
        plan.set_recording(false);
        crate::ssd::write_map(self, seed, medium, &mut plan)
    }

    /// Returns the parameters, with their keys, that must stay the same when a medium is mounted
    /// again.
    ///
    /// They are all `drive.*` except the summary, the mapping unit, the scheme, the map store,
    /// `nand.program_order`, `nand.factory_bad`, `nand.spare_blocks`, `nand.data`, `ecc.parity` and
    /// the keys that the scheme names.
    pub fn on_flash(&self) -> impl Iterator<Item = (&'static str, &flashatlas_types::Value)> {
        let scheme = self.scheme();
        let own = [
            "ftl.scheme",
            "map.unit",
            "map.store",
            "nand.program_order",
            "nand.factory_bad",
            "nand.spare_blocks",
            "nand.data",
            "ecc.parity",
        ];
        self.pairs().filter(move |(key, _)| {
            let shape = key.starts_with("drive.") && *key != "drive.summary";
            shape || own.contains(key) || scheme.on_flash.contains(key)
        })
    }

    /// Returns the whole configuration as pairs of key and value, in the order of the keys.
    ///
    /// Two parameters can set the capacity. Only the parameter that takes effect is included. Some
    /// keys are included only if they differ from their default.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &flashatlas_types::Value)> {
        let unused = match self.params.get(LOGICAL_PAGES) {
            0 => "drive.logical_pages",
            _ => "drive.over_provisioning",
        };
        let is_unsaid = |key: &str, value: &flashatlas_types::Value| {
            UNSAID.iter().any(|&(unsaid, default)| unsaid == key && value.to_string() == default)
        };
        self.params.iter().filter(move |&(key, value)| key != unused && !is_unsaid(key, value))
    }
}

/// Adds a hint to an error about an unknown name, if a part of another kind has this name. The hint
/// states the kind of that part and the key that chooses it.
fn elsewhere(registry: &Registry, raw: &RawConfig, mut error: ConfigError) -> ConfigError {
    let Some(name) = raw.text(&error.key).filter(|name| error.why.contains(&format!("`{name}`")))
    else {
        return error;
    };
    if let Some((what, key)) = registry.kind_of(name).filter(|&(_, key)| key != error.key) {
        error.why += &format!("; `{name}` is a {what} ({key}={name})");
        error.nearest = None;
        error.allowed.clear();
    }
    error
}
