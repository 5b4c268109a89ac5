//! The kinds of bad records that can be skipped by name.

use flashatlas_types::ConfigError;
use std::fmt;
use std::str::FromStr;

/// A kind of bad record that the option `skip_bad` can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKind {
    /// A request of no bytes.
    ZeroLength,
    /// A request longer than the maximum for its operation.
    TooLong,
    /// A request that ends beyond the last 64-bit byte address.
    TooFar,
}

impl BadKind {
    /// Every kind, in the order of [`Account::skipped_kinds`](crate::Account::skipped_kinds).
    pub const ALL: [BadKind; 3] = [BadKind::ZeroLength, BadKind::TooLong, BadKind::TooFar];

    /// The names of all kinds, in the order of [`BadKind::ALL`].
    pub const NAMES: [&str; 3] =
        [BadKind::ALL[0].name(), BadKind::ALL[1].name(), BadKind::ALL[2].name()];

    /// Returns the name of the kind, as the option `skip_bad` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            BadKind::ZeroLength => "zero-length",
            BadKind::TooLong => "too-long",
            BadKind::TooFar => "too-far",
        }
    }
}

/// A set of kinds of bad records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BadKinds(u8);

impl BadKinds {
    /// No kind.
    pub const NONE: BadKinds = BadKinds(0);

    /// Returns `true` if the set holds `kind`.
    pub const fn has(self, kind: BadKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl FromStr for BadKinds {
    type Err = ConfigError;

    /// Reads names of kinds, separated by commas.
    fn from_str(text: &str) -> Result<BadKinds, ConfigError> {
        let mut kinds = 0;
        for name in text.split(',').map(str::trim) {
            let at = BadKind::NAMES.iter().position(|&known| known == name).ok_or_else(|| {
                let what = "kind of bad record";
                let mut error = ConfigError::unknown("‹skip_bad›", what, name, &BadKind::NAMES);
                error.allowed.insert(0, "a number of records".into());
                error
            })?;
            kinds |= 1 << at;
        }
        Ok(BadKinds(kinds))
    }
}

/// Count of the records with one kind of fault, from the first of them on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alike {
    /// Number of records with the fault, the first one included.
    pub records: u64,
    /// Number of lines or records that were looked at.
    pub looked_at: u64,
    /// `true` if the count reached the end of the trace.
    pub all: bool,
}

/// Maximum number of lines or records that are searched for the same kind of fault.
const LOOKED_AT_MOST: u64 = 1_000_000;

impl Alike {
    /// Counts the records with the fault `kind`, the first one included.
    ///
    /// `next` reads the next line or record, and returns the kind of its fault, if it has a fault.
    /// `next` returns `Ok(None)` at the end of the trace, and an error if reading fails.
    pub(crate) fn to<E>(
        kind: BadKind,
        mut next: impl FnMut() -> Result<Option<Option<BadKind>>, E>,
    ) -> Alike {
        let mut alike = Alike { records: 1, looked_at: 1, all: false };
        while alike.looked_at < LOOKED_AT_MOST {
            match next() {
                Ok(Some(found)) => {
                    alike.looked_at += 1;
                    alike.records += u64::from(found == Some(kind));
                }
                Ok(None) => return Alike { all: true, ..alike },
                Err(_) => return alike,
            }
        }
        alike
    }
}

impl fmt::Display for Alike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.records, self.all) {
            (1, true) => f.write_str("the only such record from here to the end"),
            (n, true) => write!(f, "{n} such records from here to the end"),
            (n, false) => {
                write!(f, "at least {n} such records among the {} from here", self.looked_at)
            }
        }
    }
}
