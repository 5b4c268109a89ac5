//! Host addresses as logical addresses of the tables.

use super::StudyError;
use flashatlas_types::SECTOR_BYTES;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Way in which a host address becomes a logical address of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// The lowest bits of the address in units: two addresses may become one.
    #[default]
    LowBits,
    /// Addresses are numbered as they come.
    Dense,
    /// The address in units; an address that is too wide stops the study.
    Exact,
}

/// The logical addresses that host addresses have got so far.
pub struct Addressing {
    address: Address,
    unit: u64,
    bits: u32,
    /// The number of each address, by device and address.
    numbers: FxHashMap<(u32, u64), u32>,
    /// For each logical address, the device and the address that had it first.
    first: FxHashMap<u32, (u32, u64)>,
    /// The number of requests with a logical address that another host address had before.
    pub aliases: u64,
}

impl Addressing {
    /// Begins with no address. A unit has `unit` sectors, a logical address `bits` bits.
    ///
    /// # Errors
    /// Returns an error if a unit has no sector.
    pub fn new(address: Address, unit: u32, bits: u32) -> Result<Addressing, StudyError> {
        super::at_least("unit_sectors", unit.into(), 1)?;
        let (numbers, first) = Default::default();
        Ok(Addressing { address, unit: unit.into(), bits, numbers, first, aliases: 0 })
    }

    /// Returns the bytes of all units that have a logical address.
    ///
    /// # Errors
    /// Returns an error if 64 bits cannot count them.
    pub fn capacity(&self) -> Result<u64, StudyError> {
        let (unit, bits) = (self.unit, self.bits);
        let bytes = (unit * u64::from(SECTOR_BYTES)).checked_mul(1 << bits);
        bytes.ok_or(StudyError::Capacity { unit, bits })
    }

    /// Returns the logical address of a sector of a device.
    ///
    /// # Errors
    /// Returns an error if the address does not fit the tables.
    pub fn of(&mut self, device: u32, sector: u64) -> Result<u32, StudyError> {
        let (unit, bits) = (self.unit, self.bits);
        let address = sector / unit;
        let key = (device, address);
        Ok(match self.address {
            Address::Exact if address >> bits != 0 => {
                return Err(StudyError::Wide { address, unit, bits });
            }
            Address::Exact => address as u32,
            Address::LowBits => {
                let la = (address & ((1 << bits) - 1)) as u32;
                self.aliases += u64::from(*self.first.entry(la).or_insert(key) != key);
                la
            }
            Address::Dense => {
                let count = self.numbers.len() as u64;
                if count >> bits != 0 && !self.numbers.contains_key(&key) {
                    return Err(StudyError::ManyAddresses { count, bits });
                }
                *self.numbers.entry(key).or_insert(count as u32)
            }
        })
    }
}
