//! Names of cuts, and the identity of a failure:
//! `[layers/]scheme:store:workload[*steps]@geometry:seed:[cut[.cut]…]`.
//!
//! `layers/` is left out if there are no layers, and `*steps` if the workload has [`STEPS`] steps.

use crate::error::CrashError;
use crate::failing_part::FailingPart;
use flashatlas_nand::Torn;
use std::fmt;
use std::str::FromStr;

/// Place of a power failure, counted from the beginning of a workload or of a mount.
///
/// The place is a number of operations (programs, erases, stores and fences), unless the kind
/// counts something else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cut {
    /// Number of operations that were carried out, unless [`Cut::how`] counts something else.
    pub after: u32,
    /// Event at the cut.
    pub how: CutKind,
}

/// Event at a cut.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CutKind {
    /// The next operation does not begin. The cut is written as the number alone: `123`.
    Before,
    /// The next operation is left half done. The cut is written with the letter of [`Torn`]:
    /// `123g`. Behind the letter `l` stands the number that draws the lines: `123l3`.
    Torn(Torn),
    /// All operations of the command were carried out, and the command was acknowledged. The cut is
    /// written `123a`.
    Acknowledged,
    /// After a command was submitted, only a subset of the operations in flight was carried out.
    /// The cut is written with the number of the subset: `123x5`. `after` is the number of commands
    /// before that command.
    Subset(u32),
    /// No cut: a part fails while the power is on. The failure is written with the letters of
    /// [`FailingPart`]: `12fp`. `after` is the number of parts of this kind (programs, erases or
    /// pages) before the part that fails.
    FailingPart(FailingPart),
}

/// Default number of steps of a workload.
pub const STEPS: u32 = 160;
/// Largest number of steps of a workload.
pub const STEPS_MAX: u32 = 100_000;

/// Identity of a failure. The failure is printed with its identity, and can be run again by this
/// identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Id {
    /// Layers, with their variant; `-` if there are none.
    pub layers: String,
    /// Scheme, with its variant.
    pub scheme: String,
    /// Store, with its variant; `-` if there is none.
    pub store: String,
    /// Workload.
    pub workload: String,
    /// Approximate length of the workload, in steps.
    pub steps: u32,
    /// Geometry.
    pub geometry: String,
    /// Seed of the workload, or the number of the sequence for the workload `all`.
    pub seed: u64,
    /// The cut of the workload, the cut of the mount after it, and so on; empty if the workload
    /// fails with the power on.
    pub cuts: Vec<Cut>,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.after)?;
        match self.how {
            CutKind::Before => Ok(()),
            CutKind::Torn(Torn::Lines(draw)) => write!(f, "l{draw}"),
            CutKind::Torn(torn) => write!(f, "{}", torn.letter()),
            CutKind::Acknowledged => write!(f, "a"),
            CutKind::Subset(number) => write!(f, "x{number}"),
            CutKind::FailingPart(part) => f.write_str(part.letters()),
        }
    }
}

impl FromStr for Cut {
    type Err = CrashError;

    fn from_str(text: &str) -> Result<Cut, CrashError> {
        let wrong = || CrashError::Cut(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let after = text[..digits].parse().map_err(|_| wrong())?;
        let (letter, rest) =
            text[digits..].split_at(text[digits..].chars().next().map_or(0, char::len_utf8));
        let how = match (letter, rest) {
            ("", "") => CutKind::Before,
            ("a", "") => CutKind::Acknowledged,
            ("l", draw) => CutKind::Torn(Torn::Lines(draw.parse().map_err(|_| wrong())?)),
            ("x", number) => CutKind::Subset(number.parse().map_err(|_| wrong())?),
            (_, _) if FailingPart::by_letters(&text[digits..]).is_some() => {
                CutKind::FailingPart(FailingPart::by_letters(&text[digits..]).expect("just found"))
            }
            (letter, "") => {
                let all = [Torn::Garbage, Torn::Part, Torn::Once, Torn::Paired, Torn::Erase];
                CutKind::Torn(
                    all.into_iter().find(|t| letter.starts_with(t.letter())).ok_or_else(wrong)?,
                )
            }
            _ => return Err(wrong()),
        };
        Ok(Cut { after, how })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.layers != "-" {
            write!(f, "{}/", self.layers)?;
        }
        write!(f, "{}:{}:{}", self.scheme, self.store, self.workload)?;
        if self.steps != STEPS {
            write!(f, "*{}", self.steps)?;
        }
        write!(f, "@{}:{}:", self.geometry, self.seed)?;
        for (i, cut) in self.cuts.iter().enumerate() {
            write!(f, "{}{cut}", if i > 0 { "." } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Id {
    type Err = CrashError;

    fn from_str(text: &str) -> Result<Id, CrashError> {
        let wrong = || CrashError::Id(text.to_owned());
        let fields: Vec<&str> = text.split(':').collect();
        let [scheme, store, place, seed, cuts] = fields[..] else { return Err(wrong()) };
        let (workload, geometry) = place.split_once('@').ok_or_else(wrong)?;
        let (workload, steps) = match workload.split_once('*') {
            Some((workload, steps)) => (workload, steps.parse().map_err(|_| wrong())?),
            None => (workload, STEPS),
        };
        let (layers, scheme) = scheme.split_once('/').unwrap_or(("-", scheme));
        Ok(Id {
            layers: layers.into(),
            scheme: scheme.into(),
            store: store.into(),
            workload: workload.into(),
            steps,
            geometry: geometry.into(),
            seed: seed.parse().map_err(|_| wrong())?,
            cuts: cuts
                .split('.')
                .filter(|c| !c.is_empty())
                .map(str::parse)
                .collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_as_they_are_written() {
        for text in [
            "page:dram.2:random@mini:7:123",
            "mast.2:-:trim@lanes:0:0g.17a",
            "page:nvm-hybrid:collect@square:18446744073709551615:9l3.4e.0o",
            "page:dram:all@mini:99:",
            "page:sftl.2:random*60@square:3:5p.0g",
            "page:dram:random@lanes:1:12x31.3p.2m",
            "page:dftl:trim@square:1:12fp.31e",
            "mast:-:collect@mini:1:3fb",
            "hard.2/page:demand:trim@lanes:3:5",
        ] {
            assert_eq!(text.parse::<Id>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "page:dram:random:7:1",
            "page:dram:random@mini:x:1",
            "a:b:c@d:1:9z",
            "a:b:c@d:1:g",
            "a:b:c@d:1:9l",
            "a:b:c@d:1:9gg",
            "a:b:c@d:1:9é",
        ] {
            assert!(
                wrong.parse::<Id>().unwrap_err().to_string().contains("write [layers/]")
                    || wrong.contains("c@d"),
                "{wrong}"
            );
            assert!(wrong.parse::<Id>().is_err(), "{wrong}");
        }
    }
}
