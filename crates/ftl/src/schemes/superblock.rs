//! Superblock FTL: neighbouring logical blocks share their physical blocks, and any of their pages
//! may be in any of these blocks.
//!
//! Kang, Jo, Kim, Lee: *A superblock-based flash translation layer for NAND flash memory*, EMSOFT
//! 2006. A superblock of D logical blocks has up to D physical blocks for its data. It has more
//! blocks for updates, which come from a pool that all superblocks share. Its page map is in the
//! spare areas of its pages. The drive's memory stores the list of the blocks of each superblock.
//!
//! - A page is hot if its newest version is in a block that was opened for updates. Hot pages and
//!   other pages are written to different blocks. When the pool is used up, a page is written to
//!   any block of its superblock that has room.
//! - If a superblock needs a block and gets no block, the superblock itself is collected. The
//!   victim is the closed block with the fewest valid pages. If several blocks have the fewest, the
//!   victim is the oldest of them. Its valid pages are moved to the superblock's block for pages
//!   that are not hot, and the victim is erased. If the block for these pages is full, a reserved
//!   block replaces it until the erase has freed another block.
//! - If no closed block of the superblock has an invalid page, another superblock is collected
//!   until it has one block fewer. This is the superblock with the most blocks of the pool. If
//!   several superblocks have the most, it is the least recently written of them. If all its closed
//!   blocks are full of valid pages, an open block is collected. It is the block for pages that are
//!   not hot if that block has an invalid page, otherwise the block for hot pages.
//!
//! There are no merges in the sense of the other log-block schemes. A reclaimed block counts as
//! dead or moved.

use super::{SchemeConfig, SchemeDef};
use crate::MemoryUse;
use crate::logblock::{
    Core, FoundLog, HostPage, Hybrid, IDLE, LogContext, LogScheme, LogSettings, PARAMS, ROLE_COLD,
    ROLE_HOT, ROLE_RANDOM, fits_budget, mechanisms,
};
use crate::notes::SUPERBLOCK_PAGE_MAPS;
use crate::report::AreaUse;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, FtlError, Lpn, Mechanism, MemoryKind, Note, Param, Params, Violation,
};
use std::cmp::Reverse;

pub const DEF: SchemeDef = SchemeDef {
    name: "superblock",
    summary: "page mapping inside groups of logical blocks, which share a pool of blocks for \
              updates",
    paper: "Kang et al., EMSOFT (2006)",
    params: &|_, _| Ok(PARAMS.iter().chain([&SIZE.def, &IDLE.def]).collect()),
    fits: &|&SchemeConfig { params, .. }, layout| fits_budget(params, layout, 1).map(drop),
    rebuild: &|&SchemeConfig { params, .. }, cx, _| {
        Ok(Box::new(Hybrid::mount(params, cx, |settings, core| {
            Superblocks::new(params, settings, core)
        })?))
    },
    on_flash: &["ftl.superblock_blocks", "ftl.log_blocks"],
    mount_limit: &|_, layout| crate::logblock::mount_limit(layout),
    steady: None,
    small: &[
        &["ftl.log_blocks=2", "ftl.superblock_blocks=2"],
        &["ftl.log_blocks=3", "ftl.superblock_blocks=4", "nand.program_order=any"],
    ],
    mechanisms: &[
        Mechanism::new("collection within a superblock", "merges.log_blocks.moved"),
        mechanisms::DEAD,
        mechanisms::IN_IDLE_TIME,
    ],
};

const SIZE: Param<u32> = Param::int(
    "ftl.superblock_blocks",
    1,
    1 << 16,
    "D: neighbouring logical blocks of a superblock (the paper tries 1 to 16)",
)
.or("8");

struct Superblocks {
    all: Vec<Superblock>,
    /// The number of logical blocks of a superblock.
    size: u32,
    /// The number of pool blocks in use. If a superblock has more blocks than logical blocks, the
    /// excess comes from the pool.
    used: u32,
    /// The number of blocks in the pool.
    pool: u32,
    idle_free: u32,
}

/// The pages for which a block is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pages {
    Hot,
    Other,
    Collected,
}

#[derive(Clone, Default)]
struct Superblock {
    /// Physical blocks of the superblock, oldest first.
    blocks: Vec<BlockId>,
    /// The number of logical blocks of the superblock.
    size: u32,
    /// The block for hot pages, and the block for other pages.
    hot: Option<BlockId>,
    other: Option<BlockId>,
    /// The clock of the last write to the superblock.
    written: u64,
}

impl Superblock {
    /// Returns the number of blocks of the superblock that come from the pool.
    fn extra(&self) -> u32 {
        (self.blocks.len() as u32).saturating_sub(self.size)
    }

    /// Returns the block for hot pages if `hot` is `true`, otherwise the block for other pages.
    /// Returns `None` if the block has no room.
    fn frontier(&self, core: &Core, medium: &Medium, hot: bool) -> Option<BlockId> {
        let block = if hot { self.hot } else { self.other };
        block.filter(|&b| medium.write_pointer(b) < core.pages)
    }

