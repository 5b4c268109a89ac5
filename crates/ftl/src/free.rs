//! The erased blocks of the drive, and the operations that a new owner of a block must wait for.

use crate::FtlContext;
use crate::blocks::{Blocks, FreeBlocks, Role};
use flashatlas_types::{BlockId, Cause, FtlError, LaneId, Layout, MediumError, OpId, TiVec};
use std::collections::VecDeque;

/// Erased blocks by lane.
///
/// Decisions run ahead of the flash: a block counts as free from the moment its erase is planned.
/// But a mount after a power cut must always find a block that is erased on the medium. The pool
/// lists one erase for each free block, oldest first. An owner that takes a block waits for the two
/// oldest erases. So the number of complete erases exceeds the number of taken blocks by at least
/// one, and at least one free block is erased on the medium.
pub(crate) struct FreePool {
    lanes: TiVec<LaneId, FreeBlocks>,
    erases: VecDeque<OpId>,
}

impl FreePool {
    pub fn new(layout: &Layout, least_worn: bool) -> FreePool {
        FreePool { lanes: layout.per_lane(FreeBlocks::new(least_worn)), erases: VecDeque::new() }
    }

    /// Adds a block that the operation `erase` erases.
    pub fn push(&mut self, lane: LaneId, block: BlockId, erases: u32, erase: OpId) {
        self.lanes[lane].push(block, erases);
        self.erases.push_back(erase);
    }

    /// Erases a block, which is then free, or bad if the erase fails. Returns the erase operation,
    /// or `Ok(None)` if the erase failed.
    ///
    /// # Errors
    /// Returns every other error of the medium.
    pub fn erase(
        &mut self,
        cx: &mut FtlContext<'_>,
        blocks: &mut Blocks,
        block: BlockId,
        after: &[OpId],
        cause: Cause,
    ) -> Result<Option<OpId>, FtlError> {
        match cx.flash.erase(block, cause, after) {
            Ok(op) => {
                blocks.set_role(block, Role::Free);
                let medium = &*cx.flash.medium;
                let lane = medium.layout().lane_of(block);
                self.push(lane, block, medium.erases(block), op);
                Ok(Some(op))
            }
            Err(MediumError::EraseFailed(_)) => {
                blocks.set_role(block, Role::Bad);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a block from lane `first`, or else from the next lane that has a free block. Returns
    /// the block and the possibly unfinished operations to wait for, or `None` if no block is free.
    pub fn take(&mut self, cx: &FtlContext<'_>, first: LaneId) -> Option<(BlockId, Vec<OpId>)> {
        let mut lanes = cx.flash.medium.layout().lanes_from(first);
        let block = lanes.find_map(|lane| self.lanes[lane].pop())?;
        let waits = [
            self.erases.pop_front().unwrap_or(OpId::NONE),
            self.erases.front().copied().unwrap_or(OpId::NONE),
        ];
        Some((block, waits.into_iter().filter(|&op| cx.may_be_unfinished(op)).collect()))
    }

    /// Returns the number of blocks in the pool.
    pub fn len(&self) -> u32 {
        self.erases.len() as u32
    }

    /// Returns the blocks, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.lanes.iter().flat_map(FreeBlocks::iter)
    }
}
