//! An area of the log: blocks that store pages of one kind and are filled one after another.

use super::{Core, FoundLog, LogContext};
use crate::report::AreaUse;
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{BlockId, FtlError, Violation};
use std::collections::VecDeque;

/// Log blocks of one kind, in the order in which they were opened.
pub(crate) struct Area {
    pub name: &'static str,
    role: OobRole,
    /// The number of log blocks that the area may have.
    pub budget: u32,
    blocks: VecDeque<BlockId>,
    /// The block that receives the next page, while it has room.
    frontier: Option<BlockId>,
}

impl Area {
    pub fn new(name: &'static str, role: OobRole, budget: u32) -> Area {
        Area { name, role, budget, blocks: VecDeque::new(), frontier: None }
    }

    /// Returns the number of log blocks of the area.
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the area's blocks, oldest first.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = BlockId> + '_ {
        self.blocks.iter().copied()
    }

    /// Returns the area's blocks that accept no more pages, oldest first.
    pub fn closed<'a>(
        &'a self,
        core: &'a Core,
        medium: &'a Medium,
    ) -> impl Iterator<Item = BlockId> + 'a {
        self.blocks().filter(move |&b| Some(b) != self.frontier(core, medium))
    }

    /// Returns whether a log block belongs to the area.
    #[inline]
    pub fn contains(&self, core: &Core, log: BlockId) -> bool {
        core.log(log).role == self.role
    }

    /// Returns the least recently used closed block, or `None` if no block is closed. A block is
    /// used when the host writes to it or updates one of its pages.
    pub fn least_recent(&self, core: &Core, medium: &Medium) -> Option<BlockId> {
        self.closed(core, medium).min_by_key(|&b| core.log(b).touched)
    }

    /// Returns the closed block whose reclamation has begun, or `None` if no reclamation has begun.
    pub fn begun(&self, core: &Core, medium: &Medium) -> Option<BlockId> {
        self.closed(core, medium).find(|&b| core.log(b).leaving)
    }

    /// Returns `true` if the area may open fewer than `ready` blocks and has a closed block that
    /// can be reclaimed.
    pub fn is_short(&self, core: &Core, medium: &Medium, ready: u32) -> bool {
        self.budget - self.len() < ready && self.closed(core, medium).next().is_some()
    }

    /// Returns the block that receives the next page, or `None` if no block has room.
    pub fn frontier(&self, core: &Core, medium: &Medium) -> Option<BlockId> {
        self.frontier.filter(|&b| medium.write_pointer(b) < core.pages)
    }

    /// Returns whether the area may open one more block.
    fn may_open(&self, core: &Core) -> bool {
        self.len() < self.budget && core.has_slot()
    }

    /// Returns the block that receives the next page in an area of `scheme`.
    ///
    /// `free` does one step towards reclaiming a log block of the area. It is called until the area
    /// may open another block.
    ///
    /// # Errors
    /// Returns the errors of `free`, and an error if the log has no block left.
    pub fn room<S>(
        scheme: &mut S,
        area: impl Fn(&mut S) -> &mut Area,
        io: &mut LogContext<'_, '_>,
        mut free: impl FnMut(&mut S, &mut LogContext<'_, '_>) -> Result<(), FtlError>,
    ) -> Result<BlockId, FtlError> {
        if let Some(log) = area(scheme).frontier(io.core, io.cx.flash.medium) {
            return Ok(log);
        }
        while !area(scheme).may_open(io.core) {
            free(scheme, io)?;
        }
        area(scheme).open(io)
    }

    /// Frees log blocks until an area of `scheme` has fewer blocks than its budget. `free` does one
    /// step, as for [`Area::room`].
    ///
    /// # Errors
    /// Returns the errors of `free`.
    pub fn spare<S>(
        scheme: &mut S,
        area: impl Fn(&mut S) -> &mut Area,
        io: &mut LogContext<'_, '_>,
        mut free: impl FnMut(&mut S, &mut LogContext<'_, '_>) -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        while area(scheme).len() >= area(scheme).budget {
            free(scheme, io)?;
        }
        Ok(())
    }

    /// Lowers the budget of an area of `scheme` by one log block. `free` does one step, as for
    /// [`Area::room`].
    ///
    /// # Errors
    /// Returns the errors of `free`.
    pub fn shrink<S>(
        scheme: &mut S,
        area: impl Fn(&mut S) -> &mut Area,
        io: &mut LogContext<'_, '_>,
        free: impl FnMut(&mut S, &mut LogContext<'_, '_>) -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        Area::spare(scheme, &area, io, free)?;
        area(scheme).budget -= 1;
        io.core.budget.give_up();
        Ok(())
    }

    /// Opens a block.
    ///
    /// # Errors
    /// Returns an error if the log has no block left.
    pub fn open(&mut self, io: &mut LogContext<'_, '_>) -> Result<BlockId, FtlError> {
        let block = io.core.take_log_block(io.cx, self.role)?;
        self.blocks.push_back(block);
        self.frontier = Some(block);
        Ok(block)
    }

    /// Moves a full block of another area to this area without a copy. The block counts as younger
    /// than the frontier.
    pub fn migrate(&mut self, core: &mut Core, block: BlockId) {
        core.log_mut(block).role = self.role;
        core.merges.migrated_blocks += 1;
        self.blocks.push_back(block);
    }

    /// Moves a block to the end, as if it had been opened last.
    pub fn move_to_end(&mut self, block: BlockId) {
        self.blocks.retain(|&b| b != block);
        self.blocks.push_back(block);
    }

    /// Removes a block from the area.
    pub fn remove(&mut self, block: BlockId) {
        self.blocks.retain(|&b| b != block);
        self.frontier = self.frontier.filter(|&b| b != block);
    }

    /// Adopts the log blocks with this area's role that a mount found. Blocks above the budget are
    /// reclaimed, oldest first. The newest block continues as the frontier.
    pub fn take_over(
        &mut self,
        io: &mut LogContext<'_, '_>,
        found: &mut Vec<FoundLog>,
    ) -> Result<(), FtlError> {
        let own = FoundLog::take(found, self.role);
        let surplus = own.len().saturating_sub(self.budget as usize);
        io.core.reclaim_all(io.cx, &own[..surplus])?;
        self.blocks.extend(own[surplus..].iter().map(|f| f.block));
        self.frontier = self.blocks.back().copied();
        Ok(())
    }

    /// Checks that the area stays within its budget and that its blocks have its role.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    pub fn check(&self, core: &Core) -> Result<(), Violation> {
        let own = self.blocks().all(|b| self.contains(core, b));
        Violation::unless(own, "an area of the log holds blocks of its kind", || {
            self.name.to_owned()
        })?;
        Violation::unless(self.len() <= self.budget, "an area of the log keeps its budget", || {
            format!(
                "{}: {} log blocks are in use, but the budget is {}",
                self.name,
                self.len(),
                self.budget
            )
        })
    }

    /// Erases the first closed block without a valid page. Returns `true` if a block was erased.
    pub fn erase_empty(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError> {
        let Some(empty) = self.closed(io.core, io.cx.flash.medium).find(|&b| io.core.valid(b) == 0)
        else {
            return Ok(false);
        };
        self.remove(empty);
        io.core.erase_empty(io.cx, empty)?;
        Ok(true)
    }

    /// Returns the usage of the area.
    pub fn usage(&self, core: &Core) -> AreaUse {
        area_use(self.name, self.budget, self.blocks(), core)
    }
}

/// Returns the usage of some log blocks.
pub(super) fn area_use(
    name: &'static str,
    budget: u32,
    blocks: impl Iterator<Item = BlockId>,
    core: &Core,
) -> AreaUse {
    let (mut count, mut valid) = (0, 0);
    for block in blocks {
        count += 1;
        valid += u64::from(core.valid(block));
    }
    AreaUse { name, budget, blocks: count, pages: u64::from(count) * u64::from(core.pages), valid }
}
