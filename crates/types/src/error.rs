//! Three of the four kinds of error: bad input ([`ConfigError`]), failures that the medium reports
//! as part of the model ([`MediumError`]), and broken invariants. A broken invariant is a
//! [`Violation`] from `check()`, or a failed assertion. The fourth kind is a part that breaks its
//! contract ([`crate::PartFault`]).

use crate::spelling::{spell, spell_name};
use crate::{BlockId, FrameId, Lpn, Ppn};
use std::fmt;

/// A configuration that cannot be used. The error names the key, its value, the allowed values, and
/// the place where the key was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Full name of the key, such as `ftl.victim`, or an option in angle quotes: `‹to_format›`.
    pub key: String,
    /// The fault, in one sentence without a full stop.
    pub why: String,
    /// The place where the key was written: `drive.toml:12`, `--set`, or empty.
    pub place: String,
    /// The existing name that is most similar to the given name.
    pub nearest: Option<String>,
    /// The names or ranges that are allowed.
    pub allowed: Vec<String>,
    /// The other faults of the same configuration, in the order of their lines.
    pub more: Vec<ConfigError>,
}

impl ConfigError {
    /// Returns an error about `key`.
    pub fn new(key: impl Into<String>, why: impl Into<String>) -> ConfigError {
        ConfigError {
            key: key.into(),
            why: why.into(),
            place: String::new(),
            nearest: None,
            allowed: Vec::new(),
            more: Vec::new(),
        }
    }

    /// Returns an error about `key` that names the allowed values.
    pub fn allowing(
        key: impl Into<String>,
        why: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ConfigError {
        ConfigError { allowed: vec![allowed.into()], ..ConfigError::new(key, why) }
    }

    /// Returns an error about a name `got` that is missing from `names`. The error lists `names`
    /// and the most similar of them.
    pub fn unknown(key: impl Into<String>, what: &str, got: &str, names: &[&str]) -> ConfigError {
        ConfigError {
            nearest: nearest(got, names).map(str::to_owned),
            allowed: names.iter().map(|&n| n.to_owned()).collect(),
            ..ConfigError::new(key, format!("{what} `{got}` is not known"))
        }
    }

    /// Returns the option that the error is about, or `None` if the error is about a key of a
    /// drive.
    pub fn option(&self) -> Option<&str> {
        self.key.strip_prefix('‹')?.strip_suffix('›')
    }

    /// Returns the fault with the first line, and the other faults in its [`ConfigError::more`].
    /// Returns `None` if `faults` is empty. Faults without a line come last.
    pub fn in_order(mut faults: Vec<ConfigError>) -> Option<ConfigError> {
        let line = |fault: &ConfigError| {
            let mut numbers = fault.place.rsplitn(3, ':').map(|n| n.parse().unwrap_or(u32::MAX));
            let column = numbers.next().unwrap_or(u32::MAX);
            (numbers.next().unwrap_or(u32::MAX), column)
        };
        faults.sort_by_key(line);
        let mut faults = faults.into_iter();
        let first = faults.next()?;
        Some(ConfigError { more: faults.collect(), ..first })
    }

    /// Returns the same error with its place. If the error has a place already, that place stays.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> ConfigError {
        if self.place.is_empty() {
            self.place = place.into();
        }
        self
    }
}

