//! Mark of the content that was durable in an image. The next mount need not check this content.

use crate::frame::{long, word};
use crate::places::MARK_BYTES;
use flashatlas_types::BlockId;

/// Value for no block.
pub const NONE: u32 = u32::MAX;

/// Parts of an image that are checked when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify {
    /// The heads of all frames, and the content of the frames that the mark does not cover.
    New,
    /// The heads and the content of all frames.
    All,
}

/// Mark of the content that was durable when the mark was written.
///
/// The mark covers all frames up to program `sequence`, except those in the blocks of `erased`.
/// These blocks may have been erased since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    pub sequence: u64,
    pub erased: [u32; 2],
}

impl Mark {
    pub const NOTHING: Mark = Mark { sequence: 0, erased: [NONE; 2] };

    pub fn encode(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[4..8].copy_from_slice(&self.erased[0].to_le_bytes());
        bytes[8..12].copy_from_slice(&self.erased[1].to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; MARK_BYTES]) -> Mark {
        if word(bytes, 0) == crc32c::crc32c(&bytes[4..]) {
            Mark { sequence: long(bytes, 16), erased: [word(bytes, 4), word(bytes, 8)] }
        } else {
            Mark::NOTHING
        }
    }

    pub fn vouches_for(&self, block: BlockId, sequence: u64) -> bool {
        sequence <= self.sequence && !self.erased.contains(&block.number())
    }
}
