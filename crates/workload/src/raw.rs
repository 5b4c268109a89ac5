//! Records as formats decode them, before the checks that all formats share.

use crate::bad::BadKind;
use crate::error::{Place, TraceError};
use crate::source::{END_OF_SECTORS, MAX_TRANSFER_SECTORS};
use flashatlas_types::{HostOp, SECTOR_BYTES};
use std::borrow::Cow;

pub(crate) const NANOSECOND_PS: u64 = 1_000;
pub(crate) const MICROSECOND_PS: u64 = 1_000_000;
pub(crate) const MILLISECOND_PS: u64 = 1_000_000_000;
pub(crate) const SECOND_PS: u64 = 1_000_000_000_000;

/// A record as a format decodes it, before the checks that all formats share.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    pub time: Time,
    pub device: u32,
    pub op: HostOp,
    pub extent: Extent,
    pub fua: bool,
    /// `true` if all earlier writes must be made durable first. A flush is then delivered before
    /// the record.
    pub preflush: bool,
}

impl Raw {
    /// Returns a record without forced unit access, and without a flush before it.
    pub fn plain(time: Time, device: u32, op: HostOp, extent: Extent) -> Raw {
        Raw { time, device, op, extent, fua: false, preflush: false }
    }
}

/// Time at which a record was submitted, and the bytes of the record that hold it.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    /// Picoseconds since the instant that the format counts from.
    pub ps: u128,
    /// Range of the bytes (from, to).
    pub span: (usize, usize),
}

impl Time {
    /// Returns a time whose bytes are the whole record.
    pub fn whole(ps: u128) -> Time {
        Time { ps, span: WHOLE }
    }

    /// Returns a whole number of units of `unit_ps` picoseconds as a time whose bytes are the whole
    /// record.
    pub fn of(number: u64, unit_ps: u64) -> Time {
        Time::whole(u128::from(number) * u128::from(unit_ps))
    }
}

/// All bytes of a record.
const WHOLE: (usize, usize) = (0, usize::MAX);

/// Range of whole sectors; empty for a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub first: u64,
    pub sectors: u32,
}

/// Fault of an address and a length that make no [`Extent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExtentError {
    /// The length is zero.
    Empty,
    /// The length exceeds the maximum of a request.
    TooLong,
    /// The end lies beyond the last address.
    TooFar,
}

impl ExtentError {
    /// Returns a description of the fault, and the expected text.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            ExtentError::Empty => ("a length of zero", "at least one byte"),
            ExtentError::TooLong => {
                ("a length beyond all requests", "at most 1 GiB, or 2 TiB less a sector for a trim")
            }
            ExtentError::TooFar => ("an address beyond all drives", "an end below 2^64 bytes"),
        }
    }
}

impl ExtentError {
    /// Returns the fault of a record in the bytes `span`.
    pub fn fault(self, span: (usize, usize)) -> Fault {
        let (why, expected) = self.words();
        Fault { why: Cow::Borrowed(why), expected, span, kind: Some(self.kind()) }
    }

    fn kind(self) -> BadKind {
        match self {
            ExtentError::Empty => BadKind::ZeroLength,
            ExtentError::TooLong => BadKind::TooLong,
            ExtentError::TooFar => BadKind::TooFar,
        }
    }
}

impl Extent {
    /// Extent without sectors, for a flush.
    pub const NONE: Extent = Extent { first: 0, sectors: 0 };

    /// Returns the sectors that cover `len` bytes at byte `offset`.
    pub fn of_bytes(op: HostOp, offset: u64, len: u64) -> Result<Extent, ExtentError> {
        let last = offset
            .checked_add(len.checked_sub(1).ok_or(ExtentError::Empty)?)
            .ok_or(ExtentError::TooFar)?;
        let sector = u64::from(SECTOR_BYTES);
        let first = offset / sector;
        Extent::of_sectors(op, first, last / sector - first + 1)
    }

    /// Returns the sectors that cover `len` bytes at sector `first`.
    pub fn of_sector_and_bytes(op: HostOp, first: u64, len: u64) -> Result<Extent, ExtentError> {
        Extent::of_sectors(op, first, len.div_ceil(u64::from(SECTOR_BYTES)))
    }

