//! What must hold after a cut, tried on the drive itself: it mounts, its tables obey their rules, every unit holds a version
//! that the model allows, a second mount finds the same, and it can be written on.

use crate::model::{Model, Step};
use crate::recording::{SEED, apply, held};
use crate::{Failure, guarded};
use flashatlas_device::{Device, DriveConfig, Ssd};
use flashatlas_nand::{Change, Medium};
use flashatlas_types::{Rng, Seed, Stamp};

/// Every so many cuts the drive is written on until it has collected for a while.
const LONG_EVERY: u64 = 16;

/// A drive for mounts, and what is written to it afterwards.
pub struct Verifier<'c> {
    config: &'c DriveConfig,
    /// The controller; taken out while a cut is examined, and left out when that failed.
    drive: Option<Ssd>,
    short: Vec<Step>,
    long: Vec<Step>,
    expected: Vec<Stamp>,
    /// Mounts so far.
    pub mounts: u64,
    /// Programs and erases of the longest mount.
    pub longest_mount: u64,
}

/// What a mount did.
#[derive(Default)]
pub struct Mounted {
    /// The medium before it, where it was asked for.
    pub before: Option<Medium>,
    /// Its changes.
    pub changes: Vec<Change>,
}

impl<'c> Verifier<'c> {
    /// For drives of `config`.
    pub fn new(config: &'c DriveConfig) -> Verifier<'c> {
        let layout = config.layout().expect("the configuration is checked");
        let (units, sectors) = (layout.logical_units, layout.unit_sectors());
        let mut rng = Rng::stream(Seed(9), "crash.write_on");
        let mut write = |most: u64| {
            let unit = rng.below(units.into()) as u32;
            let count = (1 + rng.below(most) as u32).min(units - unit);
            Step::Write { lba: unit * sectors, sectors: count * sectors, fua: false }
        };
        let short = vec![write(2), write(1), Step::Flush];
        let mut long: Vec<Step> = (0..units.min(100)).map(|_| write(3)).collect();
        let fresh = config.build(SEED).expect("the workload ran on such a drive");
        if !fresh.ftl_report().forgets_trims {
            long.push(Step::Trim { lba: 0, sectors: 2 * sectors });
        }
        long.push(Step::Flush);
        let expected = vec![Stamp::ZERO; units as usize];
        Verifier { config, drive: None, short, long, expected, mounts: 0, longest_mount: 0 }
    }

    /// Examine what a cut left on `medium`, which was switched off. `number` chooses how long the drive is written on;
    /// `keep`: the medium as it was and the changes of the mount are wanted.
    ///
    /// # Errors
    /// The first promise that does not hold.
    pub fn examine(&mut self, medium: Medium, model: &Model, number: u64, keep: bool) -> Result<Mounted, Failure> {
        let taken = self.drive.take();
        let (drive, mounted) = guarded(|| self.try_examine(taken, medium, model, number, keep))?;
        self.drive = Some(drive);
        Ok(mounted)
    }

    fn try_examine(
        &mut self,
        drive: Option<Ssd>,
        mut medium: Medium,
        model: &Model,
        number: u64,
        keep: bool,
    ) -> Result<(Ssd, Mounted), Failure> {
        let before = keep.then(|| medium.clone());
        medium.keep_journal();
        let cannot = |e: String| Failure::new("R4", format!("the mount fails: {e}"));
        let mut drive = match drive {
            Some(mut drive) => {
                drive.remount(medium, self.config, SEED).map_err(|e| cannot(e.to_string()))?;
                drive
            }
            None => self.config.build_on(medium, SEED).map_err(|e| cannot(e.to_string()))?,
        };
        self.mounts += 1;
        drive.faults().fade();
        let changes = drive.faults().end_journal();
        let flash = |c: &&Change| matches!(c, Change::Program { .. } | Change::Erase(_) | Change::EraseFailed(_));
        self.longest_mount = self.longest_mount.max(changes.iter().filter(flash).count() as u64);
        for unit in 0..model.len() {
            let held = held(&drive, unit)?;
            let allowed = model.versions(unit);
            Failure::unless(model.allows(unit, held), promise(allowed), || {
                format!("unit {unit} holds {held:?} after the mount, allowed are {allowed:?}")
            })?;
            self.expected[unit as usize] = held;
        }
        drive.check().map_err(|v| Failure::new("R5", format!("after the mount: {v}")))?;
        self.mount_again(&mut drive, "R4", "a second mount")?;
        self.write_on(&mut drive, number)?;
        drive.check().map_err(|v| Failure::new("R5", format!("after writing on: {v}")))?;
        self.mount_again(&mut drive, "R1", "a mount after writing on")?;
        Ok((drive, Mounted { before, changes }))
    }

    fn mount_again(&mut self, drive: &mut Ssd, rule: &'static str, what: &str) -> Result<(), Failure> {
        let again = drive.power_cycle(self.config, SEED);
        again.map_err(|e| Failure::new("R4", format!("{what} fails: {e}")))?;
        self.mounts += 1;
        self.compare(drive, rule, what)
    }

    fn compare(&self, drive: &Ssd, rule: &'static str, what: &str) -> Result<(), Failure> {
        for (unit, &expected) in (0..).zip(&self.expected) {
            let held = held(drive, unit)?;
            Failure::unless(held == expected, rule, || {
                format!("unit {unit} holds {held:?} after {what}, not {expected:?}")
            })?;
        }
        Ok(())
    }

    fn write_on(&mut self, drive: &mut Ssd, number: u64) -> Result<(), Failure> {
        let steps = if number % LONG_EVERY == LONG_EVERY - 1 { &self.long } else { &self.short };
        let unit_sectors = drive.unit_sectors();
        drive.set_instant(true);
        for (content, &step) in (1u64 << 32..).zip(steps) {
            apply(drive, step, content).map_err(|e| Failure::new("R5", format!("after the mount, {step}: {e}")))?;
            for unit in step.units(unit_sectors) {
                let old = self.expected[unit as usize];
                self.expected[unit as usize] = step.stamp(unit, unit_sectors, content, old);
            }
        }
        drive.set_instant(false);
        self.compare(drive, "R5", "writing on")
    }
}

/// The promise that a unit breaks which holds none of what is allowed.
fn promise(allowed: &[Stamp]) -> &'static str {
    match allowed {
        [Stamp::ZERO] => "R3",
        [_] => "R1",
        _ => "R2",
    }
}
