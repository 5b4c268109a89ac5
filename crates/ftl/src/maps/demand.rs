//! Whole map pages on demand: the map of a controller without DRAM, as the host-cached map's paper
//! describes it (Jeong et al., *Improving Flash Storage Performance by Caching Address Mapping
//! Table in Host Memory*, HotStorage 2017: a 16 KB map page has 4,096 entries and covers 16 MB).
//! The least recently used page leaves memory, and is written if it has changed.

use crate::caching::POLICY;
use crate::list::IndexList;
use crate::maps::StoreConfig;
use crate::maps::pages::MapOnFlash;
use crate::maps::pages::ids::filled;
use crate::maps::pages::paged::{
    Cache, Io, LOADS, PAGE_BYTES, Paged, WRITES_ON_EVICTION, cache_bytes, fits,
};
use crate::maps::pages::{LANES, OVER_PROVISIONING, PACK};
use crate::maps::{MapPage, MapStoreDef};
use flashatlas_types::{FtlError, Lpn, Mechanism, OpId, Param, Ppn, TiVec};

pub const DEF: MapStoreDef = MapStoreDef {
    name: "demand",
    summary: "whole map pages in SRAM, loaded on demand; the least recently used map page leaves",
    paper: "Jeong et al., Improving Flash Storage Performance by Caching Address Mapping Table in \
            Host Memory (HotStorage 2017)",
    params: &[
        POLICY.def,
        cache_bytes("1MiB"),
        PAGE_BYTES.def,
        CHANGED_SHARE.def,
        PACK.def,
        OVER_PROVISIONING.def,
        LANES.def,
    ],
    fits: &|&StoreConfig { params, .. }, layout| {
        fits(params, layout, |shape| shape.page_bytes(), "a map page")
    },
    exports_entries: true,
    build: &|&StoreConfig { params, caching, .. }, layout| {
        let share = params.get(CHANGED_SHARE);
        let policy = caching.named(params.get(POLICY)).expect("resolved");
        let paged = Paged::new(params, layout, false, |map, budget| Pages::new(map, budget, share));
        Box::new(paged.with_policy(|pages| (policy.build)(params, pages)))
    },
    small: &[
        &["map.page_bytes=64", "map.cache_bytes=64"],
        &["map.page_bytes=64", "map.cache_bytes=200", "map.changed_share=0"],
        &["map.page_bytes=64", "map.cache_bytes=200", "map.policy=ghost", "map.ghost_pages=2"],
        &["map.page_bytes=64", "map.cache_bytes=256", "map.policy=readahead"],
    ],
    mechanisms: &[
        LOADS,
        WRITES_ON_EVICTION,
        Mechanism::new("map written early at a FLUSH", "map.writes.flush")
            .without(&["map.changed_share=1"]),
        Mechanism::new("map page left out by the policy", "map.pages_left_out")
            .without(&["map.policy=keep"]),
        Mechanism::new("map page loaded along", "map.pages_ahead").without(&["map.policy=keep"]),
    ],
};

const CHANGED_SHARE: Param<f64> = Param::ratio(
    "map.changed_share",
    0.0,
    1.0,
    "largest share of changed pages among the map pages in memory after a FLUSH: the FLUSH writes \
     the pages that changed first, until this share is left",
)
.or("0.5");

/// Map pages in the order of their last use.
struct Pages {
    pages: IndexList<MapPage>,
    /// Map pages in memory with an entry that has changed since the page was loaded.
    changed: TiVec<MapPage, bool>,
    limit: u32,
    page_bytes: u64,
    changed_max: u32,
}

impl Pages {
    fn new(map: &MapOnFlash, budget: u64, changed_share: f64) -> Pages {
        let page_bytes = u64::from(map.table.page_bytes());
        let limit = (budget / page_bytes).min(u64::from(map.table.pages())) as u32;
        let changed_max = (changed_share * f64::from(limit)) as u32;
        let changed = filled(map.table.pages(), false);
        Pages { pages: IndexList::new(map.table.pages()), changed, limit, page_bytes, changed_max }
    }
}

impl Cache for Pages {
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        self.pages.contains(map.table.page_of(lpn))
    }

    fn holds_page(&self, page: MapPage) -> bool {
        self.pages.contains(page)
    }

    fn pages_most(&self) -> u32 {
        self.limit
    }

    fn pages_free(&self) -> u32 {
        self.limit - self.pages.len()
    }

    fn evicts_unchanged(&self) -> bool {
        let first = self.pages.first().filter(|_| self.pages.len() == self.limit);
        first.is_none_or(|victim| !self.changed[victim])
    }

    fn used(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.pages.touch(map.table.page_of(lpn));
    }

    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError> {
        let mut evicted = OpId::NONE;
        if self.pages.len() == self.limit {
            let victim = self.pages.first().expect("the limit is not zero");
            if std::mem::take(&mut self.changed[victim]) {
                evicted = io.evict(victim, true)?;
            }
            self.pages.remove(victim);
        }
        let ready = io.load(lpn, evicted)?;
        self.pages.push(io.map.table.page_of(lpn));
        Ok(ready)
    }

    /// Returns `false`, because map pages leave as a whole.
    fn takes_moves(&self, _: &MapOnFlash, _: Lpn) -> bool {
        false
    }

    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, _: Ppn) {
        self.changed[map.table.page_of(lpn)] = true;
    }

    fn cleaned(&mut self, page: MapPage) {
        self.changed[page] = false;
    }

    fn has_changes_of(&self, page: MapPage) -> bool {
        self.changed[page]
    }

    fn to_flush(&self, map: &MapOnFlash) -> Vec<MapPage> {
        let surplus = map.changes.len().saturating_sub(self.changed_max);
        map.changes.iter().take(surplus as usize).collect()
    }

    fn bytes(&self) -> u64 {
        u64::from(self.pages.len()) * self.page_bytes
    }
}
