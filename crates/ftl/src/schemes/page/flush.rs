//! The ways of a FLUSH with programs in several steps (`ftl.flush`).
//!
//! Data of the host that is between the steps of a program, or that waits for its frame to fill, is
//! not on flash yet. With `ftl.flush = slc` a FLUSH programs a copy of it in SLC mode, in one step.
//!
//! The copy is then the version to which the map points, as it would be after a write to an SLC
//! cache. The data itself stays where it is and is programmed later, as if there had been no FLUSH.
//! After the last step the map points to the native slot, and the copy is invalid. The erase of the
//! copy waits for the last step, because it superseded the slot.
//!
//! With an SLC cache, its blocks take the copies, as long as it has room. Otherwise the first
//! `ftl.flush_blocks` blocks of each lane do. A filled block of these is erased once none of its
//! copies is valid. If no block has room, the filled block with the fewest valid copies is folded.
//! If that is not possible either, the FLUSH programs word lines without data, as with `pad`.

use super::PageMapped;
use super::frontier::Pending;
use super::steps_settings::AtFlush;
use crate::FtlContext;
use crate::blocks::Role;
use flashatlas_types::{
    BlockId, BlockMode, Cause, Class, FrontierId, FtlError, LaneId, OpId, SeededBug,
};
use smallvec::SmallVec;

/// The place of a unit of the host that is not on flash yet.
#[derive(Clone, Copy)]
struct Waiting {
    lane: LaneId,
    f: FrontierId,
    /// The number of its frame among those between steps, or `None` for a unit in the buffer.
    frame: Option<usize>,
    slot: usize,
}

impl PageMapped {
    /// Makes every frame with data of the host durable, in the way of `ftl.flush`.
    pub(super) fn finish_for_flush(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        match self.steps().at_flush() {
            AtFlush::Pad => self.finish_host_frames(cx),
            AtFlush::Plp => Ok(()),
            AtFlush::Slc => self.copy_for_flush(cx),
        }
    }

    /// Returns an operation that is complete when `flushed` is, and when capacitors or copies
    /// answer for all data of the host that is between steps.
    pub(super) fn protected_after(&self, cx: &mut FtlContext<'_>, flushed: OpId) -> OpId {
        let mut after = self.steps().unfinished(cx);
        if after.is_empty() {
            return flushed;
        }
        after.push(flushed);
        cx.flash.plan.join(Class::Map, &after)
    }

    /// Copies every unit of the host that is not on flash yet to blocks in SLC mode.
    pub(super) fn copy_for_flush(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        let slc = self.settings.slc_frontier().expect("copies have blocks in SLC mode");
        let mut waiting = self.waiting();
        while !waiting.is_empty() {
            let Some((lane, folded)) = self.lane_for_copies(cx)? else {
                return self.pad_for_flush(cx);
            };
            if folded {
                // the fold may have finished some of the frames
                waiting = self.waiting();
            }
            let rest = waiting.split_off(waiting.len().min(self.frame_len(slc)));
            if !waiting.is_empty() {
                self.program_copies(cx, (lane, slc), &waiting)?;
            }
            waiting = rest;
        }
        if self.settings.slc.is_some_and(|slc| slc.takes_writes) {
            return Ok(());
        }
        self.layout.lane_ids().try_for_each(|lane| self.erase_spent(cx, lane))
    }

    /// Finishes every frame with data of the host, without copies.
    pub(super) fn pad_for_flush(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        self.gathering.keys().try_for_each(|f| self.pad_host_units(cx, f))?;
        self.finish_host_frames(cx)
    }

    /// Pads and programs the frame that a frontier gathers, if data of the host waits for it.
    pub(super) fn pad_host_units(
        &mut self,
        cx: &mut FtlContext<'_>,
        f: FrontierId,
    ) -> Result<(), FtlError> {
        // host units wait only in the lane in which their stream is gathering a frame
        match self.gathering[f] {
            Some(lane) if self.lanes[lane].frontiers[f].buffer.iter().any(Pending::is_host) => {
                self.program(cx, lane, f, true)
            }
            _ => Ok(()),
        }
    }

    /// Returns the newest units of the host that are not on flash and have no copy there.
    fn waiting(&self) -> Vec<Waiting> {
        let mut found = Vec::new();
        for f in self.gathering.keys().filter(|&f| self.mode_of(f) == BlockMode::Native) {
            for lane in self.layout.lane_ids() {
                let between = self.steps().uncopied(lane, f);
                let newest = between.filter(|(_, p)| !self.buffered.contains_key(&p.unit.lpn));
                found.extend(newest.map(|((frame, slot), _)| Waiting {
                    lane,
                    f,
                    frame: Some(frame),
                    slot,
                }));
            }
            let Some(lane) = self.gathering[f] else { continue };
            let buffer = self.lanes[lane].frontiers[f].buffer.iter().enumerate();
            let buffered = buffer.filter(|(_, p)| p.is_host() && !p.copied);
            found.extend(buffered.map(|(slot, _)| Waiting { lane, f, frame: None, slot }));
        }
        found
    }

