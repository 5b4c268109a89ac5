//! The collection of a block. Its valid pages are read and copied to the frontiers of collection,
//! and the block is erased when the last copy is programmed. The erase waits for the copies of the
//! valid pages, and for the programs that superseded the other pages. So after a power cut, every
//! page has a version on flash.

use super::frontier::Pending;
use super::{GcMode, Leaving, PageMapped};
use crate::FtlContext;
use crate::blocks::Role;
use crate::maps::MapContext;
use crate::notes::RESERVE_FILLED;
use crate::units::read_or_lose;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BLOCK_STEPS, BlockId, Cause, FrontierId, FtlError, LaneId, Lpn, OpId, Ppn, SeededBug, Stamp,
    beat,
};

impl PageMapped {
    /// Copies the valid pages of `victim` to other blocks and erases it, immediately or when the
    /// last copy is programmed.
    pub(super) fn collect(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        victim: BlockId,
        cause: Cause,
    ) -> Result<(), FtlError> {
        self.begin_collection(cx, lane, victim, cause)?;
        if self.pool.blocks.valid(victim) > 0 {
            let sorts = self.map.sorts_copies();
            let (mut copies, mut index) = (Vec::new(), 0);
            while index < cx.flash.medium.write_pointer(victim) {
                if self.copyback.is_some()
                    && !sorts
                    && let Some(next) = self.copy_back(cx, lane, victim, index, cause)?
                {
                    index = next;
                    continue;
                }
                self.read_frame(cx, lane, (victim, index), cause, &mut copies)?;
                index += 1;
                if !sorts {
                    self.gather_copies(cx, lane, &mut copies)?;
                }
            }
            copies.sort_unstable_by_key(|copy| copy.unit.lpn.0);
            self.gather_copies(cx, lane, &mut copies)?;
        }
        self.end_collection(cx, lane, victim)
    }

    /// Begins the collection of `victim`. From now on its valid slots are read and moved.
    pub(super) fn begin_collection(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        victim: BlockId,
        cause: Cause,
    ) -> Result<(), FtlError> {
        beat(BLOCK_STEPS);
        let (_, local) = self.layout.in_lane(victim);
        if cause == Cause::Fold {
            self.begin_fold(victim);
        } else {
            self.lanes[lane].policy.removed(local);
            self.classifier.removed(lane, local);
            if cause != Cause::Refresh {
                self.report.collected[match cause {
                    Cause::Idle => 1,
                    Cause::Wear => 2,
                    _ => 0,
                }] += 1;
                self.report.collected_valid_units += u64::from(self.pool.blocks.valid(victim));
            }
        }
        self.pool.blocks.set_role(victim, Role::Leaving);
        let valid = self.pool.blocks.valid(victim);
        let filled = self.settings.mode == GcMode::Single && valid == self.layout.slots_per_block;
        if filled && self.report.approximations.is_empty() {
            self.report.approximations.push(RESERVE_FILLED.note());
        }
        let leaving =
            Leaving { block: victim, cause, valid, buffered: 0, read: false, after: Vec::new() };
        self.lanes[lane].leaving.push(leaving);
        if self.pool.blocks.valid(victim) == 0 {
            return Ok(());
        }
        cx.flash.medium.take_from_base(victim);
        self.pool.blocks.take_from_base(&self.layout, victim);
        self.verify(cx, victim)
    }

    /// Ends the reads of `victim`, because every valid slot was read.
    pub(super) fn end_collection(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        victim: BlockId,
    ) -> Result<(), FtlError> {
        self.lanes[lane].leaving.iter_mut().find(|l| l.block == victim).expect("just added").read =
            true;
        self.erase_left(cx, lane)
    }

    /// Prefetches the map entries of the pages in the `wanted` slots of a block, several frames
    /// together. The caller processes the frames in order, and `index` is the next frame.
    #[inline]
    pub(super) fn prefetch_entries(
        &self,
        medium: &Medium,
        block: BlockId,
        index: u32,
        wanted: impl Fn(Ppn) -> bool,
    ) {
        const TOGETHER: usize = 32;
        if index % TOGETHER as u32 > 0 {
            return;
        }
        let end = (index + TOGETHER as u32).min(medium.write_pointer(block));
        let first = self.layout.first_slot(self.layout.frame_in(block, index)).0;
        let slots = first..first + (end - index) * self.layout.slots_per_frame;
        let wanted = slots.map(Ppn).filter(|&slot| wanted(slot));
        let mut lpns = wanted.flat_map(|slot| medium.lpn(slot));
        let mut near = [Lpn::NONE; TOGETHER];
        loop {
            let count = near.iter_mut().zip(&mut lpns).map(|(place, lpn)| *place = lpn).count();
            if count == 0 {
                return;
            }
            self.map.prefetch(&near[..count]);
        }
    }

    /// Checks that the spare areas of the valid slots name the pages that the map has there. All
    /// slots are checked before the first is moved: the accesses do not depend on each other, so
    /// their cache misses overlap.
    fn verify(&self, cx: &FtlContext<'_>, victim: BlockId) -> Result<(), FtlError> {
        let medium = &*cx.flash.medium;
        let valid = |slot| self.pool.blocks.is_valid(slot);
        let mut wrong = None;
        for index in 0..medium.write_pointer(victim) {
            self.prefetch_entries(medium, victim, index, valid);
            let first = self.layout.first_slot(self.layout.frame_in(victim, index)).0;
            let slots = first..first + self.layout.slots_per_frame;
            for slot in slots.map(Ppn).filter(|&slot| valid(slot)) {
                let lpn = medium.named(slot)?;
                if lpn.0 >= self.layout.logical_units || self.map.peek(lpn) != slot {
                    wrong = Some((slot, lpn));
                }
            }
        }
        wrong.map_or(Ok(()), |(at, found)| Err(FtlError::NotMapped { at, found }))
    }

