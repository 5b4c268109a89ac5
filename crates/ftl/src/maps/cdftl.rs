//! CDFTL: a first level of single entries and a second level of whole map pages, both in memory
//! (Qin et al., *A Two-Level Caching Mechanism for Demand-based Page-level Address Mapping in NAND
//! Flash Memory Storage Systems*, RTAS 2011).
//!
//! The map page of a missed entry stays in the second level, so that other entries of this page
//! need no read. When a changed entry leaves the first level, the change is written into its map
//! page in the second level.
//!
//! Some entries can leave without a write, because they have not changed or their map page is in
//! memory. The first such entry among the `map.victim_search` least recently used entries leaves.
//! If there is no such entry, the least recently used entry leaves.

use super::dftl::ENTRY_BYTES;
use crate::list::IndexList;
use crate::maps::StoreConfig;
use crate::maps::pages::MapOnFlash;
use crate::maps::pages::cmt::Cmt;
use crate::maps::pages::ids::filled;
use crate::maps::pages::paged::{
    Cache, Io, LOADS, PAGE_BYTES, Paged, WRITES_ON_EVICTION, cache_bytes, fits,
};
use crate::maps::pages::{LANES, OVER_PROVISIONING, PACK};
use crate::maps::{MapPage, MapStoreDef};
use flashatlas_types::{FtlError, Lpn, Mechanism, OpId, Param, Ppn, TiVec};

pub const DEF: MapStoreDef = MapStoreDef {
    name: "cdftl",
    summary: "two levels in SRAM: single entries, and the map pages that hold them",
    paper: "Qin, Wang, Liu and Guan, A Two-Level Caching Mechanism for Demand-based Page-level \
            Address Mapping (RTAS 2011)",
    params: &[
        cache_bytes("256KiB"),
        PAGE_BYTES.def,
        PAGES_SHARE.def,
        VICTIM_SEARCH.def,
        PACK.def,
        OVER_PROVISIONING.def,
        LANES.def,
    ],
    fits: &|&StoreConfig { params, .. }, layout| {
        fits(
            params,
            layout,
            |shape| shape.page_bytes() + 2 * ENTRY_BYTES,
            "a map page and two entries",
        )
    },
    exports_entries: true,
    build: &|&StoreConfig { params, .. }, layout| {
        let (share, search) = (params.get(PAGES_SHARE), params.get(VICTIM_SEARCH));
        Box::new(Paged::new(params, layout, false, |map, budget| {
            Cdftl::new(map, budget, share, search)
        }))
    },
    small: &[
        &["map.page_bytes=64", "map.cache_bytes=80"],
        &["map.page_bytes=64", "map.cache_bytes=300", "map.victim_search=3"],
    ],
    mechanisms: &[
        LOADS,
        WRITES_ON_EVICTION,
        Mechanism::new("second level", "map.second_level_hits"),
    ],
};

const PAGES_SHARE: Param<f64> = Param::ratio(
    "map.pages_share",
    0.0,
    1.0,
    "share of the memory for whole map pages; one map page and two entries always have room",
)
.or("0.5");

const VICTIM_SEARCH: Param<u32> = Param::int(
    "map.victim_search",
    1,
    1 << 20,
    "number of least recently used entries that are searched for an entry that can leave without a \
     write",
)
.or("64");

struct Cdftl {
    cmt: Cmt,
    pages: IndexList<MapPage>,
    /// `true` for map pages in memory with changes that flash lacks.
    merged: TiVec<MapPage, bool>,
    pages_max: u32,
    page_bytes: u64,
    search: usize,
    /// The entry that the host is using, until the entry is copied to the first level.
    entering: Option<Lpn>,
    /// Entries that were found in a map page in memory.
    second_level: u64,
}

