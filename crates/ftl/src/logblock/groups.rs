//! Log blocks for groups. N neighbouring logical blocks share up to K log blocks that no other
//! group uses (Park et al., ACM TECS 38, 2008: reference 9 of papers/1). BAST is the case N = K = 1
//! (Kim et al., IEEE TCE 48:2, 2002).
//!
//! - A page is written to its place in the data block if this place is erased. Otherwise it is
//!   written to the next page of its group's newest log block.
//! - If that log block is full, the group opens another. If the group already has K log blocks, its
//!   oldest log block is reclaimed first.
//! - If the log has no free block, the group that was written least recently gives up its oldest
//!   log block.
//!
//! A log block needs only a switch or a partial merge if all its pages belong to one logical block,
//! are the newest versions, and are at their offsets. Any other log block needs a full merge of
//! each associated logical block.

use super::area::area_use;
use super::{
    Core, FoundLog, HostPage, LogContext, LogScheme, LogSettings, ROLE_GROUP, fits_budget,
};
use crate::MemoryUse;
use crate::report::AreaUse;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, ConfigError, FtlError, Layout, MemoryKind, Param, Params, Violation,
};
use rustc_hash::FxHashMap;

/// The parameter N of SAST.
pub(crate) const GROUP_BLOCKS: Param<u32> = Param::int(
    "ftl.group_blocks",
    1,
    1 << 20,
    "N: neighbouring logical blocks that share log blocks",
)
.or("4");

/// The parameter K of SAST.
pub(crate) const GROUP_LOG_BLOCKS: Param<u32> =
    Param::int("ftl.group_log_blocks", 1, 1 << 20, "K: log blocks that a group may have").or("2");

/// Checks that the layout has room for groups of `most` log blocks.
pub(crate) fn fits_groups(params: &Params, layout: &Layout, most: u64) -> Result<(), ConfigError> {
    let budget = fits_budget(params, layout, 1)?;
    if most > budget {
        return Err(ConfigError::new(
            "ftl.group_log_blocks",
            format!(
                "a group may have {most} log blocks, but all groups together have {budget} \
                 (ftl.log_blocks)"
            ),
        ));
    }
    Ok(())
}

/// The log blocks of the groups.
pub(crate) struct Groups {
    /// N.
    size: u32,
    /// K.
    most: u32,
    idle_free: u32,
    of: FxHashMap<u32, LogGroup>,
}

#[derive(Default)]
struct LogGroup {
    /// Log blocks, oldest first.
    logs: Vec<BlockId>,
    /// The clock of the last write to the group.
    written: u64,
}

impl Groups {
    pub fn new(size: u32, most: u32, settings: &LogSettings) -> Groups {
        Groups { size, most, idle_free: settings.idle_log_blocks, of: FxHashMap::default() }
    }

    /// Reclaims the oldest log block of a group.
    fn reclaim_oldest(&mut self, io: &mut LogContext<'_, '_>, group: u32) -> Result<(), FtlError> {
        let log = self.of.get(&group).expect("the group has a log block").logs[0];
        let metadata = io.core.log(log);
        if metadata.in_place {
            let lbn = metadata.owner;
            io.core.merge_log(io.cx, log, lbn, None)?;
        } else {
            io.core.reclaim(io.cx, log, |io, lbn| io.core.full_merge(io.cx, lbn, None))?;
        }
        let entry = self.of.get_mut(&group).expect("as before");
        entry.logs.remove(0);
        if entry.logs.is_empty() {
            self.of.remove(&group);
        }
        Ok(())
    }

    /// Reclaims the oldest log block of the group that was written least recently.
    fn reclaim_least_recent(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        let victim = self.oldest().ok_or_else(|| io.core.no_space())?;
        self.reclaim_oldest(io, victim)
    }

    /// Returns the group that was written least recently, or `None` if there is no group.
    fn oldest(&self) -> Option<u32> {
        self.of.iter().min_by_key(|(_, g)| g.written).map(|(&group, _)| group)
    }
}

