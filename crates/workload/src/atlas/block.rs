//! Blocks: records as columns.

use super::varint::{self, Numbers};
use super::{BLOCK, MAX_BLOCK_RECORDS, array, u32_at, u64_at};
use crate::raw::Extent;
use crate::source::{MAX_DEVICES, Record};
use flashatlas_types::{HostOp, Lba, Ps, Request};

/// Bytes of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 40;

/// Bytes before the columns of the content: the exponent of the unit of time, and the lengths of
/// three columns.
const LENGTHS_BYTES: usize = 1 + 3 * 4;

/// Maximum number of bytes of a record in all columns: head, time, address, length, device.
const MAX_RECORD_BYTES: usize = 1 + 2 * varint::MAX_BYTES + 5 + 3;

/// Maximum number of bytes of the content of a block.
const MAX_CONTENT_BYTES: usize = LENGTHS_BYTES + MAX_BLOCK_RECORDS * MAX_RECORD_BYTES;

/// Exponent of the largest unit of time: 10^12 ps, a second.
const MAX_EXPONENT: u32 = 12;

/// Bits of the operation in the head of a record.
const OP: u8 = 0b11;
const FUA: u8 = 1 << 2;
/// Bit of a record with another device than the record before. The first record is compared with
/// device 0.
const OTHER_DEVICE: u8 = 1 << 3;
/// Bit of a request with the length of the request before.
const SAME_LENGTH: u8 = 1 << 4;
/// Bit of a request that begins where the request before ended.
const SEQUENTIAL: u8 = 1 << 5;

/// Coding of the content of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    Plain = 0,
    Zstd = 1,
}

/// Header of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    pub codec: Codec,
    pub records: usize,
    pub earliest: Ps,
    pub latest: Ps,
    pub stored_bytes: usize,
    pub content_bytes: usize,
    pub crc: u32,
}

/// Fault of a block, and the content that was expected.
pub type Fault = (&'static str, &'static str);

const DAMAGED: Fault = ("a damaged block header", "bytes that match its CRC");

