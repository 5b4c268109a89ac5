//! The whole map in DRAM, with one entry for each page.
//!
//! By default no part of the map is on flash. A mount rebuilds the map from the spare areas, and
//! trims are lost at a mount. With `map.flush`, each FLUSH writes a part of the map to flash, as
//! real controllers do. This part is the changed 4 KB map pages (the baseline of the DRAM+NVM map's
//! paper), the changed 32 KB segments, or the whole map (the greedy FTL of the Jasmine board).

use crate::maps::pages::ids::Segment;
use crate::maps::pages::resident::{PARAMS, Resident, SEGMENT_BYTES, dram_lookup, fits, fits_dram};
use crate::maps::{MapContext, MapPage, MapStore, MapStoreDef, Replay, StoreConfig, Update};
use crate::notes::NO_MAP_ON_FLASH;
use crate::pool::{MapQuota, Pool};
use crate::report::{PageCounters, Reason};
use crate::{ENTRY_BYTES, FREE_CHANGES, MapCounters, MemoryUse, MountReport};
use flashatlas_nand::Medium;
use flashatlas_types::params::concat;
use flashatlas_types::{
    BlockId, Class, FtlError, Layout, Lpn, Mechanism, MemoryKind, Note, OpId, Param, Params, Ppn,
    PpnTable, Text, Violation,
};

pub const DEF: MapStoreDef = MapStoreDef {
    name: "dram",
    summary: "the whole map in DRAM; a FLUSH writes no part of the map, its changed pages or \
              segments, or the whole map to flash",
    paper: "in common use; the baselines of Lee, Kang and Eom, Optimizing L2P Mapping (2016)",
    params: &concat::<9>(&[&[FLUSH.def, PAGE_BYTES.def, SEGMENT_BYTES.def], PARAMS]),
    fits: &|&StoreConfig { params, .. }, layout| match flushed(params) {
        None => fits_dram(params, layout).map(|()| MapQuota::default()),
        Some(bytes) => fits(params, layout, bytes),
    },
    exports_entries: false,
    build: &|&StoreConfig { params, .. }, layout| match flushed(params) {
        None => Box::new(Volatile::new(params, layout)),
        Some(bytes) => Box::new(Flushed {
            resident: Resident::new(params, layout, bytes),
            whole: params.get(FLUSH) == "whole",
        }),
    },
    small: &[
        &[],
        &["map.flush=pages", "map.page_bytes=512"],
        &["map.flush=segments", "map.segment_bytes=64", "map.entry_bytes=8"],
        &["map.flush=whole", "map.segment_bytes=256", "map.roll_forward=false"],
        &["map.flush=pages", "map.page_bytes=128", "map.roll_forward=false", "map.pack=false"],
        &["map.flush=pages", "map.page_bytes=64", "map.directory=page", "map.lanes=1"],
    ],
    mechanisms: &[
        Mechanism::new("map written at a FLUSH", "map.writes.flush").without(&["map.flush=none"])
    ],
};

const FLUSH: Param<Text> = Param::choice(
    "map.flush",
    &["none", "pages", "segments", "whole"],
    "the part of the map that a FLUSH writes: `none` (a mount reads every spare area and undoes \
     trims), the changed `pages` (map.page_bytes) or `segments` (map.segment_bytes), or, if an \
     entry has changed, the `whole` map",
)
.or("none");

const PAGE_BYTES: Param<u64> = Param::bytes(
    "map.page_bytes",
    64,
    1 << 20,
    "bytes of a map page with map.flush = pages; a page larger than a frame is cut to one frame",
)
.or("4KiB");

/// Returns the parameter for the size of the unit that a FLUSH writes, or `None` if it writes no
/// map.
fn flushed(params: &Params) -> Option<Param<u64>> {
    match params.get(FLUSH) {
        "none" => None,
        "pages" => Some(PAGE_BYTES),
        _ => Some(SEGMENT_BYTES),
    }
}

/// A map that is never written to flash.
struct Volatile {
    entries: PpnTable,
    entry_bytes: u32,
    counters: MapCounters,
}

impl Volatile {
    fn new(params: &Params, layout: &Layout) -> Volatile {
        Volatile {
            entries: PpnTable::new(layout.logical_units),
            entry_bytes: params.get(ENTRY_BYTES),
            counters: MapCounters::default(),
        }
    }
}

impl MapStore for Volatile {
    #[inline]
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        self.counters.lookups += 1;
        self.counters.hits += 1;
        Ok((self.entries.get(lpn), dram_lookup(io.cx, self.entry_bytes)))
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Ppn {
        self.entries.get(lpn)
    }

    fn prefetch(&self, lpns: &[Lpn]) {
        lpns.iter().for_each(|&lpn| self.entries.prefetch(lpn));
    }

