//! Broken promises. A panic of an assertion in the simulator counts as a broken promise, too.

use flashatlas_types::PartFault;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A broken promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The broken promise, R1 to R6 (`docs/RELIABILITY.md`).
    pub promise: &'static str,
    /// Description of the finding.
    pub what: String,
}

impl Failure {
    /// Returns the failure that `promise` is broken.
    pub fn new(promise: &'static str, what: String) -> Failure {
        Failure { promise, what }
    }

    /// Returns the failure that `promise` is broken as an error, unless `holds` is `true`.
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

/// Runs `work`, and turns a panic of the simulator's assertions into a failure.
///
/// The message of the panic is not printed.
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
        if let Some(fault) = panic.downcast_ref::<PartFault>() {
            return Err(Failure::new("R5", fault.to_string()));
        }
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
        Err(Failure::new("R5", format!("broken rule: {}", text.unwrap_or_default())))
    })
}
