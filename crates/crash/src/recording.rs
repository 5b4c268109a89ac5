//! Recording of a workload that was carried out once.
//!
//! A recording contains the media before the workload, every change that the workload made, and the
//! number of changes at the acknowledgement of each command.

use crate::at_random::{AtRandom, is_failed_program, is_lost, is_without_room};
use crate::failing_part::FailingPart;
use crate::media::{DriveChange, Media, take_journals, take_journals_in_turn};
use crate::model::{Model, Step};
use crate::{Failure, guarded};
use flashatlas_device::{Contents, DriveConfig, Reply, Stack, SubmitError};
use flashatlas_nand::{Change, FrameState};
use flashatlas_types::{Dur, FrameId, Lpn, Ps, Seed, Stamp, Tag};

/// Index of the drive whose parts fail, if a layer combines several drives.
pub(crate) const FAILING: usize = 0;

/// Seed of every drive, so that random choices in a drive are the same in each run.
pub const SEED: Seed = Seed(1);

/// A workload that ran with the power on.
pub struct Recording {
    /// The media when the journal began.
    pub base: Media,
    /// Changes of the media.
    pub changes: Vec<DriveChange>,
    /// The commands.
    pub steps: Vec<Step>,
    /// Number of changes when each command was acknowledged.
    pub ends: Vec<usize>,
    /// The model of the units when the journal began.
    pub model: Model,
    /// `true` if a program failed and no spare block took its block's place.
    pub broken: bool,
    /// `true` if the last command ended in an error because the drive is `broken`. Real firmware
    /// might complete such a command.
    pub refused: bool,
    /// Contents for the digests that the drive's layers store.
    pub contents: Vec<Contents>,
}

/// Returns the content number with which a unit is filled before a workload.
pub(crate) fn filling(unit: Lpn) -> u64 {
    1 << 62 | u64::from(unit.0)
}

/// Returns the stamp that the units of a drive hold before a workload.
pub(crate) fn held_before(filled: bool, unit: u32) -> Stamp {
    if filled { Stamp::whole(filling(Lpn(unit)), 0) } else { Stamp::ZERO }
}

/// Returns a new drive that keeps a journal. Also returns its media from before the layers were set
/// up, and the changes that set up the layers.
pub(crate) fn blank(config: &DriveConfig) -> Result<(Media, Stack, Vec<DriveChange>), Failure> {
    let cannot = |e: flashatlas_types::ConfigError| Failure::new("R5", e.to_string());
    let drives = (0..config.drives()).map(|drive| config.build(SEED.of_drive(drive)));
    let mut drives = drives.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    // the writes with which layers set up a blank drive belong to the workload
    drives.iter_mut().for_each(|drive| drive.faults().keep_journal());
    let base = Media::of_drives(&drives);
    let mut drive = Stack::over(drives, config).map_err(cannot)?;
    let mut changes = Vec::new();
    take_journals_in_turn(&mut drive, &mut changes);
    Ok((base, drive, changes))
}

impl Recording {
    /// Runs `steps` on a new drive; with `filled`, every unit is written beforehand.
    ///
    /// Every read is compared with the model. With `part`, one part fails; the number is the number
    /// of parts of this kind before the part that fails.
    ///
    /// # Errors
    /// Returns an error if the drive fails or a read returns a wrong stamp while the power is on.
    pub fn make(
        config: &DriveConfig,
        steps: &[Step],
        filled: bool,
        part: Option<(FailingPart, u32)>,
    ) -> Result<Recording, Failure> {
        guarded(|| Recording::try_make(config, steps, filled, part))
    }

