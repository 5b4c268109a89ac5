//! FAST: fully-associative sector translation. Any page may be in any log block.
//!
//! Lee, Park, Chung, Lee, Park, Song: *A log buffer-based flash translation layer using
//! fully-associative sector translation*, ACM Transactions on Embedded Computing Systems 6:3, 2007
//! (reference 8 of papers/1).
//!
//! 1. A page is written to its place in its data block if this place is erased.
//! 2. One log block is for sequential writes ([`Sequential`]).
//! 3. Every other page is appended to the random log blocks, which are used in turn. When all are
//!    full, the oldest is reclaimed, and each associated logical block is merged. If the sequential
//!    log block belongs to a logical block, the sequential log block is merged for it.

use super::{SchemeConfig, SchemeDef};
use crate::MemoryUse;
use crate::logblock::{
    Area, Core, FoundLog, HostPage, Hybrid, IDLE, LogContext, LogScheme, LogSettings, PARAMS,
    ROLE_RANDOM, Sequential, fits_budget, mechanisms,
};
use crate::report::AreaUse;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, FtlError, MemoryKind, Param, Params, Violation};

pub const DEF: SchemeDef = SchemeDef {
    name: "fast",
    summary: "log blocks: one block for sequential writes, and the others for any page, first in, \
              first out",
    paper: "Lee et al., ACM TECS 6:3 (2007)",
    params: &|_, _| Ok(PARAMS.iter().chain([&EAGER_DEAD.def, &IDLE.def]).collect()),
    fits: &|&SchemeConfig { params, .. }, layout| fits_budget(params, layout, 2).map(drop),
    rebuild: &|&SchemeConfig { params, .. }, cx, _| {
        Ok(Box::new(Hybrid::mount(params, cx, |settings, _| Fast::new(params, settings))?))
    },
    on_flash: &[],
    mount_limit: &|_, layout| crate::logblock::mount_limit(layout),
    steady: None,
    small: &[&["ftl.log_blocks=3"], &["ftl.log_blocks=4", "nand.program_order=any"]],
    mechanisms: &[
        mechanisms::IN_PLACE,
        mechanisms::SWITCH,
        mechanisms::PARTIAL,
        mechanisms::FULL,
        mechanisms::DEAD,
        mechanisms::IN_IDLE_TIME,
    ],
};

const EAGER_DEAD: Param<bool> = Param::flag(
    "ftl.eager_dead",
    "true: random log blocks without a valid page are erased as soon as a trim has emptied a \
     block, and before another block is opened; false: each of these blocks is erased when its \
     turn comes",
)
.or("false");

struct Fast {
    sequential: Sequential,
    random: Area,
    eager_dead: bool,
    idle_free: u32,
}

impl Fast {
    fn new(params: &Params, settings: &LogSettings) -> Fast {
        Fast {
            sequential: Sequential::new(1),
            random: Area::new("random", ROLE_RANDOM, settings.log_blocks - 1),
            eager_dead: params.get(EAGER_DEAD),
            idle_free: settings.idle_log_blocks,
        }
    }

    /// Returns the random log block for the next page.
    fn room(&mut self, io: &mut LogContext<'_, '_>) -> Result<BlockId, FtlError> {
        if self.random.frontier(io.core, io.cx.flash.medium).is_none() {
            self.erase_dead(io)?;
        }
        self.sequential.room_in(io, &mut self.random)
    }

    /// Erases the random log blocks without valid pages, if `ftl.eager_dead` is set.
    fn erase_dead(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        while self.eager_dead && self.random.erase_empty(io)? {}
        Ok(())
    }
}

impl LogScheme for Fast {
    fn write(&mut self, io: &mut LogContext<'_, '_>, page: &HostPage<'_>) -> Result<(), FtlError> {
        if io.core.write_in_place(io.cx, page)? || self.sequential.write(io, page)? {
            return Ok(());
        }
        let log = self.room(io)?;
        io.core.append(io.cx, log, page)?;
        Ok(())
    }

    fn emptied(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        self.erase_dead(io)
    }

    fn give_up(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        if self.random.budget == 1 {
            return Err(io.core.no_space());
        }
        self.sequential.shrink(io, &mut self.random)
    }

    fn idle(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError> {
        if !self.random.is_short(io.core, io.cx.flash.medium, self.idle_free) {
            return Ok(false);
        }
        self.sequential.reclaim_oldest_step(io, &mut self.random)?;
        Ok(true)
    }

    fn adopt(
        &mut self,
        io: &mut LogContext<'_, '_>,
        mut found: Vec<FoundLog>,
    ) -> Result<(), FtlError> {
        self.sequential.adopt(io, &mut found, false)?;
        self.random.take_over(io, &mut found)?;
        io.core.reclaim_all(io.cx, &found)
    }

    fn areas(&self, core: &Core) -> Vec<AreaUse> {
        vec![self.sequential.usage(core), self.random.usage(core)]
    }

    fn knows(&self, core: &Core, log: BlockId) -> bool {
        self.sequential.contains(core, log) || self.random.contains(core, log)
    }

    fn check(&self, core: &Core, medium: &Medium) -> Result<(), Violation> {
        self.sequential.check(core, medium)?;
        self.random.check(core)
    }

    fn memory(&self, _: &Core) -> Vec<MemoryUse> {
        // the random log blocks in their order, and the sequential log block with its logical block
        let bytes = u64::from(self.random.budget) * 4 + 8;
        vec![MemoryUse { table: "log blocks", memory: MemoryKind::Sram, bytes }]
    }
}
