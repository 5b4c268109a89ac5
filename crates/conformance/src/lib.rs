//! Conformance suite: tests of the promises that every part makes.
//!
//! FlashAtlas' own parts pass the suite, and parts of others can be tested with it, too.
//!
//! [`check`] finds one part by name and tries the promises of this part. Whatever the kind of part,
//! it checks the part's declarations. Most kinds of part that belong to a drive are tried with
//! reads, writes, trims and FLUSHes; the data read is compared with an array of pages. These kinds
//! are also tried on a full drive, on a drive that wears out, with power failures, and by running
//! the same workload twice. A format is tried with bytes that are not a trace, and a generator by
//! checking its requests. A [`Report`] has a line for each promise. For a broken promise, the line
//! is followed by a command that shows the fault again. [`conformance!`] makes a test that runs
//! [`check`] on one part. [`swarm`] tries random combinations of parts, drawn from a seed.
//!
//! ```
//! use flashatlas_conformance::{Effort, check};
//! use flashatlas_sim::{Parts, metrics::METRICS};
//! use flashatlas_types::Entries;
//!
//! let parts = Parts {
//!     drives: flashatlas_host::STANDARD,
//!     workloads: flashatlas_workload::Registry::STANDARD,
//!     metrics: Entries::of(METRICS),
//!     added: &[],
//! };
//! let effort = Effort { one_in: 500, requests: 300, seed: 1 };
//! let report = check(&parts, "mixer", &effort, &mut |_| true)?;
//! assert!(report.broken().next().is_none(), "{report}");
//! # Ok::<(), flashatlas_types::ConfigError>(())
//! ```

mod declared;
mod drives;
pub mod memory;
mod requests;
pub mod swarm;

use flashatlas_sim::{AnyPart, Parts};
use flashatlas_types::{ConfigError, PartFault, nearest};
use serde::Serialize;

/// Size of the trials of a part.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rate of the sample: one power failure in `one_in` is tried.
    pub one_in: u32,
    /// Number of requests of a workload.
    pub requests: u32,
    /// Seed of all random numbers in the suite.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { one_in: 20, requests: 6000, seed: 1 }
    }
}

/// Outcome of a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The promise was tried and kept.
    Kept {
        /// Description of the trial.
        tried: String,
    },
    /// The promise is broken.
    Broken {
        /// Description of the fault.
        found: String,
        /// A command that shows the fault again.
        rerun: String,
    },
    /// The promise could not be tried.
    NotTried {
        /// The reason.
        why: String,
    },
}

/// A promise, and the outcome of its trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Promise {
    /// Name of the promise.
    pub promise: &'static str,
    /// The outcome of its trial.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Outcomes of a part's promises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Kind of the part, such as `victim policy`.
    pub kind: &'static str,
    /// Name of the part.
    pub name: &'static str,
    /// Promises of the part, in the order in which they were tried.
    pub promises: Vec<Promise>,
}

impl Report {
    /// Returns the broken promises.
    pub fn broken(&self) -> impl Iterator<Item = &Promise> {
        self.promises.iter().filter(|p| matches!(p.outcome, Outcome::Broken { .. }))
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} `{}`", self.kind, self.name)?;
        for Promise { promise, outcome } in &self.promises {
            match outcome {
                Outcome::Kept { tried } => writeln!(f, "  kept       {promise}: {tried}")?,
                Outcome::NotTried { why } => writeln!(f, "  not tried  {promise}: {why}")?,
                Outcome::Broken { found, rerun } => {
                    writeln!(f, "  BROKEN     {promise}: {found}")?;
                    writeln!(f, "             {rerun}")?;
                }
            }
        }
        Ok(())
    }
}

/// Trial of a part, with the outcomes of the promises that were tried so far.
struct Trial<'a> {
    parts: &'a Parts,
    effort: Effort,
    promises: Vec<Promise>,
    progress: &'a mut dyn FnMut(usize) -> bool,
    stopped: bool,
}

/// Outcome of a trial: its description, or the fault and the command that shows the fault again.
type Tried = Result<String, (String, String)>;

