//! Static wear levelling: the cold-data migration of the dual-pool algorithm (Chang, On Efficient
//! Wear Leveling for Large-Scale Flash-Memory Storage Systems, SAC 2007).
//!
//! Blocks wear unevenly because long-lived data keeps its blocks from being erased. A lane compares
//! the erases of its free blocks with the erases of its least worn closed block. If a free block
//! has more erases, by more than `ftl.wear_threshold`, the data of the closed block is moved into
//! the free block. The worn block then stores cold data and is seldom erased, and the little-worn
//! block is erased like the other blocks.
//!
//! The paper has two pools, so that a block rests until the other blocks have been erased as often.
//! Here the erase counts have the same effect. A block that has just received cold data is the most
//! worn block of its lane, and is selected again only when it has become the least worn.
//!
//! The lane compares whenever the host opens a block. So host data is written only to blocks that
//! are within the threshold. The erases of a closed block exceed the erases of the least worn
//! closed block of its lane by at most `ftl.wear_threshold` plus two. The block may have one erase
//! after it was last within the threshold. One more is possible if a block that collection freed
//! was opened for copies before the next comparison.

use super::PageMapped;
use super::frontier::{Frontier, Pending};
use crate::FtlContext;
use crate::blocks::Role;
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{BlockId, Cause, FtlError, LaneId};

impl PageMapped {
    /// Moves the data of the least worn blocks of a lane into free blocks that are worn too much.
    #[inline]
    pub(super) fn level_wear(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<(), FtlError> {
        if !self.settings.wear_static {
            return Ok(());
        }
        while self.cold_data_has_room(lane)
            && let Some(source) = self.behind(cx.flash.medium, lane)
        {
            self.collect(cx, lane, source, Cause::Wear)?;
            // the missing part of the last frame is padded, so that the source is free immediately
            let cold = self.settings.cold_frontier();
            if !self.lanes[lane].frontiers[cold].buffer.is_empty() {
                self.program(cx, lane, cold, true)?;
            }
        }
        Ok(())
    }

    /// Returns the least worn closed block of a lane, if the erases of a free block exceed its
    /// erases by more than the threshold; otherwise `None`. Among several such blocks, the block
    /// that was filled first is returned, because its data has lived longest.
    fn behind(&self, medium: &Medium, lane: LaneId) -> Option<BlockId> {
        let most = self.pool.listed(lane).iter().map(|b| medium.wear(b)).max()?;
        let blocks = self.layout.lane_blocks(lane);
        let closed = blocks.filter(|&b| self.pool.blocks.role(b) == Role::Closed);
        let filled = |block| {
            let last = medium.last_programmed(block);
            last.and_then(|frame| medium.frame_sequence(frame).ok()).unwrap_or(0)
        };
        let least = closed.min_by_key(|&b| (medium.wear(b), filled(b)))?;
        (most - most.min(medium.wear(least)) > self.settings.wear_threshold).then_some(least)
    }

    /// Returns whether a victim has only valid slots and is too worn for an erase that frees no
    /// slot. A policy that draws at random may pick such a block, and then draws again.
    pub(super) fn rests(&self, medium: &Medium, lane: LaneId, victim: BlockId) -> bool {
        if !self.settings.wear_static
            || self.pool.blocks.valid(victim) < self.layout.slots_per_block
        {
            return false;
        }
        let blocks = self.layout.lane_blocks(lane);
        let closed = blocks.filter(|&b| self.pool.blocks.role(b) == Role::Closed);
        let least = closed.map(|b| medium.wear(b)).min().unwrap_or(0);
        medium.wear(victim) - least >= self.settings.wear_threshold
    }

    /// Returns `true` if collection still has the blocks that it needs after cold data takes a
    /// block.
    fn cold_data_has_room(&self, lane: LaneId) -> bool {
        let open = |f: &&Frontier| f.block.is_none();
        let needed = self.frontiers_of_collection(lane).iter().filter(open).count() as u32;
        self.pool.free(lane) > needed.max(1)
    }

    /// Puts copies of the pages of a least worn block into the frontier of cold data.
    pub(super) fn gather_cold(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        copies: &mut Vec<Pending>,
    ) -> Result<(), FtlError> {
        let cold = self.settings.cold_frontier();
        for copy in copies.drain(..) {
            self.open_cold(cx, lane, self.layout.block_of(copy.from))?;
            self.gather(cx, lane, cold, copy)?;
        }
        Ok(())
    }

    /// Ensures that the frontier of cold data has a block, for a copy from block `from`.
    pub(super) fn open_cold(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        from: BlockId,
    ) -> Result<(), FtlError> {
        let frontier = &mut self.lanes[lane].frontiers[self.settings.cold_frontier()];
        if frontier.block.is_some() {
            return Ok(());
        }
        let Some(block) = self.pool.take_most_worn(cx.flash.medium, lane) else {
            return Err(self.pool.no_space());
        };
        cx.flash.open(block, OobRole::default());
        (frontier.block, frontier.next, frontier.relied) = (Some(block), 0, 0);
        if let Some(history) = &mut self.history {
            history.inherited(from, block);
        }
        Ok(())
    }
}
