//! Mechanisms: the parts of a paper's design whose use is counted.

/// A mechanism of a scheme, store or layer, and the counter of its uses.
///
/// If the counter is 0 after a run, no result of that run tested the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Name of the mechanism, such as `switch merge`.
    pub name: &'static str,
    /// Path of its counter in the run record, such as `merges.log_blocks.switch`. A missing counter
    /// counts as 0, because the record omits some keys until the first event.
    pub counter: &'static str,
    /// Settings that turn the mechanism off; empty if no setting does.
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
