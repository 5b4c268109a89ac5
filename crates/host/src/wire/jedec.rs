//! JEDEC's HPB 1.0 and 2.0 (JESD220-3), as in Linux 5.15 to 6.4 (`drivers/ufs/core/ufshpb.c`). HPB
//! READ F8h carries an entry of 8 bytes. READ BUFFER F9h reads a subregion of the map
//! ([`ReadBuffer`]). WRITE BUFFER FAh gives regions back or sends entries ahead. Notices are in the
//! sense data of a response.

use super::{Cdb, ReadFlags, WireError, cdb, must_be, reserved, u16_at, u32_at, u64_at};

pub use super::samsung::ReadBuffer;

const HPB_READ: u8 = 0xf8;
const WRITE_BUFFER: u8 = 0xfa;
/// The largest number that links an HPB READ to entries that were sent ahead (HPB 2.0).
pub const READ_ID_MAX: u8 = 0x7f;

/// HPB READ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbRead {
    /// Byte 1, as in a READ(10).
    pub flags: ReadFlags,
    /// The first logical block of 4 KB.
    pub lba: u32,
    /// The host's entry for the first block.
    pub entry: u64,
    /// Number of logical blocks, at least 1.
    pub blocks: u8,
    /// Number that identifies entries that were sent ahead; 0 if no entries were.
    pub read_id: u8,
}

impl HpbRead {
    /// Returns the bytes of the command.
    ///
    /// # Panics
    /// Panics if `blocks` is 0 or `read_id` is above 7Fh.
    pub fn encode(&self) -> Cdb {
        assert!(self.blocks > 0 && self.read_id <= READ_ID_MAX, "{self:?}");
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (HPB_READ, self.flags.encode());
        bytes[2..6].copy_from_slice(&self.lba.to_be_bytes());
        bytes[6..14].copy_from_slice(&self.entry.to_be_bytes());
        (bytes[14], bytes[15]) = (self.blocks, self.read_id);
        bytes
    }

    /// Returns the command that `bytes` encode.
    ///
    /// # Errors
    /// Returns an error for another length or operation code, for 0 blocks, and if a reserved bit
    /// is set. The reserved bits are bits 0 and 2 of byte 1 and bit 7 of byte 15.
    pub fn decode(bytes: &[u8]) -> Result<HpbRead, WireError> {
        let bytes = cdb(bytes)?;
        must_be(bytes, 0, "the operation code", HPB_READ)?;
        reserved(bytes, 1, !ReadFlags::BITS)?;
        reserved(bytes, 15, !READ_ID_MAX)?;
        if bytes[14] == 0 {
            return Err(WireError::Value { byte: 14, field: "the transfer length", found: 0 });
        }
        Ok(HpbRead {
            flags: ReadFlags::decode(bytes[1]),
            lba: u32_at(bytes, 2),
            entry: u64_at(bytes, 6),
            blocks: bytes[14],
            read_id: bytes[15],
        })
    }

    /// Returns the command with the bytes of the entry reversed, as some devices require.
    #[must_use]
    pub fn with_entry_swapped(self) -> HpbRead {
        HpbRead { entry: self.entry.swap_bytes(), ..self }
    }
}

/// WRITE BUFFER, with which the host gives parts of the map back or sends entries ahead of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteBuffer {
    /// The host gives back one region.
    Inactivate(u16),
    /// The data of this command contains the entries of a later read of several blocks (HPB 2.0; in
    /// Linux from 5.16 to 6.1 at most).
    Prefetch {
        /// The first logical block of 4 KB.
        lba: u32,
        /// The number that the later HPB READ names, 1 to 7Fh.
        read_id: u8,
        /// Number of bytes of the entries, 8 for each.
        bytes: u16,
    },
    /// The host gives back all regions.
    InactivateAll,
}

impl WriteBuffer {
    /// Returns the bytes of the command.
    ///
    /// # Panics
    /// Panics if `read_id` is not 1 to 7Fh.
    pub fn encode(&self) -> Cdb {
        let mut bytes = [0; 16];
        bytes[0] = WRITE_BUFFER;
        match self {
            WriteBuffer::Prefetch { lba, read_id, bytes: length } => {
                assert!((1..=READ_ID_MAX).contains(read_id), "{self:?}");
                bytes[1] = 0x02;
                bytes[2..6].copy_from_slice(&lba.to_be_bytes());
                bytes[6] = *read_id;
                bytes[7..9].copy_from_slice(&length.to_be_bytes());
            }
            WriteBuffer::Inactivate(region) => {
                bytes[1] = 0x01;
                bytes[2..4].copy_from_slice(&region.to_be_bytes());
            }
            WriteBuffer::InactivateAll => bytes[1] = 0x03,
        }
        bytes
    }

