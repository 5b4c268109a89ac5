//! FASTer: FAST with a second chance for pages that are still valid, and an isolation area for cold
//! pages.
//!
//! Lim, Lee, Moon: *FASTer FTL for enterprise-class flash memory SSDs*, SNAPI 2010. The random log
//! blocks form a circle. When the circle is full, these rules apply to its oldest block:
//!
//! - A block without a valid page is erased (a dead merge).
//! - If all its pages are valid and no page is on its second chance, all pages get a second chance.
//!   The block moves to the end of the circle.
//! - If fewer than half of its pages are valid, these pages are copied to the head of the log and
//!   are then on their second chance.
//! - Otherwise a valid page on its second chance is cold and moves to the isolation area. The other
//!   valid pages are copied to the head and are then on their second chance.
//!
//! One block of the circle is reserved for the valid pages of the oldest block. A host write ends
//! the second chance of a page.
//!
//! While the isolation area may open fewer than two blocks, its blocks are reclaimed step by step.
//! One step follows every `ftl.isolation_interval` pages that the host writes to the circle. A step
//! merges one logical block of the area's oldest block, or erases that block after the last merge.
//! If the area may open no block at all, its oldest block is reclaimed completely.
//!
//! Sequential writes have one log block by FAST's rule. In addition, a run of more than
//! `ftl.sequential_pages` consecutive pages opens a log block in the middle of a logical block. The
//! pages before the run are copied into it first.

use super::{SchemeConfig, SchemeDef};
use crate::MemoryUse;
use crate::bits::BitSet;
use crate::logblock::{
    Area, Core, FoundLog, HostPage, Hybrid, IDLE, LogContext, LogScheme, LogSettings, PARAMS,
    ROLE_COLD, ROLE_RANDOM, Sequential, fits_budget, fits_parts, mechanisms, share,
};
use crate::report::AreaUse;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, ConfigError, FtlError, Layout, Lpn, Mechanism, MemoryKind, Param, ParamDef, Params,
    Violation,
};

pub const DEF: SchemeDef = SchemeDef {
    name: "faster",
    summary: "log blocks: FAST with a second chance for valid pages and an isolation area for cold \
              ones",
    paper: "Lim et al., SNAPI (2010)",
    params: &|_, _| Ok(PARAMS.iter().chain(OWN).chain([&IDLE.def]).collect()),
    fits: &|&SchemeConfig { params, .. }, layout| fits(params, layout),
    rebuild: &|&SchemeConfig { params, .. }, cx, _| {
        Ok(Box::new(Hybrid::mount(params, cx, |settings, core| {
            Faster::new(params, settings, core)
        })?))
    },
    on_flash: &[],
    mount_limit: &|_, layout| crate::logblock::mount_limit(layout),
    steady: None,
    small: &[
        &["ftl.log_blocks=6"],
        &["ftl.log_blocks=7", "ftl.isolation_interval=1", "nand.program_order=any"],
    ],
    mechanisms: &[
        mechanisms::IN_PLACE,
        mechanisms::SWITCH,
        mechanisms::PARTIAL,
        mechanisms::FULL,
        mechanisms::DEAD,
        Mechanism::new("second chance of a page", "merges.moved_pages"),
        Mechanism::new("second chance of a whole block", "scheme.renewed_blocks"),
        Mechanism::new("isolation of cold pages", "scheme.isolated_pages"),
        mechanisms::IN_IDLE_TIME,
    ],
};

const ISOLATION_BLOCKS: Param<u64> = Param::int(
    "ftl.isolation_blocks",
    0,
    1 << 24,
    "log blocks of the isolation area; 0: a fifth of the log",
)
.or("0");

const ISOLATION_INTERVAL: Param<u32> = Param::int(
    "ftl.isolation_interval",
    1,
    1 << 20,
    "number of pages that the host writes to the circle from one drain of the isolation area to \
     the next",
)
.or("4");

pub(crate) const SEQUENTIAL_PAGES: Param<u32> = Param::int(
    "ftl.sequential_pages",
    1,
    1 << 20,
    "a run of more than this number of consecutive pages is sequential, wherever it begins",
)
.or("4");

const OWN: &[ParamDef] = &[ISOLATION_BLOCKS.def, ISOLATION_INTERVAL.def, SEQUENTIAL_PAGES.def];

/// The number of blocks that the isolation area should always be able to open.
const KEPT: u32 = 2;

