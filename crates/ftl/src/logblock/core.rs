//! The tables with the place of every page, and the operations that change them.

use super::budget::LogBudget;
use super::{Log, LogSettings, ROLE_DATA, kept};
use crate::blocks::{Blocks, Role};
use crate::free::FreePool;
use crate::sealed::ROLE_MOUNT;
use crate::superseded::Superseded;
use crate::trims::Trims;
use crate::units::read_for_copy;
use crate::{FtlContext, MapCounters, MergeCounters, MountReport};
use flashatlas_nand::{FrameState, Medium, OobRole, ProgramOrder, Unit};
use flashatlas_types::{
    BLOCK_STEPS, BlockId, Cause, FtlError, Index, LaneId, Layout, LogicalBlock, Lpn, OpId, Ppn,
    TiVec, beat, ti_vec,
};

/// The tables and the context that a log-block scheme uses during one call.
pub(crate) struct LogContext<'a, 'c> {
    /// The shared tables, and the operations that change them.
    pub core: &'a mut Core,
    /// The medium, the plan, and the command.
    pub cx: &'a mut FtlContext<'c>,
}

/// A page that the host writes.
pub(crate) struct HostPage<'a> {
    pub unit: &'a Unit,
    pub cause: Cause,
    /// The operation that transfers the page's data to the drive.
    pub arrived: OpId,
}

impl HostPage<'_> {
    pub fn lpn(&self) -> Lpn {
        self.unit.lpn
    }
}

/// The tables that the log-block schemes share, and their common steps.
pub(crate) struct Core {
    pub layout: Layout,
    /// Number of pages of a block.
    pub pages: u32,
    has_data_blocks: bool,
    any_order: bool,
    /// Newest version of each page. A real drive finds it through the block map or the log map.
    pub(super) newest: TiVec<Lpn, Ppn>,
    /// The data block of each logical block.
    pub(super) data: TiVec<LogicalBlock, Option<BlockId>>,
    /// The number of mapped pages of each logical block.
    pub(super) live: TiVec<LogicalBlock, u32>,
    /// The number of logical blocks without a data block.
    pub(super) without_data_block: u32,
    pub(super) blocks: Blocks,
    pub(super) free: FreePool,
    pub(super) logs: TiVec<BlockId, Option<Box<Log>>>,
    /// The budget for log blocks.
    pub budget: LogBudget,
    /// For each block, the operation that freed it. Programs of the block wait for this operation.
    ready: TiVec<BlockId, OpId>,
    /// Programs that superseded pages of a block. The erase of the block waits for them.
    superseded: Superseded,
    /// The trimmed pages.
    pub(super) trims: Trims,
    /// The number of blocks that neither data nor the log may use; see [`kept`].
    kept: u32,
    /// Lane in which the search for the next log block begins.
    cursor: LaneId,
    /// The reason why blocks are merged at the moment.
    pub cause: Cause,
    /// Number of host pages written.
    pub clock: u64,
    pub(super) retired: u64,
    pub(super) mount: MountReport,
    pub(super) lookups: MapCounters,
    pub merges: MergeCounters,
}

impl Core {
    /// Builds empty tables. Without data blocks, all data is in log blocks.
    pub fn new(
        settings: &LogSettings,
        layout: &Layout,
        medium: &Medium,
        has_data_blocks: bool,
    ) -> Core {
        let lbns = layout.logical_units.div_ceil(layout.frames_per_block);
        let budget = settings.log_blocks + if has_data_blocks { 0 } else { lbns };
        Core {
            pages: layout.frames_per_block,
            has_data_blocks,
            any_order: medium.rules().order == ProgramOrder::Any,
            newest: layout.per_page(Ppn::NONE),
            data: ti_vec![None; lbns.index()],
            live: ti_vec![0; lbns.index()],
            without_data_block: lbns,
            blocks: Blocks::new(layout, medium),
            free: FreePool::new(layout, settings.wear_dynamic),
            logs: layout.per_block(None),
            budget: LogBudget::new(budget),
            ready: layout.per_block(OpId::NONE),
            superseded: Superseded::new(layout),
            trims: Trims::new(layout),
            kept: kept(layout),
            cursor: LaneId::new(0),
            cause: Cause::Merge,
            clock: 0,
            retired: 0,
            mount: MountReport::new(layout),
            lookups: MapCounters::default(),
            merges: MergeCounters::default(),
            layout: layout.clone(),
        }
    }

    /// Returns the logical block of a page.
    #[inline]
    pub fn lbn(&self, lpn: Lpn) -> LogicalBlock {
        LogicalBlock::new(lpn.0 / self.pages)
    }

