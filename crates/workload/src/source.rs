//! Records, the sources that yield them, and the checks that every reader shares.

use crate::error::{Place, TraceError};
use flashatlas_types::{HostOp, Lba, Ps, Request, SECTOR_BYTES};
use std::borrow::Cow;

/// The longest read or write that a reader believes, in sectors (1 GiB). A longer one is a damaged record, and would
/// make everything behind it walk the pages of terabytes. A trim may be as long as a [`Request`] can say.
pub const MAX_TRANSFER_SECTORS: u32 = 1 << 21;

/// One past the last sector whose bytes have 64-bit addresses.
pub(crate) const END_OF_SECTORS: u64 = 1 << 55;

/// One decoded record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What the host asks, and when: time since the first record of the trace. A record that carries an earlier time
    /// than the first is at 0; apart from that, records come in the order and with the times of the trace.
    pub request: Request,
    /// The address space (SPC ASU, MSR disk, iolog file), numbered from 0 in order of first appearance.
    pub device: u32,
}

/// A stream of records: a trace, or a generator.
pub trait RecordSource: Send {
    /// The next record, or `None` at the end. After an error the source is at its end.
    ///
    /// # Errors
    /// The place of a record that cannot be read (beyond those that [`ReadOptions::skip_bad`] forgives), of a damaged
    /// or truncated compressed stream, or of the end of a trace that holds no request.
    fn next(&mut self) -> Result<Option<Record>, TraceError>;

    /// Bad records skipped so far.
    fn skipped(&self) -> u64;

    /// Bytes of input consumed so far, as stored (compressed); 0 for a generator.
    fn bytes_read(&self) -> u64;

    /// The number of requests in all, where it is known in advance (generators).
    fn expected(&self) -> Option<u64>;
}

/// How to read a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// Bad records to skip and count before the next one is an error.
    pub skip_bad: u64,
    /// Sectors added to every address. The CloudPhysics traces are 7 off alignment: −7 puts them right.
    pub shift_sectors: i64,
}

/// A record as a format decodes it, before the checks that all formats share.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    /// Picoseconds since whatever instant the format counts from.
    pub time_ps: u128,
    pub device: u32,
    pub op: HostOp,
    pub extent: Extent,
    pub fua: bool,
}

/// Whole sectors; none for a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    first: u64,
    sectors: u32,
}

/// Why an address and a length make no [`Extent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExtentError {
    /// The length is zero.
    Empty,
    /// The length is more than a request takes.
    TooLong,
    /// The end lies past the addresses.
    TooFar,
}

impl ExtentError {
    /// What is wrong, and what should stand there.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            ExtentError::Empty => ("a length of zero", "at least one byte"),
            ExtentError::TooLong => {
                ("a length beyond all requests", "at most 1 GiB, or 2 TiB less a sector for a trim")
            }
            ExtentError::TooFar => ("an address beyond all drives", "an end below 2^64 bytes"),
        }
    }
}

impl Extent {
    /// No sectors: a flush.
    pub const NONE: Extent = Extent { first: 0, sectors: 0 };

    /// The sectors that cover `len` bytes at byte `offset`.
    pub fn of_bytes(op: HostOp, offset: u64, len: u64) -> Result<Extent, ExtentError> {
        if len == 0 {
            return Err(ExtentError::Empty);
        }
        let end = offset.checked_add(len).ok_or(ExtentError::TooFar)?;
        let sector = u64::from(SECTOR_BYTES);
        let first = offset / sector;
        Extent::of_sectors(op, first, end.div_ceil(sector) - first)
    }

    /// The sectors that cover `len` bytes at sector `first`.
    pub fn of_sector_and_bytes(op: HostOp, first: u64, len: u64) -> Result<Extent, ExtentError> {
        Extent::of_sectors(op, first, len.div_ceil(u64::from(SECTOR_BYTES)))
    }

    /// `count` sectors at sector `first`.
    pub fn of_sectors(op: HostOp, first: u64, count: u64) -> Result<Extent, ExtentError> {
        let limit = if op == HostOp::Trim { u32::MAX } else { MAX_TRANSFER_SECTORS };
        let sectors = u32::try_from(count).ok().filter(|&n| n <= limit).ok_or(ExtentError::TooLong)?;
        match first.checked_add(count) {
            _ if sectors == 0 => Err(ExtentError::Empty),
            Some(end) if end <= END_OF_SECTORS => Ok(Extent { first, sectors }),
            _ => Err(ExtentError::TooFar),
        }
    }