    /// Reads the valid slots of one frame in one operation, and puts them into the buffers of their
    /// streams.
    pub(super) fn move_frame(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        victim: BlockId,
        index: u32,
        cause: Cause,
    ) -> Result<(), FtlError> {
        if self.copyback.is_some() && self.copy_back(cx, lane, victim, index, cause)?.is_some() {
            return Ok(());
        }
        let mut copies = Vec::new();
        self.read_frame(cx, lane, (victim, index), cause, &mut copies)?;
        self.gather_copies(cx, lane, &mut copies)
    }

    /// Reads the valid slots of one frame in one operation and appends them to `copies`.
    pub(super) fn read_frame(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        (victim, index): (BlockId, u32),
        cause: Cause,
        copies: &mut Vec<Pending>,
    ) -> Result<(), FtlError> {
        let frame = self.layout.frame_in(victim, index);
        let first = self.layout.first_slot(frame);
        if self.steps.is_some() {
            self.finish_newer(cx, first)?;
        }
        let mut valid = self.pool.blocks.valid_mask(first, self.layout.slots_per_frame);
        if valid == 0 {
            return Ok(());
        }
        let sensed = read_or_lose(cx, frame, valid, cause)?;
        let leaving =
            self.lanes[lane].leaving.iter_mut().find(|l| l.block == victim).expect("leaving");
        leaving.buffered += valid.count_ones();
        while valid != 0 {
            let from = Ppn(first.0 + valid.trailing_zeros());
            valid &= valid - 1;
            let mut unit = cx.flash.medium.unit_or_lost(from)?;
            if SeededBug::CopyLostAsZeros.is_active() && unit.stamp == Stamp::LOST {
                unit.stamp = Stamp::ZERO;
            }
            let early = SeededBug::EraseBeforeLastCopy.is_active()
                || (SeededBug::ReclaimErasesEarly.is_active() && cause == Cause::Refresh);
            if early && self.pool.blocks.valid(victim) == 1 {
                cx.flash.erase(victim, cause, &[])?;
            }
            copies.push(Pending { unit, from, ready: sensed, cause, copied: false });
        }
        let all_read = self.pool.blocks.valid(victim) as usize == copies.len();
        if SeededBug::EraseSourceEarly.is_active() && cause == Cause::Fold && all_read {
            cx.flash.erase(victim, cause, &[])?;
        }
        Ok(())
    }

    /// Puts copies into the buffers of their streams.
    fn gather_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        copies: &mut Vec<Pending>,
    ) -> Result<(), FtlError> {
        if copies.first().is_some_and(|copy| copy.cause == Cause::Wear) {
            return self.gather_cold(cx, lane, copies);
        }
        for copy in copies.drain(..) {
            let f = self.frontier_of_copy(copy.unit.lpn);
            self.gather(cx, lane, f, copy)?;
        }
        Ok(())
    }

    /// Returns the frontier of a page that collection moves. The classifier notes the move.
    #[inline(always)] // the loop over the copies holds what it needs in registers
    pub(super) fn frontier_of_copy(&mut self, lpn: Lpn) -> FrontierId {
        let page = self.sorted_page(lpn);
        let classified = self.classifier.moved(&page);
        let stream = self.stream_of(lpn, classified, self.settings.streams.collection);
        self.settings.frontier_of_copies(stream)
    }

    /// Removes copies from a buffer if the host has since written or trimmed their page.
    pub(super) fn drop_stale_copies(&mut self, lane: LaneId, buffer: &mut Vec<Pending>) {
        let mut i = 0;
        while i < buffer.len() {
            if buffer[i].is_host() || self.pool.blocks.is_valid(buffer[i].from) {
                i += 1;
            } else {
                let gone = buffer.remove(i);
                self.left(lane, self.layout.block_of(gone.from), None);
            }
        }
    }

    /// Notes that one unit of a leaving block was programmed elsewhere by `copy`, or is no longer
    /// needed.
    #[inline]
    pub(super) fn left(&mut self, lane: LaneId, block: BlockId, copy: Option<OpId>) {
        let leaving = self.lanes[lane].leaving.iter_mut().find(|l| l.block == block);
        let leaving = leaving.expect("copies come from leaving blocks");
        leaving.buffered -= 1;
        if let Some(copy) = copy
            && leaving.after.last() != Some(&copy)
        {
            leaving.after.push(copy);
        }
    }

    /// Erases the leaving blocks whose last copy has been programmed.
    #[inline]
    pub(super) fn erase_left(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<(), FtlError> {
        while let Some(i) = self.lanes[lane].leaving.iter().position(|l| l.read && l.buffered == 0)
        {
            let mut leaving = self.lanes[lane].leaving.swap_remove(i);
            self.erase(cx, &mut leaving)?;
        }
        Ok(())
    }

    fn erase(&mut self, cx: &mut FtlContext<'_>, leaving: &mut Leaving) -> Result<(), FtlError> {
        let block = leaving.block;
        leaving.after.extend(self.superseded.take(block, cx.command.oldest_unfinished));
        if !SeededBug::EraseBeforeMap.is_active() {
            leaving
                .after
                .push(self.map.before_erase(&mut MapContext::new(cx, &mut self.pool), block)?);
        }
        leaving.after.extend(self.rely(cx)?);
        self.erased_slc(block);
        self.pool.erase(cx, block, leaving.cause, &leaving.after)?;
        if let Some(history) = &mut self.history {
            let slots = self.layout.slots_per_block;
            let gone = history.collected(block, leaving.valid, slots, self.host_units);
            self.classifier.erased(&gone);
        }
        Ok(())
    }
}