    #[inline]
    fn set(&mut self, _: &mut MapContext<'_, '_>, update: Update) -> Result<(Ppn, OpId), FtlError> {
        self.counters.updates += 1;
        self.counters.update_hits += 1;
        Ok((self.entries.replace(update.lpn, update.ppn), OpId::NONE))
    }

    fn load(
        &mut self,
        _: &mut MapContext<'_, '_>,
        _: &[BlockId],
        _: &mut MountReport,
    ) -> Result<Replay, FtlError> {
        Ok(Replay::everything(1))
    }

    fn found_nothing(&self, _: u32) -> bool {
        true
    }

    fn table(&mut self) -> Option<&mut PpnTable> {
        Some(&mut self.entries)
    }

    fn whole_table(&self) -> Option<&PpnTable> {
        Some(&self.entries)
    }

    fn restore(&mut self, lpn: Lpn, ppn: Ppn, _: u64) {
        self.entries.replace(lpn, ppn);
    }

    fn forgets_trims(&self) -> bool {
        true
    }

    fn page_of(&self, _: Lpn) -> MapPage {
        MapPage::new(0)
    }

    fn counters(&self) -> MapCounters {
        self.counters
    }

    fn reset_counters(&mut self) {
        self.counters = MapCounters::default();
    }

    fn approximations(&self) -> Vec<Note> {
        vec![FREE_CHANGES.note(), NO_MAP_ON_FLASH.with([("setting", "map.flush = none".into())])]
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bytes = u64::from(self.entries.len()) * u64::from(self.entry_bytes);
        vec![MemoryUse { table: "L2P map", memory: MemoryKind::Dram, bytes }]
    }
}

/// A map whose changes are written at a FLUSH.
struct Flushed {
    resident: Resident,
    whole: bool,
}

impl MapStore for Flushed {
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        Ok(self.resident.get(io.cx, lpn))
    }

    fn peek(&self, lpn: Lpn) -> Ppn {
        self.resident.map.table.get(lpn)
    }

    fn set(
        &mut self,
        io: &mut MapContext<'_, '_>,
        update: Update,
    ) -> Result<(Ppn, OpId), FtlError> {
        Ok((self.resident.set(io.pool, update), OpId::NONE))
    }

    fn flush(&mut self, io: &mut MapContext<'_, '_>) -> Result<OpId, FtlError> {
        let mut segments = self.resident.changed();
        if self.whole && !segments.is_empty() {
            segments = (0..self.resident.segments()).map(Segment::new).collect();
        }
        let written = self.resident.write(io, &segments, Reason::Flush, &[])?;
        let earlier = self.resident.map.unfinished(io.cx);
        Ok(io.cx.flash.plan.join(Class::Map, &[written, earlier]))
    }

    fn before_erase(
        &mut self,
        io: &mut MapContext<'_, '_>,
        block: BlockId,
    ) -> Result<OpId, FtlError> {
        if self.resident.map.needs(block) {
            let segments = self.resident.changed();
            self.resident.write(io, &segments, Reason::Moved, &[])?;
        }
        Ok(self.resident.map.unfinished_for(io.cx, block))
    }

    fn load(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blocks: &[BlockId],
        mount: &mut MountReport,
    ) -> Result<Replay, FtlError> {
        let mut replay = self.resident.map.load_all(io, blocks, mount)?;
        self.resident.map.take_up(&mut replay, mount);
        Ok(replay)
    }

    fn before_discard(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.resident.map.before_discard(io)
    }

    fn restore(&mut self, lpn: Lpn, ppn: Ppn, sequence: u64) {
        self.resident.map.restore(lpn, ppn, sequence);
    }

    fn mounted(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mount: &mut MountReport,
    ) -> Result<(), FtlError> {
        self.resident.map.mounted(io, mount, false)
    }

    fn table_to_write(&mut self) -> Option<&mut PpnTable> {
        Some(self.resident.map.table.entries_mut())
    }

    fn whole_table(&self) -> Option<&PpnTable> {
        Some(self.resident.map.table.entries_of_all())
    }

    fn is_written(&self) -> bool {
        true
    }

    fn write_whole(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.resident.map.write_whole(io)
    }

    fn rolls_forward(&self) -> bool {
        self.resident.map.rolls_forward()
    }

    fn page_of(&self, lpn: Lpn) -> MapPage {
        self.resident.map.table.page_of(lpn)
    }

    fn check(&self, medium: &Medium, pool: &Pool) -> Result<u64, Violation> {
        self.resident.map.check(medium, pool, |_| false)
    }

    fn counters(&self) -> MapCounters {
        self.resident.counters
    }

    fn pages(&self) -> PageCounters {
        self.resident.map.page_counters()
    }

    fn reset_counters(&mut self) {
        self.resident.counters = MapCounters::default();
        self.resident.map.reset_counters();
    }

    fn approximations(&self) -> Vec<Note> {
        vec![FREE_CHANGES.note()]
    }

    fn memory(&self) -> Vec<MemoryUse> {
        self.resident.memory()
    }
}
