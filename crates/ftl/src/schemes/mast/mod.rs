//! MAST: multi-level associated sector translation (papers/1).
//!
//! Kim, Kang, Ha, Cho, Eom: *MAST: Multi-Level Associated Sector Translation for NAND Flash
//! Memory-Based Storage System*. The log has three areas. New updates enter the *locality area*
//! (LA). A page that is updated there is hot, and moves to the *hot area* (HA). A page that leaves
//! LA or HA without an update is cold, and moves to the *cold area* (CA). Apart from the sequential
//! log blocks of LA, only the blocks of CA are merged. The paper leaves many points open. Each open
//! point is a parameter whose first value is the default.
//!
//! A page is written
//!
//! 1. to its place in its data block, if this place is erased;
//! 2. to a sequential log block of LA, by FAST's rule ([`Sequential`]);
//! 3. to HA, if its newest version is in HA or in a random log block of LA. With
//!    `ftl.cold_update=hot` this also holds for CA, and with `ftl.sequential_hit=hot` for a
//!    sequential log block;
//! 4. otherwise to a random log block of LA.
//!
//! An area fills its log blocks one after another. If it may open no more (section 2):
//!
//! - the oldest block without a valid page is erased (a dead merge). If every block has a valid
//!   page,
//! - *LA* selects the block that the host touched least recently, by a write to the block or by an
//!   update of one of its pages (`ftl.recency`). If at least `ftl.migrate_valid` of its pages are
//!   valid, the block becomes a block of CA without a copy (`ftl.migrate`). If CA has no block to
//!   spare, CA reclaims a block first, and LA then selects again. If fewer pages are valid, they
//!   are moved to CA in their order in the block, and the block is erased;
//! - *HA* moves the valid pages of its least recently touched block to CA, and erases the block;
//! - *CA* reclaims the block with the fewest associated logical blocks (`ftl.cold_victim`). Among
//!   equals it reclaims the block with the most valid pages, then the oldest. The associated
//!   logical blocks are merged in the order of their first valid pages. A logical block is merged
//!   with its sequential log block if that has a valid page, otherwise by a full merge. (A switch
//!   is impossible in CA: rules 1 and 2 handle the first page of every logical block, so this page
//!   never reaches CA.)
//!
//! In idle time CA merges one logical block after another until it may open `ftl.idle_log_blocks`
//! log blocks. A request waits for at most one merge. CA completes the reclamation of a log block
//! before it begins to reclaim another.

mod settings;
mod sizes;

use super::{SchemeConfig, SchemeDef};
use crate::MemoryUse;
use crate::logblock::{
    Area, Core, FoundLog, HostPage, Hybrid, LogContext, LogScheme, LogSettings, PARAMS, ROLE_COLD,
    ROLE_HOT, ROLE_RANDOM, Sequential, mechanisms,
};
use crate::report::AreaUse;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, FtlError, Mechanism, MemoryKind, Params, Violation};
use settings::{
    COLD_UPDATE, COLD_VICTIM, LEAST_COLD, MIGRATE, MIGRATE_VALID, RECENCY, SEQUENTIAL_HIT, fits,
    parts,
};
use sizes::{Resize, Sizes};
use std::cmp::Reverse;

pub const DEF: SchemeDef = SchemeDef {
    name: "mast",
    summary: "log blocks: locality, hot and cold areas; a page updated in the locality area is hot",
    paper: "Kim et al., MAST (papers/1)",
    params: &|_, _| Ok(PARAMS.iter().chain(settings::PARAMS).chain(sizes::PARAMS).collect()),
    fits: &|&SchemeConfig { params, .. }, layout| fits(params, layout),
    rebuild: &|&SchemeConfig { params, .. }, cx, _| {
        Ok(Box::new(Hybrid::mount(params, cx, |settings, core| Mast::new(params, settings, core))?))
    },
    on_flash: &[],
    mount_limit: &|_, layout| crate::logblock::mount_limit(layout),
    steady: None,
    small: &[
        &["ftl.log_blocks=7"],
        &[
            "ftl.log_blocks=8",
            "ftl.migrate_valid=0.4",
            "ftl.resize_window=16",
            "nand.program_order=any",
        ],
    ],
    mechanisms: &[
        mechanisms::IN_PLACE,
        mechanisms::SWITCH,
        mechanisms::PARTIAL,
        mechanisms::FULL,
        mechanisms::DEAD,
        Mechanism::new("hot area", "scheme.hot_pages"),
        Mechanism::new("migration to the cold area as it is", "merges.migrated_blocks")
            .without(&["ftl.migrate=copy"]),
        Mechanism::new("copy to the cold area", "merges.moved_pages"),
        Mechanism::new("locality area grows", "scheme.resized_to_locality")
            .without(&["ftl.resize_window=0"]),
        Mechanism::new("cold area grows", "scheme.resized_to_cold")
            .without(&["ftl.resize_window=0"]),
        Mechanism::new("hot area grows", "scheme.resized_to_hot").without(&["ftl.resize_hot=cold"]),
        Mechanism::new("cold area gets blocks back", "scheme.resized_back_to_cold")
            .without(&["ftl.resize_band=1"]),
        mechanisms::IN_IDLE_TIME,
    ],
};

