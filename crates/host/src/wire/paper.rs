//! The format of the paper (Jeong et al., *Improving Flash Storage Performance by Caching Address
//! Mapping Table in Host Memory*, HotStorage 2017, "Delivering L2P Hints" and "L2P Cache Updates").
//!
//! A READ(16) contains an entry of 4 bytes and then an address of 4 bytes. A response UPIU names a
//! group of the map that has changed, or contains entries, or both.
//!
//! The paper's figures do not state the field widths of the response. Here the group number takes
//! bytes 12 to 15, and an entry and its address take 4 bytes each. In "HPB Device Info", bit 0 is
//! set if there is a group, and bit 1 if there are entries.

use super::{Cdb, ReadFlags, WireError, cdb, must_be, reserved, u16_at, u32_at, u64_at};

const READ_16: u8 = 0x88;

/// READ(16), with or without an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read16 {
    /// Byte 1.
    pub flags: ReadFlags,
    /// The host's entry for the first block, if there is one.
    pub entry: Option<u32>,
    /// The first logical block, which must be below 2^32 if there is an entry.
    pub lba: u64,
    /// Number of logical blocks.
    pub blocks: u32,
    /// Group number, 0 to 31.
    pub group: u8,
}

impl Read16 {
    /// Returns the bytes of the command.
    ///
    /// # Panics
    /// Panics if the address is too large for a read with an entry, or if another field is too
    /// large for its bits.
    pub fn encode(&self) -> Cdb {
        assert!(self.group < 32, "the group number is 0 to 31");
        let mut bytes = [0; 16];
        bytes[0] = READ_16;
        bytes[1] = self.flags.encode() | u8::from(self.entry.is_some());
        match self.entry {
            None => bytes[2..10].copy_from_slice(&self.lba.to_be_bytes()),
            Some(entry) => {
                bytes[2..6].copy_from_slice(&entry.to_be_bytes());
                bytes[6..10].copy_from_slice(
                    &u32::try_from(self.lba).expect("an address of 4 bytes").to_be_bytes(),
                );
            }
        }
        bytes[10..14].copy_from_slice(&self.blocks.to_be_bytes());
        bytes[14] = self.group;
        bytes
    }

    /// Returns the command that `bytes` encode.
    ///
    /// # Errors
    /// Returns an error for another length or operation code, and if a reserved bit is set. The
    /// reserved bits are bit 2 of byte 1, bits 5 to 7 of byte 14, and all of byte 15 (UFS).
    pub fn decode(bytes: &[u8]) -> Result<Read16, WireError> {
        let bytes = cdb(bytes)?;
        must_be(bytes, 0, "the operation code", READ_16)?;
        reserved(bytes, 1, !(ReadFlags::BITS | 1))?;
        reserved(bytes, 14, 0xe0)?;
        reserved(bytes, 15, 0xff)?;
        let with_entry = bytes[1] & 1 != 0;
        Ok(Read16 {
            flags: ReadFlags::decode(bytes[1]),
            entry: with_entry.then(|| u32_at(bytes, 2)),
            lba: if with_entry { u32_at(bytes, 6).into() } else { u64_at(bytes, 2) },
            blocks: u32_at(bytes, 10),
            group: bytes[14],
        })
    }
}

/// Bytes of a response UPIU before its data segment.
pub const RESPONSE_BYTES: usize = 32;
/// Bytes of an entry and its address in the data segment.
pub const PAIR_BYTES: usize = 8;

const RESPONSE: u8 = 0x21;
/// Bits 6 and 7 of byte 0, which show whether digests follow (`xx10 0001b`).
const DIGESTS: u8 = 0xc0;
const HAS_GROUP: u8 = 0x01;
const HAS_PAIRS: u8 = 0x02;

/// A response UPIU of a device to a host that caches the device's map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response<'a> {
    /// The two highest bits of byte 0, as bits 0 and 1.
    pub digests: u8,
    /// Flags.
    pub flags: u8,
    /// Logical unit.
    pub lun: u8,
    /// Task tag.
    pub tag: u8,
    /// Initiator (bits 4 to 7) and command set type (bits 0 to 3).
    pub initiator: u8,
    /// Response code; 0 is success.
    pub response: u8,
    /// SCSI status; 0 is good.
    pub status: u8,
    /// Group of the map that has changed, so that the host's entries of this group are stale.
    pub dirty_group: Option<u32>,
    pairs: &'a [u8],
}

impl<'a> Response<'a> {
    /// Returns a successful response to `tag`, with a group, with `pairs`, or with both.
    ///
    /// Each pair is an address and an entry in 8 bytes.
    ///
    /// # Panics
    /// Panics if `pairs` is not a whole number of pairs, or larger than a data segment.
    pub fn good(lun: u8, tag: u8, dirty_group: Option<u32>, pairs: &'a [u8]) -> Response<'a> {
        assert!(
            pairs.len() % PAIR_BYTES == 0 && pairs.len() <= usize::from(u16::MAX),
            "the pairs have {} bytes, which is not a whole number of pairs",
            pairs.len()
        );
        Response {
            digests: 0,
            flags: 0,
            lun,
            tag,
            initiator: 0,
            response: 0,
            status: 0,
            dirty_group,
            pairs,
        }
    }

    /// Returns the addresses and entries in the response.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.pairs.chunks_exact(PAIR_BYTES).map(|pair| (u32_at(pair, 0), u32_at(pair, 4)))
    }

    /// Returns the number of bytes of the whole response.
    pub fn length(&self) -> usize {
        RESPONSE_BYTES + self.pairs.len()
    }

