//! Stores that have a part of the map in memory and load map pages on demand. This module is their
//! common code: the map on flash, pages with moves that are not written yet, trims, mounts and
//! counters. Each store is a [`Cache`], which decides which entries are in memory and which entries
//! leave.
//!
//! A map page is written whole and up to date, with every change to it that is in memory ("batch
//! update"). A change by collection stays in memory if the entry is there. Other changes by
//! collection are gathered by map page and written before the erase of the collected block (DFTL,
//! section 3: lazy copying and batch updates). In addition to the data, a FLUSH writes only the
//! trims, because a mount finds everything else in the spare areas.

pub(crate) use super::cache::{Cache, Io};
use super::misses::Misses;
use super::moves::Moves;
use super::{MapOnFlash, MapShape, quota};
use crate::caching::CachePolicy;
use crate::maps::{MapContext, MapPage, MapStore, Replay, Update};
use crate::pool::GC_PACE;
use crate::pool::{MapQuota, Pool};
use crate::report::{PageCounters, Reason};
use crate::{FtlContext, MapCounters, MemoryUse, MountReport};
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, Class, ConfigError, FtlError, Layout, Lpn, Mechanism, MemoryKind, Note, OpId, OpKind,
    Param, ParamDef, Params, Ppn, PpnTable, SeededBug, StreamId, Violation,
};

/// The parameter `map.page_bytes`.
pub(crate) const PAGE_BYTES: Param<u64> = Param::bytes(
    "map.page_bytes",
    64,
    1 << 20,
    "bytes of a map page; a page larger than a frame is cut to one frame",
)
.or("16KiB");

const CACHE_BYTES: Param<u64> = Param::bytes(
    "map.cache_bytes",
    1,
    1 << 40,
    "bytes of SRAM for the part of the map that is in memory, without the directory of map pages",
);

/// Returns the parameter `map.cache_bytes` with a store's own default.
pub(crate) const fn cache_bytes(default: &'static str) -> ParamDef {
    CACHE_BYTES.or(default).def
}

/// Mechanisms that these stores share. Each store lists the mechanisms that it uses.
pub(crate) const LOADS: Mechanism = Mechanism::new("load on demand", "map.loads");
pub(crate) const WRITES_ON_EVICTION: Mechanism =
    Mechanism::new("changed entries written on eviction", "map.writes.evict");

/// A store that loads map pages on demand.
pub(crate) struct Paged<C> {
    map: MapOnFlash,
    cache: C,
    budget: u64,
    entry_bytes: u32,
    /// Moves that are neither in memory nor on flash, gathered until the erase of the block.
    moved: Moves,
    /// The cache policy with its misses, if the store has a policy.
    misses: Option<Misses>,
    counters: MapCounters,
}

/// Returns the map's shape under the parameters.
pub(crate) fn shape(params: &Params, layout: &Layout) -> Result<MapShape, ConfigError> {
    MapShape::new(params, layout, PAGE_BYTES, false)
}

/// Checks that at least `least` bytes of the map fit into memory, and returns the blocks of each
/// lane that are reserved for map pages.
pub(crate) fn fits(
    params: &Params,
    layout: &Layout,
    least: impl Fn(&MapShape) -> u64,
    what: &str,
) -> Result<MapQuota, ConfigError> {
    let shape = shape(params, layout)?;
    let (budget, least) = (params.get(CACHE_BYTES), least(&shape));
    if budget < least {
        return Err(ConfigError::new(
            "map.cache_bytes",
            format!("{budget} bytes are less than one request needs: {what} take {least} bytes"),
        ));
    }
    Ok(quota(params, layout, &shape))
}

impl<C: Cache> Paged<C> {
    /// Returns an empty map. If `counted` is `true`, the changed entries of each map page are
    /// counted.
    pub fn new(
        params: &Params,
        layout: &Layout,
        counted: bool,
        cache: impl FnOnce(&MapOnFlash, u64) -> C,
    ) -> Paged<C> {
        let shape = shape(params, layout).expect("the configuration is checked");
        let (map, budget) = (MapOnFlash::new(layout, &shape, counted), params.get(CACHE_BYTES));
        Paged {
            cache: cache(&map, budget),
            budget,
            entry_bytes: shape.entry_bytes,
            moved: Moves::new(params.has(GC_PACE) && params.get(GC_PACE) == "paced"),
            misses: None,
            counters: MapCounters::default(),
            map,
        }
    }

