//! Checks of a drive after a cut.
//!
//! The drive must mount, its tables must be consistent, and every unit must hold a version that the
//! model allows. A second mount must find the same versions, and the drive must accept further
//! writes.

use crate::at_random::{AtRandom, MapFrames, is_failed_program, is_without_room};
use crate::examine::{Examine, Lost, Mounted, Remains, drop_learnt};
use crate::failing_part::LostPages;
use crate::media::{DriveChange, Media, take_journals};
use crate::model::{Model, Step};
use crate::recording::{SEED, apply, held};
use crate::{Failure, guarded};
use flashatlas_device::{Contents, DriveConfig, Stack, SubmitError};
use flashatlas_ftl::MountLimit;
use flashatlas_nand::{Change, Counters, FrameState, Medium};
use flashatlas_types::{Cause, FtlError, Rng, Seed, Stamp};

/// Number N: one cut in N is followed by many writes, so that the drive collects for a while.
const LONG_EVERY: u64 = 16;

/// Verifier that mounts the media after cuts, checks them and sends further writes.
pub struct Verifier<'c> {
    config: &'c DriveConfig,
    /// Contents for the digests that layers store.
    contents: Vec<Contents>,
    /// Contents that the layers of the last discarded drive stored. Media that this drive had
    /// mounted may hold them.
    learnt: Vec<Contents>,
    /// The drive; `None` while a cut is examined, and after an examination that kept no drive.
    drive: Option<Stack>,
    short: Vec<Step>,
    long: Vec<Step>,
    expected: Vec<Stamp>,
    limit: MountLimit,
    at_random: AtRandom,
    /// Units that read as an error after the mounts of cuts.
    lost_units: u64,
    /// Number of mounts so far.
    pub mounts: u64,
    /// Programs and erases of the longest mount.
    pub longest_mount: u64,
}

