//! The collection of the page-mapped FTL and its choice of blocks. Collection runs in the
//! foreground when a lane runs out of free blocks, and in idle time.

use super::frontier::Frontier;
use super::{GcMode, GcPace, PageMapped};
use crate::FtlContext;
use crate::blocks::Role;
use crate::victims::{Candidates, FRUITLESS_MAX};
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, Cause, FrontierId, FtlError, LaneId, PartFault};

impl PageMapped {
    /// Ensures that the host frontier `f` of a lane has room for a frame. Returns `false` if the
    /// lane is full of valid data.
    pub(super) fn make_room(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
    ) -> Result<bool, FtlError> {
        if self.lanes[lane].frontiers[f].block.is_some() {
            if self.settings.mode == GcMode::Single && self.pool.free(lane) == 0 {
                self.restore_reserve(cx, lane, f)?;
            }
            if self.lanes[lane].frontiers[f].block.is_some() {
                return Ok(true);
            }
        }
        match self.settings.mode {
            GcMode::Single => self.make_room_single(cx, lane, f),
            GcMode::Dual => {
                // one block becomes the frontier, and the remaining free blocks must not fall below
                // the low-water mark
                if self.pool.free(lane) + self.about_to_be_free(lane) <= self.settings.low_water {
                    self.collect_to(cx, lane, self.settings.low_water + 1)?;
                    if self.settings.gc_parallel && self.settings.pace != GcPace::Paced {
                        self.collect_beside(cx, lane)?;
                    }
                }
                self.level_wear(cx, lane)?;
                // collection needs as many free blocks as it has frontiers; the host may use the
                // others
                if self.pool.free(lane) <= self.settings.streams.collection {
                    return Ok(false);
                }
                self.open(cx, lane, f)?;
                Ok(true)
            }
        }
    }

    /// Makes room in single mode. The reserved block becomes the frontier, the survivors of a
    /// victim become its first pages, and the victim becomes the new reserved block.
    fn make_room_single(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
    ) -> Result<bool, FtlError> {
        // at least one of FRUITLESS_MAX + 1 collections frees a slot, and at most a block of free
        // slots is needed to make room for a frame
        for _ in 0..=u64::from(self.layout.slots_per_block) * u64::from(FRUITLESS_MAX + 1) {
            if self.lanes[lane].frontiers[f].block.is_some() {
                return Ok(true);
            }
            let free = self.pool.free(lane);
            // the power failed when the victim's pages had filled the reserved block, but the
            // victim was not erased yet
            if free == 0
                && let Some(spent) = self.emptiest(lane).filter(|&b| self.pool.blocks.valid(b) == 0)
            {
                self.collect(cx, lane, spent, Cause::Gc)?;
                continue;
            }
            match free {
                // a failed erase has removed the reserved block: a block reserved for map pages
                // replaces it until the victim is erased
                0 => {
                    let waiting = self.lanes[lane].frontiers[f].buffer.len() as u32;
                    let most = self.layout.slots_per_block - 1 - waiting;
                    let Some(victim) = self.pick_that_fits(cx.flash.medium, lane, most) else {
                        return Ok(false);
                    };
                    let Some(block) = self.pool.borrow_from_map(lane) else { return Ok(false) };
                    self.begin_frontier(cx, lane, f, block);
                    self.collect(cx, lane, victim, Cause::Gc)?;
                }
                1 => {
                    let Some(victim) = self.pick(cx.flash.medium, lane, u32::MAX) else {
                        return Ok(false);
                    };
                    self.open(cx, lane, f)?;
                    self.collect(cx, lane, victim, Cause::Gc)?;
                }
                _ => self.open(cx, lane, f)?,
            }
        }
        Ok(false)
    }

    /// Collects a victim whose survivors fit into the rest of the frontier, if there is such a
    /// victim. This restores the reserved block of single mode after a failed erase has removed it.
    fn restore_reserve(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
    ) -> Result<(), FtlError> {
        let frontier = &self.lanes[lane].frontiers[f];
        let frames = self.layout.frames_per_block - frontier.next;
        let room =
            (frames * self.layout.slots_per_frame).saturating_sub(frontier.buffer.len() as u32);
        if let Some(victim) = self.pick_that_fits(cx.flash.medium, lane, room) {
            self.collect(cx, lane, victim, Cause::Gc)?;
        }
        Ok(())
    }

