//! Collection at an even pace: a part of a victim with each frame that the host fills.
//!
//! A lane that is about to need blocks passes over a victim frame by frame. For every slot that the
//! host fills, it passes one slot that is not valid, and moves the valid ones that it meets. In the
//! steady state that gives back blocks as fast as the host uses them, and no write waits for more
//! than its share of copies. The host may change pages of the victim in between: those need no
//! copy. Blocks that run out all the same are collected as at the pace `burst`.

use super::{GcPace, PageMapped};
use crate::FtlContext;
use flashatlas_types::{BlockId, Cause, FtlError};

/// The victim that a lane passes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    victim: BlockId,
    /// The next frame to move.
    next: u32,
}

impl PageMapped {
    /// The host has filled a frame of this lane: collect its share.
    pub(super) fn keep_pace(&mut self, cx: &mut FtlContext<'_>, lane: u32) -> Result<(), FtlError> {
        if self.settings.pace == GcPace::Burst {
            return Ok(());
        }
        let lane_now = &mut self.lanes[lane as usize];
        lane_now.shares[0] = lane_now.shares[1];
        let owed = &mut lane_now.owed_slots;
        *owed = (*owed + self.layout.slots_per_frame).min(self.layout.slots_per_block);
        // one victim at most for each frame: where nearly everything is valid, bursts do the rest
        for _ in 0..self.layout.frames_per_block {
            if self.lanes[lane as usize].owed_slots == 0 {
                break;
            }
            if self.lanes[lane as usize].sweep.is_none() && !self.begin_sweep(cx, lane)? {
                self.lanes[lane as usize].owed_slots = 0;
                break;
            }
            self.partial_frames += 1;
            self.sweep_frame(cx, lane)?;
        }
        let lane = &mut self.lanes[lane as usize];
        lane.shares[1] = lane.last_copy;
        Ok(())
    }

    /// Choose a victim, if the lane is short of blocks and has one.
    fn begin_sweep(&mut self, cx: &mut FtlContext<'_>, lane: u32) -> Result<bool, FtlError> {
        // a block more than bursts keep: the victim is free only when its last frame has been
        // moved
        let wanted = self.settings.low_water + 2;
        if self.pool.free(lane) >= wanted || !self.collection_has_room(lane) {
            return Ok(false);
        }
        let Some(victim) = self.pick(cx.flash.medium, lane, self.layout.slots_per_block - 1) else {
            return Ok(false);
        };
        self.begin_collection(cx, lane, victim, Cause::Gc)?;
        self.lanes[lane as usize].sweep = Some(Sweep { victim, next: 0 });
        Ok(true)
    }

    /// Move the next frame of the victim.
    fn sweep_frame(&mut self, cx: &mut FtlContext<'_>, lane: u32) -> Result<(), FtlError> {
        let Some(Sweep { victim, next }) = self.lanes[lane as usize].sweep else { return Ok(()) };
        if next < cx.flash.medium.write_pointer(victim) {
            let first = self.layout.first_slot(self.layout.frame_in(victim, next));
            let valid = self.pool.blocks.valid_mask(first, self.layout.slots_per_frame);
            let passed = self.layout.slots_per_frame - valid.count_ones();
            let lane_now = &mut self.lanes[lane as usize];
            lane_now.owed_slots = lane_now.owed_slots.saturating_sub(passed);
            lane_now.sweep = Some(Sweep { victim, next: next + 1 });
            self.move_frame(cx, lane, victim, next, Cause::Gc)?;
        }
        if next + 1 >= cx.flash.medium.write_pointer(victim) {
            self.lanes[lane as usize].sweep = None;
            self.end_collection(cx, lane, victim)?;
        }
        Ok(())
    }

    /// Move the rest of the victim: whoever collects another one in this lane needs the room first.
    /// Whether there was a victim.
    pub(super) fn finish_sweep(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: u32,
    ) -> Result<bool, FtlError> {
        let begun = self.lanes[lane as usize].sweep.is_some();
        while self.lanes[lane as usize].sweep.is_some() {
            self.sweep_frame(cx, lane)?;
        }
        Ok(begun)
    }
}