impl Trial<'_> {
    /// Tries one promise; if a part raises a fault, the promise is broken.
    fn promise(&mut self, promise: &'static str, rerun: &str, work: impl FnOnce(&Self) -> Tried) {
        if self.stopped {
            return self.not_tried(promise, "the suite was stopped");
        }
        let tried = PartFault::catching(|| work(self))
            .unwrap_or_else(|fault| Err((fault.to_string(), rerun.to_owned())));
        let outcome = match tried {
            Ok(tried) => Outcome::Kept { tried },
            Err((found, rerun)) => Outcome::Broken { found, rerun },
        };
        self.promises.push(Promise { promise, outcome });
        self.stopped = !(self.progress)(self.promises.len());
    }

    fn is_broken(&self) -> bool {
        self.promises.iter().any(|p| matches!(p.outcome, Outcome::Broken { .. }))
    }

    fn not_tried(&mut self, promise: &'static str, why: impl Into<String>) {
        self.promises.push(Promise { promise, outcome: Outcome::NotTried { why: why.into() } });
    }
}

/// Returns every part of every kind.
pub fn all(parts: &Parts) -> Vec<AnyPart> {
    let ftl = &parts.drives.ftl;
    (ftl.schemes.iter().map(AnyPart::from))
        .chain(ftl.stores.iter().map(AnyPart::from))
        .chain(ftl.victims.iter().map(AnyPart::from))
        .chain(ftl.classifiers.iter().map(AnyPart::from))
        .chain(ftl.caching.iter().map(AnyPart::from))
        .chain(parts.drives.hashes().iter().map(AnyPart::from))
        .chain(parts.drives.layers.iter().map(AnyPart::from))
        .chain(parts.drives.presets.iter().map(AnyPart::from))
        .chain(parts.workloads.formats.iter().map(AnyPart::Format))
        .chain(parts.workloads.generators.iter().map(AnyPart::Generator))
        .chain(parts.metrics.iter().map(AnyPart::Metric))
        .collect()
}

/// Tries the promises of the part called `name`.
///
/// `progress` is called after each trial with the number of promises in the report so far,
/// including promises that were not tried. The suite stops if `progress` returns `false`.
///
/// # Errors
/// Returns an error if no part of any kind has this name.
pub fn check(
    parts: &Parts,
    name: &str,
    effort: &Effort,
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Report, ConfigError> {
    let all = all(parts);
    let Some(&part) = all.iter().find(|part| part.named().1 == name) else {
        let names: Vec<&str> = all.iter().map(|part| part.named().1).collect();
        let mut error = ConfigError::new("check", format!("no part is called `{name}`"));
        error.nearest = nearest(name, &names).map(str::to_owned);
        return Err(error);
    };
    let mut trial =
        Trial { parts, effort: *effort, promises: Vec::new(), progress, stopped: false };
    declared::check(&mut trial, part);
    match part {
        AnyPart::Drive(part) => drives::check(&mut trial, part),
        AnyPart::Format(def) => requests::check_format(&mut trial, def),
        AnyPart::Generator(def) => requests::check_generator(&mut trial, def),
        AnyPart::Metric(def) => requests::check_metric(&mut trial, def),
        _ => trial.not_tried("conformance", "this kind of part has no suite"),
    }
    let (kind, name) = part.named();
    Ok(Report { kind, name, promises: trial.promises })
}

/// Makes one test, `conformance`, that fails if a part breaks a promise.
///
/// The first argument is an expression for the [`Parts`] that contain the part. The second argument
/// is the part's name.
///
/// ```ignore
/// flashatlas::conformance!(my_registry().parts(), "newest");
/// ```
#[macro_export]
macro_rules! conformance {
    ($parts:expr, $name:expr) => {
        #[test]
        fn conformance() {
            let effort = $crate::Effort::default();
            let report = $crate::check(&$parts, $name, &effort, &mut |_| true)
                .unwrap_or_else(|e| panic!("{e}"));
            assert!(report.broken().next().is_none(), "{report}");
        }
    };
}
