//! CloudPhysics vscsi traces: fixed-size binary records, little-endian, without a header.
//!
//! | | version 1 (32 bytes) | version 2 (40 bytes) |
//! |---|---|---|
//! | sequence number | `u32` at 0 | `u32` at 4 |
//! | length in bytes | `u32` at 4 | `u32` at 8 |
//! | scatter-gather entries | `u32` at 8 | `u32` at 12 |
//! | SCSI command | `u16` at 12 | `u16` at 0 |
//! | version, in the high byte | `u16` at 14 | `u16` at 2 |
//! | first sector | `u64` at 16 | `u64` at 16 |
//! | time in microseconds | `u64` at 24 | `u64` at 24 |
//! | response time | – | `u64` at 32 |

use crate::binary::{Fixed, FixedSource, bytes_at};
use crate::error::{OpenError, Place};
use crate::format::{FormatDef, Presence, Reader, Sniff, Start};
use crate::raw::{Extent, ExtentError, Fault, MICROSECOND_PS, Raw, Time};
use flashatlas_types::HostOp;
use std::io::BufRead;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "vscsi",
    summary: "CloudPhysics vscsi, binary, versions 1 and 2",
    quirks: "Lengths are bytes (rounded up to sectors), addresses sectors of 512 bytes, times \
             microseconds. Partitions of the traced machines start at odd sectors, so that most \
             requests are unaligned: a shift of -7 sectors aligns the public sample. The first \
             records show the version. READ, WRITE and SYNCHRONIZE CACHE commands of every size \
             are known. The response time of version 2 is not read.",
    source: "Waldspurger and others: Efficient MRC Construction with SHARDS, FAST 2015 \
             (CloudPhysics); a sample comes with the Python package libcachesim.",
    licence: "Cite the paper; see the terms of whoever publishes the sample.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| if Layout::detect(head).is_some() { Sniff::Yes } else { Sniff::No },
    open,
    writer: None,
};

const COMMANDS: &str = "READ, WRITE or SYNCHRONIZE CACHE (such as 0x28, 0x2a, 0x35)";

/// Number of records that show the version.
const TELLING_RECORDS: usize = 4;

/// Places of the fields in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    bytes: usize,
    command: usize,
    version: usize,
    number: u8,
    length: usize,
}

const V1: Layout = Layout { bytes: 32, command: 12, version: 14, number: 1, length: 4 };
const V2: Layout = Layout { bytes: 40, command: 0, version: 2, number: 2, length: 8 };
/// First sector and time are at the same places in both versions.
const SECTOR: usize = 16;
const TIME: usize = 24;

impl Layout {
    /// Returns the layout of the first records of `head`, or `None` if they fit neither layout. One
    /// record behind the first two may be damaged.
    fn detect(head: &[u8]) -> Option<Layout> {
        [V1, V2].into_iter().find(|layout| {
            let mut records =
                head.chunks_exact(layout.bytes).take(TELLING_RECORDS).map(|r| layout.fits(r));
            let start = [records.next(), records.next()];
            start[0] == Some(true)
                && start[1] != Some(false)
                && records.filter(|fits| !fits).count() <= 1
        })
    }

    fn fits(&self, record: &[u8]) -> bool {
        record[self.version + 1] == self.number && operation(u16_at(record, self.command)).is_some()
    }

    fn decode(&self, record: &[u8]) -> Result<Raw, Fault> {
        if record[self.version + 1] != self.number {
            let expected = if self.number == 1 { "0x01" } else { "0x02" };
            return Err(self.fault(self.version + 1, 1, "an unknown version byte", expected));
        }
        let op = operation(u16_at(record, self.command))
            .ok_or_else(|| self.fault(self.command, 2, "an unknown command", COMMANDS))?;
        let extent = if op == HostOp::Flush {
            Extent::NONE
        } else {
            let length = u64::from(u32::from_le_bytes(bytes_at(record, self.length)));
            Extent::of_sector_and_bytes(op, u64::from_le_bytes(bytes_at(record, SECTOR)), length)
                .map_err(|e| {
                    let at = if e == ExtentError::TooFar { SECTOR } else { self.length };
                    e.fault((at, at + 4))
                })?
        };
        let time = u64::from_le_bytes(bytes_at(record, TIME));
        Ok(Raw::plain(Time::of(time, MICROSECOND_PS), 0, op, extent))
    }

    fn fault(&self, at: usize, len: usize, why: &'static str, expected: &'static str) -> Fault {
        Fault { why: why.into(), expected, span: (at, at + len), kind: None }
    }
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(record, at))
}

/// Returns the operation of a SCSI command in its forms of 6, 10, 12 and 16 bytes, or `None` if the
/// command is unknown.
fn operation(command: u16) -> Option<HostOp> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(HostOp::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(HostOp::Write),
        0x35 | 0x91 => Some(HostOp::Flush),
        _ => None,
    }
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let layout = Layout::detect(start.head).ok_or_else(|| {
        let fault = Fault {
            why: "not a vscsi record:".into(),
            expected: "version 1 or 2 records",
            span: (0, V1.bytes),
            kind: None,
        };
        fault.at(start.head, |_| Place::Byte(0))
    })?;
    Ok(Reader::complete(FixedSource::open(input, Vscsi { layout }, start.options)))
}

struct Vscsi {
    layout: Layout,
}

impl Fixed for Vscsi {
    fn bytes(&self) -> usize {
        self.layout.bytes
    }

    fn truncated(&self) -> &'static str {
        "32 bytes, or 40 in version 2"
    }

    fn decode(&mut self, record: &[u8]) -> Result<Option<Raw>, Fault> {
        self.layout.decode(record).map(Some)
    }
}
