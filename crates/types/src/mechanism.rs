//! Mechanisms: parts of a paper's design that a run may or may not reach.

/// A mechanism of a scheme, store or layer, with the counter of how often it fired.
///
/// A result that rests on a mechanism which fired 0 times was not a test of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Name of the mechanism, such as `switch merge`.
    pub name: &'static str,
    /// Path of its counter in the run record, such as `merges.log_blocks.switch`. A missing counter
    /// counts as 0: the record has some keys only if something happened.
    pub counter: &'static str,
    /// Settings under which the mechanism cannot fire; empty if no setting turns it off.
    pub without: &'static [&'static str],
}

impl Mechanism {
    /// Returns a mechanism that no setting turns off.
    pub const fn new(name: &'static str, counter: &'static str) -> Mechanism {
        Mechanism { name, counter, without: &[] }
    }

    /// Returns the same mechanism, turned off by `settings`.
    pub const fn without(self, settings: &'static [&'static str]) -> Mechanism {
        Mechanism { without: settings, ..self }
    }
}
