//! Changes of a drive's state in no simulated time: mounting, power cycles, filling.

use super::firmware::Firmware;
use super::idle::Predictor;
use super::throttle::Throttle;
use super::worn_out::WornOut;
use super::write::Leaving;
use super::{Begun, ControllerSettings, DeviceCounters, InFlight, Ssd};
use crate::cache::{Limits, WriteCache};
use crate::params::{CACHE_AHEAD, CACHE_BYTES, CACHE_HIGH, CACHE_LOW, CACHE_MODE, IDLE_AFTER};
use crate::power::{EnergyRates, PowerStates};
use crate::{DriveConfig, Storage, SubmitError};
use flashatlas_ftl::{Command, Copies, Ftl, FtlContext, MountReport, Outcome};
use flashatlas_ftl::{FLUSH, PROGRAM_STEPS, WORN_OUT};
use flashatlas_nand::params::FACTORY_BAD;
use flashatlas_nand::{Flash, Medium, Rules, Unit};
use flashatlas_timing::{Engine, Times};
use flashatlas_types::base::{Base, Filled};
use flashatlas_types::{
    Cause, ConfigError, Dur, FtlError, Layout, Lpn, MediumError, MemoryKind, OpId, Plan, Ps, Seed,
    Stamp,
};
use std::sync::Arc;

/// Largest number of pages that a mount finds unreadable one by one.
const MOUNTS_MAX: u32 = 16;

/// Returns the FTL of a drive, with tables built from the content of the medium.
///
/// If wrong bits take a page that the mount reads, the mount begins again, and then knows that the
/// page is lost. That is as if the power had failed there.
pub(crate) fn mount(
    config: &DriveConfig,
    seed: Seed,
    medium: &mut Medium,
    plan: &mut Plan,
) -> Result<Box<dyn Ftl>, FtlError> {
    mounting(medium, plan, &|cx| config.scheme().mount(&config.scheme_config(), cx, seed))
}

/// Writes the whole map to a medium, once and in order, if the map store writes a map. The medium
/// is switched off before and after.
pub(crate) fn write_map(
    config: &DriveConfig,
    seed: Seed,
    medium: &mut Medium,
    plan: &mut Plan,
) -> Result<(), FtlError> {
    let Some(of_scheme) = config.scheme().steady else { return Ok(()) };
    medium.power_off();
    let write = |cx: &mut FtlContext<'_>| (of_scheme.write_map)(&config.scheme_config(), cx, seed);
    mounting(medium, plan, &write)?;
    medium.power_off();
    Ok(())
}

