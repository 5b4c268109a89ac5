//! Programs in several steps. All pages of a word line are sent to the die at each step, and the
//! word line can be read after its last step alone.
//!
//! The order is fixed: the first step of a word line is followed by the next step of each word line
//! before it that has steps left, from the nearest to the farthest. So with two steps the order is
//! 1a, 2a, 1b, 3a, 2b, and so on (US 11,868,653 B2, Kioxia). After the first step of a block's last
//! word line, the others follow in the same order until none has steps left.

use crate::PAGE_KINDS;

/// The largest number of steps of a program.
pub const STEPS_MAX: usize = 3;

/// The number of kinds of program that have times of their own: one for each kind of page, and one
/// for each step.
pub const PROGRAM_KINDS: usize = PAGE_KINDS + STEPS_MAX;

/// A step of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramStep {
    /// The number of the step, from 1.
    pub number: u8,
    /// The number of steps of the program.
    pub of: u8,
}

impl ProgramStep {
    /// Returns `true` if the frame can be read after this step.
    pub const fn is_last(self) -> bool {
        self.number == self.of
    }

    /// Returns the number of the step among the kinds of program. It stands in the place of a kind
    /// of page.
    pub const fn level(self) -> u8 {
        PAGE_KINDS as u8 + self.number - 1
    }
}
