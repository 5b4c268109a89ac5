//! One case: commands, failures and mounts on one drive, with a model of each unit's content.

use super::{Feature, Finding, STEPS, Tally};
use flashatlas_crash::at_random::{is_failed_program, is_without_room};
use flashatlas_crash::model::{Model, Step};
use flashatlas_crash::recording::{SEED, apply, held};
use flashatlas_crash::subject::over_tiny;
use flashatlas_device::{DriveConfig, Ssd, Stack, SubmitError};
use flashatlas_nand::{Counters, FrameState, Medium};
use flashatlas_types::{
    BlockId, Cause, FrameId, FtlError, Layout, MediumError, PartFault, Rng, Seed, Stamp,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) struct Case {
    config: DriveConfig,
    features: Vec<Feature>,
    rng: Rng,
    mirrored: Option<Mirrored>,
}

/// Model of a mirror whose first drive fails while the other drives may differ from it.
///
/// A unit that was not flushed before a power failure may then hold an older version again. This
/// may happen even if the host has read a newer version since the failure and has sent a FLUSH
/// (docs/adr/0024).
struct Mirrored {
    /// Versions of each unit since the last FLUSH at which all drives were known to hold the same
    /// version. Mounts do not remove versions.
    ever: Model,
    /// For each unit, `true` if all drives are known to hold the same version.
    alike: Vec<bool>,
    /// Number of the first drive, which serves reads of units in which the drives may differ.
    first: u64,
    /// Number of drives with current data.
    current: u64,
}

impl Mirrored {
    fn of(drive: &Stack, model: &Model) -> Mirrored {
        let [first, current, _] = Mirrored::state(drive);
        let alike = vec![true; model.len() as usize];
        Mirrored { ever: model.clone(), alike, first, current }
    }

    /// Returns `true` if a unit may hold `stamp` once the first drive has failed.
    ///
    /// If all drives held the same version, the unit may hold only its newest version.
    fn may_hold(&self, unit: u32, stamp: Stamp, model: &Model) -> bool {
        self.ever.allows(unit, stamp) && (!self.alike[unit as usize] || stamp == model.newest(unit))
    }

    fn begin(&mut self, step: Step, sectors: u32, model: &Model) {
        for unit in step.units(sectors) {
            self.ever.seen(unit, model.newest(unit));
        }
    }

    /// Records that a step was acknowledged, and returns the result of [`Mirrored::lost_first`].
    fn end(&mut self, step: Step, sectors: u32, drive: &Stack) -> bool {
        step.units(sectors).for_each(|unit| self.alike[unit as usize] = true);
        let state = Mirrored::state(drive);
        let [.., unsure] = state;
        if unsure == 0 {
            self.alike.fill(true);
        }
        self.ever.end_where(step, |unit| self.alike[unit as usize]);
        self.lost_first(state)
    }

    /// Records that the mirror was switched off and on.
    ///
    /// Returns the result of [`Mirrored::lost_first`].
    fn mounted(&mut self, drive: &Stack) -> bool {
        self.alike.fill(false);
        self.lost_first(Mirrored::state(drive))
    }

    /// Returns the first drive's number and the counts of current drives and of units that may
    /// differ.
    fn state(drive: &Stack) -> [u64; 3] {
        let reports = drive.top().reports();
        ["first_drive", "current_drives", "unsure_units"].map(|wanted| {
            let mut all = reports.iter().flat_map(|report| &report.counters);
            all.find(|(name, _)| *name == wanted).map_or(0, |&(_, count)| count)
        })
    }

    /// Returns `true` if the first drive has failed since the last call and units may differ.
    fn lost_first(&mut self, [first, current, unsure]: [u64; 3]) -> bool {
        let lost = first != self.first && current < self.current;
        (self.first, self.current) = (first, current);
        lost && unsure > 0
    }
}

/// Returns the number of blocks that are bad, refuse programs, or were replaced.
fn failed(medium: &Medium, layout: &Layout) -> u64 {
    let bad = |b: &BlockId| medium.is_bad(*b) || medium.refuses_programs(*b);
    layout.block_ids().filter(bad).count() as u64 + medium.counters.replaced_blocks
}

