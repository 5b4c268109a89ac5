//! The mount of a log-block scheme. It builds the scheme's tables from the spare areas.
//!
//! The newest version of a page is the version programmed last. Copies are programmed after their
//! originals, so a merge that a power cut interrupts leaves pages in two blocks and loses none. A
//! mount takes these steps, in order:
//!
//! 1. A data block that an interrupted mount was making is erased ([`crate::sealed`]). Records of
//!    trims are erased except the newest complete record ([`crate::trims`]). A copy of a page that
//!    the newest record names is skipped if the copy is older than the record.
//! 2. Blocks without valid pages are erased.
//! 3. If a logical block has no data block, the oldest log block becomes its data block. This log
//!    block must have been opened for the logical block, and have its pages at their offsets. A log
//!    block is opened only for a logical block that has a data block, so this log block was
//!    switched before the cut.
//! 4. A logical block with two data blocks (after an interrupted merge) is merged into a new data
//!    block.
//! 5. Log blocks above the budget are reclaimed, oldest first. The scheme adopts the remaining log
//!    blocks.

use super::Log;
use super::{Core, LogSettings, ROLE_DATA, ROLE_GROUP, ROLE_SEQUENTIAL};
use crate::FtlContext;
use crate::blocks::Role;
use crate::sealed::{ROLE_MOUNT, leftovers};
use flashatlas_nand::{FrameState, OobRole};
use flashatlas_types::{BlockId, Cause, FtlError, LogicalBlock, MediumError, OpId};
use std::collections::BTreeMap;

/// A data block that a mount found, and its logical block.
type DataBlockOf = (LogicalBlock, BlockId);

/// A log block that a mount found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundLog {
    pub block: BlockId,
    pub role: OobRole,
    /// The number of the first program in the block.
    pub opened: u64,
}

impl FoundLog {
    /// Removes the log blocks of one role from `found` and returns them, oldest first.
    pub fn take(found: &mut Vec<FoundLog>, role: OobRole) -> Vec<FoundLog> {
        let (taken, others) = std::mem::take(found).into_iter().partition(|f| f.role == role);
        *found = others;
        taken
    }
}

impl Core {
    /// Builds the tables from the medium. Returns them and the log blocks, oldest first.
    pub fn mount(
        settings: &LogSettings,
        cx: &mut FtlContext<'_>,
        has_data_blocks: bool,
    ) -> Result<(Core, Vec<FoundLog>), FtlError> {
        let layout = cx.flash.medium.layout().clone();
        let mut core = Core::new(settings, &layout, cx.flash.medium, has_data_blocks);
        core.cause = Cause::Recovery;
        core.mount.count_unreadable(cx.flash.medium);
        core.discard_leftovers(cx)?;
        let (mut data, mut found) = core.scan(cx)?;
        for block in layout.block_ids() {
            if matches!(core.blocks.role(block), Role::Data | Role::Log)
                && core.blocks.valid(block) == 0
            {
                core.erase(cx, block)?;
            }
        }
        data.retain(|&(_, block)| core.blocks.role(block) == Role::Data);
        found.retain(|f| core.blocks.role(f.block) == Role::Log);
        core.enter_logs(cx, &found)?;
        core.settle_data_blocks(cx, data, &mut found)?;
        if !has_data_blocks {
            core.budget.borrow();
        }
        while core.budget.in_use() > core.budget.limit() {
            let oldest = found.remove(0);
            core.reclaim_all(cx, &[oldest])?;
        }
        core.budget.fit_slots();
        Ok((core, found))
    }