impl LogScheme for Groups {
    fn write(&mut self, io: &mut LogContext<'_, '_>, page: &HostPage<'_>) -> Result<(), FtlError> {
        if io.core.write_in_place(io.cx, page)? {
            return Ok(());
        }
        let group = io.core.lbn(page.lpn()).number() / self.size;
        let logs = self.of.get(&group).map_or(&[][..], |g| &g.logs);
        let frontier = logs
            .last()
            .copied()
            .filter(|&log| io.cx.flash.medium.write_pointer(log) < io.core.pages);
        let log = match frontier {
            Some(log) => log,
            None => {
                if logs.len() as u32 == self.most {
                    self.reclaim_oldest(io, group)?;
                }
                while !io.core.has_slot() {
                    self.reclaim_least_recent(io)?;
                }
                let log = io.core.take_log_block(io.cx, ROLE_GROUP)?;
                self.of.entry(group).or_default().logs.push(log);
                log
            }
        };
        io.core.append(io.cx, log, page)?;
        self.of.get_mut(&group).expect("the group has a log block").written = io.core.clock;
        Ok(())
    }

    fn give_up(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        if io.core.budget.limit() == 1 {
            return Err(io.core.no_space());
        }
        while io.core.budget.in_use() >= io.core.budget.limit() {
            self.reclaim_least_recent(io)?;
        }
        io.core.budget.give_up();
        Ok(())
    }

    fn idle(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError> {
        if io.core.budget.free_slots() >= self.idle_free || self.of.is_empty() {
            return Ok(false);
        }
        self.reclaim_least_recent(io)?;
        Ok(true)
    }

    fn adopt(&mut self, io: &mut LogContext<'_, '_>, found: Vec<FoundLog>) -> Result<(), FtlError> {
        for log in found {
            let group = io.core.log(log.block).group(self.size);
            let own = log.role == ROLE_GROUP && io.core.log(log.block).holds_only(group, self.size);
            if !own {
                io.core.reclaim_all(io.cx, &[log])?;
                continue;
            }
            if self.of.get(&group).is_some_and(|g| g.logs.len() as u32 == self.most) {
                self.reclaim_oldest(io, group)?;
            }
            let entry = self.of.entry(group).or_default();
            entry.logs.push(log.block);
            entry.written = io.core.log(log.block).touched;
        }
        Ok(())
    }

    fn areas(&self, core: &Core) -> Vec<AreaUse> {
        vec![area_use(
            "log",
            core.budget.limit(),
            self.of.values().flat_map(|g| g.logs.iter().copied()),
            core,
        )]
    }

    fn knows(&self, core: &Core, log: BlockId) -> bool {
        self.of.get(&core.log(log).group(self.size)).is_some_and(|g| g.logs.contains(&log))
    }

    fn check(&self, core: &Core, _: &Medium) -> Result<(), Violation> {
        for (&group, entry) in &self.of {
            let within = (1..=self.most).contains(&(entry.logs.len() as u32));
            Violation::unless(within, "a group has one to K log blocks", || {
                format!(
                    "group {group} has {} of at most {} log blocks",
                    entry.logs.len(),
                    self.most
                )
            })?;
            let own = |&log: &BlockId| core.log(log).holds_only(group, self.size);
            Violation::unless(
                entry.logs.iter().all(own),
                "a group's log blocks hold its pages only",
                || format!("the log blocks of group {group} hold {:?}", entry.logs),
            )?;
        }
        Ok(())
    }

    /// Returns the bytes of a page's number in its group, because an entry needs nothing else.
    fn log_entry_bytes(&self, core: &Core) -> u64 {
        let pages = u64::from(self.size) * u64::from(core.pages);
        u64::from(u64::BITS - (pages - 1).leading_zeros()).div_ceil(8).max(1)
    }

    fn memory(&self, core: &Core) -> Vec<MemoryUse> {
        // each group stores its number, K block numbers, and a link of the list by recency; there
        // are at most as many groups as log blocks
        let groups = u64::from(core.budget.limit()).min(core.lbns().div_ceil(u64::from(self.size)));
        let bytes = groups * (4 + 4 * u64::from(self.most) + 4);
        vec![MemoryUse { table: "log blocks of groups", memory: MemoryKind::Sram, bytes }]
    }
}