    /// The same sectors `by` further, or `None` when they leave the address range.
    fn shifted(self, by: i64) -> Option<Extent> {
        let first = self.first.checked_add_signed(by)?;
        let end = first.checked_add(u64::from(self.sectors))?;
        (end <= END_OF_SECTORS).then_some(Extent { first, ..self })
    }
}

/// A fault in a record: what is wrong, what was expected, and which bytes of the record (from, to) are at fault.
#[derive(Debug)]
pub(crate) struct Fault {
    pub why: Cow<'static, str>,
    pub expected: &'static str,
    pub span: (usize, usize),
}

impl Fault {
    /// A fault of the whole record.
    pub fn whole(why: &'static str, expected: &'static str) -> Fault {
        Fault { why: Cow::Borrowed(why), expected, span: (0, usize::MAX) }
    }

    /// The error for this fault of `record`, whose bytes are given, at the place that `place` makes of an offset.
    pub fn at(self, record: &[u8], place: impl Fn(usize) -> Place) -> TraceError {
        let end = self.span.1.min(record.len());
        let start = self.span.0.min(end);
        TraceError {
            excerpt: crate::error::excerpt(&record[start..end]),
            ..TraceError::new(place(self.span.0.min(record.len())), self.why, self.expected)
        }
    }
}

/// What every reader does with what it decodes: time from the first record, address shift, and the account of bad
/// records.
pub(crate) struct Gate {
    options: ReadOptions,
    origin_ps: Option<u128>,
    delivered: u64,
    skipped: u64,
    ended: bool,
}

impl Gate {
    pub fn new(options: &ReadOptions) -> Gate {
        Gate { options: *options, origin_ps: None, delivered: 0, skipped: 0, ended: false }
    }

    /// The record, or what is wrong with it.
    pub fn admit(&mut self, raw: &Raw) -> Result<Record, Fault> {
        let extent = if raw.op == HostOp::Flush {
            Extent::NONE
        } else {
            raw.extent
                .shifted(self.options.shift_sectors)
                .ok_or(Fault::whole("the address shift moves the request off the drive", "a smaller shift"))?
        };
        let origin = self.origin_ps.unwrap_or(raw.time_ps);
        let Ok(at) = u64::try_from(raw.time_ps.saturating_sub(origin)) else {
            return Err(Fault::whole("a time too far from the first record", "at most 213 days"));
        };
        self.origin_ps = Some(origin);
        self.delivered += 1;
        let request = Request { at: Ps(at), op: raw.op, lba: Lba(extent.first), sectors: extent.sectors, fua: raw.fua };
        Ok(Record { request, device: raw.device })
    }

    /// Skip a bad record, or fail with it once the allowance is used up.
    pub fn reject(&mut self, error: TraceError) -> Result<(), TraceError> {
        if self.skipped < self.options.skip_bad {
            self.skipped += 1;
            return Ok(());
        }
        Err(self.fail(error))
    }

    /// An error that nothing forgives: the source is at its end.
    pub fn fail(&mut self, error: TraceError) -> TraceError {
        self.ended = true;
        TraceError { record: self.delivered + self.skipped + 1, skipped: self.skipped, ..error }
    }

    /// The end of the input: an error when no record came before it.
    pub fn finish(&mut self, empty: impl FnOnce() -> TraceError) -> Result<Option<Record>, TraceError> {
        if self.delivered == 0 && !self.ended {
            return Err(self.fail(empty()));
        }
        self.ended = true;
        Ok(None)
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_widen_to_the_covering_sectors() {
        let of = |offset, len| Extent::of_bytes(HostOp::Read, offset, len).map(|e| (e.first, e.sectors));
        assert_eq!(of(0, 1), Ok((0, 1)));
        assert_eq!(of(511, 2), Ok((0, 2)));
        assert_eq!(of(512, 512), Ok((1, 1)));
        assert_eq!(of(1023, 514), Ok((1, 3)));
        assert_eq!(of(5, 0), Err(ExtentError::Empty));
        assert_eq!(of(u64::MAX, 1), Err(ExtentError::TooFar));
        assert_eq!(of(u64::MAX - 1, 1), Ok(((1 << 55) - 1, 1)));
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