    /// Returns the command that `bytes` encode.
    ///
    /// # Errors
    /// Returns an error for another length, operation code or buffer, for a read number that is not
    /// 1 to 7Fh, and if any other byte is not zero.
    pub fn decode(bytes: &[u8]) -> Result<WriteBuffer, WireError> {
        let bytes = cdb(bytes)?;
        must_be(bytes, 0, "the operation code", WRITE_BUFFER)?;
        let (command, rest) = match bytes[1] {
            0x01 => (WriteBuffer::Inactivate(u16_at(bytes, 2)), 4),
            0x02 if (1..=READ_ID_MAX).contains(&bytes[6]) => {
                let (lba, length) = (u32_at(bytes, 2), u16_at(bytes, 7));
                (WriteBuffer::Prefetch { lba, read_id: bytes[6], bytes: length }, 9)
            }
            0x02 => {
                let field = "the number of the read";
                return Err(WireError::Value { byte: 6, field, found: bytes[6] });
            }
            0x03 => (WriteBuffer::InactivateAll, 2),
            found => return Err(WireError::Value { byte: 1, field: "the buffer", found }),
        };
        for byte in rest..16 {
            reserved(bytes, byte, 0xff)?;
        }
        Ok(command)
    }
}

/// Kind of a device's notice about its map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// No notice.
    None,
    /// The host should cache or drop regions.
    RegionUpdate,
    /// The device was reset, so all entries of the host are stale.
    DeviceReset,
}

/// Greatest number of regions of each kind that a notice names.
pub const NOTICE_MAX: usize = 2;
/// Bytes of the sense data.
pub const SENSE_BYTES: usize = 0x14;

const SENSE_LENGTH: u16 = 0x12;
const DESCRIPTOR: u8 = 0x80;
const ADDITIONAL: u8 = 0x10;

/// The notice in the sense data of a response. The response has HPB_UPDATE_ALERT set in its device
/// information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Kind of the notice.
    pub operation: Operation,
    /// Logical unit.
    pub lun: u8,
    active: ([(u16, u16); NOTICE_MAX], u8),
    inactive: ([u16; NOTICE_MAX], u8),
}

impl Notice {
    /// Returns a notice of subregions to read and of regions to drop.
    ///
    /// A subregion is given by its region and its number in the region.
    ///
    /// # Panics
    /// Panics if there are more than two subregions or more than two regions.
    pub fn new(operation: Operation, lun: u8, active: &[(u16, u16)], inactive: &[u16]) -> Notice {
        let mut notice = Notice {
            operation,
            lun,
            active: ([(0, 0); NOTICE_MAX], 0),
            inactive: ([0; NOTICE_MAX], 0),
        };
        notice.active.0[..active.len()].copy_from_slice(active);
        notice.inactive.0[..inactive.len()].copy_from_slice(inactive);
        (notice.active.1, notice.inactive.1) = (active.len() as u8, inactive.len() as u8);
        notice
    }

    /// Returns the subregions to read, each as its region and its number in the region.
    pub fn active(&self) -> &[(u16, u16)] {
        &self.active.0[..usize::from(self.active.1)]
    }

    /// Returns the regions to drop.
    pub fn inactive(&self) -> &[u16] {
        &self.inactive.0[..usize::from(self.inactive.1)]
    }

    /// Returns the bytes of the sense data.
    pub fn encode(&self) -> [u8; SENSE_BYTES] {
        let mut bytes = [0; SENSE_BYTES];
        bytes[..2].copy_from_slice(&SENSE_LENGTH.to_be_bytes());
        (bytes[2], bytes[3]) = (DESCRIPTOR, ADDITIONAL);
        bytes[4] = self.operation as u8;
        (bytes[5], bytes[6], bytes[7]) = (self.lun, self.active.1, self.inactive.1);
        for (i, (region, subregion)) in self.active().iter().enumerate() {
            bytes[8 + 4 * i..10 + 4 * i].copy_from_slice(&region.to_be_bytes());
            bytes[10 + 4 * i..12 + 4 * i].copy_from_slice(&subregion.to_be_bytes());
        }
        for (i, region) in self.inactive().iter().enumerate() {
            bytes[16 + 2 * i..18 + 2 * i].copy_from_slice(&region.to_be_bytes());
        }
        bytes
    }

