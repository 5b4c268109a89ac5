//! Map pages as a mount finds them.

use super::MapArea;
use crate::maps::{MapContext, MapPage};
use flashatlas_types::{BlockId, FtlError, MediumError, Ppn};

/// Share of its room for wrong bits at which a block counts as old ([`MapArea::close_old`]).
const OLD: f64 = 0.25;

impl MapArea {
    /// Adopts the map blocks that a mount found, with the newest intact version of each page.
    /// `damaged` is called for each version that is not intact.
    pub fn mount(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blocks: &[BlockId],
        damaged: &mut dyn FnMut(MapPage),
    ) -> Result<(), FtlError> {
        let layout = io.pool.layout().clone();
        let mut versions: Vec<(MapPage, std::cmp::Reverse<u64>, Ppn)> = Vec::new();
        // if several blocks are not full, the emptiest becomes the frontier, because the rest of an
        // interrupted collection fits there
        let mut blocks = blocks.to_vec();
        blocks.sort_by_key(|&b| io.cx.flash.medium.write_pointer(b));
        for block in blocks {
            io.pool.adopt_for_map(block);
            let next = io.cx.flash.medium.write_pointer(block);
            for index in 0..next {
                let frame = layout.frame_in(block, index);
                let Ok(sequence) = io.cx.flash.medium.frame_sequence(frame) else { continue };
                let first = layout.first_slot(frame).0;
                for at in self.shape.places_in(first..first + layout.slots_per_frame) {
                    let page = MapPage::new(io.cx.flash.medium.lpn(at)?.0);
                    if self.knows(page) {
                        versions.push((page, std::cmp::Reverse(sequence), at));
                    }
                }
            }
            let lane = layout.lane_of(block);
            match (next < self.frames_per_block, self.frontiers[lane]) {
                (true, None) => self.frontiers[lane] = Some((block, next)),
                _ => self.closed[lane].push(block),
            }
        }
        self.close_old(io);
        versions.sort_unstable();
        for (page, _, at) in versions {
            if self.place(page).is_some() {
                continue;
            }
            match io.cx.flash.medium.map_content(at) {
                Ok(_) => {
                    self.directory[page] = at;
                    self.slots_of(at).for_each(|slot| io.pool.blocks.set_valid(slot));
                }
                // a page whose data is lost still has its name
                Err(MediumError::Damaged(_) | MediumError::Unreadable(_)) => damaged(page),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Closes the open blocks whose age would count for new pages, if the lane has other blocks.
    ///
    /// Only the time of a block's first program is known. A page that is written to a block that
    /// has rested counts as old immediately, and may be lost before it is first read.
    fn close_old(&mut self, io: &mut MapContext<'_, '_>) {
        if io.cx.flash.medium.correction().is_none() {
            return;
        }
        for lane in self.shape.lane_ids() {
            if let Some((block, _)) = self.frontiers[lane]
                && io.pool.free_for_map(lane) > 1
                && io.cx.flash.medium.room_used_up(block) > OLD
            {
                self.frontiers[lane] = None;
                self.closed[lane].push(block);
            }
        }
    }

    /// Repeats an interrupted collection in each lane that has no free block after a mount.
    pub fn collect_again(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        for lane in self.shape.lane_ids() {
            // an interrupted collection took the last block: the pages that are left to move are
            // moved first, and fit
            if io.pool.free_for_map(lane) > 0 {
                continue;
            }
            if let Some(victim) = self.pick(io.pool, lane, self.room(lane)) {
                self.collect(io, lane, victim)?;
            } else if let Some(block) = io.pool.borrow_for_map(lane) {
                // superseded pages became valid again and a torn page used up room, so a block
                // above the quota is borrowed
                let full = self.frontiers[lane].take().map(|(block, _)| block);
                self.closed[lane].extend(full);
                self.open_block(io.cx, lane, block);
                if let Some(victim) = self.pick(io.pool, lane, self.room(lane)) {
                    self.collect(io, lane, victim)?;
                }
            }
        }
        Ok(())
    }
}