/// Returns the number of blocks of the isolation area, and of the circle of random log blocks.
fn parts(params: &Params, budget: u64) -> [u64; 2] {
    let isolation = share(params.get(ISOLATION_BLOCKS), budget, (1, 5), u64::from(KEPT) + 1);
    [isolation, budget.saturating_sub(1 + isolation)]
}

fn fits(params: &Params, layout: &Layout) -> Result<(), ConfigError> {
    let budget = fits_budget(params, layout, 6)?;
    let [isolation, circle] = parts(params, budget);
    let least = u64::from(KEPT) + 1;
    if isolation + 3 > budget {
        let why = format!(
            "{isolation} log blocks are not possible: of {budget} log blocks in all, one is for \
             sequential writes and two are for the circle"
        );
        let allowed = vec![format!("{least} to {}", budget - 3)];
        return Err(ConfigError { allowed, ..ConfigError::new("ftl.isolation_blocks", why) });
    }
    fits_parts(
        budget - 1,
        &[("ftl.isolation_blocks", isolation, least), ("random log blocks", circle, 2)],
    )
}

struct Faster {
    sequential: Sequential,
    circle: Circle,
    isolation: Area,
    sequential_pages: u32,
    /// The page written last, and the length of the run of consecutive pages that ends with it.
    last: Option<Lpn>,
    run: u32,
    /// The number of pages that entered the log since the last progressive merge.
    entered: u32,
    interval: u32,
    idle_free: u32,
}

/// The random log blocks, and the pages on their second chance. The simulator has one bit for each
/// logical page. A real drive has one bit for each page of the log.
struct Circle {
    area: Area,
    second: BitSet<Lpn>,
    /// The number of blocks that got a second chance as whole blocks.
    renewed: u64,
    /// The number of pages that moved to the isolation area.
    isolated: u64,
}

impl Circle {
    fn on_second_chance(&self, lpn: Lpn) -> bool {
        self.second.contains(lpn)
    }

    fn set_second_chance(&mut self, lpn: Lpn, on: bool) {
        if on {
            self.second.insert(lpn)
        } else {
            self.second.remove(lpn)
        };
    }

    /// Returns the block for the next page. The last block of the budget is reserved for the valid
    /// pages of the oldest block.
    fn room(
        &mut self,
        io: &mut LogContext<'_, '_>,
        isolation: &mut Area,
        sequential: &mut Sequential,
    ) -> Result<BlockId, FtlError> {
        if let Some(log) = self.area.frontier(io.core, io.cx.flash.medium) {
            return Ok(log);
        }
        // a block can be opened here, except after a mount or after blocks have gone bad
        let head = sequential.room_in(io, &mut self.area)?;
        while self.area.len() == self.area.budget {
            self.give_way(io, head, isolation, sequential)?;
        }
        Ok(head)
    }

    /// Empties the oldest block, or gives it a second chance as a whole block.
    fn give_way(
        &mut self,
        io: &mut LogContext<'_, '_>,
        head: BlockId,
        isolation: &mut Area,
        sequential: &mut Sequential,
    ) -> Result<(), FtlError> {
        let oldest =
            self.area.blocks().find(|&b| b != head).expect("the circle has at least two blocks");
        let valid = io.core.valid(oldest);
        if valid == 0 {
            io.core.erase_empty(io.cx, oldest)?;
            self.area.remove(oldest);
            return Ok(());
        }
        if valid == io.core.pages {
            let pages = io.core.valid_pages(io.cx.flash.medium, oldest)?;
            if !pages.iter().any(|&lpn| self.on_second_chance(lpn)) {
                pages.iter().for_each(|&lpn| self.set_second_chance(lpn, true));
                self.area.move_to_end(oldest);
                self.renewed += 1;
                return Ok(());
            }
        }
        io.core.move_out(io.cx, oldest, |io, lpn| {
            if 2 * valid >= io.core.pages && self.on_second_chance(lpn) {
                self.isolated += 1;
                return sequential.room_in(io, isolation);
            }
            self.set_second_chance(lpn, true);
            Ok(head)
        })?;
        self.area.remove(oldest);
        Ok(())
    }
}

