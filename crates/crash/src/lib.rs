//! Every power failure of a drive, enumerated: a workload is carried out once, and at each
//! operation on flash and NVM a copy of the medium loses its power before it, in it and after it;
//! the copy is mounted, every logical unit is compared with what a reference model allows, the
//! tables are checked, and the drive is written on. At depth 2 the mounts are cut, too.
//!
//! [`run`] goes through every scheme and map store of the registries ([`subject`]), on every
//! geometry, under every workload ([`workloads`]).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

pub mod cut;
pub mod enumerate;
pub mod failing_part;
pub mod failing_runs;
pub mod faults;
pub mod in_flight;
pub mod minimise;
pub mod model;
pub mod recording;
pub mod run;
pub mod sample;
pub mod subject;
pub mod verify;
pub mod workloads;

pub use cut::{Cut, CutKind, Id};
pub use enumerate::{Depth, Enumerator, Tally};
pub use faults::{Fault, Faults};
pub use recording::Recording;
pub use run::{Plan, Report, rerun, run};
pub use sample::Sample;

/// A promise that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Which of R1 to R6 (`docs/RELIABILITY.md`).
    pub promise: &'static str,
    /// What was found.
    pub what: String,
}

impl Failure {
    /// A failure.
    pub fn new(promise: &'static str, what: String) -> Failure {
        Failure { promise, what }
    }

    /// `Err` unless `holds`.
    #[inline]
    pub fn unless(
        holds: bool,
        promise: &'static str,
        what: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(Failure::new(promise, what())) }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

impl std::error::Error for Failure {}

thread_local! {
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Run `work`; a broken rule of the simulator, which asserts, is a failure. Nothing is printed of
/// it.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                usual(info);
            }
        }));
    });
    EXPECTED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(false);
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
        Err(Failure::new("R5", format!("broken rule: {}", text.unwrap_or_default())))
    })
}
