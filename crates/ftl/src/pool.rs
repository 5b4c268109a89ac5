//! The blocks of a page-mapped drive: their roles, the free blocks, and the number of free blocks
//! that are reserved for map pages.
//!
//! Data and map pages use the same free blocks, so that both wear them. Each lane reserves a quota
//! of its blocks for map pages. Blocks of the quota that map pages have not taken yet do not count
//! as free for data. So a write of a map page never has to wait for the collection of data, and a
//! write of data never has to wait for the collection of map pages.

use crate::FtlContext;
use crate::blocks::{Blocks, FreeBlocks, Role};
use crate::in_flight::InFlight;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, Cause, FtlError, LaneId, Layout, MediumError, OpId, Param, SeededBug, Text, TiVec,
};

/// The parameter `ftl.gc_pace`: the time at which collection moves the pages of a victim. Map
/// stores read it too.
pub(crate) const GC_PACE: Param<Text> = Param::choice(
    "ftl.gc_pace",
    &["burst", "even", "paced"],
    "dual mode, pace of collection: a lane without free blocks collects whole victims before the \
     write that needs a block (`burst`); a lane moves a part of a victim with each frame that the \
     host fills (`even`, partial collection); or it moves at most ftl.gc_step frames at a time, so \
     that its room stays constant, and the map knows the moves before they are written (`paced`)",
)
.or("burst");

/// Blocks that are reserved for map pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapQuota {
    /// The number of blocks in each of these lanes.
    pub blocks: u32,
    /// The number of lanes that store map pages, counted from the first lane.
    pub lanes: u32,
}

/// Blocks by role, free blocks by lane, and programs of data that map pages may have to wait for.
pub struct Pool {
    /// The roles and the valid slots.
    pub blocks: Blocks,
    layout: Layout,
    free: TiVec<LaneId, FreeBlocks>,
    /// The number of blocks at the start of each lane that are always in SLC mode. `free_statics`
    /// has the free blocks among them.
    statics: u32,
    free_statics: TiVec<LaneId, FreeBlocks>,
    /// Blocks that map pages may use.
    map_quota: MapQuota,
    /// The number of blocks of each lane that map pages use.
    map_blocks: TiVec<LaneId, u32>,
    /// The number of the last program up to which every change is in the map.
    pub settled: u64,
    /// Programs of host data and of copies.
    in_flight: InFlight,
    /// The number of blocks that went bad.
    pub retired: u64,
}

impl Pool {
    /// Returns the pool of all good blocks of the drive. None of them is listed as free yet.
    pub fn new(layout: &Layout, medium: &Medium, least_worn: bool, map_quota: MapQuota) -> Pool {
        Pool {
            blocks: Blocks::new(layout, medium),
            layout: layout.clone(),
            free: layout.per_lane(FreeBlocks::new(least_worn)),
            statics: 0,
            free_statics: layout.per_lane(FreeBlocks::new(least_worn)),
            map_quota,
            map_blocks: layout.per_lane(0),
            settled: medium.sequence(),
            in_flight: InFlight::default(),
            retired: 0,
        }
    }

    /// Reserves the first blocks of each lane for an SLC cache.
    pub fn with_statics(mut self, statics: u32) -> Pool {
        self.statics = statics;
        self
    }

    /// Returns whether a block is always in SLC mode.
    #[inline]
    pub fn is_static(&self, block: BlockId) -> bool {
        self.statics > 0 && self.layout.in_lane(block).1.number() < self.statics
    }

    /// Returns the free blocks of a lane that are always in SLC mode.
    pub fn listed_static(&self, lane: LaneId) -> &FreeBlocks {
        &self.free_statics[lane]
    }

    /// Takes a free block that is always in SLC mode, or returns `None` if no such block of the
    /// lane is free.
    pub fn take_static(&mut self, lane: LaneId) -> Option<BlockId> {
        let block = self.free_statics[lane].pop()?;
        self.blocks.set_role(block, Role::Open);
        Some(block)
    }

    /// Returns the layout of the drive.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Adds an erased block to the free blocks of its lane.
    pub fn put(&mut self, medium: &Medium, block: BlockId) {
        self.blocks.set_role(block, Role::Free);
        let lane = self.layout.lane_of(block);
        let free = if self.is_static(block) { &mut self.free_statics } else { &mut self.free };
        free[lane].push(block, medium.wear(block));
    }

    /// Returns the number of blocks of a lane's quota that map pages do not use yet.
    #[inline]
    fn owed_to_map(&self, lane: LaneId) -> u32 {
        let quota = if lane.number() < self.map_quota.lanes { self.map_quota.blocks } else { 0 };
        quota.saturating_sub(self.map_blocks[lane])
    }