    fn unit_of(&mut self, at: Waiting) -> &mut Pending {
        match at.frame {
            Some(frame) => self.steps_mut().unit_mut((at.lane, at.f), frame, at.slot),
            None => &mut self.lanes[at.lane].frontiers[at.f].buffer[at.slot],
        }
    }

    /// Programs copies of units in a frame in SLC mode.
    fn program_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
        (lane, slc): (LaneId, FrontierId),
        waiting: &[Waiting],
    ) -> Result<(), FtlError> {
        let mut units: Vec<Pending> = waiting.iter().map(|&at| self.unit_of(at).clone()).collect();
        let (block, frame, full) = self.take_frame(lane, slc);
        let mut after: SmallVec<[OpId; 8]> = units.iter().map(|p| p.ready).collect();
        after.dedup();
        let copies = units.iter().map(|p| &p.unit);
        let (first, op) = cx.flash.program(frame, copies, units[0].cause, &after)?;
        self.at.clock += u64::from(self.layout.slots_per_frame);
        for (at, p) in waiting.iter().zip(&units) {
            self.unit_of(*at).copied = true;
            if at.frame.is_none() {
                // an older version may be between its steps
                self.supersede_between(cx, p.unit.lpn, op);
            }
        }
        self.pool.programmed(cx, op);
        let count = units.len() as u32;
        let mapped = self.enter::<true>(cx, lane, &mut units, (first, op), 0)?;
        self.pool.settled = cx.flash.medium.sequence();
        self.steps_mut().copied(cx, mapped, count);
        self.count_host_write(slc, count);
        if full {
            self.lanes[lane].frontiers[slc].block = None;
            self.close_for_map(cx, block)?;
        }
        Ok(())
    }

    /// Returns the next lane with room for copies of a FLUSH, and whether a block was folded to
    /// make it. Returns `None` if no lane has room.
    fn lane_for_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
    ) -> Result<Option<(LaneId, bool)>, FtlError> {
        let slc = self.settings.slc_frontier().expect("copies have blocks in SLC mode");
        for lane in self.layout.lanes_from(self.cursor[slc]) {
            if self.make_slc_room(cx, lane)? {
                self.cursor[slc] = self.layout.lane_after(lane);
                return Ok(Some((lane, false)));
            }
        }
        if self.settings.slc.is_some_and(|slc| slc.takes_writes) {
            return Ok(None);
        }
        let cache = self.slc.as_ref().expect("there are blocks in SLC mode");
        let oldest = |lane: &LaneId| cache.filled(*lane).front().copied();
        let mut lanes: Vec<(u32, LaneId, BlockId)> = (self.layout.lane_ids())
            .filter_map(|lane| oldest(&lane).map(|b| (self.pool.blocks.valid(b), lane, b)))
            .collect();
        lanes.sort_unstable();
        for (_, lane, block) in lanes {
            if self.fold_copies(cx, lane, block)? && self.make_slc_room(cx, lane)? {
                return Ok(Some((lane, true)));
            }
        }
        Ok(None)
    }

    /// Folds a filled block of copies. Returns `false` if the lane has no native room.
    fn fold_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        block: BlockId,
    ) -> Result<bool, FtlError> {
        let low = self.settings.low_water;
        if self.pool.free(lane) <= low {
            self.collect_to(cx, lane, low + 1)?;
        }
        if self.pool.blocks.role(block) == Role::Slc {
            if !self.collection_has_room(lane) || self.pool.free(lane) <= low {
                return Ok(false);
            }
            self.collect(cx, lane, block, Cause::Fold)?;
        }
        self.pad_copies(cx, lane)?;
        Ok(true)
    }

    /// Erases the filled blocks of a lane that hold no valid copy.
    fn erase_spent(&mut self, cx: &mut FtlContext<'_>, lane: LaneId) -> Result<(), FtlError> {
        let cache = self.slc.as_ref().expect("there are blocks in SLC mode");
        let filled: Vec<BlockId> = cache.filled(lane).iter().copied().collect();
        for block in filled {
            if self.pool.blocks.valid(block) == 0 {
                self.collect(cx, lane, block, Cause::Fold)?;
            } else if SeededBug::EraseFlushCopies.is_active()
                && cx.flash.medium.write_pointer(block) > 0
            {
                cx.flash.erase(block, Cause::Fold, &[])?;
            }
        }
        Ok(())
    }
}