/// Runs a case with the given features on a given drive.
///
/// Tests use this function to repeat the conditions of earlier findings.
pub fn run_on(config: &DriveConfig, features: &[Feature], id: u64) -> (Tally, Option<Finding>) {
    let rng = Rng::stream(Seed(id), "swarm");
    Case::new(config.clone(), features.to_vec(), rng).run(id)
}

impl Case {
    pub fn new(config: DriveConfig, features: Vec<Feature>, rng: Rng) -> Case {
        Case { config, features, rng, mirrored: None }
    }

    pub fn run(self, id: u64) -> (Tally, Option<Finding>) {
        let mut tally = Tally { cases: 1, ..Tally::default() };
        let (config, features) = (self.config.clone(), self.features.clone());
        let played = catch_unwind(AssertUnwindSafe(|| self.play(&mut tally)));
        let found = match played {
            Ok(Ok(())) => None,
            Ok(Err(found)) => Some(found),
            Err(panic) => Some(match panic.downcast::<PartFault>() {
                Ok(fault) => fault.to_string(),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.into()));
                    format!("broken rule: {}", text.unwrap_or_default())
                }
            }),
        };
        let finding =
            found.map(|found| Finding { id, found, drive: over_tiny(&config).join(" "), features });
        (tally, finding)
    }

    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    fn step(&mut self, units: u32, sectors: u32, trims: bool) -> Step {
        let unit = self.rng.below(units.into()) as u32;
        let count = (1 + self.rng.below(4) as u32).min(units - unit);
        let parts = self.has(Feature::Parts) && self.rng.below(3) == 0;
        let (lba, length) = if parts {
            let from = self.rng.below(sectors.into()) as u32;
            let most = count * sectors - from;
            (unit * sectors + from, 1 + self.rng.below(most.into()) as u32)
        } else {
            (unit * sectors, count * sectors)
        };
        match self.rng.below(20) {
            0..=4 => Step::Read { lba, sectors: length },
            5 if trims => Step::Trim { lba: unit * sectors, sectors: count * sectors },
            6 if self.has(Feature::Flushes) => Step::Flush,
            7 if self.has(Feature::Idle) => Step::Idle,
            8 if self.has(Feature::Fua) => Step::Write { lba, sectors: length, fua: true },
            _ => Step::Write { lba, sectors: length, fua: false },
        }
    }

    /// Returns `true` if random victims may fill the reserve of the drive.
    ///
    /// A drive may do this if it collects in single mode and draws its victims at random. Such a
    /// drive may have no room after a power failure; docs/RELIABILITY.md describes this open point.
    fn may_fill_its_reserve(&self) -> bool {
        let is = |key: &str, values: &[&str]| {
            let value = self.config.pairs().find(|(k, _)| *k == key);
            value.is_some_and(|(_, value)| values.contains(&value.to_string().as_str()))
        };
        is("ftl.gc_mode", &["single"]) && is("ftl.victim", &["random", "d-choices"])
    }

    /// Returns `true` if a drive may end with `error`.
    ///
    /// A drive that has lost a block may end because it has no room, or because a program or an
    /// erase failed. A drive without a lost block may end only because it has no room, and only if
    /// [`Case::may_fill_its_reserve`] returns `true`.
    fn may_end(&self, error: &SubmitError, drive: &Stack) -> bool {
        if is_without_room(error) && self.may_fill_its_reserve() {
            return true;
        }
        let lost = drive.drives().iter().any(|ssd| failed(ssd.medium(), ssd.layout()) > 0);
        let erases = matches!(
            error,
            SubmitError::Ftl(FtlError::Medium(
                MediumError::EraseFailed(_) | MediumError::BadBlock(_)
            ))
        );
        lost && (is_without_room(error) || is_failed_program(error) || erases)
    }

    fn play(mut self, tally: &mut Tally) -> Result<(), String> {
        let config = self.config.clone();
        let mut drive = config.build_stack(SEED).map_err(|e| format!("a blank drive: {e}"))?;
        let (units, sectors) = (drive.shape().units(), drive.unit_sectors());
        let forgets = drive.top().forgets_trims();
        let trims = self.has(Feature::Trims) && !forgets;
        let start = |held: Vec<_>, content| Model::holding(held.into_iter(), sectors, content);
        let blank = (0..units).map(|u| held(&drive, u)).collect::<Result<Vec<_>, _>>();
        let mut content = 1;
        let mut model = start(blank.map_err(|e| e.to_string())?, content);
        self.mirrored = (config.drives() > 1).then(|| Mirrored::of(&drive, &model));
        drive.set_instant(true);
        for number in 0..STEPS {
            tally.steps += 1;
            self.arm(&mut drive);
            let step = self.step(units, sectors, trims);
            content = model.begin(step);
            if let Some(mirrored) = &mut self.mirrored {
                mirrored.begin(step, sectors, &model);
            }
            let reply = match apply(&mut drive, step, content) {
                Ok(reply) => reply,
                Err(SubmitError::Ftl(FtlError::Medium(MediumError::PowerLost))) => {
                    content += 1;
                    model = match self.remount(&mut drive, &model, content, tally)? {
                        Some(model) => model,
                        None => return Ok(()),
                    };
                    continue;
                }
                Err(error) if self.may_end(&error, &drive) => {
                    tally.out_of_blocks += 1;
                    return Ok(());
                }
                Err(error) => return Err(format!("step {number}, {step}: {error}")),
            };
            model.end(step);
            let ended = |mirrored: &mut Mirrored| mirrored.end(step, sectors, &drive);
            let older = self.mirrored.as_mut().is_some_and(ended);
            content += 1;
            let place = || format!("step {number}, {step}, a drive failed");
            if older {
                tally.older += 1;
                drive.top().check().map_err(|violation| format!("{}: {violation}", place()))?;
                if !self.follows_older() {
                    return Ok(());
                }
            }
            if let Step::Read { lba, .. } = step {
                for (unit, &stamp) in (lba / sectors..).zip(&reply.stamps) {
                    tally.compared += 1;
                    let right = match &self.mirrored {
                        Some(mirrored) if older => mirrored.may_hold(unit, stamp, &model),
                        _ => stamp == model.newest(unit),
                    };
                    if !right {
                        return Err(format!(
                            "step {number}, {step}: unit {unit} reads {stamp:?} instead of {:?}",
                            model.newest(unit)
                        ));
                    }
                }
            }
            if older {
                self.compare(&drive, &model, true, tally, &place())?;
                if let Some(mirrored) = &self.mirrored {
                    model = mirrored.ever.numbered_from(content);
                }
            }
            if self.has(Feature::Restarts) && self.rng.below(60) == 0 {
                model = match self.remount(&mut drive, &model, content, tally)? {
                    Some(model) => model,
                    None => return Ok(()),
                };
            }
        }
        drive.top().check().map_err(|violation| format!("at the end: {violation}"))?;
        for unit in 0..units {
            tally.compared += 1;
            let found = held(&drive, unit).map_err(|e| format!("at the end: {e}"))?;
            if found != model.newest(unit) {
                return Err(format!(
                    "at the end, unit {unit} holds {found:?} instead of {:?}",
                    model.newest(unit)
                ));
            }
        }
        let failures = |ssd: &&Ssd| failed(ssd.medium(), ssd.layout());
        tally.failed_operations += drive.drives().iter().map(failures).sum::<u64>();
        Ok(())
    }

    /// Returns `true` if the model covers a mirror whose first drive has failed.
    ///
    /// The model does not cover a mirror below another layer, because that layer stores units of
    /// its own in the mirror's pages. The model does not cover writes of parts of units, because
    /// each drive writes a part into its own version of the unit.
    fn follows_older(&self) -> bool {
        self.config.layers()[0].name == "mirror" && !self.has(Feature::Parts)
    }

    /// Returns the stamps of all units, and checks that they are allowed.
    ///
    /// `model` decides which stamps are allowed. If `older` is set for a mirror,
    /// [`Mirrored::may_hold`] decides instead, because units that were not flushed may then hold
    /// older versions. Returns an error if a unit cannot be read, or holds a stamp that is not
    /// allowed.
    fn compare(
        &mut self,
        drive: &Stack,
        model: &Model,
        older: bool,
        tally: &mut Tally,
        place: &str,
    ) -> Result<Vec<Stamp>, String> {
        let mut all = Vec::with_capacity(model.len() as usize);
        for unit in 0..model.len() {
            tally.compared += 1;
            let found = held(drive, unit).map_err(|e| format!("{place}: {e}"))?;
            let (allowed, versions) = match &self.mirrored {
                Some(mirrored) if older => {
                    (mirrored.may_hold(unit, found, model), mirrored.ever.versions(unit))
                }
                _ => (model.allows(unit, found), model.versions(unit)),
            };
            if !allowed {
                return Err(format!(
                    "{place}: unit {unit} holds {found:?}, but only {versions:?} are allowed"
                ));
            }
            if let Some(mirrored) = &mut self.mirrored {
                mirrored.ever.seen(unit, found);
            }
            all.push(found);
        }
        Ok(all)
    }

    /// Schedules, at random, a program, erase or power failure in one of the next operations.
    fn arm(&mut self, drive: &mut Stack) {
        if self.has(Feature::FailingPrograms) && self.rng.below(150) == 0 {
            let after = self.rng.below(6);
            drive.ssd_mut().faults().fail_program_after(after);
        }
        if self.has(Feature::FailingErases) && self.rng.below(150) == 0 {
            drive.ssd_mut().faults().fail_erase_after(0);
        }
        if self.has(Feature::Cuts) && self.rng.below(50) == 0 {
            let after = self.rng.below(12);
            drive.ssd_mut().faults().cut_power_after(after);
        }
    }

    /// Switches the drive off and on, and returns the model of its units.
    ///
    /// Returns `Ok(None)` if the mount fails with an error that [`Case::may_end`] allows, or if the
    /// model no longer covers the mirror ([`Case::follows_older`]). Returns an error if the mount
    /// fails with any other error, if a table breaks a rule, or if a unit holds a stamp that is not
    /// allowed.
    fn remount(
        &mut self,
        drive: &mut Stack,
        model: &Model,
        content: u64,
        tally: &mut Tally,
    ) -> Result<Option<Model>, String> {
        tally.mounts += 1;
        drive.ssd_mut().faults().restore_power();
        if self.has(Feature::Errors) {
            let day = 86_400;
            let days = self.rng.below(30) as u32;
            drive.drives_mut().into_iter().for_each(|ssd| ssd.faults().rest(days * day));
        }
        drive.drives_mut().into_iter().for_each(|ssd| lose_a_die(ssd.faults()));
        match drive.power_cycle(&self.config, SEED) {
            Ok(()) => {}
            Err(error) if self.may_end(&error, drive) => {
                tally.out_of_blocks += 1;
                return Ok(None);
            }
            Err(error) => return Err(format!("a mount: {error}")),
        }
        drive.top().check().map_err(|violation| format!("after a mount: {violation}"))?;
        counts_add_up(drive)?;
        drive.set_instant(true);
        let older = self.mirrored.as_mut().is_some_and(|mirrored| mirrored.mounted(drive));
        tally.older += u64::from(older);
        if older && !self.follows_older() {
            return Ok(None);
        }
        let all = self.compare(drive, model, older, tally, "after a mount")?;
        Ok(Some(Model::holding(all.into_iter(), drive.unit_sectors(), content)))
    }
}

