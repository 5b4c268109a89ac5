//! The atlas format: traces in compact blocks of columns, with checksums and an index by time.
//!
//! A file is a [header](HEADER_BYTES), blocks, an end record with the index, and a trailer with the
//! offset of the end record. It can be read as a stream, without the index, or from a time on
//! ([`seek`] and [`resume`]). All numbers are little-endian; every part has a CRC-32C (Castagnoli)
//! of its own. docs/FORMATS.md has the layout byte by byte.

mod block;
mod end;
mod header;
mod reader;
mod varint;
mod writer;

pub use end::{Position, seek};
pub use reader::resume;
pub(crate) use reader::stream;
pub(crate) use writer::Writer;

/// The version that is read and written.
pub const VERSION: u16 = 1;

/// Maximum number of records in a block.
pub const MAX_BLOCK_RECORDS: usize = 65_536;

/// Magic of a file: its first bytes. The first byte is not ASCII text, and a conversion of line
/// ends damages the magic.
pub(crate) const MAGIC: [u8; 8] = *b"\x89FATR\r\n\x1a";

/// Bytes of the header: magic, version (`u16`), zero (`u16`), CRC of these.
pub const HEADER_BYTES: usize = 16;

/// First byte of a block, and of the end record.
const BLOCK: u8 = b'B';
const END: u8 = b'E';

/// The last bytes of a file.
const TRAILER_MAGIC: [u8; 4] = *b"RTAF";

/// Returns the `N` bytes of `bytes` that begin at `at`; `bytes` must hold them.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    crate::binary::bytes_at(bytes, at)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}
