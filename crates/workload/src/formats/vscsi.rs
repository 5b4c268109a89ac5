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

use super::{FormatDef, Times};
use crate::error::{Place, TraceError};
use crate::lines::fill;
use crate::source::{Extent, Fault, Gate, Raw, ReadOptions, Record, RecordSource};
use flashatlas_types::HostOp;
use std::io::{self, BufRead, Cursor, Read};

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "vscsi",
    summary: "CloudPhysics vscsi, binary, versions 1 and 2",
    quirks: "Lengths are bytes (rounded up to sectors), addresses sectors of 512 bytes, times microseconds. Partitions \
             of the traced machines start at odd sectors, so that most requests are unaligned: a shift of -7 sectors \
             puts the public sample right. The version is told by the first records. READ, WRITE and SYNCHRONIZE CACHE \
             commands of every size are known. The response time of version 2 is not read.",
    times: Times::Always,
    sniff: |head| Layout::detect(head).is_some(),
    open,
};

const COMMANDS: &str = "READ, WRITE or SYNCHRONIZE CACHE (such as 0x28, 0x2a, 0x35)";
const MICROSECOND_PS: u128 = 1_000_000;

/// Records that tell the version.
const TELLING_RECORDS: usize = 4;
/// Bytes of a record at most.
const LONGEST: usize = 40;

/// Where the fields stand.
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
/// First sector and time stand at the same places in both versions.
const SECTOR: usize = 16;
const TIME: usize = 24;

impl Layout {
    /// The layout that the first records of `head` are in. One of them may be damaged, but not the first two.
    fn detect(head: &[u8]) -> Option<Layout> {
        [V1, V2].into_iter().find(|layout| {
            let mut records = head.chunks_exact(layout.bytes).take(TELLING_RECORDS).map(|r| layout.fits(r));
            let start = [records.next(), records.next()];
            start[0] == Some(true) && start[1] != Some(false) && records.filter(|fits| !fits).count() <= 1
        })
    }

    fn fits(&self, record: &[u8]) -> bool {
        record[self.version + 1] == self.number && operation(u16_at(record, self.command)).is_some()
    }

    fn decode(&self, record: &[u8]) -> Result<Raw, Fault> {
        if record[self.version + 1] != self.number {
            let expected = if self.number == 1 { "0x01" } else { "0x02" };
            return Err(self.fault(self.version + 1, 1, "another version byte", expected));
        }
        let op = operation(u16_at(record, self.command))
            .ok_or_else(|| self.fault(self.command, 2, "an unknown command", COMMANDS))?;
        let extent = if op == HostOp::Flush {
            Extent::NONE
        } else {
            let length = u64::from(u32::from_le_bytes(bytes_at(record, self.length)));
            Extent::of_sector_and_bytes(op, u64::from_le_bytes(bytes_at(record, SECTOR)), length).map_err(|e| {
                let (why, expected) = e.words();
                self.fault(if e == crate::source::ExtentError::TooFar { SECTOR } else { self.length }, 4, why, expected)
            })?
        };
        let time = u64::from_le_bytes(bytes_at(record, TIME));
        Ok(Raw { time_ps: u128::from(time) * MICROSECOND_PS, device: 0, op, extent, fua: false })
    }

    fn fault(&self, at: usize, len: usize, why: &'static str, expected: &'static str) -> Fault {
        Fault { why: why.into(), expected, span: (at, at + len) }
    }
}

fn bytes_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(record, at))
}

/// The operation of a SCSI command: its forms of 6, 10, 12 and 16 bytes.
fn operation(command: u16) -> Option<HostOp> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(HostOp::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(HostOp::Write),
        0x35 | 0x91 => Some(HostOp::Flush),
        _ => None,
    }
}

fn open(mut input: Box<dyn BufRead + Send>, options: &ReadOptions) -> Result<Box<dyn RecordSource>, TraceError> {
    let mut head = Vec::new();
    let looked = input.by_ref().take((LONGEST * TELLING_RECORDS) as u64).read_to_end(&mut head);
    let start = Place::Byte(0);
    looked.map_err(|e| TraceError::new(start, e.to_string(), ""))?;
    if head.is_empty() {
        return Err(TraceError::new(start, "the trace is empty", "at least one record"));
    }
    let layout = Layout::detect(&head).ok_or_else(|| {
        let fault =
            Fault { why: "no vscsi record but".into(), expected: "version 1 or 2 records", span: (0, V1.bytes) };
        fault.at(&head, |_| start)
    })?;
    let input = Box::new(Cursor::new(head).chain(input));
    Ok(Box::new(Vscsi { input, layout, record: [0; LONGEST], offset: 0, gate: Gate::new(options) }))
}

struct Vscsi {
    input: Box<dyn BufRead + Send>,
    layout: Layout,
    record: [u8; LONGEST],
    /// Bytes before the next record.
    offset: u64,
    gate: Gate,
}

impl Vscsi {
    /// Bring the next record into `self.record`; how many of its bytes there are.
    fn fetch(&mut self) -> io::Result<usize> {
        let mut have = 0;
        while have < self.layout.bytes {
            let part = fill(&mut *self.input)?.min(self.layout.bytes - have);
            if part == 0 {
                break;
            }
            self.record[have..have + part].copy_from_slice(&self.input.fill_buf()?[..part]);
            self.input.consume(part);
            have += part;
        }
        Ok(have)
    }
}

impl RecordSource for Vscsi {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        while !self.gate.ended() {
            let place = |offset: u64| move |within: usize| Place::Byte(offset + within as u64);
            let start = place(self.offset);
            let have = self.fetch().map_err(|e| self.gate.fail(TraceError::new(start(0), e.to_string(), "")))?;
            let record = &self.record[..have];
            self.offset += have as u64;
            let admitted = match have {
                0 => {
                    return self
                        .gate
                        .finish(|| TraceError::new(start(0), "the trace holds no request", "at least one"));
                }
                n if n < self.layout.bytes => Err(Fault::whole("a truncated record", "32 bytes, or 40 in version 2")),
                _ => self.layout.decode(record).and_then(|raw| self.gate.admit(&raw)),
            };
            match admitted {
                Ok(record) => return Ok(Some(record)),
                Err(fault) => self.gate.reject(fault.at(record, start))?,
            }
        }
        Ok(None)
    }

    fn skipped(&self) -> u64 {
        self.gate.skipped()
    }

    fn bytes_read(&self) -> u64 {
        self.offset
    }

    fn expected(&self) -> Option<u64> {
        None
    }
}