/// Checks the laws of the counts of drives with parity, of which one die at most is lost.
fn counts_add_up(drive: &Stack) -> Result<(), String> {
    let layout = drive.ssd().layout();
    if !layout.has_parity() {
        return Ok(());
    }
    let counters = drive.flash_counters();
    let (errors, parity) = (&counters.errors, counters.programs[Cause::Parity as usize]);
    let data = Counters::total(&counters.programs) - parity;
    let laws = [
        (errors.uncorrectable, errors.rebuilt + errors.lost, "reads that failed"),
        (u64::from(layout.dies_per_frame - 1) * parity, data, "programs with parity"),
        (0, errors.lost, "reads of what is lost"),
    ];
    match laws.iter().find(|(one, other, _)| one != other) {
        Some((one, other, what)) => Err(format!("{what}: {one}, and {other} by another count")),
        None => Ok(()),
    }
}

/// Takes the same die from all frames of a medium with parity. From then on, everything on it is
/// rebuilt, and nothing may be lost.
fn lose_a_die(medium: &mut Medium) {
    let layout = medium.shared_layout();
    if layout.has_parity() {
        let frames = (0..layout.frames()).map(FrameId);
        let programmed: Vec<FrameId> =
            frames.filter(|&frame| medium.state(frame) == FrameState::Programmed).collect();
        programmed.into_iter().for_each(|frame| medium.lose_part(frame, 1));
    }
}