    /// Collects until the lane has `target` free blocks, or until no more can be freed.
    pub(super) fn collect_to(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        target: u32,
    ) -> Result<(), FtlError> {
        self.finish_sweep(cx, lane)?;
        // One pass over all blocks gathers every invalid slot. A second pass gathers the slots that
        // padding of the first pass left invalid.
        let mut fruitful = 2 * self.layout.blocks_per_lane;
        let mut fruitless = fruitful * FRUITLESS_MAX;
        while fruitful > 0 && fruitless > 0 {
            self.level_wear(cx, lane)?;
            if self.pool.free(lane) >= target {
                return Ok(());
            }
            if !self.collection_has_room(lane) {
                self.pad_copies(cx, lane)?;
            }
            if self.slc.is_some()
                && self.collection_has_room(lane)
                && self.fold_under_pressure(cx, lane)?
            {
                fruitful -= 1;
                continue;
            }
            let victim = if self.collection_has_room(lane) {
                self.pick(cx.flash.medium, lane, u32::MAX)
            } else {
                self.least_valid(lane)
            };
            let Some(victim) = victim else { break };
            if self.pool.blocks.valid(victim) < self.layout.slots_per_block {
                fruitful -= 1
            } else {
                fruitless -= 1
            }
            if self.rests(cx.flash.medium, lane, victim) {
                continue;
            }
            self.collect(cx, lane, victim, self.cause_for(victim))?;
        }
        self.pad_copies(cx, lane)
    }

    /// Collects until the survivors of any victim fit, or until no more can be freed.
    pub(super) fn make_room_for_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<(), FtlError> {
        self.collect_to(cx, lane, self.settings.low_water + 1)
    }

    /// Pads and programs frames with copies that wait for more units. These copies delay the erase
    /// of their old blocks, and the lane has no free block left.
    pub(super) fn pad_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<(), FtlError> {
        let first = self.settings.first_of_collection();
        for f in self.lanes[lane].frontiers.keys().filter(|&f| f >= first) {
            let frontier = &self.lanes[lane].frontiers[f];
            if !frontier.buffer.is_empty() && (frontier.block.is_some() || self.pool.free(lane) > 0)
            {
                self.program(cx, lane, f, true)?;
            }
        }
        if self.steps.is_some() { self.finish_copies(cx, lane) } else { Ok(()) }
    }

    /// Returns the frontiers of collection in dual mode.
    pub(super) fn frontiers_of_collection(&self, lane: LaneId) -> &[Frontier] {
        let (first, cold) = (self.settings.first_of_collection(), self.settings.cold_frontier());
        &self.lanes[lane].frontiers[first..cold].raw
    }

    /// Returns `true` if the survivors of any victim fit. Each frontier of collection may need a
    /// block.
    pub(super) fn collection_has_room(&self, lane: LaneId) -> bool {
        let frontiers = self.frontiers_of_collection(lane);
        let needed = frontiers.iter().filter(|f| f.block.is_none()).count() as u32;
        let free = self.pool.free(lane);
        free > 0 && free >= needed
    }

    /// Returns the closed block with the fewest valid slots, if its valid slots fit into the open
    /// frontiers of collection. Otherwise returns `None`.
    ///
    /// This is needed after a power failure in which collection had filled the last free block and
    /// had not yet erased the victim.
    fn least_valid(&self, lane: LaneId) -> Option<BlockId> {
        let frontiers = self.frontiers_of_collection(lane);
        let room = |f: &Frontier| match f.block {
            Some(_) => {
                (self.layout.frames_per_block - f.next) * self.layout.slots_per_frame
                    - f.buffer.len() as u32
            }
            None => 0,
        };
        let room = frontiers.iter().map(room).min().unwrap_or(0);
        self.emptiest(lane).filter(|&b| self.pool.blocks.valid(b) <= room)
    }