impl Faster {
    fn new(params: &Params, settings: &LogSettings, core: &Core) -> Faster {
        let [isolation, circle] = parts(params, settings.log_blocks.into()).map(|n| n as u32);
        Faster {
            sequential: Sequential::new(1),
            circle: Circle {
                area: Area::new("random", ROLE_RANDOM, circle),
                second: BitSet::new(core.layout.logical_units),
                renewed: 0,
                isolated: 0,
            },
            isolation: Area::new("isolation", ROLE_COLD, isolation),
            sequential_pages: params.get(SEQUENTIAL_PAGES),
            last: None,
            run: 0,
            entered: 0,
            interval: params.get(ISOLATION_INTERVAL),
            idle_free: settings.idle_log_blocks,
        }
    }

    /// Writes a page of a long run to the sequential log block, which is opened in the middle of
    /// its logical block.
    fn open_in_the_middle(
        &mut self,
        io: &mut LogContext<'_, '_>,
        page: &HostPage<'_>,
    ) -> Result<(), FtlError> {
        let (lbn, offset) = (io.core.lbn(page.lpn()), io.core.offset(page.lpn()));
        let log = self.sequential.start(io, lbn)?;
        io.core.fill_up(io.cx, lbn, log, 0..offset, None)?;
        self.sequential.put(io, log, page)
    }
}

impl LogScheme for Faster {
    fn write(&mut self, io: &mut LogContext<'_, '_>, page: &HostPage<'_>) -> Result<(), FtlError> {
        let lpn = page.lpn();
        self.run = if self.last.is_some_and(|last| last.0 + 1 == lpn.0) { self.run + 1 } else { 1 };
        self.last = Some(lpn);
        self.circle.set_second_chance(lpn, false);
        if io.core.write_in_place(io.cx, page)? || self.sequential.write(io, page)? {
            return Ok(());
        }
        if self.run > self.sequential_pages {
            return self.open_in_the_middle(io, page);
        }
        let log = self.circle.room(io, &mut self.isolation, &mut self.sequential)?;
        io.core.append(io.cx, log, page)?;
        // `room` may have put the old version on its second chance
        self.circle.set_second_chance(lpn, false);
        self.entered = (self.entered + 1).min(self.interval);
        if self.entered >= self.interval
            && self.isolation.is_short(io.core, io.cx.flash.medium, KEPT)
        {
            self.entered = 0;
            self.sequential.reclaim_oldest_step(io, &mut self.isolation)?;
        }
        Ok(())
    }

    fn give_up(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        let (circle, isolation) = (&mut self.circle.area, &mut self.isolation);
        let isolation_is_least = isolation.budget == KEPT + 1;
        if circle.budget > 2 && (isolation_is_least || circle.budget > isolation.budget) {
            self.sequential.shrink(io, circle)
        } else if !isolation_is_least {
            self.sequential.shrink(io, isolation)
        } else {
            Err(io.core.no_space())
        }
    }

    fn idle(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError> {
        if !self.isolation.is_short(io.core, io.cx.flash.medium, self.idle_free) {
            return Ok(false);
        }
        self.sequential.reclaim_oldest_step(io, &mut self.isolation)?;
        Ok(true)
    }

    fn adopt(
        &mut self,
        io: &mut LogContext<'_, '_>,
        mut found: Vec<FoundLog>,
    ) -> Result<(), FtlError> {
        self.sequential.adopt(io, &mut found, true)?;
        self.circle.area.take_over(io, &mut found)?;
        self.isolation.take_over(io, &mut found)?;
        io.core.reclaim_all(io.cx, &found)
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![("renewed_blocks", self.circle.renewed), ("isolated_pages", self.circle.isolated)]
    }

    fn reset_counters(&mut self) {
        (self.circle.renewed, self.circle.isolated) = (0, 0);
    }

    fn areas(&self, core: &Core) -> Vec<AreaUse> {
        vec![self.sequential.usage(core), self.circle.area.usage(core), self.isolation.usage(core)]
    }

    fn knows(&self, core: &Core, log: BlockId) -> bool {
        self.sequential.contains(core, log)
            || self.circle.area.contains(core, log)
            || self.isolation.contains(core, log)
    }

    fn check(&self, core: &Core, medium: &Medium) -> Result<(), Violation> {
        self.sequential.check(core, medium)?;
        self.circle.area.check(core)?;
        self.isolation.check(core)
    }

    fn memory(&self, core: &Core) -> Vec<MemoryUse> {
        let table = |table, bytes| MemoryUse { table, memory: MemoryKind::Sram, bytes };
        let blocks = u64::from(self.circle.area.budget);
        vec![
            table("log blocks", u64::from(core.budget.limit()) * 4 + 4),
            table("second chances", (blocks * u64::from(core.pages)).div_ceil(8)),
        ]
    }
}
