//! The translation layer around a log-block scheme, with the parts that all schemes share.

use super::{Core, FoundLog, HostPage, LogContext, LogSettings};
use crate::blocks::Role;
use crate::notes::LOG_BLOCK_LOOKUPS;
use crate::report::AreaUse;
use crate::units::check_names;
use crate::{
    FREE_CHANGES, Ftl, FtlContext, FtlReport, Idle, Located, MapCounters, MemoryUse, MergeCounters,
    Place,
};
use flashatlas_nand::{Medium, Unit};
use flashatlas_types::{
    BlockId, Cause, Class, FtlError, LogicalBlock, Lpn, MemoryKind, Note, OpId, OpKind, Params,
    TiVec, Violation, ti_vec,
};

/// A log-block scheme. It decides which log block stores a host page, and which log block is
/// reclaimed.
pub(crate) trait LogScheme: Send {
    /// `true` if data is in data blocks, each page at its offset; `false` if all data is in log
    /// blocks.
    const HAS_DATA_BLOCKS: bool = true;

    /// Begins a request of `pages` consecutive pages. [`LogScheme::write`] is then called for each
    /// page.
    fn request(&mut self, first: Lpn, pages: u32) {
        let _ = (first, pages);
    }

    /// Writes one page.
    ///
    /// # Errors
    /// Returns [`FtlError::NoSpace`] if nothing can be reclaimed.
    fn write(&mut self, io: &mut LogContext<'_, '_>, page: &HostPage<'_>) -> Result<(), FtlError>;

    /// Notes that a trim has invalidated the last valid page of a log block.
    fn emptied(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError> {
        let _ = io;
        Ok(())
    }

    /// Gives up one log block of the budget
    /// ([`LogBudget::give_up`](super::budget::LogBudget::give_up)), because blocks have gone bad.
    ///
    /// # Errors
    /// Returns [`FtlError::NoSpace`] if the scheme cannot give up a log block.
    fn give_up(&mut self, io: &mut LogContext<'_, '_>) -> Result<(), FtlError>;

    /// Does one small piece of reclamation, if the scheme uses idle time. Returns `true` if work
    /// was done.
    fn idle(&mut self, io: &mut LogContext<'_, '_>) -> Result<bool, FtlError>;

    /// Adopts the log blocks that a mount found.
    fn adopt(&mut self, io: &mut LogContext<'_, '_>, found: Vec<FoundLog>) -> Result<(), FtlError>;

    /// Returns the areas of the log.
    fn areas(&self, core: &Core) -> Vec<AreaUse>;

    /// Returns whether the scheme's tables list a log block.
    fn knows(&self, core: &Core, log: BlockId) -> bool;

    /// Checks the scheme's own rules.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check(&self, core: &Core, medium: &Medium) -> Result<(), Violation>;

    /// Returns the bytes of an entry in the log map. By default an entry has a logical and a
    /// physical page number of 4 bytes each. If the log block itself determines most of the entry,
    /// fewer bytes suffice.
    fn log_entry_bytes(&self, core: &Core) -> u64 {
        let _ = core;
        8
    }

    /// Returns the scheme's own tables, without the block map and the log map.
    fn memory(&self, core: &Core) -> Vec<MemoryUse>;

    /// Returns additional counters by name.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Sets the counters to zero.
    fn reset_counters(&mut self) {}

    /// Returns the scheme's own approximations, without the approximations that all log-block
    /// schemes share.
    fn approximations(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// A log-block scheme as a translation layer.
pub(crate) struct Hybrid<S> {
    core: Core,
    scheme: S,
    /// The number of pieces of work done in idle time.
    idle_steps: u64,
}

impl<S: LogScheme> Hybrid<S> {
    /// Builds the tables from the medium. `scheme` builds an empty scheme, which then adopts the
    /// log blocks that the mount found.
    pub fn mount(
        params: &Params,
        cx: &mut FtlContext<'_>,
        scheme: impl FnOnce(&LogSettings, &Core) -> S,
    ) -> Result<Hybrid<S>, FtlError> {
        let layout = cx.flash.medium.layout();
        let good = cx.flash.medium.good_blocks();
        let settings = LogSettings::new(params, layout, good);
        let before = cx.flash.medium.counters;
        let (core, found) = Core::mount(&settings, cx, S::HAS_DATA_BLOCKS)?;
        let scheme = scheme(&settings, &core);
        let mut ftl = Hybrid { core, scheme, idle_steps: 0 };
        ftl.scheme.adopt(&mut LogContext { core: &mut ftl.core, cx }, found)?;
        ftl.core.end_borrowing(&settings);
        ftl.core.count_deficit();
        ftl.give_up_lost(cx)?;
        ftl.core.cause = Cause::Merge;
        ftl.core.mount.finish(&before, cx.flash.medium);
        ftl.reset_counters();
        Ok(ftl)
    }

    /// Gives up the log blocks of the deficit. Blocks have gone bad, and no spare blocks replace
    /// them.
    fn give_up_lost(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        while self.core.budget.deficit() > 0 {
            self.scheme.give_up(&mut LogContext { core: &mut self.core, cx })?;
        }
        Ok(())
    }
}

impl<S: LogScheme> Ftl for Hybrid<S> {
    fn locate(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn, _: u32) -> Result<Located, FtlError> {
        self.core.lookups.lookups += 1;
        self.core.lookups.hits += 1;
        // one access to the log map, then one access to the block map
        let access = OpKind::Memory { kind: MemoryKind::Sram, accesses: 2, bytes: 4, write: false };
        let ready = cx.flash.plan.push(access, Class::Map, &[cx.command.first]);
        Ok(Located { place: self.peek(lpn), ready })
    }

    fn peek(&self, lpn: Lpn) -> Place {
        self.core.newest[lpn].mapped().map_or(Place::Nowhere, Place::Flash)
    }

    fn write(
        &mut self,
        cx: &mut FtlContext<'_>,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError> {
        let arrived = cx.flash.plan.join(cause.class(false), after);
        self.scheme.request(run[0].lpn, run.len() as u32);
        for unit in run {
            self.core.tick();
            self.core.lookups.updates += 1;
            self.scheme.write(
                &mut LogContext { core: &mut self.core, cx },
                &HostPage { unit, cause, arrived },
            )?;
            self.give_up_lost(cx)?;
        }
        Ok(())
    }

    fn trim(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<(), FtlError> {
        let log = self.core.log_of(lpn);
        self.core.trim(cx, lpn)?;
        if log.is_some_and(|log| self.core.valid(log) == 0) {
            self.scheme.emptied(&mut LogContext { core: &mut self.core, cx })?;
        }
        self.give_up_lost(cx)
    }

    /// Does nothing, because no data is buffered.
    fn flush(&mut self, _: &mut FtlContext<'_>) -> Result<(), FtlError> {
        Ok(())
    }

    /// Makes trims durable. A mount can rebuild every other table from the spare areas.
    fn persist(&mut self, cx: &mut FtlContext<'_>, fua: bool) -> Result<OpId, FtlError> {
        if fua { Ok(OpId::NONE) } else { self.core.record_trims(cx) }
    }

    fn idle(&mut self, cx: &mut FtlContext<'_>) -> Result<Idle, FtlError> {
        self.core.cause = Cause::Idle;
        let worked = self
            .scheme
            .idle(&mut LogContext { core: &mut self.core, cx })
            .and_then(|worked| self.give_up_lost(cx).map(|()| worked));
        self.core.cause = Cause::Merge;
        let worked = worked?;
        self.idle_steps += u64::from(worked);
        Ok(if worked { Idle::Worked } else { Idle::Nothing })
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        self.core.blocks.for_each_block(visit);
    }

    fn check(&self, medium: &Medium) -> Result<(), Violation> {
        medium.check()?;
        self.core.check(medium)?;
        for block in self.core.layout.block_ids() {
            if self.core.blocks.role(block) == Role::Log {
                let known = self.scheme.knows(&self.core, block);
                Violation::unless(
                    known,
                    "every log block belongs to a part of the scheme",
                    || format!("{block}"),
                )?;
            }
        }
        let areas = self.scheme.areas(&self.core);
        let blocks: u32 = areas.iter().map(|a| a.blocks).sum();
        Violation::unless(
            blocks == self.core.budget.in_use(),
            "the areas hold every log block once",
            || {
                format!(
                    "there are {} log blocks, but the areas hold {areas:?}",
                    self.core.budget.in_use()
                )
            },
        )?;
        self.scheme.check(&self.core, medium)
    }

    fn report(&self) -> FtlReport {
        let mut memory = if S::HAS_DATA_BLOCKS {
            self.core.memory(self.scheme.log_entry_bytes(&self.core))
        } else {
            Vec::new()
        };
        memory.extend(self.scheme.memory(&self.core));
        memory.extend(self.core.trims.memory());
        FtlReport {
            map: self.core.lookups,
            merges: Some(self.core.merges),
            scheme_details: [("idle_steps", self.idle_steps)]
                .into_iter()
                .chain(self.scheme.details())
                .collect(),
            areas: self.scheme.areas(&self.core),
            free_blocks: self.core.free.len().into(),
            retired_blocks: self.core.retired,
            mount: self.core.mount.clone(),
            memory,
            approximations: [FREE_CHANGES.note(), LOG_BLOCK_LOOKUPS.note()]
                .into_iter()
                .chain(self.scheme.approximations())
                .collect(),
            ..FtlReport::default()
        }
    }

    fn reset_counters(&mut self) {
        self.idle_steps = 0;
        self.scheme.reset_counters();
        self.core.lookups = MapCounters::default();
        self.core.merges = MergeCounters { log_blocks: Some([0; 5]), ..MergeCounters::default() };
    }
}

impl Core {
    /// Returns the sizes of the block map and the log map, with `log_entry` bytes for each page of
    /// the log.
    fn memory(&self, log_entry: u64) -> Vec<MemoryUse> {
        let table = |table, bytes| MemoryUse { table, memory: MemoryKind::Sram, bytes };
        vec![
            table("block map", self.data.len() as u64 * 4),
            table("log map", u64::from(self.budget.limit()) * u64::from(self.pages) * log_entry),
        ]
    }

    /// Checks the O(n) rules of the shared tables.
    fn check(&self, medium: &Medium) -> Result<(), Violation> {
        self.blocks.check(&self.layout, medium)?;
        let mut live: TiVec<LogicalBlock, u32> = ti_vec![0; self.live.len()];
        let mut associated = std::collections::BTreeMap::new();
        for (lpn, ppn) in self.newest.iter_enumerated() {
            let Some(ppn) = ppn.mapped() else { continue };
            let (lbn, block) = (self.lbn(lpn), self.layout.block_of(ppn));
            live[lbn] += 1;
            Violation::unless(
                self.blocks.is_valid(ppn),
                "the newest version of a page is valid",
                || format!("page {lpn} is in slot {ppn}"),
            )?;
            check_names(medium, ppn, lpn)?;
            if self.logs[block].is_some() {
                *associated.entry((block, lbn)).or_insert(0) += 1;
                continue;
            }
            let home = self.data[lbn];
            let at_home = home == Some(block) && ppn.0 % self.pages == self.offset(lpn);
            Violation::unless(
                at_home,
                "a page is in the log, or in its data block at its offset",
                || format!("page {lpn} is in slot {ppn}, but its data block is {home:?}"),
            )?;
        }
        let valid = self.blocks.total();
        let mapped: u32 = live.iter().sum();
        Violation::unless(
            u64::from(mapped) == valid,
            "every valid slot is the newest version of a page",
            || format!("{mapped} slots are mapped, but {valid} slots are valid"),
        )?;
        Violation::unless(
            live == self.live,
            "the pages of each logical block are counted",
            String::new,
        )?;
        for block in self.layout.block_ids() {
            let Some(log) = &self.logs[block] else { continue };
            for (&lbn, &pages) in &log.lbns {
                let found = associated.remove(&(block, lbn)).unwrap_or(0);
                Violation::unless(
                    found == pages,
                    "a log block counts the pages of each logical block",
                    || {
                        format!(
                            "log block {block} counts {pages} pages of logical block {lbn}, but \
                             {found} of them are valid"
                        )
                    },
                )?;
            }
        }
        Violation::unless(
            associated.is_empty(),
            "every logical block with a page in a log block is associated",
            || format!("{associated:?}"),
        )?;
        self.check_roles()
    }

    fn check_roles(&self) -> Result<(), Violation> {
        let count = |role| self.blocks.count(role);
        let data_blocks = self.data.iter().flatten().count();
        let own = self.data.iter().flatten().all(|&b| self.blocks.role(b) == Role::Data);
        Violation::unless(
            own && count(Role::Data) == data_blocks,
            "every data block belongs to a logical block",
            || format!("there are {} data blocks, but {data_blocks} are mapped", count(Role::Data)),
        )?;
        let without_data_block = self.data.len() - data_blocks;
        Violation::unless(
            without_data_block as u32 == self.without_data_block,
            "logical blocks without a data block are counted",
            || {
                format!(
                    "{} logical blocks are counted, but {without_data_block} are found",
                    self.without_data_block
                )
            },
        )?;
        let logs = self.logs.iter().flatten().count();
        let agree = logs as u32 == self.budget.in_use() && count(Role::Log) == logs;
        Violation::unless(agree, "every log block has its metadata", || {
            format!(
                "there are {} log blocks: {logs} have metadata, and {} are counted",
                count(Role::Log),
                self.budget.in_use()
            )
        })?;
        self.budget.check()?;
        let listed = self.free.iter().filter(|&b| self.blocks.role(b) == Role::Free).count();
        let all = listed as u32 == self.free.len() && count(Role::Free) == listed;
        Violation::unless(all, "every free block is listed", || {
            format!(
                "{} blocks are free, but {} blocks are listed",
                count(Role::Free),
                self.free.len()
            )
        })
    }
}
