//! Merges, which update data blocks and free log blocks.
//!
//! All schemes count alike, even if a scheme's paper counts differently. A *merge* brings one data
//! block up to date: a switch, a partial or a full merge. The *reclamation* of a log block is
//! counted once. Its kind is one of the same three, or `dead` if no page of the block was valid, or
//! `moved` if its valid pages were copied to another log block. Pages that were never written are
//! not copied.

use super::{Core, FoundLog, HostPage, LogContext};
use crate::FtlContext;
use crate::report::MergeClass;
use crate::sealed::seal;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, Cause, FtlError, LogicalBlock, Lpn, Ppn};
use std::ops::Range;

impl Core {
    /// Copies the newest version of every page of `lbn` to a new block. `page` replaces the old
    /// version of its page. The old data block is erased. The pages of `lbn` in log blocks become
    /// invalid.
    pub fn full_merge(
        &mut self,
        cx: &mut FtlContext<'_>,
        lbn: LogicalBlock,
        page: Option<&HostPage<'_>>,
    ) -> Result<(), FtlError> {
        let new = self.take_data_block(cx, lbn)?;
        self.fill_up(cx, lbn, new, 0..self.pages_of(lbn), page)?;
        if self.cause == Cause::Recovery {
            seal(cx, new, self.cause)?;
        }
        self.switch_to(cx, lbn, new)?;
        self.merges.merged(MergeClass::Full);
        Ok(())
    }

    /// Reclaims a log block with pages of only `lbn`, by the cheapest merge that is possible.
    /// If `page` is given, this page is written to its place in the new data block.
    pub fn merge_log(
        &mut self,
        cx: &mut FtlContext<'_>,
        log: BlockId,
        lbn: LogicalBlock,
        page: Option<&HostPage<'_>>,
    ) -> Result<MergeClass, FtlError> {
        self.count_association(log);
        let class = match page {
            None if self.valid(log) == 0 => MergeClass::Dead,
            _ => self.class_of(cx.flash.medium, log, page),
        };
        match class {
            MergeClass::Switch | MergeClass::Partial => {
                self.fill_up(cx, lbn, log, 0..self.pages_of(lbn), page)?;
                self.switch_to(cx, lbn, log)?;
                self.merges.merged(class);
            }
            _ => {
                if class == MergeClass::Full {
                    self.full_merge(cx, lbn, page)?;
                }
                self.erase_log(cx, log)?;
            }
        }
        self.merges.reclaimed(class);
        Ok(class)
    }

    /// Returns the cheapest possible merge of a log block. A switch or a partial merge turns the
    /// log block into a data block. For these merges, all its pages must belong to its owner, be
    /// the newest versions, and be at their offsets. Otherwise a full merge is needed.
    fn class_of(
        &mut self,
        medium: &Medium,
        log: BlockId,
        page: Option<&HostPage<'_>>,
    ) -> MergeClass {
        let metadata = self.log(log);
        let (lbn, next) = (metadata.owner, medium.write_pointer(log));
        if !metadata.in_place || self.valid(log) != metadata.programmed {
            return MergeClass::Full;
        }
        if metadata.programmed == self.pages_of(lbn) && page.is_none() {
            return MergeClass::Switch;
        }
        let replaced = page.map(|p| self.offset(p.lpn()));
        let stands = |offset: u32| self.log_of(self.page_at(lbn, offset)) == Some(log);
        if replaced.is_some_and(stands) {
            return MergeClass::Full;
        }
        // gaps below the write pointer can be filled only if the order of programs allows it
        let missing = |&offset: &u32| {
            replaced == Some(offset) || self.newest[self.page_at(lbn, offset)].mapped().is_some()
        };
        if !self.any_order() && (0..next).filter(missing).any(|offset| !stands(offset)) {
            self.merges.order_detours += 1;
            return MergeClass::Full;
        }
        MergeClass::Partial
    }

    /// Copies the mapped pages of `lbn` at these offsets to their offsets in `block`. If `page` is
    /// given, it is programmed in place of its old version. Pages that are already in `block` are
    /// not copied.
    pub fn fill_up(
        &mut self,
        cx: &mut FtlContext<'_>,
        lbn: LogicalBlock,
        block: BlockId,
        offsets: Range<u32>,
        page: Option<&HostPage<'_>>,
    ) -> Result<(), FtlError> {
        for offset in offsets {
            let lpn = self.page_at(lbn, offset);
            if let Some(page) = page.filter(|p| p.lpn() == lpn) {
                self.host_program(cx, block, offset, page)?;
            } else if let Some(from) = self.newest[lpn].mapped()
                && self.layout.block_of(from) != block
            {
                self.copy(cx, lpn, from, block, offset)?;
                self.merges.copies += 1;
            }
        }
        Ok(())
    }

