//! The SLC cache of the page-mapped FTL. Blocks in SLC mode take the writes of the host fast. Their
//! data moves to native blocks later (it is *folded*).
//!
//! Each lane has a frontier for blocks in SLC mode. Host writes go there while a lane has an open
//! block in SLC mode or may open one. Otherwise they go directly to the native frontier. A lane may
//! open two kinds of block in SLC mode:
//!
//! - *Static* blocks are the first `ftl.slc_static` blocks of the lane. They are always in SLC
//!   mode and never hold native data, so the drive exports less.
//! - *Dynamic* blocks are free blocks. A lane opens a dynamic block if it then still has more free
//!   blocks than its low-water mark. It has at most `ftl.slc_dynamic` dynamic blocks at the same
//!   time. So this part of the cache shrinks as the drive fills.
//!
//! A fold is a collection of a block in SLC mode, the oldest block first. Valid pages are copied to
//! the frontier of collection, and the block is erased when the last copy is programmed. Pages that
//! the host has overwritten or trimmed need no copy. A lane folds
//!
//! - in idle time, until `ftl.slc_keep` filled blocks are left. A lane that is down to its
//!   low-water mark collects first if the block to fold is static.
//! - under pressure: a lane that is out of free blocks folds its dynamic blocks before it collects
//!   native blocks.

use super::PageMapped;
use crate::FtlContext;
use crate::blocks::Role;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, BlockMode, Cause, FrontierId, FtlError, LaneId, Layout, SeededBug, TiVec,
};
use std::collections::VecDeque;

/// Counters of the SLC cache, in mapping units and in blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Units that the host wrote to blocks in SLC mode.
    writes: u64,
    /// Units that the host wrote to native blocks.
    direct: u64,
    /// Units that folds copied to native blocks.
    folded: u64,
    /// Units in SLC mode that became invalid: they were folded, overwritten or trimmed.
    left: u64,
    /// Blocks that folds have begun to empty.
    folds: u64,
}

/// The blocks in SLC mode.
pub(super) struct SlcCache {
    /// For each block, `true` if it was opened in SLC mode and is not erased yet.
    holds: TiVec<BlockId, bool>,
    /// The filled blocks of each lane, oldest first.
    filled: TiVec<LaneId, VecDeque<BlockId>>,
    /// The number of dynamic blocks of each lane that are not erased yet.
    dynamics: TiVec<LaneId, u32>,
    /// Valid units in SLC mode.
    held: u64,
    counters: Counters,
}

impl SlcCache {
    pub fn new(layout: &Layout) -> SlcCache {
        SlcCache {
            holds: layout.per_block(false),
            filled: layout.per_lane(VecDeque::new()),
            dynamics: layout.per_lane(0),
            held: 0,
            counters: Counters::default(),
        }
    }

    pub fn reset_counters(&mut self) {
        self.counters = Counters::default();
    }