    /// Returns the closed block with the fewest valid pages, or `None` if no closed block has an
    /// invalid page.
    fn victim(&self, core: &Core, medium: &Medium) -> Option<BlockId> {
        let frontiers = [self.frontier(core, medium, true), self.frontier(core, medium, false)];
        let closed = self.blocks.iter().copied().filter(|&b| !frontiers.contains(&Some(b)));
        closed.min_by_key(|&b| core.valid(b)).filter(|&b| core.valid(b) < core.pages)
    }
}

impl Superblocks {
    fn new(params: &Params, settings: &LogSettings, core: &Core) -> Superblocks {
        let size = params.get(SIZE);
        let lbns = core.lbns() as u32;
        let one = |first: u32| Superblock { size: size.min(lbns - first), ..Superblock::default() };
        Superblocks {
            all: (0..lbns).step_by(size as usize).map(one).collect(),
            size,
            used: 0,
            pool: settings.log_blocks,
            idle_free: settings.idle_log_blocks,
        }
    }

    /// Returns the superblock of a log block, which the block's first page determines.
    fn of_log(&self, core: &Core, log: BlockId) -> usize {
        core.log(log).group(self.size) as usize
    }

    /// Returns the superblock of a page.
    fn of(&self, core: &Core, lpn: Lpn) -> usize {
        (core.lbn(lpn).number() / self.size) as usize
    }

    fn take_block(
        &mut self,
        io: &mut LogContext<'_, '_>,
        group: usize,
        pages: Pages,
    ) -> Result<BlockId, FtlError> {
        let superblock = &mut self.all[group];
        let update = superblock.blocks.len() as u32 >= superblock.size;
        let block = match pages {
            Pages::Hot => io.core.take_log_block(io.cx, ROLE_HOT)?,
            Pages::Other if update => io.core.take_log_block(io.cx, ROLE_RANDOM)?,
            Pages::Other => io.core.take_log_block(io.cx, ROLE_COLD)?,
            Pages::Collected => io.core.take_spare_block(io.cx, ROLE_COLD)?,
        };
        superblock.blocks.push(block);
        *(if pages == Pages::Hot { &mut superblock.hot } else { &mut superblock.other }) =
            Some(block);
        self.used += u32::from(update);
        Ok(block)
    }

    fn give_back(&mut self, group: usize, block: BlockId) {
        let superblock = &mut self.all[group];
        self.used -= superblock.extra();
        superblock.blocks.retain(|&b| b != block);
        superblock.hot = superblock.hot.filter(|&b| b != block);
        superblock.other = superblock.other.filter(|&b| b != block);
        self.used += superblock.extra();
    }

    /// Returns the block for the next page of a superblock.
    fn room(
        &mut self,
        io: &mut LogContext<'_, '_>,
        group: usize,
        hot: bool,
    ) -> Result<BlockId, FtlError> {
        loop {
            let own = &self.all[group];
            if let Some(block) = own.frontier(io.core, io.cx.flash.medium, hot) {
                return Ok(block);
            }
            let free = (own.blocks.len() as u32) < own.size || self.used < self.pool;
            if free && io.core.has_slot() {
                return self.take_block(io, group, if hot { Pages::Hot } else { Pages::Other });
            }
            if let Some(block) = own.frontier(io.core, io.cx.flash.medium, !hot) {
                return Ok(block);
            }
            let from = match own.victim(io.core, io.cx.flash.medium) {
                Some(_) => group,
                None => self.richest().ok_or_else(|| io.core.no_space())?,
            };
            self.collect(io, from)?;
        }
    }

    /// Returns the superblock with the most blocks of the pool, or `None` if no superblock has any.
    fn richest(&self) -> Option<usize> {
        let rich = (0..self.all.len()).filter(|&g| self.all[g].extra() > 0);
        rich.min_by_key(|&g| (Reverse(self.all[g].extra()), self.all[g].written))
    }

    /// Returns `true` if a superblock uses the pool, and the valid pages of its victim fit into its
    /// open block for pages that are not hot.
    fn fits_into_frontier(&self, core: &Core, medium: &Medium, group: usize) -> bool {
        let superblock = &self.all[group];
        let room = superblock
            .frontier(core, medium, false)
            .map_or(0, |b| core.pages - medium.write_pointer(b));
        superblock.extra() > 0
            && superblock.victim(core, medium).is_some_and(|b| core.valid(b) <= room)
    }

    /// Collects until at most `most` blocks of the pool are in use.
    ///
    /// A superblock whose victim fits into its open block comes first: after a power cut, this
    /// finishes an interrupted collection. If there is no such superblock, the superblock with the
    /// most blocks of the pool is collected.
    fn collect_down_to(&mut self, io: &mut LogContext<'_, '_>, most: u32) -> Result<(), FtlError> {
        while self.used > most {
            let cut = (0..self.all.len())
                .find(|&g| self.fits_into_frontier(io.core, io.cx.flash.medium, g));
            let from = cut.or_else(|| self.richest()).ok_or_else(|| io.core.no_space())?;
            self.collect(io, from)?;
        }
        Ok(())
    }