impl<'c> Verifier<'c> {
    /// Returns a verifier for drives of `config`.
    pub fn new(config: &'c DriveConfig) -> Verifier<'c> {
        let layout = config.layout().expect("the configuration is checked");
        let exported = config.shape();
        let (units, sectors) = (exported.units(), exported.unit_sectors);
        let mut rng = Rng::stream(Seed(9), "crash.write_on");
        let mut write = |most: u64| {
            let unit = rng.below(units.into()) as u32;
            let count = (1 + rng.below(most) as u32).min(units - unit);
            Step::Write { lba: unit * sectors, sectors: count * sectors, fua: false }
        };
        let short = vec![write(2), write(1), Step::Flush];
        let mut long: Vec<Step> = (0..units.min(100)).map(|_| write(3)).collect();
        let fresh = config.build_stack(SEED).expect("the workload ran on such a drive");
        if !fresh.top().forgets_trims() {
            long.push(Step::Trim { lba: 0, sectors: 2 * sectors });
        }
        long.push(Step::Flush);
        let expected = vec![Stamp::ZERO; units as usize];
        let limit = (config.scheme().mount_limit)(&config.scheme_config(), &layout);
        let layers = config.layers_limit();
        // a layer that writes also makes its data durable, which may write the drive's map to flash
        let again = if layers.writes > 0 { limit.programs } else { 0 };
        let drives = u64::from(config.drives());
        // a drive may have to collect for each write of a layer, even two blocks if the power
        // failed during a collection
        let collected = 2 * layers.writes * u64::from(layout.frames_per_block);
        let limit = MountLimit {
            reads: drives * limit.reads + layers.reads + collected,
            programs: drives * (limit.programs + again) + layers.writes + collected,
            erases: drives * limit.erases + 2 * layers.writes,
            spare_reads: drives * limit.spare_reads,
        };
        Verifier {
            config,
            contents: Vec::new(),
            learnt: Vec::new(),
            drive: None,
            short,
            long,
            expected,
            limit,
            at_random: AtRandom::of(config),
            lost_units: 0,
            mounts: 0,
            longest_mount: 0,
        }
    }

    /// Sets the contents for the digests on the drives that are examined next.
    pub fn knows(&mut self, contents: Vec<Contents>) {
        (self.contents, self.learnt, self.drive) = (contents, Vec::new(), None);
    }

    /// Mounts `medium`, and then makes pages of one of its frames unreadable.
    ///
    /// Every reply of the drive must be correct or an error, and correct if the pages are rebuilt.
    /// Returns `true` if the frame was still programmed after the mount.
    ///
    /// # Errors
    /// Returns the first wrong reply.
    pub fn run_without(
        &mut self,
        medium: Medium,
        model: &Model,
        lost: LostPages,
    ) -> Result<bool, Failure> {
        let taken = self.drive.take();
        guarded(|| self.try_run_without(taken, medium, model, lost))
    }

    fn try_examine(
        &mut self,
        drive: Option<Stack>,
        mut media: Media,
        model: &Model,
        (number, keep): (u64, bool),
        remains: &Remains,
    ) -> Result<Option<(Stack, Mounted)>, Failure> {
        let before = keep.then(|| media.clone());
        let one = self.config.layers().is_empty() && self.at_random.pages;
        let maps = one.then(|| MapFrames::of(media.first()));
        media.keep_journals();
        let counted = media.counters();
        // if there are several drives, another drive takes over for the broken drive
        let may_refuse = *remains == Remains::Broken && self.config.drives() == 1;
        let mut drive = match self.mount(drive, media) {
            Err(error) if may_refuse && is_failed_program(&error) => {
                return Ok(None);
            }
            // the failed block cannot be erased, either, so a drive without a block to spare has no
            // room
            Err(error) if may_refuse && is_without_room(&error) => {
                return Ok(None);
            }
            Err(error) if self.at_random.allow(&error) => return Ok(None),
            Err(SubmitError::Layer(_)) if self.excuses_layers(remains) => return Ok(None),
            drive => drive.map_err(|e| Failure::new("R4", format!("the mount fails: {e}")))?,
        };
        if self.excuses_layers(remains) {
            only_with_damage(&drive, model)?;
            self.learnt = drive.contents();
            return Ok(None);
        }
        self.within_limit(&drive, &counted, number)?;
        drive.drives_mut().into_iter().for_each(|drive| drive.faults().fade());
        let mut changes = Vec::new();
        take_journals(&mut drive, false, &mut changes);
        drive.drives_mut().into_iter().for_each(|drive| drop(drive.faults().end_journal()));
        let flash = |c: &&DriveChange| {
            matches!(c.change, Change::Program { .. } | Change::Erase(_) | Change::EraseFailed(_))
        };
        self.longest_mount = self.longest_mount.max(changes.iter().filter(flash).count() as u64);
        let contents = if keep { drive.contents() } else { Vec::new() };
        let without_maps = Remains::Damaged(Lost::of_map());
        let remains = match (remains, maps) {
            (Remains::Sound, Some(maps)) if maps.are_lost(&changes) => &without_maps,
            _ => remains,
        };
        let trusts_its_map = drive.drives().iter().any(|d| d.ftl_report().trusts_its_map);
        for unit in 0..model.len() {
            let held = held(&drive, unit)?;
            let allowed = model.versions(unit);
            let old = || match remains {
                Remains::Damaged(lost) => {
                    lost.excuses(model, unit, trusts_its_map) && model.ever_held(unit, held)
                }
                _ => false,
            };
            self.lost_units += u64::from(held == Stamp::LOST);
            let right = model.allows(unit, held) || held == Stamp::LOST;
            Failure::unless(right || old(), promise(allowed), || {
                format!(
                    "unit {unit} holds {held:?} after the mount, but only {allowed:?} are allowed"
                )
            })?;
            Failure::unless(right || says_damaged(&drive), "R6", || {
                format!(
                    "unit {unit} holds {held:?} after the mount, but only {allowed:?} are allowed, \
                     and no damage is reported"
                )
            })?;
            self.expected[unit as usize] = held;
        }
        drive.top().check().map_err(|v| Failure::new("R5", format!("after the mount: {v}")))?;
        if !self.mount_again(&mut drive, "R4", "a second mount")? {
            return Ok(None);
        }
        if *remains == Remains::Broken {
            return Ok(Some((drive, Mounted { before, changes, contents })));
        }
        if !self.write_on(&mut drive, number)? {
            return Ok(None);
        }
        drive
            .top()
            .check()
            .map_err(|v| Failure::new("R5", format!("after further writes: {v}")))?;
        if !self.mount_again(&mut drive, "R1", "a mount after further writes")? {
            return Ok(None);
        }
        Ok(Some((drive, Mounted { before, changes, contents })))
    }

    /// Returns `true` if the drive's damage excuses its layers.
    ///
    /// A layer stores no checksum of its data. If the drive loses a durable page and an older page
    /// takes its place, the older page may belong to another page of the layer. Only the drive
    /// reports this damage.
    fn excuses_layers(&self, remains: &Remains) -> bool {
        matches!(remains, Remains::Damaged(_)) && !self.config.layers().is_empty()
    }

    fn mount(
        &mut self,
        drive: Option<Stack>,
        media: impl Into<Media>,
    ) -> Result<Stack, SubmitError> {
        self.mounts += 1;
        let mut drive = match drive {
            Some(drive) => drive,
            None => {
                let mut drive =
                    self.config.build_stack(SEED).expect("the workload ran on such a drive");
                drive.learn(&self.contents);
                drive.learn(&self.learnt);
                drive
            }
        };
        match drive.remount(media.into(), self.config, SEED) {
            Ok(()) => Ok(drive),
            Err(error) => {
                self.learnt = drive.contents();
                Err(error)
            }
        }
    }

    /// Returns an error if the mount exceeded the limit of the scheme.
    fn within_limit(&self, drive: &Stack, before: &Counters, number: u64) -> Result<(), Failure> {
        let now = drive.flash_counters();
        let per_frame = u64::from(drive.ssd().layout().pages_per_frame);
        let done = |table: fn(&Counters) -> &[u64; Cause::ALL.len()]| {
            (Counters::total(table(&now)) - Counters::total(table(before))) / per_frame
        };
        // pages that are read to rebuild others are no reads of the mount, as retries are none
        let own = |counters: &Counters| {
            Counters::total(&counters.reads) - counters.reads[Cause::Parity as usize]
        };
        let reads = (own(&now) - own(before)) / per_frame;
        // for each part that fails at random, a block is copied to a spare block
        let (now_failed, failed_before) = (&now.errors, &before.errors);
        let failed = now_failed.program_failures - failed_before.program_failures
            + now_failed.erase_failures
            - failed_before.erase_failures;
        let copied = failed * u64::from(drive.ssd().layout().frames_per_block + 1);
        // after a page that it could not read, a mount begins again
        let begun = 1 + now_failed.failed_reads - failed_before.failed_reads;
        let limit = MountLimit {
            reads: begun * self.limit.reads + copied,
            programs: begun * self.limit.programs + copied,
            erases: begun * self.limit.erases + failed,
            ..self.limit
        };
        let counts = [
            ("reads of frames", reads, limit.reads),
            ("programs", done(|c| &c.programs), limit.programs),
            ("erases", done(|c| &c.erases), limit.erases),
        ];
        let spare_reads =
            || drive.drives().iter().flat_map(|d| d.ftl_report().mount.spare_reads).sum();
        let spare_areas = (number % LONG_EVERY == 0)
            .then(|| ("reads of spare areas", spare_reads(), limit.spare_reads));
        for (what, count, limit) in counts.into_iter().chain(spare_areas) {
            Failure::unless(count <= limit, "R4", || {
                format!("the mount took {count} {what}, but at most {limit} are allowed")
            })?;
        }
        Ok(())
    }

    fn try_run_without(
        &mut self,
        drive: Option<Stack>,
        medium: Medium,
        model: &Model,
        lost: LostPages,
    ) -> Result<bool, Failure> {
        let mut drive = self
            .mount(drive, medium)
            .map_err(|e| Failure::new("R4", format!("the mount fails: {e}")))?;
        for unit in 0..model.len() {
            self.expected[unit as usize] = held(&drive, unit)?;
        }
        if drive.ssd().medium().state(lost.frame) != FrameState::Programmed {
            return Ok(false); // the mount moved the content of the frame
        }
        lost.take_from(drive.ssd_mut().faults());
        let unit_sectors = drive.unit_sectors();
        let refused = |error: &SubmitError| {
            !lost.is_rebuilt && matches!(error, SubmitError::Ftl(FtlError::Medium(_)))
        };
        drive.set_instant(true);
        self.read_all(&mut drive, &(0..0), refused)?;
        let mut unsure = 0..0;
        for (content, &step) in (1u64 << 32..).zip(&self.long) {
            match apply(&mut drive, step, content) {
                Ok(_) => carry_out(&mut self.expected, step, unit_sectors, content),
                Err(error) if refused(&error) => {
                    // it is unknown which part of the command was carried out
                    unsure = step.units(unit_sectors);
                    break;
                }
                Err(error) => {
                    return Err(Failure::new(
                        "R6",
                        format!("{step} without pages of frame {}: {error}", lost.frame),
                    ));
                }
            }
        }
        self.read_all(&mut drive, &unsure, refused)?;
        drive.set_instant(false);
        Ok(true)
    }

    /// Switches the drive off and on, and compares its units. Returns `false` if the mount was
    /// refused, and failures at random allow that.
    fn mount_again(
        &mut self,
        drive: &mut Stack,
        rule: &'static str,
        what: &str,
    ) -> Result<bool, Failure> {
        let counted = drive.flash_counters();
        self.mounts += 1;
        match drive.power_cycle(self.config, SEED) {
            Err(error) if self.at_random.allow(&error) => return Ok(false),
            again => again.map_err(|e| Failure::new("R4", format!("{what} fails: {e}")))?,
        }
        self.within_limit(drive, &counted, 1)?;
        self.compare(drive, rule, what)?;
        Ok(true)
    }

    fn compare(&self, drive: &Stack, rule: &'static str, what: &str) -> Result<(), Failure> {
        for (unit, &expected) in (0..).zip(&self.expected) {
            let held = held(drive, unit)?;
            // a page of the trims may be lost after the first mount, too
            let trims = expected == Stamp::ZERO && self.at_random.pages && says_damaged(drive);
            Failure::unless(held == expected || held == Stamp::LOST || trims, rule, || {
                format!("unit {unit} holds {held:?} after {what} instead of {expected:?}")
            })?;
        }
        Ok(())
    }

    /// Writes on. Returns `false` if a failure at random has stopped the drive.
    fn write_on(&mut self, drive: &mut Stack, number: u64) -> Result<bool, Failure> {
        let steps = if number % LONG_EVERY == LONG_EVERY - 1 { &self.long } else { &self.short };
        let unit_sectors = drive.unit_sectors();
        let before = self.expected.clone();
        drive.set_instant(true);
        for (content, (done, &step)) in (1u64 << 32..).zip(steps.iter().enumerate()) {
            match apply(drive, step, content) {
                Err(error) if self.at_random.stop(&error) => {
                    let written = steps[..=done].to_vec();
                    return self.after_refusal(drive, &before, &written).map(|()| false);
                }
                done => {
                    done.map_err(|e| Failure::new("R5", format!("after the mount, {step}: {e}")))?;
                }
            }
            // the newest data of a unit may be lost while the drive is written on
            carry_out(&mut self.expected, step, unit_sectors, content);
        }
        drive.set_instant(false);
        self.compare(drive, "R5", "further writes")?;
        Ok(true)
    }

    /// Mounts a drive that held `before` and has refused the last one of `steps`, and checks that
    /// each unit holds a version that the steps allow, or reads as an error.
    fn after_refusal(
        &mut self,
        drive: &mut Stack,
        before: &[Stamp],
        steps: &[Step],
    ) -> Result<(), Failure> {
        let before = before.iter().map(|&stamp| vec![stamp]).collect();
        let mut model = Model::allowing(before, drive.unit_sectors()).numbered_from(1 << 32);
        if drive.top().forgets_trims() {
            model = model.forgetting_trims();
        }
        for (done, &step) in (1..).zip(steps) {
            model.begin(step);
            if done < steps.len() {
                model.end(step);
            }
        }
        drive.set_instant(false);
        self.mounts += 1;
        match drive.power_cycle(self.config, SEED) {
            Err(error) if self.at_random.allow(&error) => return Ok(()),
            mounted => mounted
                .map_err(|e| Failure::new("R4", format!("the mount after a refusal fails: {e}")))?,
        }
        for unit in 0..model.len() {
            let held = held(drive, unit)?;
            let trims = model.versions(unit).contains(&Stamp::ZERO) && says_damaged(drive);
            let right = held == Stamp::LOST || model.allows(unit, held) || trims;
            Failure::unless(right, "R6", || {
                format!("unit {unit} holds {held:?} after a refused command and a mount")
            })?;
        }
        drive.top().check().map_err(|v| Failure::new("R5", format!("after a refusal: {v}")))
    }

    /// Returns an error unless every unit reads as expected, or fails with an `allowed` error.
    ///
    /// The units in `unsure` are skipped.
    fn read_all(
        &self,
        drive: &mut Stack,
        unsure: &std::ops::Range<u32>,
        allowed: impl Fn(&SubmitError) -> bool,
    ) -> Result<(), Failure> {
        let unit_sectors = drive.unit_sectors();
        for (unit, &expected) in
            (0..).zip(&self.expected).filter(|(unit, _)| !unsure.contains(unit))
        {
            match apply(drive, Step::Read { lba: unit * unit_sectors, sectors: unit_sectors }, 0) {
                Ok(reply) => Failure::unless(reply.stamps[0] == expected, "R6", || {
                    format!("unit {unit} reads {:?} instead of {expected:?}", reply.stamps[0])
                })?,
                Err(error) if allowed(&error) => {}
                Err(error) => return Err(Failure::new("R6", format!("unit {unit}: {error}"))),
            }
        }
        Ok(())
    }
}

impl Examine for Verifier<'_> {
    type Model = Model;

