//! Failures at random (`errors.*`) in workloads whose power fails.
//!
//! Programs, erases and reads fail while a workload runs, in the mounts after its cuts, and while
//! the drive is written on: several in one run, each drawn from the drive's seed. A copy of a
//! medium draws on from the place at which it was copied, so a failure is repeated by its identity.
//!
//! A program or an erase that fails promises what it promises alone ([`crate::failing_runs`]): with
//! a spare block all goes on, and without one the drive may stop or run out of room. A page that
//! cannot be read takes the data of its units, and nothing else. From then on each of them reads as
//! an error, across mounts, until the host writes or trims it (promise R6). The harness gives such
//! a unit the stamp [`Stamp::LOST`], but only if the place to which the drive's tables point really
//! names the unit and cannot be read.

use crate::media::DriveChange;
use flashatlas_device::{DriveConfig, Stack, SubmitError};
use flashatlas_ftl::Place;
use flashatlas_nand::errors::FailureRates;
use flashatlas_nand::{Change, ErrorRules, FrameState, Medium};
use flashatlas_types::{FrameId, FtlError, Lpn, MediumError, Stamp};
use std::collections::BTreeSet;

/// Keys with the rates of failures at random.
pub(crate) const KEYS: [&str; 3] =
    ["errors.program_failures", "errors.erase_failures", "errors.unreadable"];

/// Failures at random of a drive.
#[derive(Clone, Copy, Default)]
pub(crate) struct AtRandom {
    /// `true` if programs or erases fail.
    pub parts: bool,
    /// `true` if pages cannot be read.
    pub pages: bool,
    /// `true` if a rate is given ([`KEYS`]), so that parts fail without being chosen.
    pub by_rates: bool,
}

impl AtRandom {
    /// Returns the failures of a configuration.
    pub fn of(config: &DriveConfig) -> AtRandom {
        let Some(rules) = ErrorRules::from_params(&config.params) else {
            return AtRandom::default();
        };
        AtRandom {
            parts: rules.rates.program > 0 || rules.rates.erase > 0,
            pages: rules.lose_pages(),
            by_rates: rules.rates != FailureRates::default(),
        }
    }

    /// Returns `true` if `error` is a refusal that failures at random allow: no spare block is left
    /// for a failed program, or no room is left without the blocks that failed.
    pub fn allow(self, error: &SubmitError) -> bool {
        self.parts && (is_failed_program(error) || is_without_room(error))
    }

    /// Returns `true` if failures at random allow that `error` ends a command: as
    /// [`AtRandom::allow`] says, or because the command needs a page that cannot be read.
    pub fn stop(self, error: &SubmitError) -> bool {
        self.allow(error) || self.pages && is_unreadable(error)
    }
}

/// Returns `true` if `error` reports that a program failed.
pub fn is_failed_program(error: &SubmitError) -> bool {
    matches!(error, SubmitError::Ftl(FtlError::Medium(MediumError::ProgramFailed(_))))
}

/// Returns `true` if `error` reports that a drive has no room, which may happen after the loss of a
/// block.
pub fn is_without_room(error: &SubmitError) -> bool {
    matches!(error, SubmitError::Ftl(FtlError::NoSpace { .. }))
}

/// Returns `true` if `error` reports a page that wrong bits have taken.
pub(crate) fn is_unreadable(error: &SubmitError) -> bool {
    matches!(error, SubmitError::Ftl(FtlError::Medium(MediumError::Unreadable(_))))
}

/// Returns `true` if wrong bits have taken the newest data of a unit.
///
/// The place of the unit then names the unit, and cannot be read. Under layers, the result is
/// `false`, because the units of a layer have other numbers on the drive.
pub(crate) fn is_lost(drive: &Stack, unit: u32) -> bool {
    if !drive.top().lower().is_empty() {
        return false;
    }
    let medium = drive.ssd().medium();
    let Place::Flash(at) = drive.ssd().place(Lpn(unit)) else { return false };
    let found = medium.has_errors().then(|| medium.unit_or_lost(at));
    matches!(found, Some(Ok(found)) if found.lpn == Lpn(unit) && found.stamp == Stamp::LOST)
}

/// Frames that held parts of a map before a mount.
pub(crate) struct MapFrames {
    frames: BTreeSet<FrameId>,
    /// `true` if wrong bits had taken one of them before the mount.
    is_lost: bool,
}

impl MapFrames {
    /// Returns these frames of the media of one drive.
    pub fn of(medium: &Medium) -> MapFrames {
        let holds = |frame: &FrameId| medium.holds_map(*frame);
        let frames: BTreeSet<FrameId> =
            (0..medium.layout().frames()).map(FrameId).filter(holds).collect();
        let is_lost = frames.iter().any(|&frame| medium.state(frame) == FrameState::Lost);
        MapFrames { frames, is_lost }
    }

    /// Returns `true` if wrong bits took one of the frames, before the mount or in it. `changes`
    /// are the changes of the mount.
    pub fn are_lost(&self, changes: &[DriveChange]) -> bool {
        let now = changes.iter().filter_map(|change| match change.change {
            Change::Lost(frame) => Some(frame),
            _ => None,
        });
        self.is_lost || now.into_iter().any(|frame| self.frames.contains(&frame))
    }
}
