//! The time for which a preconditioned drive rests, switched off, before the run.

use super::Player;
use crate::RunError;
use crate::checkpoint::forget_empty;
use crate::precondition::failed;
use flashatlas_device::{DriveConfig, Ssd, Stack};
use flashatlas_types::{FtlError, Lpn, MediumError, Seed, Stamp, Violation};

/// Returns the stamp that a drive holds in a unit, or [`Stamp::LOST`] if it cannot be read.
///
/// # Errors
/// Returns the other errors of the drive.
pub(crate) fn held_or_lost(drive: &Stack, unit: Lpn) -> Result<Stamp, RunError> {
    drive.top().peek_stamp(unit).or_else(|error| match failed(0, error) {
        RunError::Drive { error: FtlError::Medium(MediumError::Unreadable(_)), .. } => {
            Ok(Stamp::LOST)
        }
        error => Err(error),
    })
}

impl Player {
    /// Lets the drive rest as `errors.rest_days` says, and switches it on. From then on the run
    /// goes on after reads whose data cannot be read.
    ///
    /// Units that lost their data meanwhile are counted. From then on, the oracle expects the
    /// content that the drive has for them.
    ///
    /// # Errors
    /// Returns an error if the drive cannot be switched on, if more units changed than the
    /// unreadable frames held, or if a unit holds other data than before.
    pub(crate) fn begin_rested(
        &mut self,
        config: &DriveConfig,
        seed: Seed,
    ) -> Result<(), RunError> {
        self.survive_unreadable();
        let rests = |ssd: &Ssd| ssd.medium().rules().errors.map_or(0, |errors| errors.rest_s);
        let rest_s = rests(self.drive.ssd());
        if rest_s == 0 || self.drive.ssd().medium().sequence() == 0 {
            return Ok(());
        }
        let instant = !self.measurement.start.timed;
        for ssd in self.drive.drives_mut() {
            ssd.faults().rest(rest_s);
        }
        self.drive.power_cycle(config, seed).map_err(|e| failed(0, e))?;
        self.drive.set_instant(instant);
        // wear alone may have lost units before the rest, when the prepared drive was mounted
        let most = self.drive.drives().iter().map(|ssd| ssd.medium().lost_slots()).sum();
        if most > 0 {
            for unit in (0..self.oracle.units()).map(Lpn) {
                let held = held_or_lost(&self.drive, unit)?;
                let before = self.oracle.accept(unit, held);
                // a trim may come back if the drive writes no map, but data is there or lost
                let is_right = held == before || held == Stamp::LOST || before == Stamp::ZERO;
                Violation::unless(is_right, "what a rest loses reads as an error", || {
                    format!("unit {unit} holds {held:?} instead of {before:?}")
                })
                .map_err(RunError::Broken)?;
                self.lost_at_rest += u64::from(held != before);
            }
            let lost = self.lost_at_rest;
            Violation::unless(lost <= most, "a rest loses only units of unreadable frames", || {
                format!("{lost} units changed, but the unreadable frames held {most}")
            })
            .map_err(RunError::Broken)?;
        }
        forget_empty(&mut self.drive, self.oracle.empty()).map_err(|e| failed(0, e))
    }
}
