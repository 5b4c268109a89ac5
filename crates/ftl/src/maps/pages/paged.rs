//! Stores that have a part of the map in memory and load map pages on demand. What they share is
//! here: the map on flash, pages whose moves are not written yet, trims, mounts and counts. A store
//! is a [`Cache`]: which entries are in memory, and which leave.
//!
//! A map page is written whole and up to date: every change to it that is in memory goes with it
//! ("batch update"). A change made by collection stays in memory where the entry is there; the
//! others are gathered by map page and written before the collected block is erased (DFTL, section
//! 3: lazy copying and batch updates). What a FLUSH needs beside the data is the trims: a mount
//! finds everything else in the spare areas.

use super::{MapOnFlash, MapShape, quota};
use crate::maps::{MapContext, MapStore, Replay, Update};
use crate::pool::{MapQuota, Pool};
use crate::report::{PageCounters, Reason};
use crate::{FtlContext, MapCounters, MemoryUse, MountReport};
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, Class, ConfigError, FtlError, Layout, Lpn, Mechanism, MemoryKind, OpId, OpKind, Param,
    ParamDef, Params, Ppn, SeededBug, Violation,
};
use std::collections::BTreeSet;

/// `map.page_bytes`.
pub(crate) const PAGE_BYTES: Param<u64> = Param::bytes(
    "map.page_bytes",
    64,
    1 << 20,
    "bytes of a map page; of a larger one than a frame, one frame",
)
.or("16KiB");

const CACHE_BYTES: Param<u64> = Param::bytes(
    "map.cache_bytes",
    1,
    1 << 40,
    "SRAM for the part of the map that is in memory; the directory of map pages is not counted",
);

/// `map.cache_bytes` with a store's own default.
pub(crate) const fn cache_bytes(default: &'static str) -> ParamDef {
    CACHE_BYTES.or(default).def
}

/// Mechanisms that these stores share. A store lists those that it has.
pub(crate) const LOADS: Mechanism = Mechanism::new("load on demand", "map.loads");
pub(crate) const WRITES_ON_EVICTION: Mechanism =
    Mechanism::new("changed entries written on eviction", "map.writes.evict");

/// What a cache works with.
pub(crate) struct Io<'a, 'c> {
    pub cx: &'a mut FtlContext<'c>,
    pub pool: &'a mut Pool,
    pub map: &'a mut MapOnFlash,
    /// Map pages that were written by this call: their entries in memory are unchanged now.
    written: Vec<u32>,
}

impl Io<'_, '_> {
    /// Write a map page to make room; `whole`: all of it is in memory, otherwise what is on flash
    /// is read first.
    ///
    /// # Errors
    /// When there is no room, or no power.
    pub fn evict(&mut self, page: u32, whole: bool) -> Result<OpId, FtlError> {
        self.write(&mut [page], Reason::Evict, |_| whole)
    }

    fn write(
        &mut self,
        pages: &mut [u32],
        reason: Reason,
        whole: impl Fn(u32) -> bool,
    ) -> Result<OpId, FtlError> {
        let mut after = vec![self.cx.command];
        for &page in pages.iter() {
            if !whole(page) {
                let merged = self.map.merge(self.cx, page, &[self.cx.command])?;
                after.push(merged);
            }
        }
        let op = self.map.write(
            &mut MapContext { cx: self.cx, pool: self.pool },
            pages,
            reason,
            &after,
        )?;
        self.written.extend_from_slice(pages);
        Ok(op)
    }

    /// Load the map page that has the entry of `lpn`, after `evicted`; what it says of that entry
    /// is checked.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn load(&mut self, lpn: Lpn, evicted: OpId) -> Result<OpId, FtlError> {
        let page = self.map.table.page_of(lpn);
        self.map.load(self.cx, page, lpn, &[self.cx.command, evicted])
    }
}

/// The part of the map that a store has in memory.
pub(crate) trait Cache: Send {
    /// Whether the entry of a page is in memory.
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool;

    /// Whether all entries of a map page are in memory.
    fn holds_page(&self, page: u32) -> bool;

    /// The host used an entry that is in memory.
    fn used(&mut self, map: &MapOnFlash, lpn: Lpn);

