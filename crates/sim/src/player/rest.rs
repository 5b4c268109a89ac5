//! The time for which a preconditioned drive rests, switched off, before the run.

use super::Player;
use crate::RunError;
use crate::checkpoint::forget_empty;
use crate::precondition::failed;
use flashatlas_device::{DriveConfig, Ssd};
use flashatlas_types::{FtlError, Lpn, MediumError, Seed, Stamp, Violation};

impl Player {
    /// Lets the drive rest as `errors.rest_days` says, and switches it on. From then on the run
    /// goes on after reads whose data cannot be read.
    ///
    /// Units that lost their data meanwhile are counted. From then on, the oracle expects the
    /// content that the drive has for them.
    ///
    /// # Errors
    /// Returns an error if the drive cannot be switched on, or if more units changed than the
    /// unreadable frames held.
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
        let slots = u64::from(self.drive.ssd().layout().slots_per_frame);
        let most = self.drive.flash_counters().errors.found_unreadable * slots;
        if most > 0 {
            for unit in (0..self.oracle.units()).map(Lpn) {
                let held = match self.drive.top().peek_stamp(unit) {
                    Err(error) => match failed(0, error) {
                        RunError::Drive {
                            error: FtlError::Medium(MediumError::Unreadable(_)),
                            ..
                        } => Stamp::LOST,
                        error => return Err(error),
                    },
                    Ok(held) => held,
                };
                self.lost_at_rest += u64::from(self.oracle.accept(unit, held));
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