impl Cdftl {
    fn new(map: &MapOnFlash, budget: u64, share: f64, search: u32) -> Cdftl {
        let page_bytes = u64::from(map.table.page_bytes());
        let most = (budget - 2 * ENTRY_BYTES) / page_bytes;
        let pages_max = (((budget as f64 * share) as u64 / page_bytes).clamp(1, most))
            .min(u64::from(map.table.pages()));
        let entries = ((budget - pages_max * page_bytes) / ENTRY_BYTES)
            .min(u64::from(map.table.len())) as u32;
        Cdftl {
            cmt: Cmt::new(entries, 0, map.table.pages()),
            pages: IndexList::new(map.table.pages()),
            merged: filled(map.table.pages(), false),
            pages_max: pages_max as u32,
            page_bytes,
            search: search as usize,
            entering: None,
            second_level: 0,
        }
    }

    /// Makes room for an entry.
    fn evict_entry(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        let cheap =
            |&(_, page, changed): &(Lpn, MapPage, bool)| !changed || self.pages.contains(page);
        let found = self.cmt.victims().take(self.search).find(cheap);
        let (lpn, page, changed) = found.or_else(|| self.cmt.victims().next()).expect("it is full");
        let mut evicted = OpId::NONE;
        if changed && self.pages.contains(page) {
            self.merged[page] = true;
        } else if changed {
            evicted = io.evict(page, false)?;
        }
        self.cmt.remove(lpn);
        Ok(evicted)
    }

    /// Makes room for a map page.
    fn evict_page(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        let page = self.pages.first().expect("it is full");
        let mut evicted = OpId::NONE;
        if self.merged[page] {
            evicted = io.evict(page, true)?;
        }
        self.pages.remove(page);
        Ok(evicted)
    }
}

impl Cache for Cdftl {
    /// Returns `true` also for an entry in the second level, because it needs no flash read.
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        self.cmt.contains(lpn) || self.pages.contains(map.table.page_of(lpn))
    }

    fn holds_page(&self, page: MapPage) -> bool {
        self.pages.contains(page)
    }

    fn used(&mut self, map: &MapOnFlash, lpn: Lpn) {
        let page = map.table.page_of(lpn);
        if self.pages.contains(page) {
            self.pages.touch(page);
        }
        if self.cmt.contains(lpn) {
            self.cmt.touch(lpn);
        } else {
            self.second_level += 1;
            self.entering = Some(lpn);
        }
    }

    /// Returns `false`, because map pages leave as a whole.
    fn takes_moves(&self, _: &MapOnFlash, _: Lpn) -> bool {
        false
    }

    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError> {
        let page = io.map.table.page_of(lpn);
        let mut evicted = OpId::NONE;
        if self.pages.len() == self.pages_max {
            evicted = self.evict_page(io)?;
        }
        self.pages.push(page);
        self.entering = Some(lpn);
        io.load(lpn, evicted)
    }

    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, _: Ppn) {
        // collection changes an entry in the second level if the first level does not have the
        // entry
        if self.cmt.contains(lpn) {
            self.cmt.change(lpn);
        } else if self.entering != Some(lpn) {
            self.merged[map.table.page_of(lpn)] = true;
        }
    }

    fn cleaned(&mut self, page: MapPage) {
        self.cmt.clean(page);
        self.merged[page] = false;
    }

    fn has_changes_of(&self, page: MapPage) -> bool {
        self.cmt.has_changes_of(page) || (self.pages.contains(page) && self.merged[page])
    }

    /// Copies the entry from its map page to the first level, where the host changes it.
    fn finish(
        &mut self,
        io: &mut Io<'_, '_>,
        lpn: Lpn,
        lookup: bool,
        ready: OpId,
    ) -> Result<OpId, FtlError> {
        if !self.cmt.contains(lpn) {
            if self.cmt.is_full() {
                self.evict_entry(io)?;
            }
            self.cmt.insert(lpn, io.map.table.page_of(lpn));
            if !lookup {
                self.cmt.change(lpn);
            }
        }
        self.entering = None;
        Ok(ready)
    }

    fn bytes(&self) -> u64 {
        u64::from(self.cmt.len()) * ENTRY_BYTES + u64::from(self.pages.len()) * self.page_bytes
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![("second_level_hits", self.second_level)]
    }

    fn reset_counters(&mut self) {
        self.second_level = 0;
    }
}
