//! The end record (the index by time and the origin of the trace), and the trailer (the last bytes
//! of the file, with the offset of the end record).

use super::{END, HEADER_BYTES, TRAILER_MAGIC, header, u32_at, u64_at};
use crate::error::{Place, TraceError};
use crate::source::MAX_DEVICES;
use crate::write::Origin;
use flashatlas_types::Ps;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes before the body of the end record: kind, three zeros, bytes of the body, CRC of the body,
/// CRC of the fields before.
pub const END_HEADER_BYTES: usize = 16;

/// Bytes of the trailer: offset of the end record, CRC of the offset, magic.
pub const TRAILER_BYTES: usize = 16;

/// Maximum number of bytes of the body: an index of 8 million blocks (half a trillion records).
pub const MAX_BODY_BYTES: u64 = 256 << 20;

/// Bytes of an entry of the index.
const ENTRY_BYTES: usize = 32;

/// Maximum number of bytes of a text.
const MAX_TEXT_BYTES: usize = u16::MAX as usize;

/// Place of a block, and the times in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockEntry {
    /// Bytes before the block.
    pub offset: u64,
    /// Records before the block.
    pub records_before: u64,
    pub earliest: Ps,
    pub latest: Ps,
}

/// The end record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct End {
    pub records: u64,
    pub blocks: Vec<BlockEntry>,
    pub origin: Origin,
}

impl End {
    /// Returns the bytes of the record and of the trailer. The record begins at `offset`.
    pub fn encode(&self, offset: u64) -> Vec<u8> {
        let body = self.body();
        let mut bytes = vec![END, 0, 0, 0];
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(crc32c::crc32c(&body).to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes.extend(body);
        bytes.extend(trailer(offset));
        bytes
    }

    fn body(&self) -> Vec<u8> {
        let mut body = self.records.to_le_bytes().to_vec();
        body.extend((self.blocks.len() as u32).to_le_bytes());
        for block in &self.blocks {
            for number in [block.offset, block.records_before, block.earliest.0, block.latest.0] {
                body.extend(number.to_le_bytes());
            }
        }
        put_text(&mut body, &self.origin.format);
        put_text(&mut body, &self.origin.digest);
        body.extend((self.origin.device_names.len() as u32).to_le_bytes());
        self.origin.device_names.iter().for_each(|name| put_text(&mut body, name));
        body
    }

    /// Returns the number of bytes of the body, or `None` if the header of the record is damaged or
    /// the number is above [`MAX_BODY_BYTES`].
    pub fn body_bytes(header: &[u8; END_HEADER_BYTES]) -> Option<u64> {
        let bytes = u64::from(u32_at(header, 4));
        let sound =
            header[..4] == [END, 0, 0, 0] && u32_at(header, 12) == crc32c::crc32c(&header[..12]);
        (sound && bytes <= MAX_BODY_BYTES).then_some(bytes)
    }

    /// Checks and decodes the body, or returns `None` if it is damaged.
    pub fn decode(header: &[u8; END_HEADER_BYTES], body: &[u8]) -> Option<End> {
        if u32_at(header, 8) != crc32c::crc32c(body) {
            return None;
        }
        let mut rest = body;
        let records = u64::from_le_bytes(*take(&mut rest)?);
        let blocks = u32::from_le_bytes(*take(&mut rest)?) as usize;
        let (index, after) = rest.split_at_checked(blocks.checked_mul(ENTRY_BYTES)?)?;
        let blocks = index.chunks_exact(ENTRY_BYTES).map(BlockEntry::decode).collect();
        rest = after;
        let (format, digest) = (take_text(&mut rest)?, take_text(&mut rest)?);
        let devices = u32::from_le_bytes(*take(&mut rest)?);
        if devices > MAX_DEVICES {
            return None;
        }
        let device_names =
            (0..devices).map(|_| take_text(&mut rest)).collect::<Option<Vec<String>>>()?;
        rest.is_empty().then_some(End {
            records,
            blocks,
            origin: Origin { format, digest, device_names },
        })
    }
}

impl BlockEntry {
    fn decode(bytes: &[u8]) -> BlockEntry {
        let [offset, records_before, earliest, latest] = [0, 8, 16, 24].map(|at| u64_at(bytes, at));
        BlockEntry { offset, records_before, earliest: Ps(earliest), latest: Ps(latest) }
    }
}

/// Returns the trailer of a file whose end record begins at `offset`.
pub fn trailer(offset: u64) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..8]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    bytes[12..].copy_from_slice(&TRAILER_MAGIC);
    bytes
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(taken)
}