/// The rule that selects the block of the cold area to reclaim.
#[derive(Clone, Copy)]
enum ColdVictim {
    Associated,
    Valid,
    Ratio,
}

struct Mast {
    sequential: Sequential,
    locality: Area,
    hot: Area,
    cold: Cold,
    resize: Resize,
    /// The number of blocks that CA has given to LA and has not received back.
    lent: u32,
    /// The number of pages that were found hot.
    hot_pages: u64,
    /// Changes of the sizes, in the order of [`Sizes`].
    resized: [u64; 4],
    /// The number of blocks that were reclaimed for a change of the sizes.
    reclaimed_to_resize: u64,
    /// The smallest number of valid pages with which a block migrates. No block migrates if this
    /// number exceeds the pages of a block.
    migrate_valid: u32,
    lru: bool,
    cold_update_is_hot: bool,
    sequential_hit_is_hot: bool,
    idle_free: u32,
}

/// The cold area.
struct Cold {
    area: Area,
    victim: ColdVictim,
}

impl Mast {
    fn new(params: &Params, settings: &LogSettings, core: &Core) -> Mast {
        let budget = u64::from(settings.log_blocks);
        let [sequential, locality, hot, cold] = parts(params, budget).map(|n| n as u32);
        let victim = match params.get(COLD_VICTIM) {
            "associated" => ColdVictim::Associated,
            "valid" => ColdVictim::Valid,
            _ => ColdVictim::Ratio,
        };
        let migrates = params.get(MIGRATE) == "relabel";
        let least = (params.get(MIGRATE_VALID) * f64::from(core.pages)).ceil() as u32;
        Mast {
            sequential: Sequential::new(sequential),
            locality: Area::new("locality", ROLE_RANDOM, locality),
            hot: Area::new("hot", ROLE_HOT, hot),
            cold: Cold { area: Area::new("cold", ROLE_COLD, cold), victim },
            resize: Resize::new(params, budget as u32),
            lent: 0,
            hot_pages: 0,
            resized: [0; 4],
            reclaimed_to_resize: 0,
            migrate_valid: if migrates { least.max(1) } else { u32::MAX },
            lru: params.get(RECENCY) == "lru",
            cold_update_is_hot: params.get(COLD_UPDATE) == "hot",
            sequential_hit_is_hot: params.get(SEQUENTIAL_HIT) == "hot",
            idle_free: settings.idle_log_blocks,
        }
    }

    /// Returns `true` if a page that the host updates is hot, given the place of its newest
    /// version.
    fn is_hot(&self, core: &Core, page: &HostPage<'_>) -> bool {
        let Some(log) = core.log_of(page.lpn()) else { return false };
        if self.cold.area.contains(core, log) {
            self.cold_update_is_hot
        } else if self.locality.contains(core, log) || self.hot.contains(core, log) {
            true
        } else {
            self.sequential_hit_is_hot
        }
    }

    fn leaves_next(&self, area: &Area, core: &Core, medium: &Medium) -> Option<BlockId> {
        if self.lru { area.least_recent(core, medium) } else { area.closed(core, medium).next() }
    }

    /// Returns the random log block of the locality area for the next page.
    fn room_in_locality(&mut self, io: &mut LogContext<'_, '_>) -> Result<BlockId, FtlError> {
        Area::room(self, |mast| &mut mast.locality, io, Mast::free_locality)
    }

    /// Does one step towards a free random log block in the locality area.
    fn free_locality(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        if self.locality.erase_empty(io)? {
            return Ok(());
        }
        let victim = self
            .leaves_next(&self.locality, io.core, io.cx.flash.medium)
            .ok_or_else(|| io.core.no_space())?;
        if io.core.valid(victim) < self.migrate_valid {
            io.core.move_out(io.cx, victim, |io, _| self.cold.room(io, &mut self.sequential))?;
            self.locality.remove(victim);
        } else if self.cold.area.len() < self.cold.area.budget {
            self.locality.remove(victim);
            self.cold.area.migrate(io.core, victim);
        } else {
            self.cold.reclaim(io, &mut self.sequential)?;
        }
        Ok(())
    }