    /// Returns `count` sectors from sector `first` on, or the fault of these numbers.
    pub fn of_sectors(op: HostOp, first: u64, count: u64) -> Result<Extent, ExtentError> {
        let limit = if op == HostOp::Trim { u32::MAX } else { MAX_TRANSFER_SECTORS };
        let sectors =
            u32::try_from(count).ok().filter(|&n| n <= limit).ok_or(ExtentError::TooLong)?;
        match first.checked_add(count) {
            _ if sectors == 0 => Err(ExtentError::Empty),
            Some(end) if end <= END_OF_SECTORS => Ok(Extent { first, sectors }),
            _ => Err(ExtentError::TooFar),
        }
    }

    /// Returns the sectors moved by `by`, or `None` if they leave the address range.
    pub fn shifted(self, by: i64) -> Option<Extent> {
        let first = self.first.checked_add_signed(by)?;
        let end = first.checked_add(u64::from(self.sectors))?;
        (end <= END_OF_SECTORS).then_some(Extent { first, ..self })
    }
}

/// A fault in a record.
#[derive(Debug)]
pub struct Fault {
    /// The cause.
    pub why: Cow<'static, str>,
    /// The content expected.
    pub expected: &'static str,
    /// The bytes of the record at fault, from and to.
    pub span: (usize, usize),
    /// Kind of the fault, if it can be skipped by name.
    pub kind: Option<BadKind>,
}

impl Fault {
    /// Returns a fault of the whole record.
    pub fn whole(why: &'static str, expected: &'static str) -> Fault {
        Fault { why: Cow::Borrowed(why), expected, span: WHOLE, kind: None }
    }

    /// Returns the error for this fault of a record with the bytes `record`. `place` returns the
    /// place of an offset in these bytes.
    pub(crate) fn at(self, record: &[u8], place: impl Fn(usize) -> Place) -> TraceError {
        let end = self.span.1.min(record.len());
        let start = self.span.0.min(end);
        TraceError {
            excerpt: crate::error::excerpt(&record[start..end]),
            kind: self.kind,
            ..TraceError::new(place(self.span.0.min(record.len())), self.why, self.expected)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_widen_to_the_covering_sectors() {
        let of =
            |offset, len| Extent::of_bytes(HostOp::Read, offset, len).map(|e| (e.first, e.sectors));
        assert_eq!(of(0, 1), Ok((0, 1)));
        assert_eq!(of(511, 2), Ok((0, 2)));
        assert_eq!(of(512, 512), Ok((1, 1)));
        assert_eq!(of(1023, 514), Ok((1, 3)));
        assert_eq!(of(5, 0), Err(ExtentError::Empty));
        assert_eq!(of(u64::MAX, 2), Err(ExtentError::TooFar));
        assert_eq!(of(u64::MAX, 1), Ok(((1 << 55) - 1, 1)));
        assert_eq!(of(0, u64::MAX), Err(ExtentError::TooLong));
    }

    #[test]
    fn lengths_and_addresses_are_bounded() {
        let of = |op, first, n| Extent::of_sectors(op, first, n).map(|e| (e.first, e.sectors));
        let limit = u64::from(MAX_TRANSFER_SECTORS);
        assert_eq!(of(HostOp::Write, 0, limit), Ok((0, MAX_TRANSFER_SECTORS)));
        assert_eq!(of(HostOp::Write, 0, limit + 1), Err(ExtentError::TooLong));
        assert_eq!(of(HostOp::Trim, 0, 0xffff_ffff), Ok((0, u32::MAX)));
        assert_eq!(of(HostOp::Trim, 0, 0x1_0000_0000), Err(ExtentError::TooLong));
        assert_eq!(of(HostOp::Read, END_OF_SECTORS - 1, 1), Ok((END_OF_SECTORS - 1, 1)));
        assert_eq!(of(HostOp::Read, END_OF_SECTORS, 1), Err(ExtentError::TooFar));
        assert_eq!(of(HostOp::Read, u64::MAX, 2), Err(ExtentError::TooFar));
    }
}