    /// Collects one block of a superblock.
    fn collect(&mut self, io: &mut LogContext<'_, '_>, group: usize) -> Result<(), FtlError> {
        let superblock = &mut self.all[group];
        // if every closed block is full of valid pages, an open block is collected
        let victim = superblock.victim(io.core, io.cx.flash.medium).or_else(|| {
            let wasted = superblock.other.filter(|&b| io.core.valid(b) < io.core.log(b).programmed);
            if wasted.is_some() { superblock.other.take() } else { superblock.hot.take() }
        });
        let victim = victim.ok_or_else(|| io.core.no_space())?;
        io.core.move_out(io.cx, victim, |io, _| {
            match self.all[group].frontier(io.core, io.cx.flash.medium, false) {
                Some(block) => Ok(block),
                None => self.take_block(io, group, Pages::Collected),
            }
        })?;
        self.give_back(group, victim);
        Ok(())
    }
}

impl LogScheme for Superblocks {
    const HAS_DATA_BLOCKS: bool = false;

    fn write(&mut self, io: &mut LogContext<'_, '_>, page: &HostPage<'_>) -> Result<(), FtlError> {
        let group = self.of(io.core, page.lpn());
        let hot = io.core.log_of(page.lpn()).is_some_and(|log| io.core.log(log).role != ROLE_COLD);
        let block = self.room(io, group, hot)?;
        io.core.append(io.cx, block, page)?;
        self.all[group].written = io.core.clock;
        Ok(())
    }

    fn give_up(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        if self.pool == 1 {
            return Err(io.core.no_space());
        }
        self.collect_down_to(io, self.pool - 1)?;
        self.pool -= 1;
        io.core.budget.give_up();
        Ok(())
    }

    fn idle(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError> {
        if self.pool.saturating_sub(self.used) >= self.idle_free {
            return Ok(false);
        }
        let Some(group) = self.richest() else { return Ok(false) };
        self.collect(io, group)?;
        Ok(true)
    }

    fn adopt(&mut self, io: &mut LogContext<'_, '_>, found: Vec<FoundLog>) -> Result<(), FtlError> {
        let mut strays = Vec::new();
        for log in found {
            let group = self.of_log(io.core, log.block);
            if !io.core.log(log.block).holds_only(group as u32, self.size) {
                strays.push(log.block);
                continue;
            }
            let superblock = &mut self.all[group];
            self.used -= superblock.extra();
            superblock.blocks.push(log.block);
            self.used += superblock.extra();
            superblock.written = io.core.log(log.block).touched;
            *(if log.role == ROLE_HOT { &mut superblock.hot } else { &mut superblock.other }) =
                Some(log.block);
        }
        for stray in strays {
            io.core
                .move_out(io.cx, stray, |io, lpn| self.room(io, self.of(io.core, lpn), false))?;
        }
        self.collect_down_to(io, self.pool)
    }

    fn areas(&self, core: &Core) -> Vec<AreaUse> {
        let mut data =
            AreaUse { name: "data", budget: core.lbns() as u32, blocks: 0, pages: 0, valid: 0 };
        let mut update = AreaUse { name: "update", budget: self.pool, ..data };
        for superblock in &self.all {
            for (i, &block) in superblock.blocks.iter().enumerate() {
                // the blocks above the number of logical blocks belong to the pool
                let area = if (i as u32) < superblock.size { &mut data } else { &mut update };
                area.blocks += 1;
                area.pages += u64::from(core.pages);
                area.valid += u64::from(core.valid(block));
            }
        }
        vec![data, update]
    }

    fn knows(&self, core: &Core, log: BlockId) -> bool {
        self.all.get(self.of_log(core, log)).is_some_and(|s| s.blocks.contains(&log))
    }

    fn check(&self, core: &Core, _: &Medium) -> Result<(), Violation> {
        for (group, superblock) in self.all.iter().enumerate() {
            let own = |&b: &BlockId| core.log(b).holds_only(group as u32, self.size);
            Violation::unless(
                superblock.blocks.iter().all(own),
                "the blocks of a superblock hold only its pages",
                || format!("the blocks of superblock {group} hold {:?}", superblock.blocks),
            )?;
        }
        let used: u32 = self.all.iter().map(Superblock::extra).sum();
        Violation::unless(
            used == self.used && used <= self.pool,
            "blocks of the pool are counted",
            || {
                format!(
                    "{} blocks are counted, {used} are in use, and {} are in the pool",
                    self.used, self.pool
                )
            },
        )
    }

    fn memory(&self, core: &Core) -> Vec<MemoryUse> {
        // the blocks of each superblock, and the place where its page map begins
        let bytes = (core.lbns() + u64::from(self.pool)) * 4 + self.all.len() as u64 * 8;
        vec![MemoryUse { table: "superblocks", memory: MemoryKind::Sram, bytes }]
    }

    fn approximations(&self) -> Vec<Note> {
        vec![SUPERBLOCK_PAGE_MAPS.note()]
    }
}