impl BlockHeader {
    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[0] = BLOCK;
        bytes[1] = self.codec as u8;
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(4, &(self.records as u32).to_le_bytes());
        put(8, &self.earliest.0.to_le_bytes());
        put(16, &self.latest.0.to_le_bytes());
        put(24, &(self.stored_bytes as u32).to_le_bytes());
        put(28, &(self.content_bytes as u32).to_le_bytes());
        put(32, &self.crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Checks and decodes a header, and bounds the sizes in it.
    pub fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<BlockHeader, Fault> {
        if bytes[0] != BLOCK || u32_at(bytes, 36) != crc32c::crc32c(&bytes[..36]) {
            return Err(DAMAGED);
        }
        let codec = match bytes[1] {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            _ => return Err(("a block in an unknown codec", "0 (plain) or 1 (Zstandard)")),
        };
        let header = BlockHeader {
            codec,
            records: u32_at(bytes, 4) as usize,
            earliest: Ps(u64_at(bytes, 8)),
            latest: Ps(u64_at(bytes, 16)),
            stored_bytes: u32_at(bytes, 24) as usize,
            content_bytes: u32_at(bytes, 28) as usize,
            crc: u32_at(bytes, 32),
        };
        let bounded = (1..=MAX_BLOCK_RECORDS).contains(&header.records)
            && header.stored_bytes <= header.content_bytes
            && header.content_bytes <= MAX_CONTENT_BYTES
            && array::<2>(bytes, 2) == [0, 0];
        if bounded {
            Ok(header)
        } else {
            Err(("a block header with impossible sizes", "at most 65,536 records"))
        }
    }
}

/// Returns the largest exponent, at most 12, such that 10^exponent divides every time in `records`.
fn exponent(records: &[Record]) -> u32 {
    let mut exponent = MAX_EXPONENT;
    for record in records {
        while record.request.at.0 % 10u64.pow(exponent) != 0 {
            exponent -= 1; // 10^0 divides every time
        }
    }
    exponent
}

/// The columns of a block, in order.
#[derive(Default)]
struct Columns {
    heads: Vec<u8>,
    times: Vec<u8>,
    addresses: Vec<u8>,
    lengths: Vec<u8>,
    devices: Vec<u8>,
}

/// Values of the record before; the next record is stored as differences from them.
#[derive(Default)]
struct Before {
    ticks: u64,
    device: u32,
    end: u64,
    sectors: u32,
}

/// Returns the content of a block of `records` (at least one).
pub fn encode(records: &[Record]) -> Vec<u8> {
    assert!((1..=MAX_BLOCK_RECORDS).contains(&records.len()), "a block holds 1 to 65,536 records");
    let exponent = exponent(records);
    let (mut columns, mut before) = (Columns::default(), Before::default());
    let tick = 10u64.pow(exponent);
    for record in records {
        columns.push(record, tick, &mut before);
    }
    let mut content = vec![exponent as u8];
    for column in [&columns.times, &columns.addresses, &columns.lengths] {
        content.extend((column.len() as u32).to_le_bytes());
    }
    for column in
        [&columns.heads, &columns.times, &columns.addresses, &columns.lengths, &columns.devices]
    {
        content.extend_from_slice(column);
    }
    content
}

impl Columns {
    fn push(&mut self, record: &Record, tick: u64, before: &mut Before) {
        let request = &record.request;
        let mut head = request.op as u8 | if request.fua { FUA } else { 0 };
        let ticks = request.at.0 / tick;
        varint::put_signed(&mut self.times, ticks.wrapping_sub(before.ticks) as i64);
        before.ticks = ticks;
        if record.device != before.device {
            head |= OTHER_DEVICE;
            varint::put(&mut self.devices, record.device.into());
            before.device = record.device;
        }
        if request.op != HostOp::Flush {
            if request.lba.0 == before.end {
                head |= SEQUENTIAL;
            } else {
                varint::put_signed(
                    &mut self.addresses,
                    request.lba.0.wrapping_sub(before.end) as i64,
                );
            }
            if request.sectors == before.sectors {
                head |= SAME_LENGTH;
            } else {
                varint::put(&mut self.lengths, request.sectors.into());
            }
            before.end = request.lba.0.wrapping_add(request.sectors.into());
            before.sectors = request.sectors;
        }
        self.heads.push(head);
    }
}

const BROKEN: Fault =
    ("a block whose content cannot be decoded", "columns as its header describes them");

/// Appends the records of a block's content to `records`.
pub fn decode(
    header: &BlockHeader,
    content: &[u8],
    records: &mut Vec<Record>,
) -> Result<(), Fault> {
    let (tick, mut columns) = Reading::of(header.records, content).ok_or(BROKEN)?;
    records.reserve(header.records);
    let (mut before, mut earliest, mut latest) = (Before::default(), Ps::MAX, Ps::ZERO);
    for &head in columns.heads {
        let record = columns.record(head, tick, &mut before).ok_or(BROKEN)?;
        earliest = earliest.min(record.request.at);
        latest = latest.max(record.request.at);
        records.push(record);
    }
    let whole = [&columns.times, &columns.addresses, &columns.lengths, &columns.devices]
        .iter()
        .all(|c| c.is_empty());
    if !whole {
        return Err(BROKEN);
    }
    if (earliest, latest) == (header.earliest, header.latest) {
        return Ok(());
    }
    Err((
        "a block whose times differ from the times in its header",
        "the earliest and the latest time of its records",
    ))
}

/// The columns of a block that is being read.
struct Reading<'a> {
    heads: &'a [u8],
    times: Numbers<'a>,
    addresses: Numbers<'a>,
    lengths: Numbers<'a>,
    devices: Numbers<'a>,
}

impl<'a> Reading<'a> {
    /// Returns the unit of time in picoseconds, and the columns. Returns `None` if `content` is too
    /// short or its unit of time is above a second.
    fn of(records: usize, content: &'a [u8]) -> Option<(u64, Reading<'a>)> {
        let (lengths, rest) = content.split_at_checked(LENGTHS_BYTES)?;
        let exponent = u32::from(lengths[0]);
        let tick = (exponent <= MAX_EXPONENT).then(|| 10u64.pow(exponent))?;
        let (heads, rest) = rest.split_at_checked(records)?;
        let (times, rest) = rest.split_at_checked(u32_at(lengths, 1) as usize)?;
        let (addresses, rest) = rest.split_at_checked(u32_at(lengths, 5) as usize)?;
        let (lengths, devices) = rest.split_at_checked(u32_at(lengths, 9) as usize)?;
        let [times, addresses, lengths, devices] =
            [times, addresses, lengths, devices].map(Numbers::new);
        Some((tick, Reading { heads, times, addresses, lengths, devices }))
    }

    /// Returns the record that begins with `head`, or `None` if the columns hold no valid one.
    #[inline]
    fn record(&mut self, head: u8, tick: u64, before: &mut Before) -> Option<Record> {
        if head >= SEQUENTIAL << 1 {
            return None;
        }
        before.ticks = before.ticks.wrapping_add(self.times.next_signed()? as u64);
        let at = Ps(before.ticks.checked_mul(tick)?);
        if head & OTHER_DEVICE != 0 {
            before.device =
                u32::try_from(self.devices.next()?).ok().filter(|&device| device < MAX_DEVICES)?;
        }
        let op = HostOp::ALL[usize::from(head & OP)];
        let fua = head & FUA != 0;
        if op == HostOp::Flush {
            let bare = head & (SEQUENTIAL | SAME_LENGTH) == 0;
            let request = Request { at, op, lba: Lba(0), sectors: 0, fua };
            return bare.then_some(Record { request, device: before.device });
        }
        if head & SEQUENTIAL == 0 {
            before.end = before.end.wrapping_add(self.addresses.next_signed()? as u64);
        }
        let sectors =
            if head & SAME_LENGTH != 0 { before.sectors.into() } else { self.lengths.next()? };
        let extent = Extent::of_sectors(op, before.end, sectors).ok()?;
        before.end += sectors;
        before.sectors = extent.sectors;
        let request = Request { at, op, lba: Lba(extent.first), sectors: extent.sectors, fua };
        Some(Record { request, device: before.device })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Rng, Seed};