    /// Reclaims a log block that may have pages of many logical blocks. Calls `merge` for each
    /// logical block and then erases the log block.
    pub fn reclaim(
        &mut self,
        cx: &mut FtlContext<'_>,
        log: BlockId,
        mut merge: impl FnMut(&mut LogContext<'_, '_>, LogicalBlock) -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        while !self.reclaim_step(cx, log, &mut merge)? {}
        Ok(())
    }

    /// Reclaims log blocks that a scheme cannot use, by full merges.
    pub fn reclaim_all(
        &mut self,
        cx: &mut FtlContext<'_>,
        logs: &[FoundLog],
    ) -> Result<(), FtlError> {
        logs.iter().try_for_each(|f| {
            self.reclaim(cx, f.block, |io, lbn| io.core.full_merge(io.cx, lbn, None))
        })
    }

    /// Does one step of [`Core::reclaim`]: merges the first associated logical block, or erases the
    /// log block if no logical block is left. Returns `true` if the log block was erased.
    pub fn reclaim_step(
        &mut self,
        cx: &mut FtlContext<'_>,
        log: BlockId,
        mut merge: impl FnMut(&mut LogContext<'_, '_>, LogicalBlock) -> Result<(), FtlError>,
    ) -> Result<bool, FtlError> {
        let Some(lpn) = self.first_valid(cx.flash.medium, log)? else {
            self.erase_empty(cx, log)?;
            return Ok(true);
        };
        if !std::mem::replace(&mut self.log_mut(log).leaving, true) {
            self.count_association(log);
        }
        let lbn = self.lbn(lpn);
        merge(&mut LogContext { core: self, cx }, lbn)?;
        assert!(
            !self.log(log).lbns.contains_key(&lbn),
            "the merge of logical block {lbn} left pages of this logical block in log block {log}"
        );
        Ok(false)
    }

    /// Copies the valid pages of a log block to other log blocks, and erases it. `room` returns the
    /// log block for the next page; it may reclaim other log blocks.
    pub fn move_out(
        &mut self,
        cx: &mut FtlContext<'_>,
        log: BlockId,
        mut room: impl FnMut(&mut LogContext<'_, '_>, Lpn) -> Result<BlockId, FtlError>,
    ) -> Result<(), FtlError> {
        self.count_association(log);
        let class = if self.valid(log) == 0 { MergeClass::Dead } else { MergeClass::Moved };
        self.log_mut(log).leaving = true;
        while let Some(lpn) = self.first_valid(cx.flash.medium, log)? {
            let to = room(&mut LogContext { core: self, cx }, lpn)?;
            // `room` may have merged this page out of the log block
            if self.log_of(lpn) == Some(log) {
                self.move_page(cx, lpn, to)?;
            }
        }
        self.erase_log(cx, log)?;
        self.merges.reclaimed(class);
        Ok(())
    }

    /// Copies a page to the next page of a log block.
    pub fn move_page(
        &mut self,
        cx: &mut FtlContext<'_>,
        lpn: Lpn,
        to: BlockId,
    ) -> Result<(), FtlError> {
        let from = self.newest[lpn].mapped().expect("a page to move is mapped");
        let index = cx.flash.medium.write_pointer(to);
        self.copy(cx, lpn, from, to, index)?;
        self.merges.moved_pages += 1;
        Ok(())
    }

    /// Erases a log block without a valid page. This counts as a dead merge, unless merges emptied
    /// the block.
    pub fn erase_empty(&mut self, cx: &mut FtlContext<'_>, log: BlockId) -> Result<(), FtlError> {
        let class = if self.log(log).leaving { MergeClass::Full } else { MergeClass::Dead };
        self.erase_log(cx, log)?;
        self.merges.reclaimed(class);
        Ok(())
    }

    /// Returns the valid pages of a block, in their order in the block.
    pub fn valid_pages(&self, medium: &Medium, block: BlockId) -> Result<Vec<Lpn>, FtlError> {
        let first = self.layout.block_slot(block).0;
        let slots = (first..first + self.pages).map(Ppn).filter(|&ppn| self.blocks.is_valid(ppn));
        slots.map(|ppn| Ok(medium.lpn(ppn)?)).collect()
    }

    /// Returns the valid page of a log block that was programmed first, or `Ok(None)` if no page is
    /// valid.
    fn first_valid(&self, medium: &Medium, log: BlockId) -> Result<Option<Lpn>, FtlError> {
        let first = self.blocks.first_valid(&self.layout, log);
        first.map(|ppn| medium.lpn(ppn).map_err(FtlError::from)).transpose()
    }

    fn count_association(&mut self, log: BlockId) {
        let degree = self.log(log).lbns.len() as u64;
        self.merges.associated += degree;
        self.merges.associated_max = self.merges.associated_max.max(degree);
    }
}