    /// Returns the number of free blocks of a lane that data may take.
    #[inline]
    pub fn free(&self, lane: LaneId) -> u32 {
        let kept = self.owed_to_map(lane);
        self.free[lane].len().saturating_sub(kept)
    }

    /// Returns the free blocks of a lane, including those that are reserved for map pages.
    pub fn listed(&self, lane: LaneId) -> &FreeBlocks {
        &self.free[lane]
    }

    /// Takes a free block for data, or returns `None` if no free block is left for data.
    pub fn take(&mut self, lane: LaneId) -> Option<BlockId> {
        if self.free(lane) == 0 {
            return None;
        }
        self.borrow_from_map(lane)
    }

    /// Takes a free block for data, even if it is reserved for map pages. Returns `None` if the
    /// lane has no free block. The data that is written there must free another block.
    pub fn borrow_from_map(&mut self, lane: LaneId) -> Option<BlockId> {
        let block = self.free[lane].pop()?;
        self.blocks.set_role(block, Role::Open);
        Some(block)
    }

    /// Takes the free block with the most erases for data that frees another block. If several
    /// blocks have the most erases, takes the block with the largest number. Returns `None` if the
    /// lane has no free block.
    pub fn take_most_worn(&mut self, medium: &Medium, lane: LaneId) -> Option<BlockId> {
        let free = &mut self.free[lane];
        let block = free.iter().max_by_key(|&block| (medium.wear(block), block))?;
        free.remove(block);
        self.blocks.set_role(block, Role::Open);
        Some(block)
    }

    /// Returns the number of blocks that map pages may still take in a lane.
    pub fn free_for_map(&self, lane: LaneId) -> u32 {
        self.owed_to_map(lane).min(self.free[lane].len())
    }

    /// Takes a free block for map pages, or returns `None` if their quota is used up or the lane
    /// has no free block.
    pub fn take_for_map(&mut self, lane: LaneId) -> Option<BlockId> {
        if self.free_for_map(lane) == 0 {
            return None;
        }
        let block = self.free[lane].pop()?;
        self.adopt_for_map(block);
        Some(block)
    }

    /// Takes a free block for map pages above their quota, until a block of map pages is erased.
    /// Returns `None` if the lane has no free block.
    pub fn borrow_for_map(&mut self, lane: LaneId) -> Option<BlockId> {
        let block = self.free[lane].pop()?;
        self.adopt_for_map(block);
        Some(block)
    }

    /// Adopts a block of map pages that a mount found.
    pub fn adopt_for_map(&mut self, block: BlockId) {
        self.blocks.set_role(block, Role::Map);
        self.map_blocks[self.layout.lane_of(block)] += 1;
    }

    /// Erases a block without valid slots, which is then free or bad. Returns the erase.
    ///
    /// # Errors
    /// Returns an error if the power fails.
    ///
    /// # Panics
    /// Panics if a slot of the block is valid.
    pub fn erase(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
        cause: Cause,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        assert!(
            self.blocks.valid(block) == 0,
            "block {block} is erased, but it holds {} valid slots",
            self.blocks.valid(block)
        );
        self.blocks.take_from_base(&self.layout, block);
        let was_map = self.blocks.role(block) == Role::Map;
        let erased = match cx.flash.erase(block, cause, after) {
            Ok(op) => {
                self.put(cx.flash.medium, block);
                op
            }
            Err(MediumError::EraseFailed(_)) if SeededBug::ReuseBadBlock.is_active() => {
                self.put(cx.flash.medium, block);
                OpId::NONE
            }
            Err(MediumError::EraseFailed(_)) => {
                self.blocks.set_role(block, Role::Bad);
                self.retired += 1;
                OpId::NONE
            }
            Err(error) => return Err(error.into()),
        };
        self.map_blocks[self.layout.lane_of(block)] -= u32::from(was_map);
        Ok(erased)
    }

    /// Notes a program that wrote data to flash, if the drive has map pages that may wait for it.
    #[inline]
    pub fn programmed(&mut self, cx: &mut FtlContext<'_>, op: OpId) {
        if self.map_quota.blocks > 0 {
            self.in_flight.push(cx.flash.plan, cx.command.oldest_unfinished, op);
        }
    }

    /// Returns operations that are all complete once all programs of data up to `newest` are
    /// complete.
    pub fn unfinished(&self, newest: OpId) -> impl Iterator<Item = OpId> + '_ {
        self.in_flight.up_to(newest)
    }

    /// Returns the error of a drive that has no room.
    pub fn no_space(&self) -> FtlError {
        let blocks = self.layout.block_ids();
        let good = blocks.filter(|&block| self.blocks.role(block) != Role::Bad).count() as u64;
        FtlError::NoSpace {
            free_blocks: self.free.iter().map(FreeBlocks::len).sum(),
            valid_units: self.blocks.total(),
            physical_units: good * u64::from(self.layout.slots_per_block),
        }
    }
}
