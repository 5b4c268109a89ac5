//! State that outlives power: the identity, the saved features and the totals of SMART.

use crate::identity::{Identity, IdentityError, NamespaceNames, Nqn};
use flashatlas_types::Ps;

/// First bytes of a record.
const MAGIC: &[u8; 8] = b"FANVMEST";
/// Version of the layout.
const VERSION: u32 = 1;
/// Bytes of a record.
const BYTES: usize = 560;
/// Offset of the checksum: CRC32C of everything before it.
const CHECKSUM: usize = BYTES - 4;

/// Values of features that a host has saved (Base 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Saved {
    /// Over temperature threshold in kelvins.
    pub over: Option<u16>,
    /// Under temperature threshold in kelvins.
    pub under: Option<u16>,
    /// `true` if the volatile write cache is on.
    pub cache: Option<bool>,
}

/// Totals over the life of the drive (Base 5.1.12.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Units of 512 bytes that hosts have read.
    pub units_read: u64,
    /// Units of 512 bytes that hosts have written.
    pub units_written: u64,
    /// Read commands that are complete.
    pub reads: u64,
    /// Write commands that are complete.
    pub writes: u64,
    /// Times that the power came on.
    pub power_cycles: u64,
    /// Times that the power failed without a shutdown.
    pub unsafe_shutdowns: u64,
    /// Commands that failed because data could not be read.
    pub media_errors: u64,
    /// Entries of the error log so far. This is also the number of the last entry.
    pub errors: u64,
    /// Simulated time with power, in milliseconds, before the power came on last.
    pub powered_ms: u64,
    /// Greatest percentage of the endurance that was used.
    pub percentage_used: u32,
}

/// Record of everything that outlives power.
///
/// The record is 560 bytes. All numbers are little-endian, and texts are padded with zeros.
///
/// | Offset | Bytes | Content |
/// |---|---|---|
/// | 0 | 8 | `FANVMEST` |
/// | 8 | 4 | version: 1 |
/// | 12 | 4 | flags: 1 = over threshold saved, 2 = under threshold saved, 4 = cache saved, 8 = cache on, 16 = in use |
/// | 16 | 2 | over temperature threshold |
/// | 18 | 2 | under temperature threshold |
/// | 20 | 4 | percentage used |
/// | 24 | 72 | nine totals of 8 bytes, in the order of [`Totals`] |
/// | 96 | 20 | serial number |
/// | 116 | 40 | model number |
/// | 156 | 8 | firmware revision |
/// | 164 | 256 | NVMe Qualified Name |
/// | 420 | 8 | EUI64 |
/// | 428 | 16 | NGUID |
/// | 444 | 112 | zeros |
/// | 556 | 4 | CRC32C of bytes 0 to 555 |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Durable {
    /// Identity of the subsystem.
    pub identity: Identity,
    /// Saved features.
    pub saved: Saved,
    /// Totals.
    pub totals: Totals,
    /// `true` from the first command after power-on until a shutdown: a power failure in between is
    /// an unsafe shutdown.
    pub in_use: bool,
}

/// Reason why a record is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DurableError {
    /// The record has another length.
    Length {
        /// Bytes that were given.
        found: usize,
    },
    /// The first bytes are not `FANVMEST`.
    Magic,
    /// The version is not known.
    Version {
        /// Version of the record.
        found: u32,
    },
    /// The checksum is wrong: the record is damaged.
    Checksum,
    /// A field at this offset has a value that no record has.
    Field {
        /// Offset in bytes.
        offset: usize,
        /// Reason.
        error: IdentityError,
    },
}

impl std::fmt::Display for DurableError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DurableError::Length { found } => {
                write!(f, "the NVMe state has {found} bytes instead of {BYTES}")
            }
            DurableError::Magic => {
                f.write_str("NVMe state: byte 0: the bytes are not a record of NVMe state")
            }
            DurableError::Version { found } => {
                write!(
                    f,
                    "NVMe state: byte 8: the version is {found}, but this program reads {VERSION}"
                )
            }
            DurableError::Checksum => {
                write!(
                    f,
                    "NVMe state: byte {CHECKSUM}: the checksum is wrong, so the state is damaged"
                )
            }
            DurableError::Field { offset, error } => {
                write!(f, "NVMe state: byte {offset}: {error}")
            }
        }
    }
}