    /// Writes the response to `to`, which must be as long as the response.
    ///
    /// # Errors
    /// Returns [`WireError::Length`] if `to` has another length.
    pub fn encode(&self, to: &mut [u8]) -> Result<(), WireError> {
        if to.len() != self.length() {
            return Err(WireError::Length { expected: self.length(), found: to.len() });
        }
        to[..RESPONSE_BYTES].fill(0);
        to[0] = RESPONSE | self.digests << 6;
        to[1..5].copy_from_slice(&[self.flags, self.lun, self.tag, self.initiator]);
        (to[6], to[7]) = (self.response, self.status);
        let group = if self.dirty_group.is_some() { HAS_GROUP } else { 0 };
        to[9] = group | if self.pairs.is_empty() { 0 } else { HAS_PAIRS };
        to[10..12].copy_from_slice(&(self.pairs.len() as u16).to_be_bytes());
        to[12..16].copy_from_slice(&self.dirty_group.unwrap_or(0).to_be_bytes());
        to[RESPONSE_BYTES..].copy_from_slice(self.pairs);
        Ok(())
    }

    /// Returns the response that `bytes` encode.
    ///
    /// # Errors
    /// Returns an error for another length than the response states, for another transaction, for
    /// reserved bits, and for device information that contradicts other fields.
    pub fn decode(bytes: &'a [u8]) -> Result<Response<'a>, WireError> {
        let short = |expected| WireError::Length { expected, found: bytes.len() };
        if bytes.len() < RESPONSE_BYTES {
            return Err(short(RESPONSE_BYTES));
        }
        if bytes[0] & !DIGESTS != RESPONSE {
            return Err(WireError::Value { byte: 0, field: "the transaction", found: bytes[0] });
        }
        reserved(bytes, 5, 0xff)?;
        reserved(bytes, 8, 0xff)?;
        reserved(bytes, 9, !(HAS_GROUP | HAS_PAIRS))?;
        for byte in 16..RESPONSE_BYTES {
            reserved(bytes, byte, 0xff)?;
        }
        let length = usize::from(u16_at(bytes, 10));
        if bytes.len() != RESPONSE_BYTES + length {
            return Err(short(RESPONSE_BYTES + length));
        }
        let (has_group, has_pairs) = (bytes[9] & HAS_GROUP != 0, bytes[9] & HAS_PAIRS != 0);
        if length % PAIR_BYTES != 0 || has_pairs != (length > 0) {
            return Err(WireError::Value {
                byte: 11,
                field: "the length of the data segment",
                found: bytes[11],
            });
        }
        let group = u32_at(bytes, 12);
        if !has_group && group != 0 {
            return Err(WireError::Value {
                byte: 9,
                field: "the device information",
                found: bytes[9],
            });
        }
        Ok(Response {
            digests: bytes[0] >> 6,
            flags: bytes[1],
            lun: bytes[2],
            tag: bytes[3],
            initiator: bytes[4],
            response: bytes[6],
            status: bytes[7],
            dirty_group: has_group.then_some(group),
            pairs: &bytes[RESPONSE_BYTES..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{canonical, refuses};
    use super::*;

    /// The bytes come from the table "READ16 CDB for HPB".
    #[test]
    fn a_read_with_an_entry() {
        let read = Read16 {
            flags: ReadFlags { protect: 1, dpo: false, fua: true, fua_nv: false },
            entry: Some(0x0102_0304),
            lba: 0x0a0b_0c0d,
            blocks: 8,
            group: 5,
        };
        // 88h; 001 0 1 0 0 1; entry; address; length; group; control
        let bytes = [0x88, 0x29, 1, 2, 3, 4, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 8, 5, 0];
        assert_eq!(read.encode(), bytes);
        assert_eq!(Read16::decode(&bytes), Ok(read));
        refuses(&bytes, &[(0, 0xff), (1, 0x04), (14, 0xe0), (15, 0xff)], Read16::decode);
        canonical(Read16::decode, Read16::encode, |bytes| (bytes[0], bytes[15]) = (0x88, 0));
    }

    #[test]
    fn without_one_the_address_has_eight_bytes() {
        let bytes = [0x88, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 1, 0, 0, 0];
        let read = Read16::decode(&bytes).unwrap();
        assert_eq!((read.entry, read.lba, read.blocks), (None, 0x1_0203_0405, 256));
        assert_eq!(read.encode(), bytes);
    }

    /// The bytes come from the figure "Response UPIU for HPB".
    #[test]
    fn a_response_names_a_group_and_brings_entries() {
        let pairs = [0, 0, 0, 7, 0, 0, 0x12, 0x34];
        let mut bytes = [0; 40];
        Response::good(2, 9, Some(0x0506), &pairs).encode(&mut bytes).unwrap();
        let mut expected = [0; 40];
        (expected[0], expected[2], expected[3]) = (0x21, 2, 9);
        (expected[9], expected[11]) = (3, 8);
        (expected[14], expected[15]) = (5, 6);
        expected[32..].copy_from_slice(&pairs);
        assert_eq!(bytes, expected);
        let response = Response::decode(&bytes).unwrap();
        assert_eq!(
            (response.dirty_group, response.pairs().collect::<Vec<_>>()),
            (Some(0x506), vec![(7, 0x1234)])
        );
        let mut fixed = vec![(0, 0x3f), (5, 0xff), (8, 0xff), (9, 0xfe), (10, 0xff), (11, 0xff)];
        fixed.extend((16..32).map(|byte| (byte, 0xff)));
        refuses(&bytes, &fixed, |bytes| Response::decode(bytes).map(|_| ()));
        let none = Response::good(0, 1, None, &[]);
        let mut bytes = [0xaa; 32];
        none.encode(&mut bytes).unwrap();
        assert_eq!(Response::decode(&bytes), Ok(none));
        refuses(&bytes, &[(9, 0x02), (12, 0xff)], |bytes| Response::decode(bytes).map(|_| ()));
    }
}
