//! Breaches of contract after which a run cannot continue. For example, a victim policy picks a
//! block that does not exist, firmware programs a page twice, or a plug-in raises an exception.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A breach of contract by a part. It ends the run. The part is at fault, not the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartFault {
    /// The name of the part in messages: ``victim policy `newest` ``.
    pub part: String,
    /// The fault and the expectation, in one sentence without a full stop.
    pub what: String,
}

impl PartFault {
    /// Ends the run with this fault. The stack unwinds to [`PartFault::catching`] and nothing is
    /// printed.
    pub fn raise(part: impl Into<String>, what: impl Into<String>) -> ! {
        resume_unwind(Box::new(PartFault { part: part.into(), what: what.into() }))
    }

    /// Returns the result of `work`, or the fault that ended it. Other panics pass through.
    ///
    /// # Errors
    /// Returns the fault that a part raised.
    pub fn catching<T>(work: impl FnOnce() -> T) -> Result<T, PartFault> {
        catch_unwind(AssertUnwindSafe(work)).or_else(|panic| match panic.downcast() {
            Ok(fault) => Err(*fault),
            Err(panic) => resume_unwind(panic),
        })
    }
}

impl fmt::Display for PartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.what)
    }
}

impl std::error::Error for PartFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_caught_and_other_panics_go_on() {
        assert_eq!(PartFault::catching(|| 7), Ok(7));
        let fault =
            PartFault::catching(|| -> () { PartFault::raise("map store `mine`", "lost page 3") });
        let fault: PartFault = fault.unwrap_err();
        assert_eq!(fault.to_string(), "map store `mine`: lost page 3");
        let other = catch_unwind(|| PartFault::catching(|| resume_unwind(Box::new("other"))));
        assert_eq!(other.unwrap_err().downcast_ref(), Some(&"other"));
    }
}