    fn begin_again(&mut self) {
        if let Some(drive) = &mut self.drive {
            drop_learnt(drive, &self.contents);
        }
    }

    fn examine(
        &mut self,
        media: Media,
        model: &Model,
        number: u64,
        keep: bool,
        remains: &Remains,
    ) -> Result<Option<Mounted>, Failure> {
        let taken = self.drive.take();
        let Some((drive, mounted)) =
            guarded(|| self.try_examine(taken, media, model, (number, keep), remains))?
        else {
            return Ok(None);
        };
        self.drive = Some(drive);
        Ok(Some(mounted))
    }

    fn knows_more(&mut self, contents: Vec<Contents>) -> Vec<Contents> {
        std::mem::replace(&mut self.contents, contents)
    }

    fn is_dirty(model: &Model) -> bool {
        model.is_dirty()
    }

    fn mounts(&self) -> (u64, u64) {
        (self.mounts, self.longest_mount)
    }

    fn lost_units(&self) -> u64 {
        self.lost_units
    }
}

/// Returns an error unless every unit reads as the model allows, or the drive reports damage.
fn only_with_damage(drive: &Stack, model: &Model) -> Result<(), Failure> {
    let right = |unit| held(drive, unit).is_ok_and(|held| model.allows(unit, held));
    Failure::unless(says_damaged(drive) || (0..model.len()).all(right), "R6", || {
        "a page of the lower drive is lost, units differ, and no damage is reported".into()
    })
}

/// Updates the stamps that the units hold after a step.
fn carry_out(expected: &mut [Stamp], step: Step, unit_sectors: u32, content: u64) {
    for unit in step.units(unit_sectors) {
        let held = &mut expected[unit as usize];
        *held = step.stamp(unit, unit_sectors, content, *held);
    }
}

/// Returns `true` if a mount reported damage.
fn says_damaged(drive: &Stack) -> bool {
    drive.drives().into_iter().any(|drive| drive.ftl_report().mount.found_damage())
}

/// Returns the promise that is broken if a unit holds none of the `allowed` stamps.
fn promise(allowed: &[Stamp]) -> &'static str {
    match allowed {
        [Stamp::ZERO] => "R3",
        [_] => "R1",
        _ => "R2",
    }
}