    /// Returns the offset of a page in its logical block.
    #[inline]
    pub fn offset(&self, lpn: Lpn) -> u32 {
        lpn.0 % self.pages
    }

    /// Returns the page at an offset of a logical block.
    #[inline]
    pub fn page_at(&self, lbn: LogicalBlock, offset: u32) -> Lpn {
        Lpn(lbn.number() * self.pages + offset)
    }

    /// Returns the number of pages of a logical block. The last logical block may be smaller.
    pub fn pages_of(&self, lbn: LogicalBlock) -> u32 {
        self.pages.min(self.layout.logical_units - self.page_at(lbn, 0).0)
    }

    /// Returns the number of mapped pages of a logical block.
    pub fn live(&self, lbn: LogicalBlock) -> u32 {
        self.live[lbn]
    }

    /// Returns whether a logical block has a data block.
    pub fn has_data_block(&self, lbn: LogicalBlock) -> bool {
        self.data[lbn].is_some()
    }

    /// Returns the log block that stores the newest version of a page, or `None` if no log block
    /// does.
    #[inline]
    pub fn log_of(&self, lpn: Lpn) -> Option<BlockId> {
        let block = self.layout.block_of(self.newest[lpn].mapped()?);
        self.logs[block].is_some().then_some(block)
    }

    /// Returns the metadata of a log block.
    ///
    /// # Panics
    /// Panics if `block` is not a log block.
    #[inline]
    pub fn log(&self, block: BlockId) -> &Log {
        self.logs[block].as_deref().expect("a log block")
    }

    /// Returns the metadata of a log block for modification.
    #[inline]
    pub(super) fn log_mut(&mut self, block: BlockId) -> &mut Log {
        self.logs[block].as_deref_mut().expect("a log block")
    }

