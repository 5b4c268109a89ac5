//! The out-of-band record of a frame. It contains the frame's logical pages, the role of its block,
//! the number of its program, and a checksum.
//!
//! The record is little-endian: magic `FA`, version 2, number of slots, role of the block (1 byte),
//! sequence (6 bytes), mode of the block (1 byte, 0 in records from before modes), logical page
//! numbers (4 bytes each, all ones for padding), CRC-32C of all earlier bytes (4 bytes). See
//! `docs/FORMATS.md`.

use flashatlas_types::{BlockMode, Lpn};

const MAGIC: [u8; 2] = *b"FA";
const VERSION: u8 = 2;

/// The role for which a block was opened. The spare areas of the block's pages contain it. Each
/// family of schemes defines its own numbers; 0 is a block of data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct OobRole(pub u8);

impl OobRole {
    /// A block of map pages. The logical page numbers in its spare areas are numbers of map pages.
    pub const MAP: OobRole = OobRole(255);

    /// A block that may contain data pages and pages of the firmware itself, in any order. The
    /// firmware's pages have no logical page, and their bytes are stored.
    pub const MIXED: OobRole = OobRole(254);

    /// Returns whether pages of a block with this role may have bytes even if data has only stamps.
    pub(crate) fn has_bytes(self) -> bool {
        self == OobRole::MAP || self == OobRole::MIXED
    }
}

/// The record in the spare area of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oob {
    /// The role for which the block was opened.
    pub role: OobRole,
    /// The mode in which the block was opened.
    pub mode: BlockMode,
    /// The number of the program. Programs of the drive are numbered from 1, so the newest copy of
    /// a page has the largest number.
    pub sequence: u64,
    /// The logical page in each slot, or [`Lpn::NONE`] for padding.
    pub lpns: Vec<Lpn>,
}

/// The reason why a spare area is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OobError {
    /// The bytes are not a record of this project and version.
    Foreign,
    /// The bytes are shorter than their record.
    Truncated,
    /// The checksum does not match.
    Checksum,
}

impl std::fmt::Display for OobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            OobError::Foreign => "the spare area holds no record of this layout",
            OobError::Truncated => "the spare area is shorter than its record",
            OobError::Checksum => "the checksum of the spare area does not match",
        })
    }
}

impl std::error::Error for OobError {}

impl Oob {
    /// Returns the number of bytes of a record with `slots` slots.
    pub const fn encoded_len(slots: u32) -> usize {
        4 + 8 + 4 * slots as usize + 4
    }

    /// Returns the record as bytes.
    ///
    /// # Panics
    /// Panics if there are more than 255 slots (a frame has at most 64), or if the sequence has
    /// more than 48 bits (the medium uses 40).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Oob::encoded_len(self.lpns.len() as u32));
        out.extend(MAGIC);
        out.push(VERSION);
        out.push(u8::try_from(self.lpns.len()).expect("a frame has at most 64 slots"));
        assert!(self.sequence < 1 << 48, "program sequences have 48 bits");
        out.push(self.role.0);
        out.extend(&self.sequence.to_le_bytes()[..6]);
        out.push(self.mode as u8);
        out.extend(self.lpns.iter().flat_map(|l| l.0.to_le_bytes()));
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out
    }

    /// Decodes a record, whose checksum must match.
    ///
    /// # Errors
    /// Returns an [`OobError`] if the bytes do not begin with a complete, undamaged record.
    pub fn decode(bytes: &[u8]) -> Result<Oob, OobError> {
        let header = bytes.get(..4).ok_or(OobError::Truncated)?;
        if header[..2] != MAGIC || header[2] != VERSION {
            return Err(OobError::Foreign);
        }
        let len = Oob::encoded_len(u32::from(header[3]));
        let record = bytes.get(..len).ok_or(OobError::Truncated)?;
        let (body, checksum) = record.split_at(len - 4);
        if crc32c::crc32c(body).to_le_bytes() != checksum {
            return Err(OobError::Checksum);
        }
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().expect("four bytes"));
        let sequence = u64::from(word(4)) >> 8 | u64::from(word(8) & 0xff_ffff) << 24;
        Ok(Oob {
            role: OobRole(body[4]),
            mode: BlockMode::from_number(body[11]).ok_or(OobError::Foreign)?,
            sequence,
            lpns: (12..body.len()).step_by(4).map(|at| Lpn(word(at))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let lpns = vec![Lpn(7), Lpn::NONE];
        let (role, mode) = (OobRole(9), BlockMode::Slc);
        let oob = Oob { role, mode, sequence: 0x0304_0506_0708, lpns };
        let bytes = oob.encode();
        assert_eq!(bytes.len(), Oob::encoded_len(2));
        assert_eq!(Oob::decode(&bytes), Ok(oob));
        for bit in 0..bytes.len() * 8 {
            let mut torn = bytes.clone();
            torn[bit / 8] ^= 1 << (bit % 8);
            assert!(Oob::decode(&torn).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Oob::decode(&bytes[..len]).is_err(), "length {len}");
        }
    }
}
