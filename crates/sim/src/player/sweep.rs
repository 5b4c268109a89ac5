//! The check of every page at the end of a run.

use crate::notes::NOT_SWEPT;
use crate::oracle::Oracle;
use crate::precondition::failed;
use crate::{Progress, RunError};
use flashatlas_device::Stack;
use flashatlas_types::{FtlError, Lpn, MediumError, Note, Stamp, Violation};

/// Maximum number of mapping units that are swept one by one after the run.
const SWEEP_UNITS_MAX: u32 = 1 << 28;

/// Number of units that a sweep reads together.
const SWEPT_TOGETHER: u32 = 1 << 22;

/// Checks every page once more after `requests` requests, without commands to the drive.
///
/// If the drive can sum up its stamps and the sum is as expected, all pages are checked together.
/// If the drive has no sum and is too large to be checked page by page, returns a note.
pub(crate) fn sweep(
    drive: &mut Stack,
    oracle: &mut Oracle,
    requests: u64,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Note>, RunError> {
    let units = oracle.units();
    let sum = drive.top().sum_of_stamps();
    if sum.is_some_and(|sum| oracle.sweep_at_once(sum)) {
        return Ok(None);
    }
    if sum.is_none() && units > SWEEP_UNITS_MAX {
        return Ok(Some(NOT_SWEPT.with([("pages", units.into())])));
    }
    let mut found = vec![Stamp::ZERO; units.min(SWEPT_TOGETHER) as usize];
    for first in (0..units).step_by(SWEPT_TOGETHER as usize) {
        let found = &mut found[..(units - first).min(SWEPT_TOGETHER) as usize];
        match drive.top().peek_stamps(Lpn(first), found) {
            Err(_) if drive.ssd().medium().has_errors() => {
                sweep_one_by_one(drive, oracle, (requests, first), found.len())?;
            }
            peeked => {
                peeked.map_err(|error| failed(requests, error))?;
                found.iter().zip(first..).for_each(|(&stamp, lpn)| oracle.sweep(lpn, stamp));
            }
        }
        let share = Some(f64::from(first) / f64::from(units));
        if !progress(Progress { phase: "check", requests, share }) {
            return Err(RunError::Interrupted);
        }
    }
    let explained = sum.is_none() || oracle.violations > 0 || oracle.lost > 0;
    Violation::unless(explained, "the drive's sum of stamps equals the sum over all pages", || {
        format!("all {units} pages hold the right content, but their sum differs")
    })
    .map_err(RunError::Broken)?;
    Ok(None)
}

/// Checks `count` units from unit `first` on, one by one. Units that cannot be read any more are
/// counted.
fn sweep_one_by_one(
    drive: &Stack,
    oracle: &mut Oracle,
    (requests, first): (u64, u32),
    count: usize,
) -> Result<(), RunError> {
    for lpn in (first..).take(count) {
        match drive.top().peek_stamp(Lpn(lpn)) {
            Ok(stamp) => oracle.sweep(lpn, stamp),
            Err(error) => match failed(requests, error) {
                RunError::Drive { error: FtlError::Medium(MediumError::Unreadable(_)), .. } => {
                    oracle.lost += 1
                }
                error => return Err(error),
            },
        }
    }
    Ok(())
}
