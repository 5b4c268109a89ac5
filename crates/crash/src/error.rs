//! Reasons why a run of power failures cannot be carried out.

use flashatlas_types::{ConfigError, nearest};
use std::fmt;

/// Reason why a run, or the rerun of a failure, cannot be carried out.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CrashError {
    /// A name is not known.
    Unknown {
        /// Kind of the named thing, such as `scheme`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        all: Vec<String>,
    },
    /// A text is no cut.
    Cut(String),
    /// A text is no identity of a failure.
    Id(String),
    /// A text is no share of a run.
    Shard(String),
    /// A workload cannot have this number of steps.
    Steps {
        /// The number.
        steps: u32,
        /// The largest number.
        most: u32,
    },
    /// A sample of one in 0 was asked for.
    OneIn,
    /// A depth is out of range.
    Depth(u32),
    /// The last seed is larger than 64 bits.
    Seeds,
    /// No sequence of operations has this number.
    Sequence {
        /// The number.
        number: u64,
        /// Number of sequences.
        all: u64,
    },
    /// No stack consists of these parts.
    NoStack {
        /// Names of schemes; empty for any scheme.
        schemes: Vec<String>,
        /// Names of stores; empty for any store.
        stores: Vec<String>,
        /// Names of layers; empty for any layers.
        layers: Vec<String>,
    },
    /// The stack of an identity does not exist.
    NotThere {
        /// The scheme.
        scheme: String,
        /// The store.
        store: String,
        /// The layers; `-` if there are none.
        layers: String,
    },
    /// No drive of a geometry fits a stack.
    NoDrive {
        /// The geometry.
        geometry: &'static str,
        /// The layers; `-` if there are none.
        layers: String,
        /// The scheme.
        scheme: String,
        /// The store; `-` if there is none.
        store: String,
        /// The reason for the last drive that was tried.
        last: Option<Box<ConfigError>>,
    },
    /// Settings do not fit every stack.
    Unfit {
        /// The settings, as `key=value`.
        set: Vec<String>,
        /// The stacks that do not take the settings, as `[layers/]scheme:store`.
        stacks: Vec<String>,
        /// The stacks that take them.
        others: Vec<String>,
        /// Geometry of the first drive that was refused.
        geometry: &'static str,
        /// The reason why that drive was refused.
        why: Box<CrashError>,
    },
    /// The workload of an identity has no such failure, or no such cut.
    NoFailure(String),
    /// No share of factory-bad blocks leaves enough good blocks.
    FactoryBlocks,
    /// Failures at random are asked for where they are not tried.
    AtRandom {
        /// The key of the failures.
        key: &'static str,
        /// `true` behind an NVMe controller, `false` under layers.
        behind_nvme: bool,
    },
    /// A drive's configuration cannot be used.
    Config(Box<ConfigError>),
}

impl CrashError {
    /// Returns the error that a name is not known.
    pub(crate) fn unknown<'a>(
        what: &'static str,
        name: &str,
        all: impl IntoIterator<Item = &'a str>,
    ) -> CrashError {
        let all = all.into_iter().map(str::to_owned).collect();
        CrashError::Unknown { what, name: name.to_owned(), all }
    }
}

impl From<ConfigError> for CrashError {
    fn from(error: ConfigError) -> CrashError {
        CrashError::Config(Box::new(error))
    }
}

/// Largest number of stacks that an error lists.
const LISTED: usize = 6;

/// Returns the first names, and the number of the others.
fn first_of(names: &[String]) -> String {
    let listed = names[..names.len().min(LISTED)].join(", ");
    match names.len() - names.len().min(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// Returns the given names, or `(any)` if no name was given.
fn named(given: &[String]) -> String {
    if given.is_empty() { "(any)".to_owned() } else { given.join(" or ") }
}

impl fmt::Display for CrashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrashError::Unknown { what, name, all } => {
                let names: Vec<&str> = all.iter().map(String::as_str).collect();
                write!(f, "no {what} is called `{name}`")?;
                if let Some(near) = nearest(name, &names) {
                    write!(f, "; did you mean `{near}`?")?;
                }
                write!(f, " (allowed: {})", names.join(", "))
            }
            CrashError::Cut(text) => write!(
                f,
                "`{text}` is not a cut: write a number of operations, and a letter for the state \
                 after them, such as 12, 12g or 12l3"
            ),
            CrashError::Id(text) => write!(
                f,
                "`{text}` is not the identity of a failure: write \
                 [layers/]scheme:store:workload[*steps]@geometry:seed:[cut[.cut]…], such as \
                 page:dram:random@mini:1:57g"
            ),
            CrashError::Shard(text) => {
                write!(f, "`{text}` is not a shard: write i/n with i from 1 to n, such as 2/4")
            }
            CrashError::Steps { steps, most } => {
                write!(f, "{steps} steps are out of range: give 1 to {most}")
            }
            CrashError::OneIn => write!(f, "one in 0 is not possible: give a positive number"),
            CrashError::Depth(depth) => {
                write!(f, "a depth of {depth} is out of range: give 1 to 4")
            }
            CrashError::Seeds => write!(f, "the last seed is above the largest seed"),
            CrashError::Sequence { number, all } => {
                write!(f, "there is no sequence {number}: the {all} sequences are numbered from 0")
            }
            CrashError::NoStack { schemes, stores, layers } => write!(
                f,
                "no stack has scheme {}, store {} and layers {} together: only page mapping has \
                 stores, and a number after a dot must be the number of a variant",
                named(schemes),
                named(stores),
                named(layers)
            ),
            CrashError::NotThere { scheme, store, layers } => {
                write!(f, "there is no scheme {scheme} with store {store}")?;
                if layers == "-" { Ok(()) } else { write!(f, " under {layers}") }
            }
            CrashError::NoDrive { geometry, layers, scheme, store, last } => {
                write!(f, "no drive like `{geometry}` fits {layers} over {scheme} with {store}: ")?;
                last.as_ref().map_or(Ok(()), |last| last.fmt(f))
            }
            CrashError::Unfit { set, stacks, others, geometry, why } => {
                let (set, first) = (set.join(" "), &stacks[0]);
                write!(f, "{set} does not fit {first} on `{geometry}`: {why}")?;
                if stacks.len() > 1 {
                    write!(f, " (nor do {})", first_of(&stacks[1..]))?;
                }
                if others.is_empty() {
                    return write!(f, "; no stack takes it");
                }
                let others = first_of(others);
                write!(
                    f,
                    "; with --layers, --scheme and --store choose stacks that take it: {others}"
                )
            }
            CrashError::NoFailure(id) => {
                write!(f, "{id}: the workload has no such failure or cut")
            }
            CrashError::FactoryBlocks => {
                write!(f, "no share of factory-bad blocks leaves enough good blocks")
            }
            CrashError::AtRandom { key, behind_nvme: true } => write!(
                f,
                "{key}: failures at random may take the record that an NVMe controller keeps, and \
                 nothing is promised then: use --interface device"
            ),
            CrashError::AtRandom { key, behind_nvme: false } => write!(
                f,
                "{key}: failures at random may take the pages in which a layer keeps its own map, \
                 and nothing is promised then (R6 is about the drive): use --layers -"
            ),
            CrashError::Config(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CrashError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CrashError::Config(error) | CrashError::NoDrive { last: Some(error), .. } => {
                Some(&**error)
            }
            CrashError::Unfit { why, .. } => Some(&**why),
            _ => None,
        }
    }
}
