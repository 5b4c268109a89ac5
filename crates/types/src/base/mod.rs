//! The content of a preconditioned drive, computed slot by slot and page by page.
//!
//! Before a run, the place of every page follows from a formula, and so does the content of every
//! slot. So none of it has to be stored until it changes: a [`Base`] has a few numbers for each
//! block, whatever the number of its slots. Both directions take constant time.
//!
//! [`Filled`] is a blank drive to which every page was written in ascending order. [`Steady`] is a
//! drive after a long time of uniform random writes.

mod filled;
mod parts;
mod steady;

pub use filled::Filled;
pub use parts::BaseParts;
pub use steady::Steady;

use crate::{BlockId, FrameId, Lpn, Ppn, Stamp};

/// The content of old versions, and of the padding of a steady drive.
pub const OLD: Stamp = Stamp(0x01d0_1d01);

/// The content of a slot of a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// The valid version of a page.
    Valid(Lpn),
    /// An older version of a page.
    Old(Lpn),
    /// Padding, which belongs to no page.
    Padding,
}

/// The content of a drive before a run.
#[expect(clippy::large_enum_variant, reason = "a drive has one base")]
#[derive(Clone, Debug)]
pub enum Base {
    /// Every page was written once, in ascending order.
    Filled(Filled),
    /// Pages were written at random for a long time.
    Steady(Steady),
}

impl Base {
    /// Returns the content of a slot, or `None` if the slot is erased.
    #[inline]
    pub fn page_at(&self, slot: Ppn) -> Option<Held> {
        match self {
            Base::Filled(filled) => filled.page_at(slot),
            Base::Steady(steady) => steady.page_at(slot),
        }
    }

    /// Returns the slot with the valid version of a page. Every page of the drive has a valid
    /// version.
    ///
    /// # Panics
    /// Panics beyond the last page.
    #[inline]
    pub fn slot_of(&self, page: Lpn) -> Ppn {
        match self {
            Base::Filled(filled) => filled.slot_of(page),
            Base::Steady(steady) => steady.slot_of(page),
        }
    }

    /// Returns whether a slot holds the valid version of a page.
    #[inline]
    pub fn is_valid(&self, slot: Ppn) -> bool {
        match self {
            Base::Filled(filled) => matches!(filled.page_at(slot), Some(Held::Valid(_))),
            Base::Steady(steady) => steady.is_valid(slot),
        }
    }

    /// Returns the number of valid slots of a block.
    pub fn valid(&self, block: BlockId) -> u32 {
        match self {
            Base::Filled(filled) => filled.valid(block),
            Base::Steady(steady) => steady.valid(block),
        }
    }

    /// Returns the number of programmed frames of a block. They are the block's first frames.
    pub fn programmed(&self, block: BlockId) -> u32 {
        match self {
            Base::Filled(filled) => filled.programmed(block),
            Base::Steady(steady) => steady.programmed(block),
        }
    }

    /// Adds the content of the slots in the programmed frames of a block to `held`, in order. This
    /// is faster than asking slot by slot.
    pub fn decode(&self, block: BlockId, held: &mut Vec<Held>) {
        match self {
            Base::Filled(filled) => filled.decode(block, held),
            Base::Steady(steady) => steady.decode(block, held),
        }
    }

    /// Calls `visit` with each page whose valid version is in a block, in no particular order. This
    /// is faster than asking slot by slot.
    pub fn for_each_page(&self, block: BlockId, visit: impl FnMut(Lpn)) {
        match self {
            Base::Filled(filled) => filled.pages(block).for_each(visit),
            Base::Steady(steady) => steady.pages(block).for_each(visit),
        }
    }

    /// Returns the stamp of the padding.
    pub fn padding(&self) -> Stamp {
        match self {
            Base::Filled(_) => Stamp::ZERO,
            Base::Steady(_) => OLD,
        }
    }

    /// Returns the number of programs that wrote the base.
    pub fn programs(&self) -> u64 {
        match self {
            Base::Filled(filled) => filled.programs(),
            Base::Steady(steady) => steady.programs(),
        }
    }

    /// Returns the number of the program that wrote a frame, or `None` if the frame is erased. The
    /// first program has number 1.
    #[inline]
    pub fn sequence(&self, frame: FrameId) -> Option<u64> {
        match self {
            Base::Filled(filled) => filled.sequence(frame),
            Base::Steady(steady) => steady.sequence(frame),
        }
    }
}

#[cfg(test)]
mod tests;