    /// Returns the hot block for the next page.
    fn room_in_hot(&mut self, io: &mut LogContext<'_, '_>) -> Result<BlockId, FtlError> {
        Area::room(self, |mast| &mut mast.hot, io, Mast::free_hot)
    }

    /// Does one step towards a free hot block.
    fn free_hot(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        if self.hot.erase_empty(io)? {
            return Ok(());
        }
        let victim = self
            .leaves_next(&self.hot, io.core, io.cx.flash.medium)
            .ok_or_else(|| io.core.no_space())?;
        io.core.move_out(io.cx, victim, |io, _| self.cold.room(io, &mut self.sequential))?;
        self.hot.remove(victim);
        Ok(())
    }
}

impl Cold {
    /// Returns the cold block for the next page.
    fn room(
        &mut self,
        io: &mut LogContext<'_, '_>,
        sequential: &mut Sequential,
    ) -> Result<BlockId, FtlError> {
        Area::room(self, |cold| &mut cold.area, io, |cold, io| cold.reclaim(io, sequential))
    }

    /// Frees one block.
    fn reclaim(
        &mut self,
        io: &mut LogContext<'_, '_>,
        sequential: &mut Sequential,
    ) -> Result<(), FtlError> {
        while !self.reclaim_step(io, sequential)? {}
        Ok(())
    }

    /// Does one merge towards a free block. Returns `true` if a block is free now.
    fn reclaim_step(
        &mut self,
        io: &mut LogContext<'_, '_>,
        sequential: &mut Sequential,
    ) -> Result<bool, FtlError> {
        let begun = self.area.begun(io.core, io.cx.flash.medium);
        if begun.is_none() && self.area.erase_empty(io)? {
            return Ok(true);
        }
        let victim = begun
            .or_else(|| self.victim(io.core, io.cx.flash.medium))
            .ok_or_else(|| io.core.no_space())?;
        sequential.reclaim_step(io, &mut self.area, victim)
    }

    /// Returns the block to reclaim (papers/1, section 2.2), or `None` if there is no candidate.
    fn victim(&self, core: &Core, medium: &Medium) -> Option<BlockId> {
        let candidates = || self.area.closed(core, medium);
        let associated = |b: BlockId| core.log(b).lbns.len() as u64;
        let valid = |b: BlockId| u64::from(core.valid(b));
        match self.victim {
            ColdVictim::Associated => {
                candidates().min_by_key(|&b| (associated(b), Reverse(valid(b))))
            }
            ColdVictim::Valid => candidates().min_by_key(|&b| (Reverse(valid(b)), associated(b))),
            // the largest ratio valid / associated, in fixed point with 32 fractional bits
            ColdVictim::Ratio => {
                candidates().min_by_key(|&b| Reverse((valid(b) << 32) / associated(b).max(1)))
            }
        }
    }
}

impl LogScheme for Mast {
    fn write(&mut self, io: &mut LogContext<'_, '_>, page: &HostPage<'_>) -> Result<(), FtlError> {
        // this is determined before the write, because rule 2 may merge the block with the old
        // version
        let hot = self.is_hot(io.core, page);
        if !io.core.write_in_place(io.cx, page)? && !self.sequential.write(io, page)? {
            self.hot_pages += u64::from(hot);
            let log = if hot { self.room_in_hot(io)? } else { self.room_in_locality(io)? };
            io.core.append(io.cx, log, page)?;
        }
        let change = self.resize.after_write(io.core, &self.hot, &self.cold.area, self.lent > 0);
        change.map_or(Ok(()), |change| self.resize(io, change))
    }

    fn give_up(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        let spare = [
            self.locality.budget - sizes::LEAST_LOCALITY,
            self.hot.budget - sizes::LEAST_HOT,
            self.cold.area.budget - LEAST_COLD,
        ];
        let most = spare.into_iter().max().expect("three areas");
        if most == 0 {
            return Err(io.core.no_space());
        }
        if spare[2] == most {
            let (cold, sequential) = (&mut self.cold, &mut self.sequential);
            Area::shrink(cold, |c| &mut c.area, io, |c, io| c.reclaim(io, sequential))
        } else if spare[1] == most {
            Area::shrink(self, |mast| &mut mast.hot, io, Mast::free_hot)
        } else {
            Area::shrink(self, |mast| &mut mast.locality, io, Mast::free_locality)
        }
    }

