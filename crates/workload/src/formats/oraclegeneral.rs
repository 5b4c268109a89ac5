//! oracleGeneral of libCacheSim: records of 24 bytes, little-endian, without a header.
//!
//! | | |
//! |---|---|
//! | time in seconds | `u32` at 0 |
//! | object | `u64` at 4 |
//! | bytes | `u32` at 12 |
//! | number of the next record of the object; -1 or the largest number: none | `i64` at 16 |

use crate::binary::{Fixed, FixedSource, bytes_at};
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Sniff, Start};
use crate::raw::{Extent, ExtentError, Fault, Raw, SECOND_PS, Time};
use flashatlas_types::{HostOp, Param, SECTOR_BYTES};
use std::io::BufRead;

const UNIT: Param<u64> = Param::bytes(
    "unit",
    SECTOR_BYTES as u64,
    1 << 20,
    "bytes between an object and the next, a multiple of 512",
)
.or("512");

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "oraclegeneral",
    summary: "oracleGeneral of libCacheSim, binary",
    quirks: "Records have no operations: requests are reads unless an operation is assumed \
             (`assume_op`). Times are whole seconds. The number of an object is read as an \
             address, in units of `unit` bytes. This is right for block traces whose objects are \
             sectors (or blocks, with `unit=4KiB`), but has no meaning if objects are hashes. Each \
             record has the number of the next record of its object; the reader recognises the \
             format by these numbers.",
    source: "https://github.com/1a1a11a/libCacheSim, oracleGeneralBin.h; many public cache traces.",
    licence: "As the trace.",
    times: Presence::Always,
    operations: Presence::Never,
    params: &[UNIT.def],
    sniff: |head| {
        if fits(head) { Sniff::Assuming("times are seconds, sizes bytes") } else { Sniff::No }
    },
    open,
    writer: None,
};

const BYTES: usize = 24;
const OBJECT: usize = 4;
const SIZE: usize = 12;
const NEXT: usize = 16;

/// Maximum number of records of the head that are looked at; all must agree.
const TELLING_RECORDS: usize = 64;

/// Returns `true` if the first records have possible sizes and times that never go back, and agree
/// on the next record of their object.
fn fits(head: &[u8]) -> bool {
    let records: Vec<&[u8]> = head.chunks_exact(BYTES).collect();
    let object = |record: &[u8]| u64::from_le_bytes(bytes_at(record, OBJECT));
    let time = |record: &[u8]| u32::from_le_bytes(bytes_at(record, 0));
    let mut agree = 0;
    for (at, record) in records.iter().take(TELLING_RECORDS).enumerate() {
        let next = i64::from_le_bytes(bytes_at(record, NEXT));
        // records are numbered from 1
        let named = usize::try_from(next).ok().and_then(|next| records.get(next.checked_sub(1)?));
        let none = [-1, i64::MAX].contains(&next);
        let possible = none || (at as i64 + 2..1 << 40).contains(&next);
        let repeats = named.is_none_or(|later| object(later) == object(record));
        let ordered = at == 0 || time(records[at - 1]) <= time(record);
        let sized = (1..=1 << 30).contains(&u32::from_le_bytes(bytes_at(record, SIZE)));
        if !(possible && repeats && ordered && sized) {
            return false;
        }
        agree += 1;
    }
    agree > 0 && (records.len() > 1 || head.len() == BYTES)
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let format = OracleGeneral {
        unit_sectors: super::whole_sectors(start.params, FORMAT.name, UNIT)?,
        op: start.options.assume_op.unwrap_or(HostOp::Read),
    };
    Ok(Reader {
        source: FixedSource::open(input, format, start.options),
        times: true,
        operations: false,
    })
}

struct OracleGeneral {
    unit_sectors: u64,
    op: HostOp,
}

impl Fixed for OracleGeneral {
    fn bytes(&self) -> usize {
        BYTES
    }

    fn truncated(&self) -> &'static str {
        "24 bytes"
    }

    fn decode(&mut self, record: &[u8]) -> Result<Option<Raw>, Fault> {
        let first = u64::from_le_bytes(bytes_at(record, OBJECT)).saturating_mul(self.unit_sectors);
        let bytes = u64::from(u32::from_le_bytes(bytes_at(record, SIZE)));
        let extent = Extent::of_sector_and_bytes(self.op, first, bytes).map_err(|error| {
            let span = if error == ExtentError::TooFar { (OBJECT, SIZE) } else { (SIZE, NEXT) };
            error.fault(span)
        })?;
        let seconds = u32::from_le_bytes(bytes_at(record, 0));
        let time = Time { ps: u128::from(seconds) * u128::from(SECOND_PS), span: (0, OBJECT) };
        Ok(Some(Raw::plain(time, 0, self.op, extent)))
    }
}