    /// Returns the closed block with the fewest valid slots, or `None` if no block is closed. A
    /// dynamic block of an SLC cache counts as closed.
    fn emptiest(&self, lane: LaneId) -> Option<BlockId> {
        let blocks = self.layout.lane_blocks(lane);
        let closed = blocks.filter(|&b| match self.pool.blocks.role(b) {
            Role::Closed => true,
            Role::Slc => !self.pool.is_static(b),
            _ => false,
        });
        closed.min_by_key(|&b| self.pool.blocks.valid(b))
    }

    /// Returns the policy's victim. If the victim has more than `most` valid slots, there is no
    /// room for them, and the emptiest closed block is returned instead. Returns `None` if neither
    /// fits.
    fn pick_that_fits(&mut self, medium: &Medium, lane: LaneId, most: u32) -> Option<BlockId> {
        self.pick(medium, lane, most).or_else(|| {
            self.emptiest(lane).filter(|&b| {
                let valid = self.pool.blocks.valid(b);
                valid <= most && valid < self.layout.slots_per_block
            })
        })
    }

    /// Collects a block in each other lane that is down to the low-water mark, in parallel. A
    /// dynamic block of an SLC cache is folded first, as under the lane's own pressure.
    fn collect_beside(&mut self, cx: &mut FtlContext<'_>, lane: LaneId) -> Result<(), FtlError> {
        for other in self.layout.lane_ids().filter(|&l| l != lane) {
            if self.pool.free(other) > self.settings.low_water
                || self.finish_sweep(cx, other)?
                || !self.collection_has_room(other)
                || (self.slc.is_some() && self.fold_under_pressure(cx, other)?)
            {
                continue;
            }
            if let Some(victim) = self.pick(cx.flash.medium, other, u32::MAX)
                && !self.rests(cx.flash.medium, other, victim)
            {
                self.collect(cx, other, victim, Cause::Gc)?;
            }
        }
        Ok(())
    }

    /// Does one round of collection in idle time: collects a victim in each lane with too few free
    /// blocks. Returns `true` if work was done.
    pub(super) fn collect_in_idle_time(
        &mut self,
        cx: &mut FtlContext<'_>,
    ) -> Result<bool, FtlError> {
        let mut worked = false;
        if self.settings.mode == GcMode::Single {
            return Ok(false);
        }
        for lane in self.layout.lane_ids() {
            if self.pool.free(lane) >= self.settings.idle_free {
                continue;
            }
            if self.finish_sweep(cx, lane)? {
                worked = true;
            } else if self.collection_has_room(lane)
                && let Some(victim) = self.pick(cx.flash.medium, lane, self.settings.idle_valid)
            {
                self.collect(cx, lane, victim, Cause::Idle)?;
                worked = true;
            }
        }
        Ok(worked)
    }

    /// Returns the policy's victim, or `None` if it has more than `most` valid slots.
    pub(super) fn pick(&mut self, medium: &Medium, lane: LaneId, most: u32) -> Option<BlockId> {
        let candidates = Candidates {
            valid: self.pool.blocks.valid_of(&self.layout, lane),
            slots: self.layout.slots_per_block,
            erases: self.layout.part_of(lane, medium.erase_counts()),
            at: self.at,
        };
        let (by, local) = match self.classifier.pick(lane, &candidates) {
            Some(local) => (("classifier", self.settings.classifier), local),
            None => {
                let local = self.lanes[lane].policy.pick(&candidates)?;
                (("victim policy", self.settings.victim), local)
            }
        };
        let (blocks, block) = (self.layout.blocks_per_lane, self.layout.block_in(lane, local));
        if local.number() >= blocks || self.pool.blocks.role(block) != Role::Closed {
            let what = match candidates.valid.get(local) {
                None => format!("the lane has blocks 0 to {}", blocks - 1),
                Some(_) => format!("block {local} is {}", self.pool.blocks.role(block).name()),
            };
            PartFault::raise(
                format!("{} `{}`", by.0, by.1),
                format!("picked block {local} of lane {lane}, which is not a closed block; {what}"),
            );
        }
        (self.pool.blocks.valid(block) <= most).then_some(block)
    }
}