    /// Whether a page whose entry is not in memory is found without it. Called once for each lookup
    /// of one.
    fn predicts(&mut self, map: &MapOnFlash, lpn: Lpn) -> bool {
        let _ = (map, lpn);
        false
    }

    /// Bring an entry into memory that is not there: evict what must leave, load what is needed.
    /// Returns the operation after which the entry is there.
    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError>;

    /// An entry that is in memory has changed from `old`. What is no longer in order, such as a
    /// size, is put right by [`Cache::shrink`].
    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, old: Ppn);

    /// An entry that is not in memory has changed, because collection moved its page.
    fn moved(&mut self, map: &MapOnFlash, lpn: Lpn) {
        let _ = (map, lpn);
    }

    /// As [`MapStore::frontier`].
    fn frontier(&self, map: &MapOnFlash, lpn: Lpn, frontiers: u32) -> Option<u32> {
        let _ = (map, lpn, frontiers);
        None
    }

    /// As [`MapStore::sorts_copies`].
    fn sorts_copies(&self) -> bool {
        false
    }

    /// As [`MapStore::closed`].
    fn closed(&mut self, io: &mut Io<'_, '_>, block: BlockId) -> Result<(), FtlError> {
        let _ = (io, block);
        Ok(())
    }

    /// After a change: keep within the limits of memory. Returns what was written for it.
    fn shrink(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        let _ = io;
        Ok(OpId::NONE)
    }

    /// A map page was written: none of its entries in memory differs from flash.
    fn cleaned(&mut self, page: u32);

    /// Whether something of a changed map page is in memory, from which it can be written.
    fn has_changes_of(&self, page: u32) -> bool;

    /// Changed map pages that a FLUSH writes.
    fn to_flush(&self, map: &MapOnFlash) -> Vec<u32> {
        let _ = map;
        Vec::new()
    }

    /// The host used an entry, which is in memory now and, for a lookup, `ready` then. Returns what
    /// the answer waits for, such as a second read after a wrong prediction.
    fn finish(
        &mut self,
        io: &mut Io<'_, '_>,
        lpn: Lpn,
        lookup: bool,
        ready: OpId,
    ) -> Result<OpId, FtlError> {
        let _ = (io, lpn, lookup);
        Ok(ready)
    }

    /// Bytes of memory in use, at most the budget.
    fn bytes(&self) -> u64;

    /// Tables in memory beside that, with their bytes.
    fn tables(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Further counters by name, and set them to zero.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Set counters to zero.
    fn reset_counters(&mut self) {}

    /// What the store approximates, in words.
    fn approximations(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// A store that loads map pages on demand.
pub(crate) struct Paged<C> {
    map: MapOnFlash,
    cache: C,
    budget: u64,
    entry_bytes: u32,
    /// Map pages with moves that neither memory nor flash has: they are gathered here until the
    /// block is erased.
    moved: BTreeSet<u32>,
    counters: MapCounters,
}

/// The map's shape under the parameters.
pub(crate) fn shape(params: &Params, layout: &Layout) -> Result<MapShape, ConfigError> {
    MapShape::new(params, layout, PAGE_BYTES, false)
}

/// Whether a map can work of which at least `least` bytes must be in memory at once, and how many
/// blocks of each lane it keeps.
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
            format!("{budget} bytes are less than one request needs: {what} take {least}"),
        ));
    }
    Ok(quota(params, layout, &shape))
}

impl<C: Cache> Paged<C> {
    /// An empty map. `counted`: changed entries of a map page are counted.
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
            moved: BTreeSet::new(),
            counters: MapCounters::default(),
            map,
        }
    }

    /// Run `work` on the cache, and tell it afterwards which map pages were written.
    fn with<T>(
        &mut self,
        io: &mut MapContext<'_, '_>,
        work: impl FnOnce(&mut C, &mut Io<'_, '_>) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        let mut io = Io { cx: io.cx, pool: io.pool, map: &mut self.map, written: Vec::new() };
        let done = work(&mut self.cache, &mut io)?;
        for page in io.written {
            self.cache.cleaned(page);
            self.moved.remove(&page);
        }
        Ok(done)
    }

    /// One access to a table in SRAM, after `after`.
    fn access(&self, cx: &mut FtlContext<'_>, after: OpId) -> OpId {
        let kind = OpKind::Memory {
            kind: MemoryKind::Sram,
            accesses: 1,
            bytes: self.entry_bytes,
            write: false,
        };
        cx.flash.plan.push(kind, Class::Map, &[after])
    }

    /// Write map pages whatever of them is in memory.
    fn write(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mut pages: Vec<u32>,
        reason: Reason,
    ) -> Result<OpId, FtlError> {
        if pages.is_empty() {
            return Ok(OpId::NONE);
        }
        self.with(io, |cache, io| io.write(&mut pages, reason, |page| cache.holds_page(page)))
    }

    /// Before a map page is loaded: its moves are written, so that flash has what memory lacks.
    fn write_moves_of(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(), FtlError> {
        let page = self.map.table.page_of(lpn);
        if self.moved.contains(&page) {
            self.write(io, vec![page], Reason::Moved)?;
        }
        Ok(())
    }
}