    fn idle(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError> {
        if !self.cold.area.is_short(io.core, io.cx.flash.medium, self.idle_free) {
            return Ok(false);
        }
        self.cold.reclaim_step(io, &mut self.sequential)?;
        Ok(true)
    }

    fn adopt(
        &mut self,
        io: &mut LogContext<'_, '_>,
        mut found: Vec<FoundLog>,
    ) -> Result<(), FtlError> {
        self.sequential.adopt(io, &mut found, false)?;
        self.hot.take_over(io, &mut found)?;
        self.cold.area.take_over(io, &mut found)?;
        // the spare areas of migrated blocks still name the locality area
        let mut entered = FoundLog::take(&mut found, ROLE_RANDOM);
        while entered.len() as u32 > self.locality.budget
            && self.cold.area.len() < self.cold.area.budget
        {
            let oldest = entered.remove(0);
            self.cold.area.migrate(io.core, oldest.block);
        }
        self.locality.take_over(io, &mut entered)?;
        io.core.reclaim_all(io.cx, &found)
    }

    fn areas(&self, core: &Core) -> Vec<AreaUse> {
        let areas = [&self.locality, &self.hot, &self.cold.area].map(|area| area.usage(core));
        std::iter::once(self.sequential.usage(core)).chain(areas).collect()
    }

    fn knows(&self, core: &Core, log: BlockId) -> bool {
        let areas = [&self.locality, &self.hot, &self.cold.area];
        self.sequential.contains(core, log) || areas.iter().any(|area| area.contains(core, log))
    }

    fn check(&self, core: &Core, medium: &Medium) -> Result<(), Violation> {
        self.sequential.check(core, medium)?;
        [&self.locality, &self.hot, &self.cold.area]
            .iter()
            .try_for_each(|area| area.check(core))?;
        let sum =
            self.sequential.budget + self.locality.budget + self.hot.budget + self.cold.area.budget;
        Violation::unless(sum == core.budget.limit(), "the areas share the whole log", || {
            format!("the areas have {sum} blocks, but the log has {}", core.budget.limit())
        })
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let resized = Sizes::COUNTERS.into_iter().zip(self.resized);
        [("hot_pages", self.hot_pages), ("reclaimed_to_resize", self.reclaimed_to_resize)]
            .into_iter()
            .chain(resized)
            .collect()
    }

    fn reset_counters(&mut self) {
        (self.hot_pages, self.resized, self.reclaimed_to_resize) = (0, [0; 4], 0);
    }

    fn memory(&self, core: &Core) -> Vec<MemoryUse> {
        let table = |table, bytes| MemoryUse { table, memory: MemoryKind::Sram, bytes };
        let listed = if self.lru { self.locality.budget + self.hot.budget } else { 0 };
        let cold_pages = u64::from(self.cold.area.budget) * u64::from(core.pages);
        vec![
            // the area or the logical block of each log block
            table("log blocks", u64::from(core.budget.limit()) * 4),
            // two links for each block in the order of recency
            table("recency lists", u64::from(listed) * 4),
            // each page of the cold area may belong to another logical block, with its number and a
            // count
            table("associations", cold_pages * 5),
        ]
    }
}

impl Mast {
    /// Moves one log block of budget between two areas, if the first area can spare it.
    fn resize(&mut self, io: &mut LogContext<'_, '_>, change: Sizes) -> Result<(), FtlError> {
        let from_cold = change == Sizes::ColdToLocality;
        let (from, least) = if from_cold {
            (&mut self.cold.area, self.resize.least_cold)
        } else {
            (&mut self.locality, sizes::LEAST_LOCALITY)
        };
        if from.budget <= least {
            return Ok(());
        }
        if from.len() >= from.budget && !from.erase_empty(io)? {
            if !self.resize.reclaims {
                return Ok(());
            }
            self.reclaimed_to_resize += 1;
            if from_cold {
                let (cold, sequential) = (&mut self.cold, &mut self.sequential);
                Area::spare(cold, |c| &mut c.area, io, |c, io| c.reclaim(io, sequential))?;
            } else {
                Area::spare(self, |mast| &mut mast.locality, io, Mast::free_locality)?;
            }
        }
        let (from, to) = match change {
            Sizes::ColdToLocality => (&mut self.cold.area, &mut self.locality),
            Sizes::LocalityToCold | Sizes::BackToCold => (&mut self.locality, &mut self.cold.area),
            Sizes::LocalityToHot => (&mut self.locality, &mut self.hot),
        };
        from.budget -= 1;
        to.budget += 1;
        match change {
            Sizes::ColdToLocality => self.lent += 1,
            Sizes::LocalityToCold | Sizes::BackToCold => self.lent = self.lent.saturating_sub(1),
            Sizes::LocalityToHot => {}
        }
        self.resized[change as usize] += 1;
        self.resize.changed();
        Ok(())
    }
}
