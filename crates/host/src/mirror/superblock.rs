//! Superblock of a mirror. Each drive of the mirror has the superblock, which names the current
//! drives.

/// Bytes of a superblock.
pub(super) const BYTES: usize = 36;

const MAGIC: [u8; 4] = *b"FAMR";
const VERSION: u16 = 1;

/// The superblock of one drive. The little-endian fields are: magic `FAMR`, version (16 bits),
/// drives (8), number of this drive (8), members (32), events (64), sectors (64), first drive (8),
/// whether drives are alike (8), two bytes of zeros, and a CRC-32C of all other fields (32).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Superblock {
    /// Number of drives of the mirror.
    pub drives: u8,
    /// Number of this drive.
    pub index: u8,
    /// One bit for each drive. It is set if the drive is current.
    pub members: u32,
    /// Drive whose content is used where drives differ.
    pub first: u8,
    /// `true` if the drives have been alike at some time since they were mounted.
    ///
    /// If `true`, the drives differ at most in data that was not flushed since that time. If
    /// `false`, another drive becomes the first only if the first drive fails.
    pub alike: bool,
    /// Number that grows with every change of `members` or `first`. A drive with a smaller number
    /// has missed a change.
    pub events: u64,
    /// Number of sectors that the mirror exports.
    pub sectors: u64,
}

/// Content at the place of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Nothing was written at this place.
    Blank,
    /// The content is not a superblock.
    Foreign,
    /// The content is a superblock.
    Superblock(Superblock),
}

impl Superblock {
    /// Returns the superblock as bytes.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        (bytes[6], bytes[7]) = (self.drives, self.index);
        bytes[8..12].copy_from_slice(&self.members.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.events.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.sectors.to_le_bytes());
        (bytes[28], bytes[29]) = (self.first, self.alike.into());
        let sum = crc32c::crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes the content of a unit that begins with `bytes`.
    pub fn decode(bytes: &[u8]) -> Found {
        if bytes.iter().all(|&b| b == 0) {
            return Found::Blank;
        }
        let Some(bytes) = bytes.first_chunk::<BYTES>() else { return Found::Foreign };
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
        let begins = bytes[..4] == MAGIC && bytes[4..6] == VERSION.to_le_bytes();
        if !begins || crc32c::crc32c(&bytes[..32]) != word(32) {
            return Found::Foreign;
        }
        Found::Superblock(Superblock {
            drives: bytes[6],
            index: bytes[7],
            members: word(8),
            events: long(12),
            sectors: long(20),
            first: bytes[28],
            alike: bytes[29] != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_is_read_as_it_was_written_and_any_damage_is_seen() {
        let written = Superblock {
            drives: 3,
            index: 2,
            members: 0b101,
            first: 2,
            alike: true,
            events: 7,
            sectors: 9 << 33,
        };
        let bytes = written.encode();
        assert_eq!(bytes[..8], *b"FAMR\x01\0\x03\x02");
        assert_eq!(Superblock::decode(&bytes), Found::Superblock(written));
        for bit in 0..BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Superblock::decode(&bytes), Found::Foreign, "bit {bit}");
        }
        assert_eq!(Superblock::decode(&[0; 512]), Found::Blank);
        assert_eq!(Superblock::decode(b"FAMR"), Found::Foreign);
    }
}
