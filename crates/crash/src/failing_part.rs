//! Kinds of failing parts, and their names in identities of failures.

use crate::Fault;

/// Kind of the part that fails, and its circumstances.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailingPart {
    /// A program fails, and a spare block takes the place of its block.
    Program,
    /// A program fails, and there is no spare block. The command ends in an error, and flushed data
    /// is present after a mount.
    ProgramWithoutSpare,
    /// An erase fails, and a spare block takes the place of the block.
    Erase,
    /// An erase fails, and there is no spare block. The drive goes on with one block less.
    EraseWithoutSpare,
    /// No operation fails, but blocks are bad from the beginning.
    FactoryBlocks,
    /// A page of a running drive cannot be read, and its reader gets an error.
    Page,
    /// A page cannot be read from before the mount on. Units that then hold an older version must
    /// be reported.
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
