//! Wire formats of HPB, in which a host sends map entries back to a drive.
//!
//! There are three formats, each named after its origin. Numbers are big-endian. If a decoded
//! command is encoded again, the bytes are the same. Encoding and decoding allocate no memory.
//!
//! | | CDB of a read | how entries come to the host |
//! |---|---|---|
//! | [`paper`] | READ(16) with an entry of 4 bytes | in response UPIUs, or by fetching a group |
//! | [`samsung`] | READ(16) with an entry of 8 bytes | READ BUFFER F9h |
//! | [`jedec`] | HPB READ F8h with an entry of 8 bytes | READ BUFFER F9h, on notices in sense data |

pub mod jedec;
pub mod paper;
pub mod samsung;

/// Bytes of a command descriptor block in a command UPIU.
pub const CDB_BYTES: usize = 16;

/// A command descriptor block.
pub type Cdb = [u8; CDB_BYTES];

/// Reason why bytes are not a command or response of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// The number of bytes is wrong.
    Length {
        /// Number of bytes that the format requires.
        expected: usize,
        /// Number of bytes that were found.
        found: usize,
    },
    /// A byte has a wrong value.
    Value {
        /// Number of the byte.
        byte: usize,
        /// Name of the field.
        field: &'static str,
        /// Value of the byte.
        found: u8,
    },
    /// Reserved bits are set.
    Reserved {
        /// Number of the byte.
        byte: usize,
        /// The reserved bits that are set.
        bits: u8,
    },
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WireError::Length { expected, found } => {
                write!(f, "the length is {found} bytes, but must be {expected} bytes")
            }
            WireError::Value { byte, field, found } => {
                write!(f, "byte {byte}: {field} is {found:#04x}")
            }
            WireError::Reserved { byte, bits } => {
                write!(f, "byte {byte}: reserved bits {bits:#04x} are set")
            }
        }
    }
}

impl std::error::Error for WireError {}

/// Returns the bytes as a CDB, or an error if their number is wrong.
fn cdb(bytes: &[u8]) -> Result<&Cdb, WireError> {
    bytes.try_into().map_err(|_| WireError::Length { expected: CDB_BYTES, found: bytes.len() })
}

/// Returns an error if one of `bits` of a byte is set.
fn reserved(bytes: &[u8], byte: usize, bits: u8) -> Result<(), WireError> {
    match bytes[byte] & bits {
        0 => Ok(()),
        set => Err(WireError::Reserved { byte, bits: set }),
    }
}

/// Returns an error unless a byte holds `expected`.
fn must_be(bytes: &[u8], byte: usize, field: &'static str, expected: u8) -> Result<(), WireError> {
    match bytes[byte] {
        found if found == expected => Ok(()),
        found => Err(WireError::Value { byte, field, found }),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u24_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// Flags in byte 1 of a READ (SBC-3, READ(10) and READ(16)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadFlags {
    /// RDPROTECT, 0 to 7.
    pub protect: u8,
    /// Disable page out: the data need not be cached.
    pub dpo: bool,
    /// Force unit access: the data must come from the medium.
    pub fua: bool,
    /// FUA_NV: a non-volatile cache is enough.
    pub fua_nv: bool,
}

impl ReadFlags {
    /// Bits of byte 1 that belong to the flags. Bit 2 is reserved, and bit 0 is not a flag.
    const BITS: u8 = 0b1111_1010;

    fn decode(byte: u8) -> ReadFlags {
        ReadFlags {
            protect: byte >> 5,
            dpo: byte & 0x10 != 0,
            fua: byte & 0x08 != 0,
            fua_nv: byte & 0x02 != 0,
        }
    }

    fn encode(self) -> u8 {
        assert!(self.protect < 8, "RDPROTECT is 0 to 7");
        self.protect << 5
            | u8::from(self.dpo) << 4
            | u8::from(self.fua) << 3
            | u8::from(self.fua_nv) << 1
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Cdb, WireError};

    /// Asserts that `decode` refuses other lengths, and each change of one bit of `reserved`.
    ///
    /// `reserved` contains pairs of the number of a byte and a mask of its bits.
    pub fn refuses<T: std::fmt::Debug>(
        good: &[u8],
        reserved: &[(usize, u8)],
        decode: impl Fn(&[u8]) -> Result<T, WireError>,
    ) {
        decode(good).unwrap_or_else(|e| panic!("{good:02x?}: {e}"));
        let mut long = good.to_vec();
        long.push(0);
        for length in (0..=long.len()).filter(|&n| n != good.len()) {
            let error = decode(&long[..length]).unwrap_err();
            assert!(
                matches!(error, WireError::Length { found, .. } if found == length),
                "{length} bytes: {error}"
            );
        }
        for &(byte, bits) in reserved {
            for bit in (0..8).map(|n| 1 << n).filter(|bit| bits & bit != 0) {
                let mut bad = good.to_vec();
                bad[byte] ^= bit;
                assert!(decode(&bad).is_err(), "byte {byte}, bit {bit:#04x}");
            }
        }
    }

    /// Asserts that random CDBs are refused, or decoded and encoded again to the same bytes.
    ///
    /// `fix` sets those bytes of a CDB whose values the format prescribes.
    pub fn canonical<T>(
        decode: impl Fn(&[u8]) -> Result<T, WireError>,
        encode: impl Fn(&T) -> Cdb,
        fix: impl Fn(&mut Cdb),
    ) {
        let mut rng = flashatlas_types::Rng::stream(flashatlas_types::Seed(1), "wire");
        let mut read = 0;
        for _ in 0..100_000 {
            let mut bytes: Cdb =
                std::array::from_fn(|_| if rng.below(2) == 0 { rng.below(256) as u8 } else { 0 });
            fix(&mut bytes);
            if let Ok(decoded) = decode(&bytes) {
                assert_eq!(encode(&decoded), bytes);
                read += 1;
            }
        }
        assert!(read > 1000, "only {read} CDBs were decoded");
    }
}