    /// Returns the counters with their names in the run record.
    pub fn details(&self) -> [(&'static str, u64); 6] {
        let c = self.counters;
        [
            ("slc_writes", c.writes),
            ("slc_direct", c.direct),
            ("slc_folded", c.folded),
            ("slc_saved", c.left - c.folded),
            ("slc_held", self.held),
            ("slc_folds", c.folds),
        ]
    }

    /// Returns the filled blocks of a lane, oldest first.
    pub fn filled(&self, lane: LaneId) -> &VecDeque<BlockId> {
        &self.filled[lane]
    }

    /// Returns whether a block was opened in SLC mode.
    pub fn holds(&self, block: BlockId) -> bool {
        self.holds[block]
    }

    /// Notes that a slot of a block became invalid.
    #[inline]
    pub fn left(&mut self, block: BlockId) {
        if self.holds[block] {
            self.counters.left += 1;
            self.held -= 1;
        }
    }

    /// Notes the valid slots that a mount found in a block, if the block is in SLC mode.
    pub fn found(&mut self, block: BlockId, valid: u32) {
        if self.holds[block] {
            self.held += u64::from(valid);
        }
    }

    /// Notes a program of host units.
    #[inline]
    pub fn host_wrote(&mut self, units: u32, in_slc_mode: bool) {
        if in_slc_mode {
            self.counters.writes += u64::from(units);
            self.held += u64::from(units);
        } else {
            self.counters.direct += u64::from(units);
        }
    }

    /// Notes that a unit of a block was copied by a fold, if the block was in SLC mode.
    #[inline]
    pub fn copied(&mut self, block: BlockId) {
        self.counters.folded += u64::from(self.holds[block]);
    }

    /// Returns the number of valid units in SLC mode.
    pub fn held(&self) -> u64 {
        self.held
    }

    fn dynamics_mut(&mut self, lane: LaneId) -> &mut u32 {
        &mut self.dynamics[lane]
    }
}

/// Returns the mode in which a mount finds a block.
pub(super) fn mode_found(medium: &Medium, block: BlockId) -> BlockMode {
    if SeededBug::ForgetMode.is_active() { BlockMode::Native } else { medium.mode(block) }
}

impl PageMapped {
    /// Returns the mode of the blocks of a frontier.
    #[inline]
    pub(super) fn mode_of(&self, f: FrontierId) -> BlockMode {
        match self.settings.slc_frontier() {
            Some(slc) if slc == f => BlockMode::Slc,
            _ => BlockMode::Native,
        }
    }

    /// Returns the number of units that fill a frame of a frontier.
    #[inline]
    pub(super) fn frame_len(&self, f: FrontierId) -> usize {
        self.layout.slots_in(self.mode_of(f)) as usize
    }

    /// Returns the frontier for host writes that a stream sends to `f`: the SLC cache if it has
    /// room, else `f`. A frame that is being gathered is filled first.
    #[inline]
    pub(super) fn tier(&self, f: FrontierId) -> FrontierId {
        match self.settings.slc_frontier() {
            None => f,
            Some(slc) => self.tier_beside(f, slc),
        }
    }

    #[inline(never)]
    fn tier_beside(&self, f: FrontierId, slc: FrontierId) -> FrontierId {
        if self.gathering[f].is_some() || !self.settings.slc.is_some_and(|slc| slc.takes_writes) {
            return f;
        }
        let first = self.cursor[slc];
        let mut lanes = self.layout.lanes_from(first);
        let has_room = self.gathering[slc].is_some() || lanes.any(|lane| self.has_slc_room(lane));
        if has_room { slc } else { f }
    }

    /// Notes a program of host units into a frontier's block, if there is an SLC cache.
    #[cold]
    #[inline(never)]
    pub(super) fn count_host_write(&mut self, f: FrontierId, units: u32) {
        let in_slc_mode = self.mode_of(f) == BlockMode::Slc;
        if let Some(slc) = &mut self.slc {
            slc.host_wrote(units, in_slc_mode);
        }
    }

    /// Returns whether a lane has an open block in SLC mode, or may open one.
    fn has_slc_room(&self, lane: LaneId) -> bool {
        let slc = self.settings.slc_frontier().expect("there is a cache");
        self.lanes[lane].frontiers[slc].block.is_some()
            || !self.pool.listed_static(lane).is_empty()
            || self.may_open_dynamic(lane)
    }

    /// Returns whether a lane may open a free block in SLC mode. The lane then still has more free
    /// blocks than its low-water mark.
    fn may_open_dynamic(&self, lane: LaneId) -> bool {
        let (Some(settings), Some(cache)) = (&self.settings.slc, &self.slc) else { return false };
        cache.dynamics[lane] < settings.dynamics
            && self.pool.free(lane) > self.settings.low_water + 1
    }

