//! Kinds of parts that fail, as identities of failures name them.

use crate::Fault;

/// Part that fails, and when.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailingPart {
    /// A program; a spare block takes the place of its block.
    Program,
    /// A program, and there is no spare block: the command ends in an error, and flushed data is
    /// there after a mount.
    ProgramWithoutSpare,
    /// An erase; a spare block takes the place of the block.
    Erase,
    /// An erase, and there is no spare block: the drive goes on with a block less.
    EraseWithoutSpare,
    /// No operation: blocks are bad from the beginning.
    FactoryBlocks,
    /// A page of a running drive: its reader gets an error.
    Page,
    /// A page before a mount: units that hold an older version then are reported.
    PageBeforeMount,
}

/// Every kind of failure, with its letters in an identity and its switch, in the order of
/// [`FailingPart`].
pub(crate) const FAILING_PARTS: [(FailingPart, &str, Fault); 7] = [
    (FailingPart::Program, "fp", Fault::ProgramFailure),
    (FailingPart::ProgramWithoutSpare, "fx", Fault::ProgramFailure),
    (FailingPart::Erase, "fe", Fault::EraseFailure),
    (FailingPart::EraseWithoutSpare, "fb", Fault::GrownBad),
    (FailingPart::FactoryBlocks, "fm", Fault::FactoryBad),
    (FailingPart::Page, "up", Fault::Unreadable),
    (FailingPart::PageBeforeMount, "um", Fault::Unreadable),
];

impl FailingPart {
    /// Returns the letters of this kind in an identity.
    pub const fn letters(self) -> &'static str {
        FAILING_PARTS[self as usize].1
    }

    /// Returns the kind of failure with these letters, if there is one.
    pub fn by_letters(letters: &str) -> Option<FailingPart> {
        FAILING_PARTS.iter().find(|part| part.1 == letters).map(|part| part.0)
    }
}

impl std::fmt::Display for FailingPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.letters())
    }
}
