//! Reasons why a study cannot be carried out.

use crate::LookupError;
use flashatlas_types::Violation;
use std::fmt;

/// Reason why a study cannot be carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum StudyError {
    /// The tables are too small.
    Tables(LookupError),
    /// Sets are scanned, and the study has no table with sets.
    NoSets,
    /// No request looks an address up.
    NoRequests,
    /// More requests than a study holds.
    ManyRequests {
        /// The most that it holds.
        most: u64,
    },
    /// More commands than a study keeps.
    ManyCommands {
        /// The most that it keeps.
        most: usize,
    },
    /// A number is too small.
    Small {
        /// The key of the number.
        key: &'static str,
        /// The number.
        value: u64,
        /// The least number.
        least: u64,
    },
    /// A share is out of its range.
    Share {
        /// The key of the share.
        key: &'static str,
        /// The share.
        value: f64,
        /// The largest share.
        most: f64,
    },
    /// Too few sets for lookups that prefer some of them.
    FewSets(u32),
    /// There are fewer distinct addresses than files.
    Files {
        /// Number of files.
        files: u64,
        /// Number of addresses.
        room: u64,
        /// Distance of the addresses.
        stride: u64,
        /// Bits of an address.
        bits: u32,
    },
    /// An address is wider than the addresses of the tables.
    Wide {
        /// The address, in units.
        address: u64,
        /// Sectors of a unit.
        unit: u64,
        /// Bits of an address of the tables.
        bits: u32,
    },
    /// More distinct addresses than the tables have.
    ManyAddresses {
        /// Number of addresses so far.
        count: u64,
        /// Bits of an address of the tables.
        bits: u32,
    },
    /// The units of all addresses are more bytes than 64 bits can count.
    Capacity {
        /// Sectors of a unit.
        unit: u64,
        /// Bits of an address of the tables.
        bits: u32,
    },
    /// The caller stopped the study.
    Interrupted,
    /// The links of the tables are broken.
    Broken(Violation),
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::Tables(error) => write!(
                f,
                "{error}; lookup.sets, lookup.secondary_sets and lookup.block_tables_count set the \
                 sizes of the tables"
            ),
            StudyError::NoSets => write!(
                f,
                "only the LPMT has sets to scan: a flat array (lookup.table = flat) has no sets"
            ),
            StudyError::NoRequests => {
                write!(f, "the source holds no request that looks an address up")
            }
            StudyError::ManyRequests { most } => {
                write!(f, "a study holds at most {most} requests: set a limit for its requests")
            }
            StudyError::ManyCommands { most } => write!(
                f,
                "a study keeps at most {most} commands of the DRAM: set a limit for its requests"
            ),
            StudyError::Small { key, value, least } => {
                write!(f, "{key} = {value} is too small; give at least {least}")
            }
            StudyError::Share { key, value, most } => {
                write!(f, "{key} = {value} is out of range; give a share from 0 to {most}")
            }
            StudyError::FewSets(sets) => {
                write!(f, "skew needs at least four sets, but the table has {sets} (lookup.sets)")
            }
            StudyError::Files { files, room, stride, bits } => write!(
                f,
                "{files} files do not fit: addresses of {bits} bits (lookup.la_bits) have only \
                 {room} multiples of {stride}"
            ),
            StudyError::Wide { address, unit, bits } => write!(
                f,
                "address {address} (in units of {unit} sectors) is wider than lookup.la_bits = \
                 {bits}; use a larger unit, more bits, or addresses low-bits or dense"
            ),
            StudyError::ManyAddresses { count, bits } => {
                write!(f, "more than {count} distinct addresses do not fit lookup.la_bits = {bits}")
            }
            StudyError::Capacity { unit, bits } => {
                write!(f, "2^{bits} units of {unit} sectors are more than 2^64 bytes")
            }
            StudyError::Interrupted => write!(f, "the study was stopped"),
            StudyError::Broken(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for StudyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StudyError::Tables(error) => Some(error),
            StudyError::Broken(violation) => Some(violation),
            _ => None,
        }
    }
}