    /// Returns the same store with a cache policy. The policy decides which pages stay in memory
    /// and which are prefetched.
    pub fn with_policy(mut self, build: impl FnOnce(u32) -> Box<dyn CachePolicy>) -> Paged<C> {
        let table = &self.map.table;
        self.misses = Some(Misses::new(build(table.pages()), table.page_bytes()));
        self
    }

    /// Loads an entry that the host needs into memory. Returns the operation after which the entry
    /// is in memory, and `true` if no read was necessary.
    fn bring(
        &mut self,
        io: &mut MapContext<'_, '_>,
        lpn: Lpn,
        change: bool,
    ) -> Result<(OpId, bool), FtlError> {
        let page = self.map.table.page_of(lpn);
        if self.cache.holds(&self.map, lpn) {
            self.cache.used(&self.map, lpn);
            let Some(misses) = &mut self.misses else { return Ok((io.cx.command.first, true)) };
            let there = match misses.used(&self.cache, page, lpn, change) {
                OpId::NONE => io.cx.command.first,
                brought => io.cx.flash.plan.join(Class::Map, &[io.cx.command.first, brought]),
            };
            return Ok((there, true));
        }
        if !change && self.cache.predicts(&self.map, lpn) {
            return Ok((io.cx.command.first, true));
        }
        if !change
            && let Some(misses) = &self.misses
            && !self.moved.hide(page, lpn)
            && let Some(ready) = misses.passing(io.cx.command.number, page)
        {
            return Ok((ready, true));
        }
        self.write_moves_of(io, lpn)?;
        let ready = match self.misses.take() {
            None => self.with(io, |cache, io| cache.fetch(io, lpn))?,
            Some(mut misses) => {
                // the set is lent to the policy: if pages are evicted meanwhile, their moves stay
                // in the set
                let moved = std::mem::take(&mut self.moved.pages);
                let ready =
                    self.with(io, |cache, io| misses.missed(cache, io, &moved, lpn, change));
                self.moved.pages = moved;
                self.misses = Some(misses);
                ready?
            }
        };
        self.overlay(page);
        Ok((ready, false))
    }

    /// Passes moves of a map page that was loaded to the cache, if the cache accepts them.
    fn overlay(&mut self, page: MapPage) {
        let taken = |lpn| self.cache.takes_moves(&self.map, lpn);
        for lpn in self.moved.take(page, self.map.table.lpns(page), taken) {
            self.cache.overlaid(&self.map, lpn);
        }
    }

    /// Calls `work` with the cache, and then notifies the cache of the map pages that were written.
    fn with<T>(
        &mut self,
        io: &mut MapContext<'_, '_>,
        work: impl FnOnce(&mut C, &mut Io<'_, '_>) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        let mut io = Io {
            cx: io.cx,
            pool: io.pool,
            ahead: io.ahead,
            map: &mut self.map,
            written: Vec::new(),
        };
        let done = work(&mut self.cache, &mut io)?;
        for page in io.written {
            self.cache.cleaned(page);
            self.moved.written(page, self.map.table.lpns_of(page));
        }
        Ok(done)
    }

    /// Adds one access to a table in SRAM, after `after`.
    fn access(&self, cx: &mut FtlContext<'_>, after: OpId) -> OpId {
        let kind = OpKind::Memory {
            kind: MemoryKind::Sram,
            accesses: 1,
            bytes: self.entry_bytes,
            write: false,
        };
        cx.flash.plan.push(kind, Class::Map, &[after])
    }

    /// Writes map pages that may be partly or completely in memory.
    fn write(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mut pages: Vec<MapPage>,
        reason: Reason,
    ) -> Result<OpId, FtlError> {
        if pages.is_empty() {
            return Ok(OpId::NONE);
        }
        self.with(io, |cache, io| io.write(&mut pages, reason, |page| cache.holds_page(page)))
    }