impl<C: Cache> MapStore for Paged<C> {
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        self.counters.lookups += 1;
        let there = if self.cache.holds(&self.map, lpn) {
            self.counters.hits += 1;
            self.cache.used(&self.map, lpn);
            io.cx.command
        } else if self.cache.predicts(&self.map, lpn) {
            self.counters.hits += 1;
            io.cx.command
        } else {
            self.counters.misses += 1;
            self.write_moves_of(io, lpn)?;
            self.with(io, |cache, io| cache.fetch(io, lpn))?
        };
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
        let mut read = Vec::with_capacity((last - first + 1) as usize);
        for page in first..=last {
            // entries that changed in memory lie over what flash has; moves that neither has in
            // place are written first
            let there = if self.cache.holds_page(page) {
                io.cx.command
            } else {
                self.write_moves_of(io, Lpn(page * self.map.table.per_page))?;
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
        self.counters.updates += 1;
        let hit = self.cache.holds(&self.map, lpn);
        if !hit {
            self.write_moves_of(io, lpn)?;
        }
        let there = if hit {
            self.counters.update_hits += 1;
            self.cache.used(&self.map, lpn);
            io.cx.command
        } else {
            self.counters.update_misses += 1;
            self.with(io, |cache, io| cache.fetch(io, lpn))?
        };
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
            self.moved.insert(self.map.table.page_of(update.lpn));
        }
        Ok(old)
    }

    fn flush(&mut self, io: &mut MapContext<'_, '_>) -> Result<OpId, FtlError> {
        let trims: Vec<u32> = self
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
        let moves: Vec<u32> = self.moved.iter().copied().collect();
        let moved = self.write(io, moves, Reason::Moved)?;
        if self.map.needs(block) {
            let trims: Vec<u32> = self.map.changes.trimmed().iter().collect();
            self.write(io, trims, Reason::Trim)?;
        }
        let unfinished = self.map.unfinished_for(io.cx, block);
        Ok(io.cx.flash.plan.join(Class::Map, &[moved, unfinished]))
    }

    fn frontier(&self, lpn: Lpn, frontiers: u32) -> Option<u32> {
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

    fn page_of(&self, lpn: Lpn) -> u32 {
        self.map.table.page_of(lpn)
    }

    fn check(&self, medium: &Medium, pool: &Pool) -> Result<u64, Violation> {
        let bytes = self.cache.bytes();
        Violation::unless(
            bytes <= self.budget,
            "the map in memory keeps within its budget",
            || format!("{bytes} bytes of {}", self.budget),
        )?;
        for page in self.map.changes.iter() {
            let known = self.moved.contains(&page) || self.cache.has_changes_of(page);
            Violation::unless(known, "what has changed is in memory", || {
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
        self.cache.details()
    }

    fn reset_counters(&mut self) {
        self.counters = MapCounters::default();
        self.map.reset_counters();
        self.cache.reset_counters();
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let sram = |table, bytes| MemoryUse { table, memory: MemoryKind::Sram, bytes };
        let mut tables = vec![
            sram("part of the map in memory", self.budget),
            sram("directory of map pages", self.map.directory_bytes()),
        ];
        tables.extend(self.cache.tables().into_iter().map(|(table, bytes)| sram(table, bytes)));
        tables
    }

    fn approximations(&self) -> Vec<&'static str> {
        self.cache.approximations()
    }
}
