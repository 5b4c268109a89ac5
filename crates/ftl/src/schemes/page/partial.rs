//! Collection at an even pace: a part of a victim is collected with each frame that the host fills.
//!
//! A lane that will soon need blocks collects a victim frame by frame. For every slot that the host
//! fills, the lane passes one slot of the victim that is not valid. On the way to this slot, it
//! moves the valid slots. In the steady state this frees blocks as fast as the host uses them, and
//! no write waits for more than its share of copies. The host may supersede pages of the victim in
//! the meantime. These pages need no copy. If the lane still runs out of blocks, it collects as at
//! the pace `burst`.
//!
//! At the pace `paced`, collection keeps the room of the lane constant. Each step is bounded, and
//! later steps do the work that a step could not finish. A lane never collects just because another
//! lane collects. The map has the new places of moved pages before they are written to flash
//! (`maps::pages::moves`). Whenever the host needs a block, the room contains a free block or a
//! victim that is about to become free. Only a drive on which nearly all pages are valid also
//! collects in bursts.

use super::frontier::{Frontier, Leaving};
use super::{GcPace, PageMapped};
use crate::FtlContext;
use flashatlas_types::{BlockId, Cause, FtlError, LaneId};

/// The victim that a lane collects frame by frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    victim: BlockId,
    /// The next frame to move.
    next: u32,
}

impl PageMapped {
    /// Collects a share of a victim after the host has filled a frame of the lane.
    pub(super) fn keep_pace(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<(), FtlError> {
        if self.settings.pace == GcPace::Burst {
            return Ok(());
        }
        let lane_now = &mut self.lanes[lane];
        lane_now.shares[0] = lane_now.shares[1];
        let owed = &mut lane_now.owed_slots;
        *owed = (*owed + self.layout.slots_per_frame).min(self.layout.slots_per_block);
        // at most one victim for each frame; if nearly all pages are valid, bursts do the rest
        let most = match self.settings.pace {
            GcPace::Paced => self.settings.gc_step,
            _ => self.layout.frames_per_block,
        };
        for _ in 0..most {
            if !self.owes(lane) {
                break;
            }
            if self.lanes[lane].sweep.is_none() && !self.begin_sweep(cx, lane)? {
                self.lanes[lane].owed_slots = 0;
                break;
            }
            self.partial_frames += 1;
            self.sweep_frame(cx, lane)?;
        }
        let lane = &mut self.lanes[lane];
        lane.shares[1] = lane.last_copy;
        Ok(())
    }

    /// Returns whether a lane must continue to collect.
    fn owes(&self, lane: LaneId) -> bool {
        let wanted = self.settings.blocks_of_room() * self.layout.slots_per_block;
        match self.settings.pace {
            // two more frames, because the last copies of a victim may wait for their frame to fill
            GcPace::Paced => self.room(lane) < wanted + 2 * self.layout.slots_per_frame,
            _ => self.lanes[lane].owed_slots > 0,
        }
    }

    /// Returns the number of slots of a lane that are free or will become free. They are the slots
    /// of free blocks, the rest of each frontier, and the passed part of the blocks that are
    /// leaving.
    ///
    /// A frame that the host fills uses up all of its slots. A frame that is passed frees the slots
    /// that are not valid.
    fn room(&self, lane: LaneId) -> u32 {
        let (block, frame) = (self.layout.slots_per_block, self.layout.slots_per_frame);
        let lane_now = &self.lanes[lane];
        // cold data takes a free block only when it frees another block
        let frontiers = &lane_now.frontiers[..self.settings.cold_frontier()];
        let open: u32 = frontiers.iter().map(|f| self.rest(f)).sum();
        let waiting: usize = frontiers.iter().map(|f| f.buffer.len()).sum();
        let passed = |leaving: &Leaving| match lane_now.sweep {
            Some(Sweep { victim, next }) if victim == leaving.block => next * frame,
            _ => block,
        };
        let passed: u32 = lane_now.leaving.iter().map(passed).sum();
        (self.pool.free(lane) * block + open + passed).saturating_sub(waiting as u32)
    }

    /// Returns the number of slots in a frontier's block that are not programmed yet.
    fn rest(&self, frontier: &Frontier) -> u32 {
        let left = self.layout.frames_per_block - frontier.next;
        frontier.block.map_or(0, |_| left * self.layout.slots_per_frame)
    }

    /// Returns the number of blocks that the current victim will free without taking a block. The
    /// number is 1 if the rest of the victim fits into each frontier of collection and leaves one
    /// frame for a torn page, otherwise 0.
    pub(super) fn about_to_be_free(&self, lane: LaneId) -> u32 {
        let lane_now = &self.lanes[lane];
        let Some(Sweep { victim, .. }) = lane_now.sweep.filter(|_| self.settings.is_paced()) else {
            return 0;
        };
        let needed = self.pool.blocks.valid(victim) + self.layout.slots_per_frame;
        u32::from(self.frontiers_of_collection(lane).iter().all(|f| self.rest(f) >= needed))
    }

    /// Selects a victim if the lane needs blocks and has a victim. Returns `true` if it did.
    fn begin_sweep(&mut self, cx: &mut FtlContext<'_>, lane: LaneId) -> Result<bool, FtlError> {
        // one block more than for bursts, because the victim is free only after its last frame has
        // been moved
        let wanted = self.settings.low_water + 2;
        let enough = self.settings.pace == GcPace::Even && self.pool.free(lane) >= wanted;
        if enough || !self.collection_has_room(lane) {
            return Ok(false);
        }
        let Some(victim) = self.pick(cx.flash.medium, lane, self.layout.slots_per_block - 1) else {
            return Ok(false);
        };
        self.begin_collection(cx, lane, victim, Cause::Gc)?;
        self.lanes[lane].sweep = Some(Sweep { victim, next: 0 });
        Ok(true)
    }

    /// Moves the next frame of the victim.
    fn sweep_frame(&mut self, cx: &mut FtlContext<'_>, lane: LaneId) -> Result<(), FtlError> {
        let Some(Sweep { victim, next }) = self.lanes[lane].sweep else { return Ok(()) };
        if next < cx.flash.medium.write_pointer(victim) {
            let first = self.layout.first_slot(self.layout.frame_in(victim, next));
            let valid = self.pool.blocks.valid_mask(first, self.layout.slots_per_frame);
            let passed = self.layout.slots_per_frame - valid.count_ones();
            let lane_now = &mut self.lanes[lane];
            lane_now.owed_slots = lane_now.owed_slots.saturating_sub(passed);
            lane_now.sweep = Some(Sweep { victim, next: next + 1 });
            self.move_frame(cx, lane, victim, next, Cause::Gc)?;
        }
        if next + 1 >= cx.flash.medium.write_pointer(victim) {
            self.lanes[lane].sweep = None;
            self.end_collection(cx, lane, victim)?;
            if self.settings.pace == GcPace::Paced {
                self.level_wear(cx, lane)?;
            }
        }
        Ok(())
    }

    /// Moves the rest of the victim, because the collection of another victim in this lane needs
    /// the room first. Returns `true` if there was a victim.
    pub(super) fn finish_sweep(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<bool, FtlError> {
        let begun = self.lanes[lane].sweep.is_some();
        while self.lanes[lane].sweep.is_some() {
            self.sweep_frame(cx, lane)?;
        }
        Ok(begun)
    }
}