    /// Writes the moves of a map page before it is loaded, so that flash has the entries that
    /// memory lacks.
    fn write_moves_of(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(), FtlError> {
        let page = self.map.table.page_of(lpn);
        if self.moved.hide(page, lpn) {
            self.write(io, vec![page], Reason::Moved)?;
        }
        Ok(())
    }
}

impl<C: Cache> MapStore for Paged<C> {
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        if self.moved.knows(lpn) && !self.cache.holds(&self.map, lpn) {
            self.counters.lookups += 1;
            self.counters.hits += 1;
            return Ok((self.map.table.get(lpn), self.access(io.cx, io.cx.command.first)));
        }
        let (there, hit) = self.bring(io, lpn, false)?;
        self.counters.lookups += 1;
        self.counters.hits += u64::from(hit);
        self.counters.misses += u64::from(!hit);
        let ready = self.access(io.cx, there);
        let ready = self.with(io, |cache, io| cache.finish(io, lpn, true, ready))?;
        Ok((self.map.table.get(lpn), ready))
    }

    fn export_entries(
        &mut self,
        io: &mut MapContext<'_, '_>,
        pages: std::ops::Range<u32>,
    ) -> Result<OpId, FtlError> {
        let (first, last) =
            (self.map.table.page_of(Lpn(pages.start)), self.map.table.page_of(Lpn(pages.end - 1)));
        let mut read = Vec::new();
        for page in (first.number()..=last.number()).map(MapPage::new) {
            // changed entries in memory and in the table of moves replace the entries on flash; if
            // there is no such table, moves are written first
            let there = if self.cache.holds_page(page) {
                io.cx.command.first
            } else {
                if self.moved.hide_some(page) {
                    self.write(io, vec![page], Reason::Moved)?;
                }
                self.map.export_entries(io.cx, page)?
            };
            let bytes = self.map.table.page_bytes();
            let kind = OpKind::Memory { kind: MemoryKind::Sram, accesses: 1, bytes, write: false };
            read.push(io.cx.flash.plan.push(kind, Class::Map, &[there]));
        }
        Ok(io.cx.flash.plan.join(Class::Map, &read))
    }

    fn peek(&self, lpn: Lpn) -> Ppn {
        self.map.table.get(lpn)
    }

    fn set(
        &mut self,
        io: &mut MapContext<'_, '_>,
        update: Update,
    ) -> Result<(Ppn, OpId), FtlError> {
        let lpn = update.lpn;
        let (there, hit) = self.bring(io, lpn, true)?;
        self.counters.updates += 1;
        self.counters.update_hits += u64::from(hit);
        self.counters.update_misses += u64::from(!hit);
        let old = self.map.change(io.pool, lpn, update.ppn, update.op);
        io.cx.remap(lpn);
        self.cache.changed(&self.map, lpn, old);
        let shrunk = self.with(io, |cache, io| cache.shrink(io))?;
        let done = self.access(io.cx, there);
        let done = self.with(io, |cache, io| cache.finish(io, lpn, false, done))?;
        Ok((
            old,
            if shrunk == OpId::NONE {
                done
            } else {
                io.cx.flash.plan.join(Class::Map, &[done, shrunk])
            },
        ))
    }

    fn moved(&mut self, io: &mut MapContext<'_, '_>, update: Update) -> Result<Ppn, FtlError> {
        let old = self.map.change(io.pool, update.lpn, update.ppn, update.op);
        io.cx.remap(update.lpn);
        if self.cache.holds(&self.map, update.lpn) {
            self.cache.changed(&self.map, update.lpn, old);
            self.with(io, |cache, io| cache.shrink(io))?;
        } else {
            self.cache.moved(&self.map, update.lpn);
            self.moved.add(self.map.table.page_of(update.lpn), update.lpn);
        }
        Ok(old)
    }

    fn flush(&mut self, io: &mut MapContext<'_, '_>) -> Result<OpId, FtlError> {
        let trims: Vec<MapPage> = self
            .map
            .changes
            .trimmed()
            .iter()
            .filter(|_| !SeededBug::DropTrims.is_active())
            .collect();
        let trimmed = self.write(io, trims, Reason::Trim)?;
        let flushed = self.write(io, self.cache.to_flush(&self.map), Reason::Flush)?;
        let earlier = self.map.unfinished(io.cx);
        Ok(io.cx.flash.plan.join(Class::Map, &[trimmed, flushed, earlier]))
    }