/// Appends the length of `text`, then `text` in UTF-8, cut to at most [`MAX_TEXT_BYTES`].
fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut len = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    out.extend((len as u16).to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..len]);
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let len = u16::from_le_bytes(*take(rest)?);
    let (text, after) = rest.split_at_checked(len.into())?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

/// Block boundary at which the reading of a file can continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// Number of bytes before the boundary.
    pub offset: u64,
    /// Number of records before the boundary.
    pub records_before: u64,
    /// Records in the whole file.
    pub records: u64,
    /// Origin of the trace.
    pub origin: Origin,
}

/// Moves `input` to the first block with a record at `from` or later, or to the end record if there
/// is no such block.
///
/// `input` is a whole file that is not compressed. Every record before that block is earlier than
/// `from`. [`resume`](super::resume) reads on from there.
///
/// # Errors
/// Returns an error of the input, and an error if the file is not in this format, is of another
/// version, is truncated, or has a damaged index.
pub fn seek(input: &mut (impl Read + Seek), from: Ps) -> Result<Position, TraceError> {
    let at = |offset: u64| {
        move |error: io::Error| TraceError::new(Place::Byte(offset), error.to_string(), "")
    };
    let length = input.seek(SeekFrom::End(0)).map_err(at(0))?;
    input.seek(SeekFrom::Start(0)).map_err(at(0))?;
    let mut head = Vec::new();
    input.take(HEADER_BYTES as u64).read_to_end(&mut head).map_err(at(0))?;
    header::check(&head)?;
    let (offset, end) = read_end(input, length)?;
    let block = end.blocks.iter().find(|block| block.latest >= from);
    let (to, records_before) =
        block.map_or((offset, end.records), |b| (b.offset, b.records_before));
    input.seek(SeekFrom::Start(to)).map_err(at(to))?;
    Ok(Position { offset: to, records_before, records: end.records, origin: end.origin })
}

/// Returns the offset and the content of the end record of a file of `length` bytes.
fn read_end(input: &mut (impl Read + Seek), length: u64) -> Result<(u64, End), TraceError> {
    const EXPECTED: &str = "a complete file, which ends with an index";
    let start = length.saturating_sub(TRAILER_BYTES as u64);
    let no_trailer = || {
        TraceError::new(Place::Byte(start), "the trace is truncated: it has no trailer", EXPECTED)
    };
    let mut bytes = [0; TRAILER_BYTES];
    read_at(input, start, &mut bytes).map_err(|_| no_trailer())?;
    let offset = u64_at(&bytes, 0);
    if bytes != trailer(offset) {
        return Err(no_trailer());
    }
    let damaged = || TraceError::new(Place::Byte(offset), "a damaged end record", EXPECTED);
    let mut header = [0; END_HEADER_BYTES];
    read_at(input, offset, &mut header).map_err(|_| damaged())?;
    let body_bytes =
        End::body_bytes(&header).filter(|bytes| *bytes <= length).ok_or_else(damaged)?;
    let mut body = Vec::new();
    input.take(body_bytes).read_to_end(&mut body).map_err(|_| damaged())?;
    let end = End::decode(&header, &body).ok_or_else(damaged)?;
    let inside = end.blocks.iter().all(|block| block.offset < offset);
    if inside { Ok((offset, end)) } else { Err(damaged()) }
}

fn read_at(input: &mut (impl Read + Seek), offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    input.seek(SeekFrom::Start(offset))?;
    input.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_record_comes_back_and_no_bit_may_flip() {
        let entry = |n: u64| BlockEntry {
            offset: 16 + n,
            records_before: n,
            earliest: Ps(n),
            latest: Ps(n + 1),
        };
        let origin = Origin {
            format: "msr".into(),
            digest: "sha256:0".into(),
            device_names: vec!["hm,0".into(), String::new(), "é".into()],
        };
        let end = End { records: 70_000, blocks: vec![entry(0), entry(9)], origin };
        let bytes = end.encode(1234);
        let (header, rest) = bytes.split_first_chunk::<END_HEADER_BYTES>().unwrap();
        let (body, after) = rest.split_at(End::body_bytes(header).unwrap() as usize);
        assert_eq!(End::decode(header, body), Some(end));
        assert_eq!(after, trailer(1234));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (header, rest) = flipped.split_first_chunk::<END_HEADER_BYTES>().unwrap();
            let sound =
                End::body_bytes(header).and_then(|n| End::decode(header, rest.get(..n as usize)?));
            let last = &flipped[bytes.len() - TRAILER_BYTES..];
            assert!(sound.is_none() || last != trailer(1234), "bit {bit}");
        }
    }
}
