//! Log blocks for sequential writes, by the rule of FAST (Lee et al., ACM TECS 6:3, 2007, section
//! 3; papers/1 section 2.1 follows it). A write of the first page of a logical block opens a log
//! block. The next page in order is appended. Any other page closes the log block.

use super::area::area_use;
use super::{Area, Core, FoundLog, HostPage, LogContext, ROLE_SEQUENTIAL};
use crate::report::{AreaUse, MergeClass};
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, FtlError, LogicalBlock, Violation};
use rustc_hash::FxHashMap;

/// Sequential log blocks. At most `budget` logical blocks have a sequential log block.
pub(crate) struct Sequential {
    pub budget: u32,
    open: FxHashMap<LogicalBlock, Open>,
    /// The number of writes so far, which serves to find the least recently written log block.
    writes: u64,
}

/// The log block of a logical block.
#[derive(Clone, Copy)]
struct Open {
    log: BlockId,
    written: u64,
}

impl Sequential {
    pub fn new(budget: u32) -> Sequential {
        Sequential { budget, open: FxHashMap::default(), writes: 0 }
    }

    /// Returns the number of log blocks in use.
    pub fn len(&self) -> u32 {
        self.open.len() as u32
    }

    /// Returns the sequential log block of a logical block, or `None` if it has none.
    pub fn of(&self, lbn: LogicalBlock) -> Option<BlockId> {
        self.open.get(&lbn).map(|o| o.log)
    }

    /// Returns whether a log block is one of the sequential log blocks.
    pub fn contains(&self, core: &Core, log: BlockId) -> bool {
        self.of(core.log(log).owner) == Some(log)
    }

    /// Returns the logical block whose log block was written least recently, or `None` if there is
    /// no log block.
    pub fn oldest(&self) -> Option<LogicalBlock> {
        self.open.iter().min_by_key(|(_, o)| o.written).map(|(&lbn, _)| lbn)
    }

    /// Writes a page to a sequential log block if FAST's rule allows it. Returns `true` if the page
    /// was written.
    ///
    /// A page out of order closes the log block of its logical block, and the merge writes the page
    /// to its place. A complete log block is closed too, but then the page is not written. (A
    /// complete log block stays open until such a page comes, or until another log block needs its
    /// room.)
    pub fn write(
        &mut self,
        io: &mut LogContext<'_, '_>,
        page: &HostPage<'_>,
    ) -> Result<bool, FtlError> {
        let (lbn, offset) = (io.core.lbn(page.lpn()), io.core.offset(page.lpn()));
        match self.of(lbn) {
            open if offset == 0 => {
                if open.is_some() {
                    self.close(io, lbn, None)?;
                }
                let log = self.start(io, lbn)?;
                self.put(io, log, page)?;
            }
            None => return Ok(false),
            Some(log) if offset == io.cx.flash.medium.write_pointer(log) => {
                self.put(io, log, page)?
            }
            Some(log) if io.core.log(log).programmed == io.core.pages_of(lbn) => {
                self.close(io, lbn, None)?;
                return Ok(false);
            }
            Some(_) => self.close(io, lbn, Some(page))?,
        }
        Ok(true)
    }

    /// Opens a log block for a logical block. If all log blocks are in use, the least recently
    /// written log block is closed.
    pub fn start(
        &mut self,
        io: &mut LogContext<'_, '_>,
        lbn: LogicalBlock,
    ) -> Result<BlockId, FtlError> {
        while self.len() >= self.budget || !io.core.has_slot() {
            let oldest = self.oldest().ok_or_else(|| io.core.no_space())?;
            self.close(io, oldest, None)?;
        }
        let log = io.core.take_log_block(io.cx, ROLE_SEQUENTIAL)?;
        self.hold(lbn, log);
        Ok(log)
    }

    fn hold(&mut self, lbn: LogicalBlock, log: BlockId) {
        self.writes += 1;
        self.open.insert(lbn, Open { log, written: self.writes });
    }

    /// Programs a page into the log block of its logical block.
    pub fn put(
        &mut self,
        io: &mut LogContext<'_, '_>,
        log: BlockId,
        page: &HostPage<'_>,
    ) -> Result<(), FtlError> {
        self.hold(io.core.lbn(page.lpn()), log);
        io.core.host_program(io.cx, log, io.core.offset(page.lpn()), page)
    }

    /// Merges the sequential log block of a logical block. If `page` is given, this page is written
    /// to its place.
    pub fn close(
        &mut self,
        io: &mut LogContext<'_, '_>,
        lbn: LogicalBlock,
        page: Option<&HostPage<'_>>,
    ) -> Result<(), FtlError> {
        let log = self.of(lbn).expect("the logical block has an open log block");
        if io.core.merge_log(io.cx, log, lbn, page)? == MergeClass::Full {
            io.core.merges.sequential_full += 1;
        }
        self.open.remove(&lbn);
        Ok(())
    }