/// Returns the most similar of `names`, or `None` if no name is close enough to `got` for a typing
/// error. Case is ignored.
pub fn nearest<'a>(got: &str, names: &[&'a str]) -> Option<&'a str> {
    let folded = got.to_lowercase();
    names
        .iter()
        .map(|&name| (strsim::damerau_levenshtein(&folded, &name.to_lowercase()), name))
        .filter(|&(distance, name)| distance <= 1 + name.len().max(got.len()) / 3)
        .min()
        .map(|(_, name)| name)
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place[..] {
            "" => {}
            option @ "set" => {
                spell_name(f, option)?;
                f.write_str(": ")?;
            }
            place => write!(f, "{place}: ")?,
        }
        match self.option() {
            Some(option) => spell_name(f, option)?,
            None => f.write_str(&self.key)?,
        }
        f.write_str(": ")?;
        spell(f, &self.why)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", self.allowed.join(", "))?;
        }
        for other in &self.more {
            f.write_str("; also ")?;
            fmt::Display::fmt(other, f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// A failure that the medium reports and a scheme must handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediumError {
    /// The erase failed (end of endurance, or a fault), and no spare block was left. The block is
    /// bad from now on.
    EraseFailed(BlockId),
    /// The program failed, and no spare block was left. The page holds no data, and the block
    /// accepts no more programs.
    ProgramFailed(FrameId),
    /// The page was never programmed, or its program was torn.
    Unreadable(FrameId),
    /// The block is bad and accepts no operation.
    BadBlock(BlockId),
    /// The content of the page does not match its checksum.
    Damaged(Ppn),
    /// The power has failed.
    PowerLost,
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MediumError::EraseFailed(b) => write!(f, "the erase of block {b} failed"),
            MediumError::ProgramFailed(p) => {
                write!(
                    f,
                    "the program of frame {p} failed, and no spare block is left to replace its \
                     block (nand.spare_blocks)"
                )
            }
            MediumError::Unreadable(p) => write!(f, "frame {p} cannot be read (erased or torn)"),
            MediumError::BadBlock(b) => write!(f, "block {b} is bad"),
            MediumError::Damaged(p) => {
                write!(f, "the content of physical page {p} does not match its checksum")
            }
            MediumError::PowerLost => write!(f, "the power has failed"),
        }
    }
}

impl std::error::Error for MediumError {}

/// The reason why an FTL could not carry out a request.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FtlError {
    /// The medium failed in a way that the scheme cannot handle.
    Medium(MediumError),
    /// No block can be freed: every full block holds only valid data.
    NoSpace {
        /// Erased blocks left.
        free_blocks: u32,
        /// Mapping units that hold valid data.
        valid_units: u64,
        /// Mapping units that the good blocks can hold.
        physical_units: u64,
    },
    /// The spare area of the page names another logical page than the map expects there.
    WrongPage {
        /// The place that was read.
        at: Ppn,
        /// The page that the map expects there.
        expected: Lpn,
        /// The page that the spare area names.
        found: Lpn,
    },
    /// A slot counts as valid, but the map points to another place for its page.
    NotMapped {
        /// The slot.
        at: Ppn,
        /// The page that the spare area of the slot names.
        found: Lpn,
    },
}

impl From<MediumError> for FtlError {
    fn from(error: MediumError) -> FtlError {
        FtlError::Medium(error)
    }
}

impl fmt::Display for FtlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FtlError::Medium(error) => error.fmt(f),
            FtlError::NoSpace { free_blocks, valid_units, physical_units } => write!(
                f,
                "no space: {valid_units} of the {physical_units} units on good blocks are valid, \
                 {free_blocks} blocks are erased, and collection can free no block"
            ),
            FtlError::WrongPage { at, expected, found } => {
                write!(
                    f,
                    "physical page {at} holds logical page {found}, but the map expects logical \
                     page {expected}"
                )
            }
            FtlError::NotMapped { at, found } => {
                write!(
                    f,
                    "physical page {at} is valid and holds logical page {found}, but the map \
                     places this logical page elsewhere"
                )
            }
        }
    }
}

impl std::error::Error for FtlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FtlError::Medium(error) => Some(error),
            FtlError::NoSpace { .. } | FtlError::WrongPage { .. } | FtlError::NotMapped { .. } => {
                None
            }
        }
    }
}

/// An invariant that does not hold, found by a `check()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule, stated positively.
    pub rule: &'static str,
    /// The fault that was found instead.
    pub detail: String,
}

impl Violation {
    /// Returns an error with this rule and detail if `holds` is `false`.
    ///
    ///  # Errors
    /// Returns the violation if `holds` is `false`.
    pub fn unless(
        holds: bool,
        rule: &'static str,
        detail: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if holds { Ok(()) } else { Err(Violation { rule, detail: detail() }) }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken rule: {}: {}", self.rule, self.detail)
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_say_the_nearest_and_all() {
        let error =
            ConfigError::unknown("ftl.victim", "victim policy", "gredy", &["greedy", "fifo"])
                .at("set");
        assert_eq!(
            error.to_string(),
            "set: ftl.victim: victim policy `gredy` is not known; did you mean `greedy`? \
             (allowed: greedy, fifo)"
        );
        assert_eq!(nearest("zzzzzz", &["greedy", "fifo"]), None);
        assert_eq!(nearest("cwdp", &["CDWP", "CWDP"]), Some("CWDP"));
    }
}