/// Reads the medium of a drive that is switched off, as [`mount`] does.
fn mounting<T>(
    medium: &mut Medium,
    plan: &mut Plan,
    read: &dyn Fn(&mut FtlContext<'_>) -> Result<T, FtlError>,
) -> Result<T, FtlError> {
    // a mount receives no host data and changes no exported entry, so its reports are not read
    let (copies, outcome) = (&mut Copies::default(), &mut Outcome::default());
    medium.find_unreadable();
    let mut last = None;
    for _ in 1..MOUNTS_MAX {
        let flash = Flash { medium: &mut *medium, plan: &mut *plan };
        let mut cx = FtlContext::new(flash, &Command::UNTIMED, copies, outcome);
        match read(&mut cx) {
            Err(FtlError::Medium(MediumError::Unreadable(frame)))
                if medium.has_errors() && last != Some(frame) =>
            {
                last = Some(frame);
                medium.power_off();
            }
            mounted => return mounted,
        }
    }
    read(&mut FtlContext::new(Flash { medium, plan }, &Command::UNTIMED, copies, outcome))
}

/// Returns the empty write cache of a drive, or `None` if the drive writes through. Operations of
/// an earlier cache, which was lost, have freed `freed` slots.
fn write_cache(config: &DriveConfig, layout: &Layout, freed: u64) -> Option<WriteCache> {
    let p = &config.params;
    (p.get(CACHE_MODE) == "write-back").then(|| {
        let capacity = (p.get(CACHE_BYTES) / u64::from(layout.unit_bytes)).min(1 << 30) as u32;
        let share = |part| (p.get(part) * f64::from(capacity)) as u32;
        let limits = Limits {
            high: share(CACHE_HIGH),
            low: share(CACHE_LOW),
            ahead: p.get(CACHE_AHEAD).saturating_mul(layout.lanes * layout.slots_per_frame),
        };
        WriteCache::new(capacity, limits, freed)
    })
}

/// Returns an error if the blocks that are not factory-bad are too few for the logical pages. The
/// check assumes that the bad blocks are spread evenly over the lanes.
fn fits_good_blocks(
    config: &DriveConfig,
    layout: &Layout,
    medium: &Medium,
) -> Result<(), ConfigError> {
    let good = medium.good_blocks();
    if good == layout.blocks() {
        return Ok(());
    }
    let mut left = layout.clone();
    left.blocks_per_lane = good / layout.lanes;
    (config.scheme().fits)(&config.scheme_config(), &left).map_err(|e| ConfigError {
        why: format!(
            "{} of the {} blocks are factory-bad: {}",
            layout.blocks() - good,
            layout.blocks(),
            e.why
        ),
        ..e
    })
}

/// Returns an estimate of the time that a mount takes.
///
/// Lanes work in parallel, and each lane reads its spare areas one after another. Map pages are
/// spread evenly over the lanes, and each transfer of a map page covers a whole frame.
fn mount_time(times: &Times, layout: &Layout, mount: &MountReport) -> Dur {
    let busiest = mount.spare_reads.iter().copied().max().unwrap_or(0);
    let lanes = u64::from(layout.lanes);
    let page = times.command + Dur::transfer(layout.frame_bytes(), times.channel_rate);
    let each = |count: u64, time: Dur| count * time.0;
    let flash = each(busiest, times.read[0] + times.command)
        + each(mount.map_page_reads.div_ceil(lanes), times.read[0] + page)
        + each(mount.map_page_writes.div_ceil(lanes), times.program[0] + page)
        + each(mount.programs.div_ceil(lanes), times.read[0] + times.program[0] + page + page)
        + each(mount.erases.div_ceil(lanes), times.erase + times.command);
    let bytes = u32::try_from(mount.nvm_bytes).unwrap_or(u32::MAX);
    let nvm = times.memory_time(MemoryKind::Nvm, u32::from(bytes > 0), bytes, false);
    Dur(flash) + nvm
}

/// Returns the data that a drive needs to become read-only when it is worn out. Returns `None`
/// unless `ftl.worn_out` is `read-only`.
fn worn_out(config: &DriveConfig, seed: Seed) -> Option<Box<WornOut>> {
    let read_only = config.params.has(WORN_OUT) && config.params.get(WORN_OUT) == "read-only";
    read_only.then(|| Box::new(WornOut { config: config.clone(), seed, report: None }))
}

impl Ssd {
    pub(crate) fn new(config: &DriveConfig, seed: Seed) -> Result<Ssd, ConfigError> {
        let layout = Arc::new(config.layout()?);
        let rules = Rules::from_params(&config.params);
        let medium = Medium::new(layout, rules, config.params.get(FACTORY_BAD), seed)?;
        Ssd::on(medium, config, seed)
    }

    /// Returns a drive with the configuration `config` that mounts `medium`. The medium must have
    /// the layout of this configuration.
    pub(crate) fn on(
        mut medium: Medium,
        config: &DriveConfig,
        seed: Seed,
    ) -> Result<Ssd, ConfigError> {
        medium.seed_errors(seed);
        let p = &config.params;
        let (layout, rules) = (medium.shared_layout(), medium.rules());
        if medium.sequence() == 0 {
            fits_good_blocks(config, &layout, &medium)?;
        }
        let times = Times::from_params(p)?;
        let engine = Engine::new(&layout, times.clone());
        let mut plan = Plan::default();
        plan.set_recording(false);
        let ftl = mount(config, seed, &mut medium, &mut plan).map_err(|e| {
            ConfigError::new("ftl.scheme", format!("the drive cannot be mounted: {e}"))
        })?;
        plan.set_recording(true);
        Ok(Ssd {
            failed: None,
            worn_out: worn_out(config, seed),
            times,
            medium,
            ftl,
            engine,
            plan,
            cache: write_cache(config, &layout, 0),
            settings: ControllerSettings {
                firmware: Firmware::of(p),
                idle_after: p.get(IDLE_AFTER),
                keep_bytes: rules.keep_bytes,
                stepped: p.has(PROGRAM_STEPS) && p.get(PROGRAM_STEPS) > 1,
                scheme_waits: p.has(FLUSH) && p.get(FLUSH) != "pad",
            },
            counters: DeviceCounters::default(),
            commands: 0,
            leaving: Leaving::default(),
            outcome: Outcome::default(),
            in_flight: InFlight::new(),
            copies: Copies::default(),
            instant: false,
            completes_unreadable: false,
            hpb: None,
            throttle: Throttle::of(p, &layout),
            predictor: Predictor::of(p, Ps::ZERO),
            power: PowerStates::of(p),
            energy: EnergyRates::of(p),
            layout,
        })
    }

    /// Returns an estimate of the time that the last mount takes (see
    /// [`flashatlas_ftl::FtlReport::mount`] for its operations).
    pub fn mount_time(&self) -> Dur {
        mount_time(&self.times, &self.layout, &self.ftl.report().mount)
    }

    /// Cuts the power. The drive does nothing until the medium is mounted again.
    pub(crate) fn power_off(&mut self) {
        self.medium.power_off();
    }

    /// Replaces the medium of this drive with another medium, which was switched off. The caller
    /// mounts it.
    pub(crate) fn replace_medium(&mut self, medium: Medium) {
        self.medium = medium;
    }

    /// Returns `true` if the drive keeps the bytes that are written to it.
    pub fn keeps_bytes(&self) -> bool {
        self.settings.keep_bytes
    }

    /// Switches the power off and on again. The write cache and every table in the controller's
    /// memory are lost, and the FTL mounts the medium.
    ///
    /// `config` is the configuration of the drive.
    ///
    /// # Errors
    /// Returns an error if the FTL cannot mount.
    ///
    /// # Panics
    /// Panics if the drive is busy.
    pub fn power_cycle(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.medium.power_off();
        self.mount_again(config, seed)
    }

    /// Replaces the medium of this drive with a medium that was switched off, and mounts that
    /// medium.
    ///
    /// The result equals a drive from [`DriveConfig::build_on`], but reuses this controller.
    /// `config` is the configuration of the drive and of the medium.
    ///
    /// # Errors
    /// Returns an error if the FTL cannot mount. The drive is then unusable.
    ///
    /// # Panics
    /// Panics if the drive is busy.
    pub fn remount(
        &mut self,
        medium: Medium,
        config: &DriveConfig,
        seed: Seed,
    ) -> Result<(), SubmitError> {
        self.medium = medium;
        self.mount_again(config, seed)
    }

    pub(super) fn mount_again(
        &mut self,
        config: &DriveConfig,
        seed: Seed,
    ) -> Result<(), SubmitError> {
        assert!(!self.is_busy() && self.in_flight.outstanding == 0, "the drive is busy");
        self.set_instant(true);
        self.outcome.clear_programmed();
        self.cache = write_cache(config, &self.layout, self.engine.freed_slots());
        self.in_flight.unflushed.clear();
        self.throttle = Throttle::of(&config.params, &self.layout);
        self.predictor = Predictor::of(&config.params, self.engine.now());
        if let Some(hpb) = &mut self.hpb {
            hpb.restart();
        }
        let mounted = mount(config, seed, &mut self.medium, &mut self.plan);
        self.set_instant(false);
        self.failed = mounted.as_ref().err().cloned();
        self.worn_out = worn_out(config, seed);
        self.ftl = mounted?;
        Ok(())
    }

    /// Returns the medium, for the injection of faults (`flashatlas_nand::faults`) and for a
    /// journal of its changes.
    ///
    /// After a power cut, the results of this drive are meaningless. Mount the medium that
    /// [`Ssd::into_medium`] returns.
    pub fn faults(&mut self) -> &mut Medium {
        &mut self.medium
    }

    /// Switches the power off permanently, and returns the medium.
    pub fn into_medium(mut self) -> Medium {
        self.medium.power_off();
        self.medium
    }

    /// Writes every logical page once, in ascending order, in no time. `stamp` returns the stamp of
    /// each page.
    ///
    /// # Errors
    /// Returns an error if the drive has no room for the pages.
    pub fn fill(&mut self, stamp: impl Fn(Lpn) -> Stamp) -> Result<(), SubmitError> {
        self.fill_while(stamp, &mut |_| true).map(|_| ())
    }

    /// Fills the drive as [`Ssd::fill`] does, until all pages are written or `go_on` stops it.
    /// Returns `true` if all pages were written.
    ///
    /// `go_on` is called from time to time with the number of written pages. If it returns `false`,
    /// the filling stops.
    ///
    /// # Errors
    /// Returns the errors of [`Ssd::fill`].
    pub fn fill_while(
        &mut self,
        stamp: impl Fn(Lpn) -> Stamp,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, SubmitError> {
        let units = self.layout.logical_units;
        let zeros: Option<Arc<[u8]>> =
            self.settings.keep_bytes.then(|| vec![0; self.layout.unit_bytes as usize].into());
        self.set_instant(true);
        let filling = self.between_commands(Ps::ZERO);
        let mut run = Vec::with_capacity(64);
        for start in (0..units).step_by(64) {
            run.clear();
            let unit = |lpn| Unit { lpn: Lpn(lpn), stamp: stamp(Lpn(lpn)), bytes: zeros.clone() };
            run.extend((start..units.min(start + 64)).map(unit));
            self.with_ftl(&filling, |ftl, cx| ftl.write(cx, &run, Cause::Host, &[]))?;
            self.outcome.clear_programmed();
            if start % (1 << 16) == 0 && !go_on(start.into()) {
                self.set_instant(false);
                return Ok(false);
            }
        }
        self.with_ftl(&filling, |ftl, cx| {
            ftl.flush(cx)?;
            // these units have no slots in the cache, which their last steps would free
            ftl.finish(cx)?;
            ftl.persist(cx, false)
        })?;
        self.outcome.clear_programmed();
        self.set_instant(false);
        Ok(true)
    }

    /// Fills a blank drive faster than [`Ssd::fill_while`], if the scheme can compute the content
    /// of the flash without its tables.
    ///
    /// The drive must be power cycled afterwards. Returns `Some(true)` if the drive is full,
    /// `Some(false)` if `go_on` stopped the work, and `None` if the scheme cannot do this.
    pub fn fill_blank(
        &mut self,
        stamp: &(dyn Fn(Lpn) -> Stamp + Sync),
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Option<bool> {
        let order = self.ftl.order_of_fill(&self.medium)?;
        Some(self.medium.program_in_order(&order, stamp, go_on))
    }

    /// Returns whether the content of this blank drive after a precondition can be computed instead
    /// of stored.
    fn can_take_a_base(&self, config: &DriveConfig) -> bool {
        config.takes_up_a_base() && self.medium.is_untouched()
    }

    /// Brings a blank drive into the state of [`Ssd::fill_blank`], in a moment: what the drive
    /// holds is computed when it is asked for. Returns `false` if the drive cannot do this.
    ///
    /// The drive must be power cycled afterwards.
    pub fn lay_filled(&mut self, config: &DriveConfig, stamp: fn(Lpn) -> Stamp) -> bool {
        if !self.can_take_a_base(config) {
            return false;
        }
        let Some(order) = self.ftl.order_of_fill(&self.medium) else { return false };
        let base = Filled::new(&self.medium.shared_layout(), &order);
        self.medium.lay(Arc::new(Base::Filled(base)), stamp);
        true
    }

    /// Brings a blank drive into the state of [`Ssd::make_steady`], in a moment: what the drive
    /// holds is computed when it is asked for. Returns `false` if the drive cannot do this.
    ///
    /// The drive must be power cycled afterwards.
    ///
    /// # Errors
    /// Returns the errors of [`Ssd::make_steady`].
    pub fn lay_steady(
        &mut self,
        config: &DriveConfig,
        seed: Seed,
        stamp: fn(Lpn) -> Stamp,
    ) -> Result<bool, ConfigError> {
        let of_scheme = config.scheme().steady_state(&config.scheme_config())?;
        if !self.can_take_a_base(config) {
            return Ok(false);
        }
        let base = (of_scheme.base)(&config.scheme_config(), &self.medium, seed)?;
        self.medium.lay(Arc::new(Base::Steady(base)), stamp);
        Ok(true)
    }

    /// Brings a blank drive into the steady state of uniform random writes of single units.
    ///
    /// `stamp` returns the stamp of each page. `go_on` is called with the number of placed pages.
    /// If it returns `false`, the work stops and this function returns `false` too. The drive must
    /// be power cycled afterwards.
    ///
    /// # Errors
    /// Returns an error if the scheme or its victim policy has no model of the steady state.
    ///
    /// # Panics
    /// Panics if the drive is not blank.
    pub fn make_steady(
        &mut self,
        config: &DriveConfig,
        seed: Seed,
        stamp: &dyn Fn(Lpn) -> Stamp,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, ConfigError> {
        assert!(self.medium.sequence() == 0, "the drive is not blank");
        let make = config.scheme().steady_state(&config.scheme_config())?.make;
        self.set_instant(true);
        let flash = Flash { medium: &mut self.medium, plan: &mut self.plan };
        let (copies, outcome) = (&mut self.copies, &mut Outcome::default());
        let mut cx = FtlContext::new(flash, &Command::UNTIMED, copies, outcome);
        let made = make(&config.scheme_config(), &mut cx, seed, stamp, go_on);
        self.set_instant(false);
        made
    }

    /// Writes the whole map to flash, once and in order, if the map store writes a map. The
    /// preparation of a drive ends so. The drive must be power cycled afterwards.
    ///
    /// # Errors
    /// Returns an error if the medium cannot be mounted.
    pub fn write_map(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.set_instant(true);
        let written = write_map(config, seed, &mut self.medium, &mut self.plan);
        self.set_instant(false);
        Ok(written?)
    }

    /// Trims a page, in no time.
    ///
    /// # Errors
    /// Returns an error if the map cannot be updated.
    pub fn forget(&mut self, lpn: Lpn) -> Result<(), SubmitError> {
        self.set_instant(true);
        self.with_ftl(&self.between_commands(Ps::ZERO), |ftl, cx| ftl.trim(cx, lpn))?;
        self.outcome.clear_programmed();
        self.set_instant(false);
        Ok(())
    }

    /// Makes the write cache, the page buffers and the map durable, in no time, as a FLUSH does.
    ///
    /// # Errors
    /// Returns an error if there is no space.
    pub fn make_durable(&mut self) -> Result<(), SubmitError> {
        let begun = Begun {
            command: self.between_commands(Ps::ZERO),
            programs_before: self.medium.sequence(),
            accepts: OpId::NONE,
        };
        self.flush_all(&begun)?;
        self.with_ftl(&begun.command, |ftl, cx| ftl.persist(cx, false))?;
        self.settle();
        self.in_flight.unflushed.clear();
        Ok(())
    }
}