    /// Brings a logical block up to date. If its sequential log block has a valid page, that log
    /// block is merged. Otherwise the logical block is fully merged.
    pub fn merge(
        &mut self,
        io: &mut LogContext<'_, '_>,
        lbn: LogicalBlock,
    ) -> Result<(), FtlError> {
        if let Some(log) = self.of(lbn) {
            let useful = io.core.valid(log) > 0;
            self.close(io, lbn, None)?;
            if useful {
                return Ok(());
            }
        }
        io.core.full_merge(io.cx, lbn, None)
    }

    /// Reclaims a log block of `area`. Each associated logical block is merged by
    /// [`Sequential::merge`].
    pub fn reclaim(
        &mut self,
        io: &mut LogContext<'_, '_>,
        area: &mut Area,
        victim: BlockId,
    ) -> Result<(), FtlError> {
        while !self.reclaim_step(io, area, victim)? {}
        Ok(())
    }

    /// Does one step of [`Sequential::reclaim`]: a merge, or the erase at the end. Returns `true`
    /// if the log block was erased.
    pub fn reclaim_step(
        &mut self,
        io: &mut LogContext<'_, '_>,
        area: &mut Area,
        victim: BlockId,
    ) -> Result<bool, FtlError> {
        let erased = io.core.reclaim_step(io.cx, victim, |io, lbn| self.merge(io, lbn))?;
        if erased {
            area.remove(victim);
        }
        Ok(erased)
    }

    /// Returns the block for the next page of an area that uses its log blocks in turn. If no block
    /// has room and no more may be opened, the oldest block is reclaimed.
    ///
    /// # Errors
    /// Returns an error if the log has no block left.
    pub fn room_in(
        &mut self,
        io: &mut LogContext<'_, '_>,
        area: &mut Area,
    ) -> Result<BlockId, FtlError> {
        Area::room(area, |area| area, io, |area, io| self.reclaim_oldest(io, area))
    }

    /// Lowers the budget of an area that uses its log blocks in turn by one log block.
    ///
    /// # Errors
    /// Returns the errors of [`Sequential::room_in`].
    pub fn shrink(&mut self, io: &mut LogContext<'_, '_>, area: &mut Area) -> Result<(), FtlError> {
        Area::shrink(area, |area| area, io, |area, io| self.reclaim_oldest(io, area))
    }

    /// Reclaims the oldest log block of `area` ([`Sequential::reclaim`]).
    fn reclaim_oldest(
        &mut self,
        io: &mut LogContext<'_, '_>,
        area: &mut Area,
    ) -> Result<(), FtlError> {
        let oldest = area.blocks().next().ok_or_else(|| io.core.no_space())?;
        self.reclaim(io, area, oldest)
    }

    /// Does a [`Sequential::reclaim_step`] for the oldest closed log block of `area`.
    pub fn reclaim_oldest_step(
        &mut self,
        io: &mut LogContext<'_, '_>,
        area: &mut Area,
    ) -> Result<bool, FtlError> {
        let oldest =
            area.closed(io.core, io.cx.flash.medium).next().ok_or_else(|| io.core.no_space())?;
        self.reclaim_step(io, area, oldest)
    }

    /// Adopts the log blocks that a mount found. Log blocks that cannot be continued are merged:
    /// blocks with gaps (unless `gaps` is `true`), and every block of a logical block except the
    /// newest.
    pub fn adopt(
        &mut self,
        io: &mut LogContext<'_, '_>,
        found: &mut Vec<FoundLog>,
        gaps: bool,
    ) -> Result<(), FtlError> {
        for log in FoundLog::take(found, ROLE_SEQUENTIAL) {
            let metadata = io.core.log(log.block);
            let (lbn, dense) = (
                metadata.owner,
                metadata.programmed == io.cx.flash.medium.write_pointer(log.block),
            );
            if !metadata.in_place || !(dense || gaps) {
                io.core.reclaim_all(io.cx, &[log])?;
                continue;
            }
            if self.of(lbn).is_some() {
                self.close(io, lbn, None)?;
            }
            if self.len() >= self.budget {
                let oldest = self.oldest().expect("the budget is not zero");
                self.close(io, oldest, None)?;
            }
            self.hold(lbn, log.block);
        }
        Ok(())
    }

    pub fn usage(&self, core: &Core) -> AreaUse {
        area_use("sequential", self.budget, self.open.values().map(|o| o.log), core)
    }

    /// Checks that a sequential log block holds only pages of its logical block, at their offsets.
    pub fn check(&self, core: &Core, medium: &Medium) -> Result<(), Violation> {
        Violation::unless(
            self.len() <= self.budget,
            "the sequential log keeps its budget",
            || {
                format!(
                    "the sequential log has {} blocks, but its budget is {}",
                    self.len(),
                    self.budget
                )
            },
        )?;
        for (&lbn, &Open { log, .. }) in &self.open {
            let metadata = core.log(log);
            let own = metadata.in_place && metadata.owner == lbn && medium.write_pointer(log) > 0;
            Violation::unless(
                own,
                "a sequential log block holds its logical block's pages at their offsets",
                || format!("log block {log} of logical block {lbn} has the metadata {metadata:?}"),
            )?;
        }
        Ok(())
    }
}
