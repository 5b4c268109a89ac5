//! Kinds of parts that fail, as identities of failures name them.

use crate::Fault;

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// A program; a spare block takes the place of its block.
    Program,
    /// A program, and there is no spare block: the command ends in an error, what was flushed is
    /// there after a mount.
    ProgramWithoutSpare,
    /// An erase; a spare block takes the place of the block.
    Erase,
    /// An erase, and there is no spare block: the drive goes on with a block less.
    EraseWithoutSpare,
    /// Nothing: blocks are bad from the beginning.
    FactoryBlocks,
    /// A page, for a running drive: whoever reads it gets an error.
    Page,
    /// A page, before a mount: what is older than it was is reported.
    PageBeforeMount,
}

/// Every kind of failure, with its letters in an identity and its switch, in the order of [`Part`].
pub(crate) const PARTS: [(Part, &str, Fault); 7] = [
    (Part::Program, "fp", Fault::ProgramFailure),
    (Part::ProgramWithoutSpare, "fx", Fault::ProgramFailure),
    (Part::Erase, "fe", Fault::EraseFailure),
    (Part::EraseWithoutSpare, "fb", Fault::GrownBad),
    (Part::FactoryBlocks, "fm", Fault::FactoryBad),
    (Part::Page, "up", Fault::Unreadable),
    (Part::PageBeforeMount, "um", Fault::Unreadable),
];

impl Part {
    /// The letters in an identity.
    pub const fn letters(self) -> &'static str {
        PARTS[self as usize].1
    }

    /// The kind of failure with these letters.
    pub fn by_letters(letters: &str) -> Option<Part> {
        PARTS.iter().find(|part| part.1 == letters).map(|part| part.0)
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.letters())
    }
}