    /// Reads every spare area to find the newest version of each page. Returns the data blocks with
    /// their logical blocks, and the log blocks.
    fn scan(
        &mut self,
        cx: &mut FtlContext<'_>,
    ) -> Result<(Vec<DataBlockOf>, Vec<FoundLog>), FtlError> {
        let (mut data, mut found) = (Vec::new(), Vec::new());
        let medium = &*cx.flash.medium;
        for block in self.layout.block_ids().filter(|&b| !medium.is_bad(b)) {
            let written = medium.write_pointer(block);
            // the first page shows the block's role, or that the block is erased; the last page is
            // read twice (SchemeDef::mount)
            self.mount.read_spare_areas(
                &self.layout,
                block,
                if written == 0 { 1 } else { written + 1 },
            );
            if written == 0 {
                self.free.push(self.layout.lane_of(block), block, medium.erases(block), OpId::NONE);
                continue;
            }
            if self.trims.has_block(block) {
                self.blocks.set_role(block, Role::Map);
                continue;
            }
            let role = medium.oob_role(block);
            let is_data = matches!(role, ROLE_DATA | ROLE_MOUNT);
            self.blocks.set_role(block, if is_data { Role::Data } else { Role::Log });
            let (mut data_block, mut opened) = (None, u64::MAX);
            for index in 0..written {
                let frame = self.layout.frame_in(block, index);
                let Ok(sequence) = medium.frame_sequence(frame) else { continue };
                opened = opened.min(sequence);
                let ppn = self.layout.first_slot(frame);
                let lpn = medium.lpn(ppn)?;
                if lpn.0 >= self.layout.logical_units {
                    continue;
                }
                let lbn = self.lbn(lpn);
                let believed = !is_data
                    || (self.offset(lpn) == index && *data_block.get_or_insert(lbn) == lbn);
                if !believed {
                    continue; // no page of a data block: a damaged medium
                }
                if self.trims.is_dead(lpn, sequence) {
                    continue;
                }
                let newest = &mut self.newest[lpn];
                self.live[lbn] += u32::from(newest.mapped().is_none());
                if self.blocks.supersede(medium, newest.mapped(), ppn, sequence)? {
                    *newest = ppn;
                }
            }
            match data_block {
                Some(lbn) => data.push((lbn, block)),
                None if !is_data => found.push(FoundLog { block, role, opened }),
                None => {}
            }
        }
        found.sort_unstable_by_key(|f| f.opened);
        self.trims.mounted(&self.newest);
        Ok((data, found))
    }

    /// Erases data blocks that an interrupted mount was making, and all blocks of trim records
    /// except the blocks of the newest record.
    fn discard_leftovers(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        for block in leftovers(cx.flash.medium, &mut self.trims, &mut self.mount) {
            match cx.flash.erase(block, self.cause, &[]) {
                Err(MediumError::EraseFailed(_)) => {
                    self.blocks.set_role(block, Role::Bad);
                    self.count_retired();
                }
                erased => drop(erased?),
            }
        }
        Ok(())
    }

    /// Builds the metadata of the log blocks.
    fn enter_logs(&mut self, cx: &FtlContext<'_>, found: &[FoundLog]) -> Result<(), FtlError> {
        let medium = &*cx.flash.medium;
        for (age, log) in found.iter().enumerate() {
            let mut metadata = Log::empty(log.role, age as u64);
            for index in 0..medium.write_pointer(log.block) {
                let frame = self.layout.frame_in(log.block, index);
                let ppn = self.layout.first_slot(frame);
                if medium.state(frame) == FrameState::Erased {
                    continue; // skipped
                }
                let Some(lpn) = medium.lpn(ppn).ok().filter(|l| l.0 < self.layout.logical_units)
                else {
                    metadata.in_place = false; // torn: no page can be programmed at this offset
                    continue;
                };
                let lbn = self.lbn(lpn);
                metadata.program(lbn, self.offset(lpn) == index);
                if self.newest[lpn] == ppn {
                    *metadata.lbns.entry(lbn).or_default() += 1;
                }
            }
            self.logs[log.block] = Some(Box::new(metadata));
            self.budget.found();
        }
        self.clock = found.len() as u64;
        Ok(())
    }

    fn settle_data_blocks(
        &mut self,
        cx: &mut FtlContext<'_>,
        data: Vec<DataBlockOf>,
        found: &mut Vec<FoundLog>,
    ) -> Result<(), FtlError> {
        let mut twice: BTreeMap<LogicalBlock, Vec<BlockId>> = BTreeMap::new();
        for (lbn, block) in data {
            match self.data[lbn] {
                None => {
                    self.data[lbn] = Some(block);
                    self.without_data_block -= 1;
                }
                Some(_) => twice.entry(lbn).or_default().push(block),
            }
        }
        found.retain(|f| {
            let metadata = self.log(f.block);
            let lbn = metadata.owner;
            let switched = matches!(f.role, ROLE_SEQUENTIAL | ROLE_GROUP) && metadata.in_place;
            if !switched || self.data[lbn].is_some() {
                return true;
            }
            self.data[lbn] = Some(f.block);
            self.without_data_block -= 1;
            self.blocks.set_role(f.block, Role::Data);
            self.logs[f.block] = None;
            self.budget.release(OpId::NONE);
            false
        });
        for (lbn, others) in twice {
            self.full_merge(cx, lbn, None)?;
            for block in others {
                self.erase(cx, block)?;
            }
        }
        Ok(())
    }
}
