//! Roll forward: a mount takes entries of the map from the spare areas of data that was programmed
//! after the map was written.

use super::PageMapped;
use super::blank_table::{self, Division};
use super::versions::Versions;
use crate::maps::Replay;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, Ppn, beat};
use std::sync::Arc;

impl PageMapped {
    /// Takes newer entries from the spare areas of these blocks, in this order. If the map was
    /// blank, the slots that the entries point to become valid. If the whole map is written
    /// afterwards (`to_write`), the store does not note the entries as changes.
    pub(super) fn roll_forward(
        &mut self,
        medium: &Medium,
        blocks: &[BlockId],
        replay: &Replay,
        (was_blank, to_write): (bool, bool),
    ) {
        let has_copies = replay.upto.iter().any(|&sequence| sequence > 0);
        if was_blank
            && !has_copies
            && replay.from == 0
            && let Some(table) = if to_write { self.map.table_to_write() } else { self.map.table() }
        {
            let division = Division::of(table.len());
            let valid = &mut self.pool.blocks;
            if let Some(base) = medium.untouched_base() {
                // read from the newest block to the oldest, each page is first met in its valid
                // version
                self.mount.rolled_forward = table.len().into();
                table.lay(Arc::clone(base));
                valid.lay(&self.layout, Arc::clone(base));
                return;
            }
            self.mount.rolled_forward = blank_table::fill(medium, blocks, table, valid, division);
            return;
        }
        let mut versions = Versions::new(medium);
        for &block in blocks {
            versions.read(block);
            for index in 0..medium.write_pointer(block) {
                beat(1);
                self.prefetch_entries(medium, block, index, |_| true);
                let frame = self.layout.frame_in(block, index);
                let Ok(spare) = medium.spare(frame) else { continue };
                let sequence = spare.sequence;
                if sequence <= replay.from {
                    continue;
                }
                let first = self.layout.first_slot(frame);
                for (slot, lpn) in (first.0..).map(Ppn).zip(spare.lpns()) {
                    if lpn.0 >= self.layout.logical_units
                        || (has_copies && sequence <= replay.upto[self.map.page_of(lpn)])
                    {
                        continue;
                    }
                    let known = self.map.peek(lpn).mapped();
                    let is_newer = known.is_none_or(|known| {
                        // a blank map has only entries that this function has taken
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
    }
}