    /// Ensures that the frontier of a lane in SLC mode has a block. Returns `false` if the lane has
    /// no room in SLC mode.
    pub(super) fn make_slc_room(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<bool, FtlError> {
        let slc = self.settings.slc_frontier().expect("there is a cache");
        if self.lanes[lane].frontiers[slc].block.is_some() {
            return Ok(true);
        }
        let block = match self.pool.take_static(lane) {
            Some(block) => block,
            None if self.may_open_dynamic(lane) => {
                self.pool.take(lane).expect("it has free blocks")
            }
            None => return Ok(false),
        };
        self.begin_frontier(cx, lane, slc, block);
        self.adopt_slc(block);
        Ok(true)
    }

    /// Notes that a block is in SLC mode.
    pub(super) fn adopt_slc(&mut self, block: BlockId) {
        let (lane, is_static) = (self.layout.lane_of(block), self.pool.is_static(block));
        let cache = self.slc.as_mut().expect("there is a cache");
        cache.holds[block] = true;
        *cache.dynamics_mut(lane) += u32::from(!is_static);
    }

    /// Closes a block in SLC mode, which waits to be folded.
    pub(super) fn close_slc(&mut self, block: BlockId) {
        self.pool.blocks.set_role(block, Role::Slc);
        let cache = self.slc.as_mut().expect("there is a cache");
        cache.filled[self.layout.lane_of(block)].push_back(block);
    }

    /// Notes that the fold of a block in SLC mode begins.
    pub(super) fn begin_fold(&mut self, block: BlockId) {
        let cache = self.slc.as_mut().expect("there is a cache");
        cache.filled[self.layout.lane_of(block)].retain(|&filled| filled != block);
        cache.counters.folds += 1;
    }

    /// Notes that a block is erased. The block may have been in SLC mode.
    pub(super) fn erased_slc(&mut self, block: BlockId) {
        let (lane, is_static) = (self.layout.lane_of(block), self.pool.is_static(block));
        let Some(cache) = &mut self.slc else { return };
        if std::mem::take(&mut cache.holds[block]) {
            *cache.dynamics_mut(lane) -= u32::from(!is_static);
        }
    }

    /// Returns the cause of the collection of a block: a fold if the block is in SLC mode.
    pub(super) fn cause_for(&self, block: BlockId) -> Cause {
        if self.pool.blocks.role(block) == Role::Slc { Cause::Fold } else { Cause::Gc }
    }

    /// Folds the oldest dynamic block of a lane, because the lane is out of free blocks. Returns
    /// `false` if the lane has no such block.
    pub(super) fn fold_under_pressure(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<bool, FtlError> {
        let Some(cache) = &self.slc else { return Ok(false) };
        let mut filled = cache.filled[lane].iter();
        let Some(&block) = filled.find(|&&block| !self.pool.is_static(block)) else {
            return Ok(false);
        };
        self.collect(cx, lane, block, Cause::Fold)?;
        Ok(true)
    }

    /// Folds the oldest filled block of each lane with more than `ftl.slc_keep` filled blocks.
    /// Returns `true` if work was done.
    pub(super) fn fold_in_idle_time(&mut self, cx: &mut FtlContext<'_>) -> Result<bool, FtlError> {
        let Some(settings) = self.settings.slc else { return Ok(false) };
        let mut worked = false;
        for lane in self.layout.lane_ids() {
            let filled = self.slc.as_ref().expect("there is a cache").filled(lane);
            let Some(&block) = filled.front().filter(|_| filled.len() > settings.keep as usize)
            else {
                continue;
            };
            let low = self.settings.low_water;
            if self.pool.is_static(block) && self.pool.free(lane) <= low {
                self.collect_to(cx, lane, low + 1)?;
                worked |= self.pool.free(lane) > low;
                continue;
            }
            if self.collection_has_room(lane) {
                self.collect(cx, lane, block, Cause::Fold)?;
                worked = true;
            }
        }
        Ok(worked)
    }
}