    fn before_erase(
        &mut self,
        io: &mut MapContext<'_, '_>,
        block: BlockId,
    ) -> Result<OpId, FtlError> {
        let moves: Vec<MapPage> = self.moved.pages.iter().copied().collect();
        let moved = self.write(io, moves, Reason::Moved)?;
        if self.map.needs(block) {
            let trims: Vec<MapPage> = self.map.changes.trimmed().iter().collect();
            self.write(io, trims, Reason::Trim)?;
        }
        let unfinished = self.map.unfinished_for(io.cx, block);
        Ok(io.cx.flash.plan.join(Class::Map, &[moved, unfinished]))
    }

    fn frontier(&self, lpn: Lpn, frontiers: u32) -> Option<StreamId> {
        self.cache.frontier(&self.map, lpn, frontiers)
    }

    fn sorts_copies(&self) -> bool {
        self.cache.sorts_copies()
    }

    fn closed(&mut self, io: &mut MapContext<'_, '_>, block: BlockId) -> Result<(), FtlError> {
        self.with(io, |cache, io| cache.closed(io, block))
    }

    fn load(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blocks: &[BlockId],
        mount: &mut MountReport,
    ) -> Result<Replay, FtlError> {
        let mut replay = self.map.load_all(io, blocks, mount)?;
        self.map.take_up(&mut replay, mount);
        Ok(replay)
    }

    fn before_discard(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.map.before_discard(io)
    }

    fn restore(&mut self, lpn: Lpn, ppn: Ppn, sequence: u64) {
        self.map.restore(lpn, ppn, sequence);
    }

    fn mounted(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mount: &mut MountReport,
    ) -> Result<(), FtlError> {
        self.map.mounted(io, mount, true)
    }

    fn table_to_write(&mut self) -> Option<&mut PpnTable> {
        Some(self.map.table.entries_mut())
    }

    fn whole_table(&self) -> Option<&PpnTable> {
        Some(self.map.table.entries_of_all())
    }

    fn is_written(&self) -> bool {
        true
    }

    fn write_whole(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.map.write_whole(io)
    }

    fn page_of(&self, lpn: Lpn) -> MapPage {
        self.map.table.page_of(lpn)
    }

    fn check(&self, medium: &Medium, pool: &Pool) -> Result<u64, Violation> {
        let bytes = self.cache.bytes();
        Violation::unless(
            bytes <= self.budget,
            "the map in memory stays within its budget",
            || format!("the map takes {bytes} bytes, but its budget is {} bytes", self.budget),
        )?;
        for page in self.map.changes.iter() {
            let known = self.moved.pages.contains(&page) || self.cache.has_changes_of(page);
            Violation::unless(known, "every change that flash lacks is in memory", || {
                format!("map page {page}")
            })?;
        }
        self.map.check(medium, pool, |_| false)
    }

    fn counters(&self) -> MapCounters {
        self.counters
    }

    fn pages(&self) -> PageCounters {
        self.map.page_counters()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let mut details = self.cache.details();
        details.extend(self.misses.iter().flat_map(Misses::details));
        details
    }

    fn reset_counters(&mut self) {
        self.counters = MapCounters::default();
        self.map.reset_counters();
        self.cache.reset_counters();
        self.misses.iter_mut().for_each(Misses::reset_counters);
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let sram = |table, bytes| MemoryUse { table, memory: MemoryKind::Sram, bytes };
        let mut tables = vec![
            sram("part of the map in memory", self.budget),
            sram("directory of map pages", self.map.directory_bytes()),
        ];
        tables.extend(self.moved.table().map(|(table, bytes)| sram(table, bytes)));
        tables.extend(self.cache.tables().into_iter().map(|(table, bytes)| sram(table, bytes)));
        tables.extend(self.misses.iter().flat_map(Misses::memory));
        tables
    }

    fn approximations(&self) -> Vec<Note> {
        self.cache.approximations()
    }
}
