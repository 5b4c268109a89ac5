//! DFTL: single entries of the map in memory, in a segmented LRU. An entry that is not in memory is
//! looked up in its map page on flash. When a changed entry leaves memory, its map page is read and
//! written (Gupta, Kim and Urgaonkar, *DFTL: A Flash Translation Layer Employing Demand-based
//! Selective Caching of Page-level Address Mappings*, ASPLOS 2009, section 3).
//!
//! Batch update: when a changed entry leaves, all changed entries of its map page that are in
//! memory are written too.

use crate::maps::StoreConfig;
use crate::maps::pages::MapOnFlash;
use crate::maps::pages::cmt::Cmt;
use crate::maps::pages::paged::{
    Cache, Io, LOADS, PAGE_BYTES, Paged, WRITES_ON_EVICTION, cache_bytes, fits,
};
use crate::maps::pages::{LANES, OVER_PROVISIONING, PACK};
use crate::maps::{MapPage, MapStoreDef};
use flashatlas_types::{FtlError, Lpn, Mechanism, OpId, Param, Ppn};

/// The bytes of an entry: a logical and a physical page number, 4 bytes each.
pub(super) const ENTRY_BYTES: u64 = 8;

pub const DEF: MapStoreDef = MapStoreDef {
    name: "dftl",
    summary: "single entries in SRAM, segmented LRU; changed entries of a map page are written \
              together",
    paper: "Gupta, Kim and Urgaonkar, DFTL: A Flash Translation Layer Employing Demand-based \
            Selective Caching of Page-level Address Mappings (ASPLOS 2009)",
    params: &[
        cache_bytes("64KiB"),
        PAGE_BYTES.def,
        PROTECTED_SHARE.def,
        PACK.def,
        OVER_PROVISIONING.def,
        LANES.def,
    ],
    fits: &|&StoreConfig { params, .. }, layout| {
        fits(params, layout, |_| 2 * ENTRY_BYTES, "two entries")
    },
    exports_entries: true,
    build: &|&StoreConfig { params, .. }, layout| {
        let share = params.get(PROTECTED_SHARE);
        Box::new(Paged::new(params, layout, false, |map, budget| {
            let limit = (budget / ENTRY_BYTES).min(u64::from(map.table.len())) as u32;
            Dftl {
                cmt: Cmt::new(limit, (share * f64::from(limit)) as u32, map.table.pages()),
                cleaned: 0,
            }
        }))
    },
    small: &[
        &["map.page_bytes=64", "map.cache_bytes=16", "map.lanes=1"],
        &["map.page_bytes=64", "map.cache_bytes=160", "map.protected_share=0.5"],
    ],
    mechanisms: &[LOADS, WRITES_ON_EVICTION, Mechanism::new("batch update", "map.entries_written")],
};

const PROTECTED_SHARE: Param<f64> = Param::ratio(
    "map.protected_share",
    0.0,
    0.99,
    "share of the entries in memory that may be protected (FlashSim: 6552 of 8192); 0: one LRU \
     list",
)
.or("0.8");

struct Dftl {
    cmt: Cmt,
    cleaned: u64,
}

impl Cache for Dftl {
    fn holds(&self, _: &MapOnFlash, lpn: Lpn) -> bool {
        self.cmt.contains(lpn)
    }

    fn holds_page(&self, _: MapPage) -> bool {
        false
    }

    fn used(&mut self, _: &MapOnFlash, lpn: Lpn) {
        self.cmt.touch(lpn);
    }

    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError> {
        let mut evicted = OpId::NONE;
        if self.cmt.is_full() {
            let (victim, page, changed) = self.cmt.victims().next().expect("it is full");
            if changed {
                self.cleaned += 1;
                evicted = io.evict(page, false)?;
            }
            self.cmt.remove(victim);
        }
        self.cmt.insert(lpn, io.map.table.page_of(lpn));
        io.load(lpn, evicted)
    }

    fn changed(&mut self, _: &MapOnFlash, lpn: Lpn, _: Ppn) {
        self.cmt.change(lpn);
    }

    fn cleaned(&mut self, page: MapPage) {
        self.cleaned += self.cmt.clean(page);
    }

    fn has_changes_of(&self, page: MapPage) -> bool {
        self.cmt.has_changes_of(page)
    }

    fn bytes(&self) -> u64 {
        u64::from(self.cmt.len()) * ENTRY_BYTES
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![("entries_written", self.cleaned)]
    }

    fn reset_counters(&mut self) {
        self.cleaned = 0;
    }
}
