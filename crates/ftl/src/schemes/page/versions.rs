//! The comparison by which a mount finds the newest version of a page.

use flashatlas_nand::Medium;
use flashatlas_types::{BLOCK_STEPS, BlockId, Ppn, SeededBug, TiVec, beat};

/// A comparison of two versions of a page: the one that was programmed last is newer.
pub(super) struct Versions<'a> {
    medium: &'a Medium,
    /// For each block that was read, the least and the greatest number of its programs. Other
    /// blocks have the range of all numbers.
    numbers: TiVec<BlockId, (u64, u64)>,
}

impl<'a> Versions<'a> {
    /// Begins with no block read.
    pub fn new(medium: &'a Medium) -> Versions<'a> {
        Versions { medium, numbers: medium.layout().per_block((0, u64::MAX)) }
    }

    /// Reads the spare areas of a block.
    pub fn read(&mut self, block: BlockId) {
        beat(BLOCK_STEPS);
        let layout = self.medium.layout();
        let frames = (0..self.medium.write_pointer(block)).map(|i| layout.frame_in(block, i));
        let numbers = frames.flat_map(|frame| self.medium.frame_sequence(frame));
        self.numbers[block] = numbers.fold((u64::MAX, 0), |(least, greatest), number| {
            (least.min(number), greatest.max(number))
        });
    }

    /// Returns `true` if a slot was programmed after the `known` one; in one frame the later slot
    /// counts as newer. Panics if one of them cannot be read.
    pub fn is_newer(&self, slot: Ppn, known: Ppn) -> bool {
        if SeededBug::SkipSequence.is_active() {
            return true;
        }
        // the numbers of blocks are near, the numbers of their frames are far away in memory
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
