//! LAST: locality-aware sector translation.
//!
//! Lee, Shin, Kim, Kim: *LAST: locality-aware sector translation for NAND flash memory-based
//! storage systems*, ACM SIGOPS Operating Systems Review 42:6, 2008 (reference 10 of papers/1).
//!
//! A request is sequential if it has at least `ftl.sequential_pages` pages, or begins at the page
//! after the last sequential request. Each page of a request is written
//!
//! 1. to its place in its data block, if this place is erased;
//! 2. if the request is sequential, to the *sequential log*, which has one log block for each
//!    logical block. A page goes to its offset there (skipped pages leave gaps). If a page at or
//!    above this offset was already written there, the log block is merged and a new log block is
//!    opened. If all blocks of the sequential log are in use, the least recently written block is
//!    merged;
//! 3. otherwise to the *random log*. A page goes to the *hot* partition if it is one of the last
//!    `ftl.hot_window` pages that were written to the random log, otherwise to the *cold*
//!    partition.
//!
//! A partition fills its log blocks one after another. If it may open no more:
//!
//! - the oldest block without a valid page is erased (a dead merge). If every block has a valid
//!   page,
//! - *hot* moves the valid pages of its oldest block to the cold partition, in their order in the
//!   block, and erases the block;
//! - *cold* reclaims the block with the least merge cost. If several have the same cost, the oldest
//!   is reclaimed. The cost is an erase of the log block plus the costs of its associated logical
//!   blocks. Each logical block costs a read and a program for every mapped page, and an erase if
//!   it has a data block. The logical blocks are merged in the order of their first valid pages in
//!   the block. A logical block is merged with its sequential log block if that has a valid page,
//!   otherwise by a full merge.

