//! The end of a drive: its blocks went bad until its data had no room.
//!
//! This is a result, not a fault: the run's record contains the measurements up to this point.

use crate::RunError;
use crate::player::{Player, WornOut};
use crate::precondition::failed;
use flashatlas_device::SubmitError;
use flashatlas_types::{FtlError, Ps, Request, Stamp};

impl Player {
    /// Returns the error that the drive cannot go on at a request, because it is worn out or
    /// failed.
    pub(crate) fn ended(&self, request: u64, error: SubmitError) -> RunError {
        match (failed(request, error), self.retired()) {
            (
                RunError::Drive { request, error: error @ FtlError::NoSpace { .. } },
                retired @ 1..,
            ) => RunError::WornOut { request, retired, error },
            (other, _) => other,
        }
    }

    /// Returns the error for a request that the drive refused, as [`Player::ended`] does.
    ///
    /// A worn-out drive may have written a part of the request. A unit that still holds its old
    /// version is expected to keep this version.
    pub(crate) fn refused(&mut self, r: &Request, number: u64, error: SubmitError) -> RunError {
        let ended = self.ended(number, error);
        if let RunError::WornOut { .. } = ended {
            let drive = &self.drive;
            self.oracle.apply_partly(r, number, |unit| {
                let mut found = [Stamp::ZERO];
                drive.top().peek_stamps(unit, &mut found).ok().map(|()| found[0])
            });
        }
        ended
    }

    /// Returns the number of blocks that have gone bad since the drives were new.
    fn retired(&self) -> u64 {
        self.drive.drives().iter().map(|drive| drive.ftl_report().retired_blocks).sum()
    }

    /// Ends the run if the drive wore out in the measured part; commands in flight complete first.
    ///
    /// # Errors
    /// Returns any other error of `played`, and an error if the drive wore out before the measured
    /// part.
    pub(crate) fn until_worn_out(&mut self, played: Result<(), RunError>) -> Result<(), RunError> {
        match played {
            Err(RunError::WornOut { request, retired, .. }) if self.is_measuring() => {
                self.worn_out = Some(WornOut { request, retired_blocks: retired });
                while self.in_flight() > 0 {
                    self.advance_to_completion(Ps::MAX, |_, _| ())?;
                }
                Ok(())
            }
            other => other,
        }
    }
}
