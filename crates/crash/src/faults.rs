//! The switches: which faults are injected. What each of them is stands in [`flashatlas_nand::faults`].

use flashatlas_nand::{Change, Torn};
use std::fmt;

/// One switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The power fails in a program: garbage.
    TornGarbage,
    /// The power fails in a program: a part of it.
    TornPart,
    /// The power fails in a program, which can be read once.
    TornOnce,
    /// The power fails in an erase.
    TornErase,
    /// Stores that no fence followed are lost or torn.
    NvmLines,
}

impl Fault {
    /// All switches.
    pub const ALL: [Fault; 5] =
        [Fault::TornGarbage, Fault::TornPart, Fault::TornOnce, Fault::TornErase, Fault::NvmLines];

    /// The name of the switch.
    pub const fn name(self) -> &'static str {
        ["torn-garbage", "torn-part", "torn-once", "torn-erase", "nvm-lines"][self as usize]
    }

    /// One line.
    pub const fn summary(self) -> &'static str {
        [
            "the power fails in a program: the page is neither erased nor readable",
            "the power fails in a program: a part of the frame is as it should be",
            "the power fails in a program: the page can be read once, and then never again",
            "the power fails in an erase: no page of the block can be read or programmed",
            "lines of NVM that were stored to and not fenced are old, new, or torn between two words",
        ][self as usize]
    }
}

/// A set of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults(u32);

impl Faults {
    /// No faults but the cut itself, between two operations.
    pub const NONE: Faults = Faults(0);
    /// All of them.
    pub const ALL: Faults = Faults((1 << Fault::ALL.len()) - 1);

    /// With one more.
    #[must_use]
    pub const fn with(self, fault: Fault) -> Faults {
        Faults(self.0 | 1 << fault as u32)
    }

    /// Whether a switch is on.
    #[inline]
    pub const fn has(self, fault: Fault) -> bool {
        self.0 >> fault as u32 & 1 == 1
    }

    /// From names separated by commas; `all` and `none` are names, too.
    ///
    /// # Errors
    /// Unknown names, with those that exist.
    pub fn parse(text: &str) -> Result<Faults, String> {
        let mut faults = Faults::NONE;
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            faults = match (name, Fault::ALL.into_iter().find(|f| f.name() == name)) {
                (_, Some(fault)) => faults.with(fault),
                ("all", _) => Faults::ALL,
                ("none", _) => faults,
                _ => {
                    let names: Vec<&str> = Fault::ALL.iter().map(|f| f.name()).collect();
                    let near = flashatlas_types::nearest(name, &names);
                    let near = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
                    return Err(format!(
                        "no fault is called `{name}`{near} (there are: {}, all, none)",
                        names.join(", ")
                    ));
                }
            };
        }
        Ok(faults)
    }

    /// How an operation may be left half done.
    pub fn torn(self, change: &Change) -> impl Iterator<Item = Torn> {
        let of = |fault, torn: &'static [Torn]| if self.has(fault) { torn } else { &[] };
        let none: &[Torn] = &[];
        let [a, b, c] = match change {
            Change::Program { .. } => [
                of(Fault::TornGarbage, &[Torn::Garbage]),
                of(Fault::TornPart, &[Torn::Part]),
                of(Fault::TornOnce, &[Torn::Once]),
            ],
            Change::Erase(_) => [of(Fault::TornErase, &[Torn::Erase]), none, none],
            Change::Store { .. } | Change::Fence => {
                [of(Fault::NvmLines, &[Torn::Lines(0), Torn::Lines(1), Torn::Lines(2)]), none, none]
            }
            _ => [none; 3],
        };
        a.iter().chain(b).chain(c).copied()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Fault::ALL.into_iter().filter(|&x| self.has(x)).map(Fault::name).collect();
        f.write_str(&if names.is_empty() { "none".to_owned() } else { names.join(",") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_by_name() {
        assert_eq!(Faults::parse("torn-erase, nvm-lines").unwrap().to_string(), "torn-erase,nvm-lines");
        assert_eq!(Faults::parse("all").unwrap(), Faults::ALL);
        assert_eq!(Faults::parse("none").unwrap(), Faults::NONE);
        let error = Faults::parse("torn-ersae").unwrap_err();
        assert!(error.contains("did you mean `torn-erase`?") && error.contains("torn-garbage"), "{error}");
    }
}
