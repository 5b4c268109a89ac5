//! The comparison with which a mount finds the newest version of a page.

use flashatlas_nand::Medium;
use flashatlas_types::{BLOCK_STEPS, BlockId, Ppn, SeededBug, TiVec, beat};

/// A comparison of two versions of a page. The version that was programmed last is newer.
pub(super) struct Versions<'a> {
    medium: &'a Medium,
    /// For each block that was read, the smallest and the largest number of its programs. Other
    /// blocks have the range of all numbers.
    numbers: TiVec<BlockId, (u64, u64)>,
}

impl<'a> Versions<'a> {
    /// Returns the comparison before any block is read.
    pub fn new(medium: &'a Medium) -> Versions<'a> {
        Versions { medium, numbers: medium.layout().per_block((0, u64::MAX)) }
    }

    /// Reads the spare areas of a block.
    pub fn read(&mut self, block: BlockId) {
        beat(BLOCK_STEPS);
        self.numbers[block] = self.medium.sequences(block);
    }

    /// Returns `true` if a slot was programmed after slot `known`. Within one frame, the later slot
    /// counts as newer. Panics if one of the slots is unreadable.
    pub fn is_newer(&self, slot: Ppn, known: Ppn) -> bool {
        if SeededBug::SkipSequence.is_active() {
            return true;
        }
        // the numbers of blocks are in few cache lines, but the numbers of frames are spread over
        // memory
        let layout = self.medium.layout();
        let of_block = |slot| self.numbers[layout.block_of(slot)];
        if of_block(slot).1 < of_block(known).0 {
            return false;
        }
        let number = |slot| {
            self.medium.frame_sequence(layout.frame_of(slot)).expect("its spare area was read")
        };
        let sequence = number(slot);
        sequence >= of_block(known).0 && (sequence, slot) > (number(known), known)
    }
}
