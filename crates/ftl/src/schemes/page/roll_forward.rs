//! Taking entries of the map from the spare areas of data that was programmed after the map was
//! written.

use super::PageMapped;
use super::blank_table::{self, Division};
use crate::maps::Replay;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, FtlError, Ppn, SeededBug};

impl PageMapped {
    /// Take newer entries from the spare areas of these blocks, in this order. Where the map was
    /// blank, what they lead to is valid.
    ///
    /// # Errors
    /// What the medium says.
    pub(super) fn roll_forward(
        &mut self,
        medium: &Medium,
        blocks: &[BlockId],
        replay: &Replay,
        was_blank: bool,
    ) -> Result<(), FtlError> {
        let has_copies = replay.upto.iter().any(|&sequence| sequence > 0);
        if was_blank
            && !has_copies
            && replay.from == 0
            && let Some(table) = self.map.table()
        {
            let division = Division::of(table.len());
            let valid = &mut self.pool.blocks;
            self.mount.rolled_forward = blank_table::fill(medium, blocks, table, valid, division);
            return Ok(());
        }
        let mut versions = Versions::new(medium);
        for &block in blocks {
            versions.read(block);
            for index in 0..medium.write_pointer(block) {
                self.expect_entries(medium, block, index, |_| true);
                let frame = self.layout.frame_in(block, index);
                let Ok(sequence) = medium.frame_sequence(frame) else { continue };
                if sequence <= replay.from {
                    continue;
                }
                let first = self.layout.first_slot(frame);
                for (slot, lpn) in (first.0..).map(Ppn).zip(medium.lpns(frame)?) {
                    if lpn.0 >= self.layout.logical_units
                        || (has_copies && sequence <= replay.upto[self.map.page_of(lpn) as usize])
                    {
                        continue;
                    }
                    let known = self.map.peek(lpn).mapped();
                    let is_newer = known.is_none_or(|known| {
                        // a blank map has no entries but those that were just taken
                        !(was_blank || self.holds(medium, known, lpn))
                            || versions.is_newer(slot, known)
                    });
                    if is_newer {
                        self.mount.rolled_forward += 1;
                        if was_blank {
                            if let Some(old) = known {
                                self.pool.blocks.invalidate(old);
                            }
                            self.pool.blocks.set_valid(slot);
                        }
                        self.map.restore(lpn, slot, sequence);
                    }
                }
            }
        }
        Ok(())
    }
}

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
