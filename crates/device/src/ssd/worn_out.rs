//! A drive that is worn out and accepts no more writes.

use super::Ssd;
use super::state::mount;
use crate::{Cmd, DriveConfig};
use flashatlas_ftl::{Copies, FtlReport};
use flashatlas_types::{FtlError, MediumError, OpId, Seed};

/// Configuration and seed of a drive that becomes read-only when it is worn out.
pub(super) struct WornOut {
    pub config: DriveConfig,
    pub seed: Seed,
    /// The counters of the FTL when the drive became read-only; `None` before. The mount that
    /// rebuilds the tables begins new ones.
    pub report: Option<FtlReport>,
}

impl Ssd {
    /// Returns `true` if the drive refuses every change, because it is worn out.
    pub fn is_read_only(&self) -> bool {
        self.worn_out.as_ref().is_some_and(|worn| worn.report.is_some())
    }

    /// Returns `true` if a read-only drive refuses a command. A FLUSH is refused only if data is
    /// left that cannot be written.
    pub(super) fn refuses_changes(&self, cmd: &Cmd<'_>) -> bool {
        self.is_read_only()
            && match cmd {
                Cmd::Flush => self.dirty_units() > 0,
                cmd => cmd.changes(),
            }
    }

    /// Makes the drive read-only if `error` means that it is worn out and `ftl.worn_out` is
    /// `read-only`. Returns `true` if reads go on.
    ///
    /// The tables are rebuilt from the flash, in no time, because the write has left them half
    /// changed. Data that waited to be written stays in the write cache, where reads find it.
    #[cold]
    #[inline(never)]
    pub(super) fn becomes_read_only(&mut self, error: &FtlError) -> bool {
        let worn_out = matches!(
            error,
            FtlError::NoSpace { .. }
                | FtlError::Medium(
                    MediumError::ProgramFailed(_)
                        | MediumError::EraseFailed(_)
                        | MediumError::BadBlock(_)
                )
        );
        let Some(mut worn) = self.worn_out.take_if(|worn| worn_out && worn.report.is_none()) else {
            return false;
        };
        let (waiting, report) = (self.ftl.buffered(), self.ftl.report());
        self.take_back();
        let all = crate::pieces::all_sectors(self.layout.unit_sectors());
        for unit in waiting {
            if let Some(cache) = &mut self.cache
                && cache.get(unit.lpn).is_none()
            {
                cache.insert(unit.lpn, unit.stamp, unit.stamp, all, unit.bytes, OpId::NONE);
            }
        }
        self.medium.power_off();
        self.plan.set_recording(false);
        let mounted = mount(&worn.config, worn.seed, &mut self.medium, &mut self.plan);
        self.plan.set_recording(!self.instant);
        (self.copies, self.in_flight.unflushed) = (Copies::default(), Vec::new());
        self.outcome.clear_programmed();
        let goes_on = mounted.is_ok();
        if let Ok(ftl) = mounted {
            self.ftl = ftl;
            worn.report = Some(report);
        }
        self.worn_out = Some(worn);
        goes_on
    }
}