    fn try_make(
        config: &DriveConfig,
        steps: &[Step],
        filled: bool,
        part: Option<(FailingPart, u32)>,
    ) -> Result<Recording, Failure> {
        let at_random = AtRandom::of(config);
        let without_spare = matches!(part, Some((FailingPart::ProgramWithoutSpare, _)));
        let (mut base, mut drive, mut changes) = blank(config)?;
        if filled {
            match drive.fill_while(filling, &mut |_| true) {
                Err(error) if at_random.stop(&error) => {
                    return Ok(Recording::of_nothing(base, &mut drive));
                }
                filled => filled.map_err(|e| Failure::new("R5", format!("filling: {e}")))?,
            };
            take_journals(&mut drive, false, &mut changes);
            changes.clear();
            base = Media::of(&drive);
        }
        drive.set_instant(true);
        let units = drive.shape().units();
        let model = Model::holding(
            (0..units).map(|unit| held_before(filled, unit)),
            drive.unit_sectors(),
            1 << 20,
        );
        let model = if drive.top().forgets_trims() { model.forgetting_trims() } else { model };
        match part {
            Some((FailingPart::Program | FailingPart::ProgramWithoutSpare, n)) => {
                drive.drives_mut()[FAILING].faults().fail_program_after(n.into())
            }
            Some((FailingPart::Erase | FailingPart::EraseWithoutSpare, n)) => {
                drive.drives_mut()[FAILING].faults().fail_erase_after(n.into())
            }
            _ => {}
        }
        let (mut now, mut ends) = (model.clone(), Vec::with_capacity(steps.len()));
        for (number, &step) in steps.iter().enumerate() {
            let content = now.begin(step);
            let applied = apply(&mut drive, step, content);
            // the failing part may stop the drive, and so may failures at random
            let stopped = match &applied {
                Err(error) if without_spare && may_stop(error, &drive) => Some(true),
                Err(error) if at_random.stop(error) => {
                    let mut units = step.reads(drive.unit_sectors());
                    let is_lost = units.any(|unit| is_lost(&drive, unit));
                    (!is_lost).then_some(false)
                }
                _ => None,
            };
            if let Some(by_part) = stopped {
                take_journals(&mut drive, number % 2 == 1, &mut changes);
                ends.push(changes.len());
                let (steps, contents) = (steps[..ends.len()].to_vec(), drive.contents());
                let broken = by_part || at_random.parts && any_failed_program(&changes);
                let refused = true;
                return Ok(Recording {
                    base,
                    changes,
                    steps,
                    ends,
                    model,
                    broken,
                    refused,
                    contents,
                });
            }
            let reply = match applied {
                // a page that wrong bits took has no stamp to compare
                Err(error) if at_random.stop(&error) => Reply::default(),
                reply => reply.map_err(|e| Failure::new("R5", format!("power on, {step}: {e}")))?,
            };
            if let Step::Read { lba, .. } = step {
                let first = lba / drive.unit_sectors();
                for (unit, &stamp) in (first..).zip(&reply.stamps) {
                    let right = now.newest(unit) == stamp;
                    Failure::unless(right, "R6", || {
                        format!(
                            "power on: unit {unit} reads {stamp:?} instead of {:?}",
                            now.newest(unit)
                        )
                    })?;
                }
            }
            now.end(step);
            take_journals(&mut drive, number % 2 == 1, &mut changes);
            ends.push(changes.len());
        }
        for unit in 0..units {
            let held = held(&drive, unit)?;
            let right = held == now.newest(unit) || held == Stamp::LOST;
            Failure::unless(right, "R6", || {
                format!("power on: unit {unit} holds {held:?} instead of {:?}", now.newest(unit))
            })?;
        }
        drive.top().check().map_err(|v| Failure::new("R5", format!("power on: {v}")))?;
        // a program may have failed even though no command failed and all data is correct
        let broken = (without_spare || at_random.parts) && any_failed_program(&changes);
        let contents = drive.contents();
        let steps = steps.to_vec();
        Ok(Recording { base, changes, steps, ends, model, broken, refused: false, contents })
    }

    /// Returns the recording of no command, because failures at random stopped the drive while it
    /// was filled.
    fn of_nothing(base: Media, drive: &mut Stack) -> Recording {
        let (units, unit_sectors) = (drive.shape().units(), drive.unit_sectors());
        let blank = (0..units).map(|_| Stamp::ZERO);
        Recording {
            base,
            changes: Vec::new(),
            steps: Vec::new(),
            ends: Vec::new(),
            model: Model::holding(blank, unit_sectors, 1 << 20),
            broken: false,
            refused: false,
            contents: drive.contents(),
        }
    }

    /// Returns the media and the model of the units at the end.
    pub fn end(&self) -> (Media, Model) {
        let (mut media, mut model) = (self.base.clone(), self.model.clone());
        self.changes.iter().for_each(|change| media.redo(change));
        for &step in &self.steps {
            model.begin(step);
            model.end(step);
        }
        (media, model)
    }
}

impl Recording {
    /// Returns `true` if failures at random take parts of the recorded drive. Then no part is
    /// chosen to fail, because what its failure excuses would hide what wrong bits must not do.
    pub(crate) fn loses(&self, at_random: AtRandom) -> bool {
        if at_random.by_rates || !at_random.pages {
            return at_random.by_rates;
        }
        let (media, _) = self.end();
        media.into_iter().any(|mut medium| {
            medium.find_unreadable();
            let mut frames = (0..medium.layout().frames()).map(FrameId);
            frames.any(|frame| medium.state(frame) == FrameState::Lost)
        })
    }
}

/// Returns `true` if a program failed among some changes.
fn any_failed_program(changes: &[DriveChange]) -> bool {
    changes.iter().any(|c| matches!(c.change, Change::ProgramFailed(_)))
}

/// Returns `true` if `error` may stop a drive without spare blocks: a program failed, or the block
/// of a program that failed leaves no room.
fn may_stop(error: &SubmitError, drive: &Stack) -> bool {
    is_failed_program(error) || is_without_room(error) && has_failed(drive)
}

/// Returns `true` if a program has failed.
fn has_failed(drive: &Stack) -> bool {
    drive.drives().into_iter().any(|drive| {
        let medium = drive.medium();
        medium.layout().block_ids().any(|block| medium.refuses_programs(block))
    })
}

/// Carries out a step on a drive whose commands are instant.
pub fn apply(drive: &mut Stack, step: Step, content: u64) -> Result<Reply, SubmitError> {
    let mut reply = Reply::default();
    match step.command(content) {
        Some(command) => drive.submit(Ps::ZERO, Tag(0), command, &mut reply)?,
        None => {
            // work in idle time needs time, which does not pass while commands are instant
            drive.set_instant(false);
            let now = drive.drain();
            let worked = drive.idle(now, now.after(Dur::from_us(400_000)));
            drive.drain();
            drive.set_instant(true);
            worked?;
        }
    }
    Ok(reply)
}

/// Returns the stamp of a unit; [`Stamp::LOST`] if wrong bits took its newest data.
///
/// # Errors
/// Returns an error if the unit cannot be read for another reason.
#[inline]
pub fn held(drive: &Stack, unit: u32) -> Result<Stamp, Failure> {
    match drive.top().peek_stamp(Lpn(unit)) {
        Err(_) if is_lost(drive, unit) => Ok(Stamp::LOST),
        held => held.map_err(|error| Failure::new("R2", format!("unit {unit}: {error}"))),
    }
}