use super::{SchemeConfig, SchemeDef};
use crate::MemoryUse;
use crate::logblock::{
    Area, Core, FoundLog, HostPage, Hybrid, IDLE, LogContext, LogScheme, LogSettings, PARAMS,
    ROLE_COLD, ROLE_HOT, Sequential, fits_budget, fits_parts, mechanisms, share,
};
use crate::report::AreaUse;
use flashatlas_nand::Medium;
use flashatlas_types::flash_times::{T_ERASE, T_PROGRAM, T_READ};
use flashatlas_types::{
    BlockId, ConfigError, FtlError, Layout, LogicalBlock, Lpn, Mechanism, MemoryKind, Param,
    ParamDef, Params, Violation,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

pub const DEF: SchemeDef = SchemeDef {
    name: "last",
    summary: "log blocks: sequential, hot and cold, by request size and recent updates",
    paper: "Lee et al., ACM OSR 42:6 (2008)",
    params: &|_, _| Ok(PARAMS.iter().chain(OWN).chain([&IDLE.def]).collect()),
    fits: &|&SchemeConfig { params, .. }, layout| fits(params, layout),
    rebuild: &|&SchemeConfig { params, .. }, cx, _| {
        Ok(Box::new(Hybrid::mount(params, cx, |settings, core| Last::new(params, settings, core))?))
    },
    on_flash: &[],
    mount_limit: &|_, layout| crate::logblock::mount_limit(layout),
    steady: None,
    small: &[
        &["ftl.log_blocks=4", "ftl.sequential_pages=3"],
        &["ftl.log_blocks=6", "ftl.sequential_blocks=2", "nand.program_order=any"],
    ],
    mechanisms: &[
        mechanisms::IN_PLACE,
        mechanisms::SWITCH,
        mechanisms::PARTIAL,
        mechanisms::FULL,
        mechanisms::DEAD,
        Mechanism::new("hot partition", "scheme.hot_pages"),
        Mechanism::new("pages that cool down", "merges.moved_pages"),
        Mechanism::new("adaptive window", "scheme.window_changes")
            .without(&["ftl.hot_window_adaptive=false"]),
        mechanisms::IN_IDLE_TIME,
    ],
};

pub(crate) const SEQUENTIAL_PAGES: Param<u32> = Param::int(
    "ftl.sequential_pages",
    1,
    1 << 20,
    "a request of at least this many pages is sequential (the paper studies 4 to 8 KB)",
)
.or("4");

const SEQUENTIAL_BLOCKS: Param<u64> = Param::int(
    "ftl.sequential_blocks",
    0,
    1 << 24,
    "log blocks for sequential requests; 0: an eighth of the log",
)
.or("0");

const HOT_BLOCKS: Param<u64> =
    Param::int("ftl.hot_blocks", 0, 1 << 24, "log blocks of the hot partition; 0: 3/8 of the log")
        .or("0");

const COLD_BLOCKS: Param<u64> = Param::int(
    "ftl.cold_blocks",
    0,
    1 << 24,
    "log blocks of the cold partition; 0: the rest of the log",
)
.or("0");

const HOT_WINDOW: Param<u64> = Param::int(
    "ftl.hot_window",
    0,
    1 << 30,
    "k: the last k pages written to the random log are hot; 0: the number of pages in the hot \
     partition",
)
.or("0");

const HOT_WINDOW_ADAPTIVE: Param<bool> = Param::flag(
    "ftl.hot_window_adaptive",
    "true: k changes by the pages of a block when the hot partition gives up a block: k grows if \
     no page of the block was valid, and shrinks if more than half of its pages were valid (k is \
     at least the pages of one block, and at most twice the pages of the partition)",
)
.or("false");

const OWN: &[ParamDef] = &[
    SEQUENTIAL_PAGES.def,
    SEQUENTIAL_BLOCKS.def,
    HOT_BLOCKS.def,
    COLD_BLOCKS.def,
    HOT_WINDOW.def,
    HOT_WINDOW_ADAPTIVE.def,
];

/// Returns the numbers of blocks of the sequential log, the hot and the cold partition.
fn parts(params: &Params, budget: u64) -> [u64; 3] {
    let sequential = share(params.get(SEQUENTIAL_BLOCKS), budget, (1, 8), 1);
    let hot = share(params.get(HOT_BLOCKS), budget, (3, 8), 1);
    let cold = match params.get(COLD_BLOCKS) {
        0 => budget.saturating_sub(sequential + hot),
        given => given,
    };
    [sequential, hot, cold]
}

fn fits(params: &Params, layout: &Layout) -> Result<(), ConfigError> {
    let budget = fits_budget(params, layout, 4)?;
    let keys = ["ftl.sequential_blocks", "ftl.hot_blocks", "ftl.cold_blocks"];
    let [sequential, hot, cold] = parts(params, budget);
    fits_parts(budget, &[(keys[0], sequential, 1), (keys[1], hot, 1), (keys[2], cold, 2)])
}

struct Last {
    sequential: Sequential,
    random: Random,
    sequential_pages: u32,
    /// The page after the last sequential request.
    sequential_end: Option<Lpn>,
    /// `true` if the current request is sequential.
    is_sequential: bool,
    idle_free: u32,
    /// The number of pages that were written to the hot partition.
    hot_pages: u64,
}

/// The random log.
struct Random {
    hot: Area,
    cold: Area,
    recent: Recent,
    adaptive: bool,
    /// The number of times that the window changed.
    window_changes: u64,
    /// The times to copy a page and to erase a block, in picoseconds.
    copy_time: u64,
    erase_time: u64,
}

/// The last k pages written to the random log.
struct Recent {
    window: u64,
    order: VecDeque<Lpn>,
    times: FxHashMap<Lpn, u32>,
}

impl Recent {
    fn contains(&self, lpn: Lpn) -> bool {
        self.times.contains_key(&lpn)
    }

    fn push(&mut self, lpn: Lpn) {
        self.order.push_back(lpn);
        *self.times.entry(lpn).or_default() += 1;
        while self.order.len() as u64 > self.window {
            let oldest = self.order.pop_front().expect("not empty");
            let times = self.times.get_mut(&oldest).expect("counted");
            *times -= 1;
            if *times == 0 {
                self.times.remove(&oldest);
            }
        }
    }
}

impl Last {
    fn new(params: &Params, settings: &LogSettings, core: &Core) -> Last {
        let [sequential, hot, cold] = parts(params, settings.log_blocks.into()).map(|n| n as u32);
        let window = match params.get(HOT_WINDOW) {
            0 => u64::from(hot) * u64::from(core.pages),
            given => given,
        };
        Last {
            sequential: Sequential::new(sequential),
            random: Random {
                hot: Area::new("hot", ROLE_HOT, hot),
                cold: Area::new("cold", ROLE_COLD, cold),
                recent: Recent { window, order: VecDeque::new(), times: FxHashMap::default() },
                adaptive: params.get(HOT_WINDOW_ADAPTIVE),
                window_changes: 0,
                copy_time: params.get(T_READ).0 + params.get(T_PROGRAM).0,
                erase_time: params.get(T_ERASE).0,
            },
            sequential_pages: params.get(SEQUENTIAL_PAGES),
            sequential_end: None,
            is_sequential: false,
            hot_pages: 0,
            idle_free: settings.idle_log_blocks,
        }
    }

    /// Writes a page of a sequential request.
    fn write_sequential(
        &mut self,
        io: &mut LogContext<'_, '_>,
        page: &HostPage<'_>,
    ) -> Result<(), FtlError> {
        let (lbn, offset) = (io.core.lbn(page.lpn()), io.core.offset(page.lpn()));
        let open =
            self.sequential.of(lbn).filter(|&log| offset >= io.cx.flash.medium.write_pointer(log));
        let log = match open {
            Some(log) => log,
            None => {
                if self.sequential.of(lbn).is_some() {
                    self.sequential.close(io, lbn, None)?;
                }
                self.sequential.start(io, lbn)?
            }
        };
        self.sequential.put(io, log, page)
    }
}

impl Random {
    /// Returns the hot block for the next page.
    fn room_in_hot(
        &mut self,
        io: &mut LogContext<'_, '_>,
        sequential: &mut Sequential,
    ) -> Result<BlockId, FtlError> {
        Area::room(self, |random| &mut random.hot, io, |random, io| random.free_hot(io, sequential))
    }

    /// Frees a hot block.
    fn free_hot(
        &mut self,
        io: &mut LogContext<'_, '_>,
        sequential: &mut Sequential,
    ) -> Result<(), FtlError> {
        if self.hot.erase_empty(io)? {
            self.adapt(io.core, 0);
            return Ok(());
        }
        let victim = self
            .hot
            .closed(io.core, io.cx.flash.medium)
            .next()
            .ok_or_else(|| io.core.no_space())?;
        self.adapt(io.core, io.core.valid(victim));
        io.core.move_out(io.cx, victim, |io, _| self.room_in_cold(io, sequential))?;
        self.hot.remove(victim);
        Ok(())
    }

    /// Returns the cold block for the next page.
    fn room_in_cold(
        &mut self,
        io: &mut LogContext<'_, '_>,
        sequential: &mut Sequential,
    ) -> Result<BlockId, FtlError> {
        Area::room(
            self,
            |random| &mut random.cold,
            io,
            |random, io| random.free_cold(io, sequential),
        )
    }

    /// Frees a cold block.
    fn free_cold(
        &mut self,
        io: &mut LogContext<'_, '_>,
        sequential: &mut Sequential,
    ) -> Result<(), FtlError> {
        if self.cold.erase_empty(io)? {
            return Ok(());
        }
        let victim =
            self.cheapest(io.core, io.cx.flash.medium).ok_or_else(|| io.core.no_space())?;
        sequential.reclaim(io, &mut self.cold, victim)
    }

    /// Returns the closed cold block with the least merge cost, or `None` if no cold block is
    /// closed.
    fn cheapest(&self, core: &Core, medium: &Medium) -> Option<BlockId> {
        let merge = |lbn: LogicalBlock| {
            u64::from(core.live(lbn)) * self.copy_time
                + u64::from(core.has_data_block(lbn)) * self.erase_time
        };
        let cost = |log: BlockId| {
            core.log(log).lbns.keys().map(|&lbn| merge(lbn)).sum::<u64>() + self.erase_time
        };
        self.cold.closed(core, medium).min_by_key(|&log| cost(log))
    }

    /// Adapts the window when a block with `valid` valid pages leaves the hot partition.
    fn adapt(&mut self, core: &Core, valid: u32) {
        if !self.adaptive {
            return;
        }
        let (pages, before) = (u64::from(core.pages), self.recent.window);
        if valid == 0 {
            self.recent.window = (before + pages).min(2 * u64::from(self.hot.budget) * pages);
        } else if 2 * valid > core.pages {
            self.recent.window = before.saturating_sub(pages).max(pages);
        }
        self.window_changes += u64::from(self.recent.window != before);
    }
}

impl LogScheme for Last {
    fn request(&mut self, first: Lpn, pages: u32) {
        self.is_sequential = pages >= self.sequential_pages || self.sequential_end == Some(first);
        if self.is_sequential {
            self.sequential_end = Some(Lpn(first.0 + pages));
        }
    }

    fn write(&mut self, io: &mut LogContext<'_, '_>, page: &HostPage<'_>) -> Result<(), FtlError> {
        if io.core.write_in_place(io.cx, page)? {
            return Ok(());
        }
        if self.is_sequential {
            return self.write_sequential(io, page);
        }
        let log = if self.random.recent.contains(page.lpn()) {
            self.hot_pages += 1;
            self.random.room_in_hot(io, &mut self.sequential)?
        } else {
            self.random.room_in_cold(io, &mut self.sequential)?
        };
        io.core.append(io.cx, log, page)?;
        self.random.recent.push(page.lpn());
        Ok(())
    }

    fn give_up(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        let (random, sequential) = (&mut self.random, &mut self.sequential);
        if random.hot.budget >= random.cold.budget {
            Area::shrink(random, |r| &mut r.hot, io, |r, io| r.free_hot(io, sequential))
        } else if random.cold.budget > 2 {
            Area::shrink(random, |r| &mut r.cold, io, |r, io| r.free_cold(io, sequential))
        } else {
            Err(io.core.no_space())
        }
    }

    fn idle(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError> {
        let cold = &mut self.random.cold;
        if !cold.is_short(io.core, io.cx.flash.medium, self.idle_free) {
            return Ok(false);
        }
        if cold.erase_empty(io)? {
            return Ok(true);
        }
        let begun = cold.begun(io.core, io.cx.flash.medium);
        let victim = begun
            .or_else(|| self.random.cheapest(io.core, io.cx.flash.medium))
            .ok_or_else(|| io.core.no_space())?;
        self.sequential.reclaim_step(io, &mut self.random.cold, victim)?;
        Ok(true)
    }

    fn adopt(
        &mut self,
        io: &mut LogContext<'_, '_>,
        mut found: Vec<FoundLog>,
    ) -> Result<(), FtlError> {
        self.sequential.adopt(io, &mut found, true)?;
        self.random.hot.take_over(io, &mut found)?;
        self.random.cold.take_over(io, &mut found)?;
        io.core.reclaim_all(io.cx, &found)
    }

    fn areas(&self, core: &Core) -> Vec<AreaUse> {
        vec![self.sequential.usage(core), self.random.hot.usage(core), self.random.cold.usage(core)]
    }

    fn knows(&self, core: &Core, log: BlockId) -> bool {
        self.sequential.contains(core, log)
            || self.random.hot.contains(core, log)
            || self.random.cold.contains(core, log)
    }

    fn check(&self, core: &Core, medium: &Medium) -> Result<(), Violation> {
        self.sequential.check(core, medium)?;
        self.random.hot.check(core)?;
        self.random.cold.check(core)?;
        let recent = &self.random.recent;
        let counted: u32 = recent.times.values().sum();
        let listed = recent.order.len() as u64;
        let agree = u64::from(counted) == listed && listed <= recent.window;
        Violation::unless(agree, "the recent pages are counted", || {
            format!(
                "{counted} pages are counted, {listed} are listed, and {} are kept",
                recent.window
            )
        })
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![("hot_pages", self.hot_pages), ("window_changes", self.random.window_changes)]
    }

    fn reset_counters(&mut self) {
        (self.hot_pages, self.random.window_changes) = (0, 0);
    }

    fn memory(&self, core: &Core) -> Vec<MemoryUse> {
        let table = |table, bytes| MemoryUse { table, memory: MemoryKind::Sram, bytes };
        let logs =
            u64::from(self.sequential.budget + self.random.hot.budget + self.random.cold.budget);
        let cold_pages = u64::from(self.random.cold.budget) * u64::from(core.pages);
        vec![
            // the logical block or area of each log block, and a link
            table("log blocks", logs * 8),
            table("recent pages", self.random.recent.window * 4),
            // each page of the cold partition may belong to another logical block, with its number
            // and a count
            table("associations", cold_pages * 5),
        ]
    }
}
