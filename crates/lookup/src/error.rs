//! Errors of the tables.

use std::fmt;

/// Reason why an operation on the tables was refused. A refused operation has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupError {
    /// The chain of the key is full, and every secondary set is in use.
    Overflow {
        /// The address.
        la: u32,
        /// Number of secondary sets.
        sets: u32,
    },
    /// No row of any block table is free.
    NoRow,
    /// The address is wider than its field.
    Wide {
        /// The address.
        la: u32,
        /// Bits of the field.
        bits: u32,
    },
    /// A file already begins at the address.
    Exists {
        /// The address.
        la: u32,
    },
    /// No file begins at the address.
    Missing {
        /// The address.
        la: u32,
    },
    /// A row of a block table is not in the state that the operation needs.
    Row {
        /// The page.
        pn: u32,
        /// The wrong state of the row.
        why: &'static str,
    },
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::Overflow { la, sets } => {
                write!(
                    f,
                    "the LPMT has no place for address {la}: all {sets} secondary sets are in use"
                )
            }
            LookupError::NoRow => {
                write!(f, "every block table holds valid pages: no row is left for another page")
            }
            LookupError::Wide { la, bits } => {
                write!(f, "address {la} is wider than its field of {bits} bits")
            }
            LookupError::Exists { la } => write!(f, "a file begins at address {la} already"),
            LookupError::Missing { la } => write!(f, "no file begins at address {la}"),
            LookupError::Row { pn, why } => write!(f, "page {pn} {why}"),
        }
    }
}

impl std::error::Error for LookupError {}