    /// Returns the number of valid pages of a block.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.blocks.valid(block)
    }

    /// Returns `true` if one more log block may be taken. The budget must allow it, and enough
    /// erased blocks must remain to give a data block to every logical block without a data block.
    /// If a block has gone bad, one block of the reserve may be used until the log has given up a
    /// log block.
    pub fn has_slot(&self) -> bool {
        let data_blocks = if self.has_data_blocks { self.without_data_block } else { 0 };
        let lent = self.budget.deficit().min(1);
        self.budget.free_slots() > 0
            && self.free.len() + self.trims.blocks() + lent > self.kept + data_blocks
    }

    /// Returns the number of logical blocks.
    pub fn lbns(&self) -> u64 {
        self.data.len() as u64
    }

    /// Takes an erased block as a data block of `lbn`.
    pub(super) fn take_data_block(
        &mut self,
        cx: &mut FtlContext<'_>,
        lbn: LogicalBlock,
    ) -> Result<BlockId, FtlError> {
        let lane = self.layout.lane_in_turn(lbn.number());
        let role = if self.cause == Cause::Recovery { ROLE_MOUNT } else { ROLE_DATA };
        self.take(cx, lane, Role::Data, role, OpId::NONE)
    }

    /// Takes an erased block for the log, with the role that its spare areas will name.
    ///
    /// # Errors
    /// Returns an error if [`Core::has_slot`] is `false`, or if no block is free.
    pub fn take_log_block(
        &mut self,
        cx: &mut FtlContext<'_>,
        role: OobRole,
    ) -> Result<BlockId, FtlError> {
        if !self.has_slot() {
            return Err(self.no_space());
        }
        self.take_spare_block(cx, role)
    }

    /// Takes an erased block for the log while another log block is being emptied. The block may
    /// come from the reserve.
    pub fn take_spare_block(
        &mut self,
        cx: &mut FtlContext<'_>,
        role: OobRole,
    ) -> Result<BlockId, FtlError> {
        let room = self.budget.next_room();
        self.cursor = self.layout.lane_after(self.cursor);
        let block = self.take(cx, self.cursor, Role::Log, role, room)?;
        self.budget.take();
        self.logs[block] = Some(Box::new(Log::empty(role, self.clock)));
        Ok(block)
    }

    fn take(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        role: Role,
        oob: OobRole,
        slot: OpId,
    ) -> Result<BlockId, FtlError> {
        let (block, mut waits) = self.free.take(cx, lane).ok_or_else(|| self.no_space())?;
        cx.flash.open(block, oob);
        self.blocks.set_role(block, role);
        waits.extend(Some(slot).filter(|&op| cx.may_be_unfinished(op)));
        self.ready[block] = cx.flash.plan.join(self.cause.class(false), &waits);
        Ok(block)
    }

    pub fn no_space(&self) -> FtlError {
        FtlError::NoSpace {
            free_blocks: self.free.len(),
            valid_units: self.blocks.total(),
            physical_units: u64::from(self.good_blocks()) * u64::from(self.pages),
        }
    }

    /// Erases a block without valid pages, after the programs that superseded its pages are
    /// complete.
    pub(super) fn erase(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
    ) -> Result<OpId, FtlError> {
        beat(BLOCK_STEPS);
        assert!(
            self.blocks.valid(block) == 0,
            "block {block} is erased, but it holds {} valid pages",
            self.blocks.valid(block)
        );
        if self.trims.needs(block) {
            self.record_trims(cx)?;
        }
        let recorded = self.trims.unfinished_for(cx, block);
        let superseded = self.superseded.take(block, cx.command.oldest_unfinished);
        let recorded = Some(recorded).filter(|&op| cx.may_be_unfinished(op));
        let after: Vec<OpId> = superseded.chain(recorded).collect();
        self.erase_after(cx, block, &after, self.cause)
    }

    fn erase_after(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
        after: &[OpId],
        cause: Cause,
    ) -> Result<OpId, FtlError> {
        match self.free.erase(cx, &mut self.blocks, block, after, cause)? {
            Some(op) => Ok(op),
            None => {
                self.count_retired();
                Ok(cx.flash.plan.join(cause.class(false), after))
            }
        }
    }

    /// Makes trims durable. Returns the operation that a FLUSH waits for. The erase of a block with
    /// trimmed pages waits for the same operation.
    pub fn record_trims(&mut self, cx: &mut FtlContext<'_>) -> Result<OpId, FtlError> {
        let no_space = self.no_space();
        let record = self.trims.record_pending(cx, &mut self.free, &mut self.blocks, no_space)?;
        for block in record.outdated {
            self.erase_after(cx, block, &[record.written], Cause::Map)?;
        }
        Ok(self.trims.unfinished(cx))
    }

    /// Counts a block whose erase failed and which is bad from now on.
    pub(super) fn count_retired(&mut self) {
        self.retired += 1;
        self.count_deficit();
    }

    /// Counts the log blocks that the remaining good blocks cannot provide.
    pub(super) fn count_deficit(&mut self) {
        let lbns = self.data.len() as u32;
        let own = self.budget.limit() - if self.has_data_blocks { 0 } else { lbns };
        self.budget.set_deficit(own, self.good_blocks().saturating_sub(lbns + self.kept));
    }

    fn good_blocks(&self) -> u32 {
        self.layout.blocks() - self.blocks.count(Role::Bad) as u32
    }

    /// Lowers the limit again after a mount. The mount found more log blocks than the budget
    /// allows, because the power failed before a planned erase. By now it has emptied the surplus.
    pub(super) fn end_borrowing(&mut self, settings: &LogSettings) {
        let lbns = if self.has_data_blocks { 0 } else { self.data.len() as u32 };
        self.budget.end_borrowing(settings.log_blocks + lbns);
    }

    /// Erases a log block without valid pages.
    pub(super) fn erase_log(
        &mut self,
        cx: &mut FtlContext<'_>,
        log: BlockId,
    ) -> Result<(), FtlError> {
        assert!(self.logs[log].take().is_some(), "block {log} is not a log block");
        let erased = self.erase(cx, log)?;
        self.budget.release(erased);
        Ok(())
    }

    /// Makes `block` the data block of `lbn`. Its old data block is erased, because all pages of
    /// the old block are superseded.
    pub(super) fn switch_to(
        &mut self,
        cx: &mut FtlContext<'_>,
        lbn: LogicalBlock,
        block: BlockId,
    ) -> Result<(), FtlError> {
        let was_log = self.logs[block].take().is_some();
        self.blocks.set_role(block, Role::Data);
        let erased = match self.data[lbn].replace(block) {
            Some(old) => self.erase(cx, old)?,
            None => {
                self.without_data_block -= 1;
                OpId::NONE
            }
        };
        if was_log {
            self.budget.release(erased);
        }
        Ok(())
    }

    /// Advances the clock of [`Log::touched`] by one page.
    pub fn tick(&mut self) {
        self.clock += 1;
    }

    /// Writes a page to its place in the data block, if the place is erased and the program order
    /// allows it. A logical block without a data block gets a new data block. Returns `true` if the
    /// page was written.
    ///
    /// # Errors
    /// Returns an error if no block is free.
    pub fn write_in_place(
        &mut self,
        cx: &mut FtlContext<'_>,
        page: &HostPage<'_>,
    ) -> Result<bool, FtlError> {
        let (lbn, offset) = (self.lbn(page.lpn()), self.offset(page.lpn()));
        let block = match self.data[lbn] {
            Some(block) => {
                let medium = &*cx.flash.medium;
                if medium.state(self.layout.frame_in(block, offset)) != FrameState::Erased {
                    return Ok(false);
                }
                if !self.any_order && offset < medium.write_pointer(block) {
                    self.merges.order_detours += 1;
                    return Ok(false);
                }
                block
            }
            None => {
                let block = self.take_data_block(cx, lbn)?;
                self.data[lbn] = Some(block);
                self.without_data_block -= 1;
                block
            }
        };
        self.merges.in_place += 1;
        self.host_program(cx, block, offset, page)?;
        Ok(true)
    }

    /// Writes a host page to the next page of a log block.
    pub fn append(
        &mut self,
        cx: &mut FtlContext<'_>,
        log: BlockId,
        page: &HostPage<'_>,
    ) -> Result<(), FtlError> {
        let index = cx.flash.medium.write_pointer(log);
        self.host_program(cx, log, index, page)
    }

    /// Programs a host page.
    pub fn host_program(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
        index: u32,
        page: &HostPage<'_>,
    ) -> Result<(), FtlError> {
        if let Some(hit) = self.log_of(page.lpn()) {
            self.log_mut(hit).touched = self.clock;
        }
        let op = self.program(cx, block, index, page.unit, page.cause, page.arrived)?;
        cx.took_host_data(op, 1);
        if let Some(log) = self.logs[block].as_deref_mut() {
            log.touched = self.clock;
        }
        Ok(())
    }

    /// Copies the newest version of a page from `from` to page `index` of a block.
    pub(super) fn copy(
        &mut self,
        cx: &mut FtlContext<'_>,
        lpn: Lpn,
        from: Ppn,
        block: BlockId,
        index: u32,
    ) -> Result<(), FtlError> {
        let (unit, sensed) = read_for_copy(cx, from, lpn, self.cause)?;
        let begin = cx.flash.plan.next_id();
        let op = self.program(cx, block, index, &unit, self.cause, sensed)?;
        cx.copies.note((begin, op), std::iter::once((from, sensed)), cx.command.oldest_unfinished);
        Ok(())
    }

    fn program(
        &mut self,
        cx: &mut FtlContext<'_>,
        block: BlockId,
        index: u32,
        unit: &Unit,
        cause: Cause,
        after: OpId,
    ) -> Result<OpId, FtlError> {
        let frame = self.layout.frame_in(block, index);
        let ready = self.ready[block];
        let after = [after, if ready < cx.command.oldest_unfinished { OpId::NONE } else { ready }];
        let (ppn, op) = cx.flash.program(frame, std::iter::once(unit), cause, &after)?;
        let (lbn, offset) = (self.lbn(unit.lpn), self.offset(unit.lpn));
        match std::mem::replace(&mut self.newest[unit.lpn], ppn).mapped() {
            Some(old) => {
                let old = self.forget(old, lbn);
                if op != OpId::NONE {
                    self.superseded.add(old, op, cx.command.oldest_unfinished);
                }
            }
            None => self.live[lbn] += 1,
        }
        self.trims.written(unit.lpn, op);
        self.blocks.set_valid(ppn);
        if let Some(log) = self.logs[block].as_deref_mut() {
            log.program(lbn, index == offset);
            *log.lbns.entry(lbn).or_default() += 1;
        }
        Ok(op)
    }

    /// Invalidates a page of `lbn` and returns its block.
    fn forget(&mut self, ppn: Ppn, lbn: LogicalBlock) -> BlockId {
        let (block, _) = self.blocks.invalidate(ppn);
        if let Some(log) = self.logs[block].as_deref_mut() {
            let pages = log.lbns.get_mut(&lbn).expect("a valid page is associated");
            *pages -= 1;
            if *pages == 0 {
                log.lbns.remove(&lbn);
            }
        }
        block
    }

    /// Trims a page. A logical block without mapped pages loses its data block. A log block without
    /// valid pages is dead, and is erased when its turn comes.
    ///
    /// # Errors
    /// Returns an error if a record of trims cannot be written or an erase cannot be issued. A
    /// failed erase is not an error: the block goes bad.
    pub fn trim(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<(), FtlError> {
        let Some(old) = std::mem::replace(&mut self.newest[lpn], Ppn::NONE).mapped() else {
            return Ok(());
        };
        let lbn = self.lbn(lpn);
        let block = self.forget(old, lbn);
        self.trims.trimmed(lpn, block);
        self.live[lbn] -= 1;
        if self.live[lbn] == 0
            && let Some(block) = self.data[lbn].take()
        {
            self.without_data_block += 1;
            self.erase(cx, block)?;
        }
        Ok(())
    }

    /// Returns whether pages may be programmed in any order.
    pub fn any_order(&self) -> bool {
        self.any_order
    }
}