    /// Returns the notice that `bytes` encode.
    ///
    /// # Errors
    /// Returns an error for another length, descriptor or operation, for more than two subregions
    /// or regions, and if any other byte is not zero.
    pub fn decode(bytes: &[u8]) -> Result<Notice, WireError> {
        if bytes.len() != SENSE_BYTES {
            return Err(WireError::Length { expected: SENSE_BYTES, found: bytes.len() });
        }
        must_be(bytes, 0, "the sense length", 0)?;
        must_be(bytes, 1, "the sense length", SENSE_LENGTH as u8)?;
        must_be(bytes, 2, "the descriptor", DESCRIPTOR)?;
        must_be(bytes, 3, "the additional length", ADDITIONAL)?;
        let operation = match bytes[4] {
            0 => Operation::None,
            1 => Operation::RegionUpdate,
            2 => Operation::DeviceReset,
            found => return Err(WireError::Value { byte: 4, field: "the operation", found }),
        };
        let count = |byte: usize, field| match bytes[byte] {
            found if usize::from(found) <= NOTICE_MAX => Ok(usize::from(found)),
            found => Err(WireError::Value { byte, field, found }),
        };
        let (active, inactive) = (count(6, "active subregions")?, count(7, "inactive regions")?);
        for byte in (8 + 4 * active..16).chain(16 + 2 * inactive..SENSE_BYTES) {
            reserved(bytes, byte, 0xff)?;
        }
        let mut notice = Notice::new(operation, bytes[5], &[], &[]);
        (notice.active.1, notice.inactive.1) = (active as u8, inactive as u8);
        for (i, pair) in notice.active.0.iter_mut().enumerate() {
            *pair = (u16_at(bytes, 8 + 4 * i), u16_at(bytes, 10 + 4 * i));
        }
        for (i, region) in notice.inactive.0.iter_mut().enumerate() {
            *region = u16_at(bytes, 16 + 2 * i);
        }
        Ok(notice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{canonical, refuses};
    use super::*;

    #[test]
    fn a_read_with_an_entry() {
        let flags = ReadFlags { dpo: true, ..ReadFlags::default() };
        let read = HpbRead {
            flags,
            lba: 0x0102_0304,
            entry: 0x1112_1314_1516_1718,
            blocks: 8,
            read_id: 0,
        };
        let bytes = [0xf8, 0x10, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 8, 0];
        assert_eq!(read.encode(), bytes);
        assert_eq!(HpbRead::decode(&bytes), Ok(read));
        assert_eq!(
            read.with_entry_swapped().encode()[6..14],
            [0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]
        );
        refuses(&bytes, &[(0, 0xff), (1, 0x05), (14, 0x08), (15, 0x80)], HpbRead::decode);
        canonical(HpbRead::decode, HpbRead::encode, |bytes| bytes[0] = 0xf8);
    }

    #[test]
    fn regions_are_given_back() {
        let one = [0xfa, 1, 0x02, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let all = [0xfa, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(WriteBuffer::Inactivate(0x203).encode(), one);
        assert_eq!(WriteBuffer::InactivateAll.encode(), all);
        let rest = |from: usize| {
            (from..16).map(|byte| (byte, 0xff)).chain([(0, 0xff), (1, 0xfc)]).collect::<Vec<_>>()
        };
        refuses(&one, &rest(4), WriteBuffer::decode);
        refuses(&all, &rest(2), WriteBuffer::decode);
        canonical(WriteBuffer::decode, WriteBuffer::encode, |bytes| {
            (bytes[0], bytes[1]) = (0xfa, 1);
            bytes[4..].fill(0);
        });
    }

    /// `ufshpb_set_write_buf_cmd` of Linux 5.16 writes these bytes.
    #[test]
    fn entries_are_sent_ahead_of_a_read() {
        let ahead = WriteBuffer::Prefetch { lba: 0x0102_0304, read_id: 0x7e, bytes: 0x0108 };
        let bytes = [0xfa, 2, 1, 2, 3, 4, 0x7e, 1, 8, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ahead.encode(), bytes);
        assert_eq!(WriteBuffer::decode(&bytes), Ok(ahead));
        let fixed = (9..16).map(|byte| (byte, 0xff)).chain([(0, 0xff), (6, 0x80), (1, 0xfc)]);
        refuses(&bytes, &fixed.collect::<Vec<_>>(), WriteBuffer::decode);
    }

    #[test]
    fn a_notice_names_up_to_two_of_each() {
        let notice = Notice::new(Operation::RegionUpdate, 3, &[(1, 2), (0x0304, 5)], &[0x0607]);
        let bytes = [0, 0x12, 0x80, 0x10, 1, 3, 2, 1, 0, 1, 0, 2, 3, 4, 0, 5, 6, 7, 0, 0];
        assert_eq!(notice.encode(), bytes);
        assert_eq!(Notice::decode(&bytes), Ok(notice));
        assert_eq!((notice.active(), notice.inactive()), (&[(1, 2), (0x304, 5)][..], &[0x607][..]));
        let fixed = [
            (0, 0xff),
            (1, 0xff),
            (2, 0xff),
            (3, 0xff),
            (4, 0xfe),
            (6, 0xff),
            (7, 0xfd),
            (18, 0xff),
            (19, 0xff),
        ];
        refuses(&bytes, &fixed, Notice::decode);
        let reset = Notice::new(Operation::DeviceReset, 0, &[], &[]);
        assert_eq!(Notice::decode(&reset.encode()), Ok(reset));
    }
}
