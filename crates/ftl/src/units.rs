//! Units that a scheme reads from slots, and their checks.

use crate::FtlContext;
use flashatlas_nand::{Medium, ReadPart, Unit};
use flashatlas_types::{Cause, FrameId, FtlError, Lpn, MediumError, OpId, Ppn, Violation};

/// Returns the content of slot `at`. The slot must hold page `expected`.
///
/// # Errors
/// Returns [`FtlError::WrongPage`] if the slot holds another page, and the errors of the medium.
#[inline]
pub fn unit_at(medium: &Medium, at: Ppn, expected: Lpn) -> Result<Unit, FtlError> {
    expecting(medium.unit(at)?, at, expected)
}

/// Reads page `expected` from slot `at`, to copy it elsewhere. The slot must be a whole frame.
/// Returns the content of the page and the operation that reads it. Content that cannot be read is
/// copied as lost.
///
/// # Errors
/// Returns [`FtlError::WrongPage`] if the slot holds another page, and the errors of the medium.
#[inline]
pub fn read_for_copy(
    cx: &mut FtlContext<'_>,
    at: Ppn,
    expected: Lpn,
    cause: Cause,
) -> Result<(Unit, OpId), FtlError> {
    let frame = cx.flash.medium.layout().frame_of(at);
    if cx.flash.medium.has_errors() {
        return read_that_may_fail(cx, at, expected, cause);
    }
    let sensed = cx.flash.read(frame, 1, ReadPart::Whole, cause, &[])?;
    Ok((unit_at(cx.flash.medium, at, expected)?, sensed))
}

#[cold]
fn read_that_may_fail(
    cx: &mut FtlContext<'_>,
    at: Ppn,
    expected: Lpn,
    cause: Cause,
) -> Result<(Unit, OpId), FtlError> {
    let sensed = read_or_lose(cx, cx.flash.medium.layout().frame_of(at), 1, cause)?;
    Ok((expecting(cx.flash.medium.unit_or_lost(at)?, at, expected)?, sensed))
}

/// Reads slots of a frame for copies. Returns [`OpId::NONE`] if their content cannot be read: they
/// are then copied as lost ([`Medium::unit_or_lost`]).
///
/// # Errors
/// Returns the errors of the medium.
#[inline]
pub fn read_or_lose(
    cx: &mut FtlContext<'_>,
    frame: FrameId,
    slots: u64,
    cause: Cause,
) -> Result<OpId, MediumError> {
    match cx.flash.read(frame, slots, ReadPart::Whole, cause, &[]) {
        Err(MediumError::Unreadable(_)) if cx.flash.medium.has_errors() => Ok(OpId::NONE),
        read => read,
    }
}

/// Returns the content of slot `at` as [`unit_at`] does, but without the data bytes: the stamp
/// stands for them.
///
/// # Errors
/// Returns the errors of [`unit_at`].
#[inline]
pub fn unit_by_stamp_at(medium: &Medium, at: Ppn, expected: Lpn) -> Result<Unit, FtlError> {
    expecting(medium.unit_by_stamp(at)?, at, expected)
}

#[inline]
fn expecting(unit: Unit, at: Ppn, expected: Lpn) -> Result<Unit, FtlError> {
    if unit.lpn == expected {
        Ok(unit)
    } else {
        Err(FtlError::WrongPage { at, expected, found: unit.lpn })
    }
}

/// Checks that the spare area of slot `ppn` names the page that is mapped to it.
///
/// # Errors
/// Returns an error if the spare area names another page or no page.
pub fn check_names(medium: &Medium, ppn: Ppn, lpn: Lpn) -> Result<(), Violation> {
    let found = medium.named(ppn);
    Violation::unless(found == Ok(lpn), "the spare area of a mapped slot names its page", || {
        format!(
            "page {lpn} should be in slot {ppn}, but the spare area of this slot holds {found:?}"
        )
    })
}