    fn record(at: u64, op: HostOp, lba: u64, sectors: u32, device: u32) -> Record {
        Record { request: Request { at: Ps(at), op, lba: Lba(lba), sectors, fua: false }, device }
    }

    fn header(records: &[Record], content: &[u8]) -> BlockHeader {
        let times = || records.iter().map(|r| r.request.at);
        BlockHeader {
            codec: Codec::Plain,
            records: records.len(),
            earliest: times().min().unwrap(),
            latest: times().max().unwrap(),
            stored_bytes: content.len(),
            content_bytes: content.len(),
            crc: 0,
        }
    }

    #[test]
    fn a_block_byte_by_byte() {
        let mut records = [
            record(0, HostOp::Write, 16, 8, 0),
            record(3_000, HostOp::Read, 24, 8, 0), // sequential, of the same length
            record(2_000, HostOp::Flush, 0, 0, 1), // back in time, another device
            record(2_000, HostOp::Trim, 0, 300, 1),
        ];
        records[0].request.fua = true;
        let content = encode(&records);
        #[rustfmt::skip]
        let expected = [
            3,                          // times are multiples of 10^3 ps
            4, 0, 0, 0,  2, 0, 0, 0,  3, 0, 0, 0, // bytes of times, addresses, lengths
            0b00_0101, 0b11_0000, 0b00_1011, 0b00_0010, // heads
            0, 6, 1, 0,                 // times: 0, +3, -1, 0 units
            32, 63,                     // addresses: +16, -32
            8, 0xac, 2,                 // lengths: 8, 300
            1,                          // device
        ];
        assert_eq!(content, expected);
        let mut read = Vec::new();
        assert_eq!(decode(&header(&records, &content), &content, &mut read), Ok(()));
        assert_eq!(read, records);
        for unknown in [0b100_0000, 0b1000_0000] {
            let mut other = content.clone();
            other[13] |= unknown;
            assert_eq!(
                decode(&header(&records, &other), &other, &mut Vec::new()),
                Err(BROKEN),
                "an unknown bit"
            );
        }
    }

    #[test]
    fn damaged_content_is_refused_or_keeps_the_promises() {
        let mut rng = Rng::stream(Seed(3), "block");
        let records: Vec<Record> = (0..40)
            .map(|i| {
                let op = HostOp::ALL[rng.below(4) as usize];
                let sectors = if op == HostOp::Flush { 0 } else { 1 + rng.below(300) as u32 };
                let lba = if op == HostOp::Flush { 0 } else { rng.below(1 << 40) };
                record(i * 1_000_000, op, lba, sectors, rng.below(3) as u32)
            })
            .collect();
        let content = encode(&records);
        let header = header(&records, &content);
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut damaged = content.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << rng.below(8);
            }
            damaged.truncate(damaged.len() - (rng.below(8) == 0) as usize);
            let mut read = Vec::new();
            refused += u32::from(decode(&header, &damaged, &mut read).is_err());
            for record in read {
                let request = record.request;
                assert!(request.end().is_some_and(|end| end <= 1 << 55), "{record:?}");
                assert_eq!(request.op == HostOp::Flush, request.sectors == 0, "{record:?}");
            }
        }
        assert!((1_000..20_000).contains(&refused), "{refused}");
    }

    #[test]
    fn headers_come_back_and_are_bounded() {
        let header = header(&[record(5, HostOp::Read, 1, 1, 0)], &[0; 20]);
        let bytes = header.encode();
        assert_eq!(BlockHeader::decode(&bytes), Ok(header));
        for bit in 0..BLOCK_HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockHeader::decode(&flipped), Err(DAMAGED), "bit {bit}");
        }
        for header in [
            BlockHeader { records: 0, ..header },
            BlockHeader { records: MAX_BLOCK_RECORDS + 1, ..header },
            BlockHeader { content_bytes: u32::MAX as usize, ..header },
            BlockHeader { stored_bytes: 21, ..header },
        ] {
            assert_eq!(
                BlockHeader::decode(&header.encode()).unwrap_err().0,
                "a block header with impossible sizes"
            );
        }
    }
}
