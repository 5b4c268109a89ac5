//! Which version of a page a mount believes.

use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, Ppn, SeededBug};

/// Which of two versions of a page was programmed last.
pub(super) struct Versions<'a> {
    medium: &'a Medium,
    /// The least number of a program in each block that was read; 0 of others.
    least: Vec<u64>,
}

impl<'a> Versions<'a> {
    /// No block was read.
    pub fn new(medium: &'a Medium) -> Versions<'a> {
        Versions { medium, least: vec![0; medium.layout().blocks() as usize] }
    }

    /// The spare areas of a block are read.
    pub fn read(&mut self, block: BlockId) {
        let layout = self.medium.layout();
        let frames = (0..self.medium.write_pointer(block)).map(|i| layout.frame_in(block, i));
        let numbers = frames.flat_map(|frame| self.medium.frame_sequence(frame));
        self.least[block.0 as usize] = numbers.min().unwrap_or(u64::MAX);
    }

    /// Whether a slot was programmed after the `known` one: of two in one frame the later slot was.
    /// Panics where one of them cannot be read.
    pub fn is_newer(&self, slot: Ppn, known: Ppn) -> bool {
        if SeededBug::SkipSequence.is_active() {
            return true;
        }
        let layout = self.medium.layout();
        let number = |slot| {
            self.medium.frame_sequence(layout.frame_of(slot)).expect("its spare area was read")
        };
        let sequence = number(slot);
        // what the known block says is near, what its frame says is far away in memory
        sequence >= self.least[layout.block_of(known).0 as usize]
            && (sequence, slot) > (number(known), known)
    }
}