impl std::error::Error for DurableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DurableError::Field { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl Durable {
    /// Makes the record of a new drive.
    ///
    /// # Errors
    /// Returns the error of [`Identity::check`].
    pub fn new(identity: Identity) -> Result<Durable, IdentityError> {
        identity.check()?;
        let (saved, totals) = Default::default();
        Ok(Durable { identity, saved, totals, in_use: false })
    }

    /// Notes that the power came on: counts the power cycle, and an unsafe shutdown if the drive
    /// was in use when the power failed.
    pub(crate) fn power_on(&mut self) {
        self.totals.power_cycles += 1;
        self.totals.unsafe_shutdowns += u64::from(self.in_use);
        self.in_use = false;
    }

    /// Returns the time with power in milliseconds: the total, plus `powered` since power-on.
    pub(crate) fn powered_ms(&self, powered: Ps) -> u64 {
        self.totals.powered_ms.saturating_add(powered.0 / 1_000_000_000)
    }

    fn numbers(&mut self) -> [&mut u64; 9] {
        let t = &mut self.totals;
        [
            &mut t.units_read,
            &mut t.units_written,
            &mut t.reads,
            &mut t.writes,
            &mut t.power_cycles,
            &mut t.unsafe_shutdowns,
            &mut t.media_errors,
            &mut t.errors,
            &mut t.powered_ms,
        ]
    }

    /// Returns the record as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        let saved = &self.saved;
        let flags = u32::from(saved.over.is_some())
            | u32::from(saved.under.is_some()) << 1
            | u32::from(saved.cache.is_some()) << 2
            | u32::from(saved.cache == Some(true)) << 3
            | u32::from(self.in_use) << 4;
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &flags.to_le_bytes());
        put(16, &saved.over.unwrap_or(0).to_le_bytes());
        put(18, &saved.under.unwrap_or(0).to_le_bytes());
        put(20, &self.totals.percentage_used.to_le_bytes());
        for (index, number) in self.clone().numbers().into_iter().enumerate() {
            put(24 + index * 8, &number.to_le_bytes());
        }
        let identity = &self.identity;
        put(96, identity.serial.as_bytes());
        put(116, identity.model.as_bytes());
        put(156, identity.firmware.as_bytes());
        put(164, identity.nqn.as_str().as_bytes());
        put(420, &identity.namespace.eui64);
        put(428, &identity.namespace.nguid);
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM]);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Returns a [`DurableError`] with the place if the record is of another version or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Durable, DurableError> {
        let record: &[u8; BYTES] =
            bytes.try_into().map_err(|_| DurableError::Length { found: bytes.len() })?;
        if &record[..8] != MAGIC {
            return Err(DurableError::Magic);
        }
        let u16_at = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if u32_at(8) != VERSION {
            return Err(DurableError::Version { found: u32_at(8) });
        }
        if u32_at(CHECKSUM) != crc32c::crc32c(&record[..CHECKSUM]) {
            return Err(DurableError::Checksum);
        }
        let text = |offset: usize, max: usize| {
            let field = &record[offset..offset + max];
            let end = field.iter().position(|&byte| byte == 0).unwrap_or(max);
            let wrong = IdentityError { field: "text", why: "the text must be UTF-8" };
            let text = std::str::from_utf8(&field[..end]);
            text.map_err(|_| DurableError::Field { offset, error: wrong })
        };
        let field = |offset| move |error| DurableError::Field { offset, error };
        let nqn = Nqn::new(text(164, 256)?).map_err(field(164))?;
        let mut namespace = NamespaceNames::default();
        namespace.eui64.copy_from_slice(&record[420..428]);
        namespace.nguid.copy_from_slice(&record[428..444]);
        let identity = Identity {
            serial: text(96, 20)?.into(),
            model: text(116, 40)?.into(),
            firmware: text(156, 8)?.into(),
            nqn,
            namespace,
        };
        let mut durable = Durable::new(identity).map_err(|error| {
            let offset = match error.field {
                "serial" => 96,
                "model" => 116,
                _ => 156,
            };
            DurableError::Field { offset, error }
        })?;
        let flags = u32_at(12);
        let flag = |bit: u32| flags & 1 << bit != 0;
        durable.saved = Saved {
            over: flag(0).then(|| u16_at(16)),
            under: flag(1).then(|| u16_at(18)),
            cache: flag(2).then(|| flag(3)),
        };
        durable.in_use = flag(4);
        for (index, number) in durable.numbers().into_iter().enumerate() {
            *number = u64_at(24 + index * 8);
        }
        durable.totals.percentage_used = u32_at(20);
        Ok(durable)
    }
}
