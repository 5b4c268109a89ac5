//! The format of Samsung's driver of 2018 (HPB 1.3.5, OpenMPDK HPBDriver).
//!
//! A READ(16) of one block of 4 KB contains an address of 4 bytes and an entry of 8 bytes. Its mark
//! is 11h in byte 14. READ BUFFER F9h reads a subregion of the map.

use super::{Cdb, ReadFlags, WireError, cdb, must_be, reserved, u16_at, u24_at, u32_at, u64_at};

const READ_16: u8 = 0x88;
const MARK: u8 = 0x11;
const BLOCKS: u8 = 1;

/// READ(16) with an entry, for one block of 4 KB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read16 {
    /// Byte 1.
    pub flags: ReadFlags,
    /// The logical block.
    pub lba: u32,
    /// The host's entry for the block.
    pub entry: u64,
}

impl Read16 {
    /// Returns the bytes of the command.
    pub fn encode(&self) -> Cdb {
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (READ_16, self.flags.encode());
        bytes[2..6].copy_from_slice(&self.lba.to_be_bytes());
        bytes[6..14].copy_from_slice(&self.entry.to_be_bytes());
        (bytes[14], bytes[15]) = (MARK, BLOCKS);
        bytes
    }

    /// Returns the command that `bytes` encode.
    ///
    /// # Errors
    /// Returns an error for another length, operation code, mark or number of blocks, and for bits
    /// 0 and 2 of byte 1, which are reserved.
    pub fn decode(bytes: &[u8]) -> Result<Read16, WireError> {
        let bytes = cdb(bytes)?;
        must_be(bytes, 0, "the operation code", READ_16)?;
        must_be(bytes, 14, "the mark of an entry", MARK)?;
        must_be(bytes, 15, "the transfer length", BLOCKS)?;
        reserved(bytes, 1, !ReadFlags::BITS)?;
        Ok(Read16 {
            flags: ReadFlags::decode(bytes[1]),
            lba: u32_at(bytes, 2),
            entry: u64_at(bytes, 6),
        })
    }
}

/// READ BUFFER for a part of the map. [`super::jedec`] uses the same command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadBuffer {
    /// The region.
    pub region: u16,
    /// Number of the subregion in its region.
    pub subregion: u16,
    /// Number of bytes to return, below 2^24.
    pub bytes: u32,
}

const READ_BUFFER: u8 = 0xf9;
const BUFFER_ID: u8 = 0x01;

impl ReadBuffer {
    /// Returns the bytes of the command.
    ///
    /// # Panics
    /// Panics if the length has more than 24 bits.
    pub fn encode(&self) -> Cdb {
        assert!(
            self.bytes < 1 << 24,
            "the length of {} bytes does not fit into 24 bits",
            self.bytes
        );
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (READ_BUFFER, BUFFER_ID);
        bytes[2..4].copy_from_slice(&self.region.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.subregion.to_be_bytes());
        bytes[6..9].copy_from_slice(&self.bytes.to_be_bytes()[1..]);
        bytes
    }

    /// Returns the command that `bytes` encode.
    ///
    /// # Errors
    /// Returns an error for another length, operation code or buffer, and for bytes 9 to 15, which
    /// are reserved.
    pub fn decode(bytes: &[u8]) -> Result<ReadBuffer, WireError> {
        let bytes = cdb(bytes)?;
        must_be(bytes, 0, "the operation code", READ_BUFFER)?;
        must_be(bytes, 1, "the buffer", BUFFER_ID)?;
        for byte in 9..16 {
            reserved(bytes, byte, 0xff)?;
        }
        Ok(ReadBuffer {
            region: u16_at(bytes, 2),
            subregion: u16_at(bytes, 4),
            bytes: u24_at(bytes, 6),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{canonical, refuses};
    use super::*;

    #[test]
    fn a_read_with_an_entry() {
        let read =
            Read16 { flags: ReadFlags::default(), lba: 0x0102_0304, entry: 0x1112_1314_1516_1718 };
        let bytes = [0x88, 0, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x11, 1];
        assert_eq!(read.encode(), bytes);
        assert_eq!(Read16::decode(&bytes), Ok(read));
        refuses(&bytes, &[(0, 0xff), (1, 0x05), (14, 0xff), (15, 0xff)], Read16::decode);
        canonical(Read16::decode, Read16::encode, |bytes| {
            (bytes[0], bytes[14], bytes[15]) = (0x88, 0x11, 1)
        });
    }

    #[test]
    fn a_part_of_the_map_is_asked_for() {
        let ask = ReadBuffer { region: 0x0102, subregion: 3, bytes: 0x8000 };
        let bytes = [0xf9, 1, 1, 2, 0, 3, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ask.encode(), bytes);
        assert_eq!(ReadBuffer::decode(&bytes), Ok(ask));
        let mut fixed = vec![(0, 0xff), (1, 0xff)];
        fixed.extend((9..16).map(|byte| (byte, 0xff)));
        refuses(&bytes, &fixed, ReadBuffer::decode);
        canonical(ReadBuffer::decode, ReadBuffer::encode, |bytes| {
            (bytes[0], bytes[1]) = (0xf9, 1);
            bytes[9..].fill(0);
        });
    }
}
