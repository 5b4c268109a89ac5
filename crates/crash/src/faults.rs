//! The switches of the faults that are injected. [`flashatlas_nand::faults`] describes each fault.

use crate::CrashError;
use flashatlas_nand::{Change, Medium, Torn};
use std::fmt;

/// Switch of one fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The power fails during a program, which leaves garbage in the page.
    TornGarbage,
    /// The power fails during a program, and a part of the frame is written.
    TornPart,
    /// The power fails during a program, and the page can be read only once.
    TornOnce,
    /// The power fails during an erase.
    TornErase,
    /// NVM stores without a later fence are lost or torn.
    NvmLines,
    /// The power fails during a program, and the other pages of the same cells are lost.
    PairedPages,
    /// A program fails.
    ProgramFailure,
    /// An erase fails, and a spare block takes the block's place.
    EraseFailure,
    /// An erase fails, and the block is lost.
    GrownBad,
    /// Blocks are bad from the beginning.
    FactoryBad,
    /// A page cannot be read any more.
    Unreadable,
}

/// Every switch with its name and a one-line description, in the order of [`Fault`].
const SWITCHES: [(Fault, &str, &str); 11] = [
    (
        Fault::TornGarbage,
        "torn-garbage",
        "the power fails in a program: the page is neither erased nor readable",
    ),
    (
        Fault::TornPart,
        "torn-part",
        "the power fails in a program: only a part of the frame is programmed correctly",
    ),
    (
        Fault::TornOnce,
        "torn-once",
        "the power fails in a program: the page can be read once, and then never again",
    ),
    (
        Fault::TornErase,
        "torn-erase",
        "the power fails in an erase: no page of the block can be read or programmed",
    ),
    (
        Fault::NvmLines,
        "nvm-lines",
        "lines of NVM that were stored to and not fenced are old, new, or torn between two words",
    ),
    (
        Fault::PairedPages,
        "paired-pages",
        "MLC: the power fails in a program, and the other pages of the same cells are lost, too",
    ),
    (
        Fault::ProgramFailure,
        "program-failure",
        "a program fails; tried on a drive with a spare block, and on a drive without one",
    ),
    (
        Fault::EraseFailure,
        "erase-failure",
        "an erase fails, and a spare block takes the block's place",
    ),
    (
        Fault::GrownBad,
        "grown-bad",
        "an erase fails, and there is no spare block: the drive continues with one block less",
    ),
    (
        Fault::FactoryBad,
        "factory-bad",
        "blocks are bad from the beginning; tried on the geometry `mini` only",
    ),
    (
        Fault::Unreadable,
        "unreadable",
        "a programmed page cannot be read any more; tried on a running drive, and in a mount",
    ),
];

impl Fault {
    /// Returns all switches.
    pub fn all() -> impl Iterator<Item = Fault> {
        SWITCHES.iter().map(|switch| switch.0)
    }

    /// Returns the name of the switch.
    pub const fn name(self) -> &'static str {
        SWITCHES[self as usize].1
    }

    /// Returns the description of the switch, in one line.
    pub const fn summary(self) -> &'static str {
        SWITCHES[self as usize].2
    }
}

/// A set of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults(u32);

impl Faults {
    /// No faults except the cut itself, between two operations.
    pub const NONE: Faults = Faults(0);
    /// All faults.
    pub const ALL: Faults = Faults((1 << SWITCHES.len()) - 1);

    /// Returns these switches with another switch on.
    #[must_use]
    pub const fn with(self, fault: Fault) -> Faults {
        Faults(self.0 | 1 << fault as u32)
    }

    /// Returns the switches that are on in both.
    #[must_use]
    pub const fn and(self, other: Faults) -> Faults {
        Faults(self.0 & other.0)
    }

    /// Returns `true` if a switch is on.
    #[inline]
    pub const fn has(self, fault: Fault) -> bool {
        self.0 >> fault as u32 & 1 == 1
    }

    /// Parses names of faults, separated by commas; the names `all` and `none` are allowed, too.
    ///
    /// # Errors
    /// Returns an error for an unknown name; the error lists the names that exist.
    pub fn parse(text: &str) -> Result<Faults, CrashError> {
        let mut faults = Faults::NONE;
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            faults = match (name, Fault::all().find(|f| f.name() == name)) {
                (_, Some(fault)) => faults.with(fault),
                ("all", _) => Faults::ALL,
                ("none", _) => faults,
                _ => {
                    let names = Fault::all().map(Fault::name).chain(["all", "none"]);
                    return Err(CrashError::unknown("fault", name, names));
                }
            };
        }
        Ok(faults)
    }

    /// Returns the ways in which an operation may be left half done on this medium.
    pub fn torn(self, medium: &Medium, change: &Change) -> impl Iterator<Item = Torn> {
        const WAYS: [(Fault, Torn); 8] = [
            (Fault::TornGarbage, Torn::Garbage),
            (Fault::TornPart, Torn::Part),
            (Fault::TornOnce, Torn::Once),
            (Fault::PairedPages, Torn::Paired),
            (Fault::TornErase, Torn::Erase),
            (Fault::NvmLines, Torn::Lines(0)),
            (Fault::NvmLines, Torn::Lines(1)),
            (Fault::NvmLines, Torn::Lines(2)),
        ];
        let paired = match change {
            Change::Program { frame, .. } => medium.paired_before(*frame).next().is_some(),
            _ => false,
        };
        let finished = medium.rules().finishes_programs
            && matches!(change, Change::Program { .. } | Change::Step { .. });
        let fits = move |torn: Torn| {
            torn.applies_to(change) && !finished && (torn != Torn::Paired || paired)
        };
        WAYS.into_iter()
            .filter(move |&(fault, torn)| self.has(fault) && fits(torn))
            .map(|(_, torn)| torn)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Fault::all().filter(|&x| self.has(x)).map(Fault::name).collect();
        f.write_str(&if names.is_empty() { "none".to_owned() } else { names.join(",") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_stands_at_its_number() {
        assert!(Fault::all().enumerate().all(|(i, fault)| fault as usize == i));
    }

    #[test]
    fn switches_are_read_by_name() {
        assert_eq!(
            Faults::parse("torn-erase, nvm-lines").unwrap().to_string(),
            "torn-erase,nvm-lines"
        );
        assert_eq!(Faults::parse("all").unwrap(), Faults::ALL);
        assert_eq!(Faults::parse("none").unwrap(), Faults::NONE);
        let error = Faults::parse("torn-ersae").unwrap_err().to_string();
        assert!(
            error.contains("did you mean `torn-erase`?") && error.contains("torn-garbage"),
            "{error}"
        );
    }
}
