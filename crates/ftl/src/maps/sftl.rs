//! S-FTL: whole map pages in memory, compressed (Jiang et al., *S-FTL: An Efficient Address
//! Translation for Flash Memory by Exploiting Spatial Locality*, MSST 2011). A run is a sequence of
//! entries whose pages follow one another on flash. Only the first entry of a run is stored, and a
//! bitmap marks the entries at which a run begins.
//!
//! A part of the memory is a buffer of changed entries. If a page that leaves has few changed
//! entries (at most half of the buffer's capacity), they are moved to the buffer and the page is
//! not written. If the buffer has no room for them, the page with the most entries in the buffer is
//! written.

use super::dftl::ENTRY_BYTES;
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
use std::collections::BTreeMap;

pub const DEF: MapStoreDef = MapStoreDef {
    name: "sftl",
    summary: "whole map pages in SRAM, with one entry for each run of entries; a buffer of changed \
              entries",
    paper: "Jiang, Zhang, Yuan, Chen and Wang, S-FTL: An Efficient Address Translation for Flash \
            Memory (MSST 2011)",
    params: &[
        cache_bytes("128KiB"),
        PAGE_BYTES.def,
        BUFFER_SHARE.def,
        PACK.def,
        OVER_PROVISIONING.def,
        LANES.def,
    ],
    fits: &|&StoreConfig { params, .. }, layout| {
        let share = 1.0 - params.get(BUFFER_SHARE);
        let largest = |page_bytes: u64, per_page: u32| page_bytes + u64::from(per_page).div_ceil(8);
        let least = |bytes: u64| (bytes as f64 / share).ceil() as u64;
        fits(
            params,
            layout,
            |s| least(largest(s.page_bytes(), s.per_page)),
            "the largest map page (each of its entries begins a run) and the buffer",
        )
    },
    exports_entries: true,
    build: &|&StoreConfig { params, .. }, layout| {
        let (share, entry) = (params.get(BUFFER_SHARE), u64::from(params.get(crate::ENTRY_BYTES)));
        Box::new(Paged::new(params, layout, true, |map, budget| {
            let buffer_max = (budget as f64 * share) as u64 / ENTRY_BYTES;
            Sftl {
                pages: IndexList::new(map.table.pages()),
                runs: filled(map.table.pages(), 0),
                bytes: 0,
                limit: budget - buffer_max * ENTRY_BYTES,
                entry_bytes: entry,
                bitmap_bytes: u64::from(map.table.per_page).div_ceil(8),
                buffer: BTreeMap::new(),
                buffered: 0,
                buffer_max,
                spared: 0,
            }
        }))
    },
    small: &[
        &["map.page_bytes=64", "map.cache_bytes=80"],
        &["map.page_bytes=128", "map.cache_bytes=300", "map.buffer_share=0.4", "map.entry_bytes=8"],
    ],
    mechanisms: &[
        LOADS,
        WRITES_ON_EVICTION,
        Mechanism::new("sparse page kept in the buffer", "map.pages_spared")
            .without(&["map.buffer_share=0"]),
    ],
};

const BUFFER_SHARE: Param<f64> = Param::ratio(
    "map.buffer_share",
    0.0,
    0.9,
    "share of the memory for changed entries whose pages have left memory; 0: no buffer for such \
     entries",
)
.or("0.1");

struct Sftl {
    pages: IndexList<MapPage>,
    /// The number of runs of each page in memory.
    runs: TiVec<MapPage, u32>,
    /// The bytes of the pages in memory, and the limit for them.
    bytes: u64,
    limit: u64,
    entry_bytes: u64,
    bitmap_bytes: u64,
    /// Changed entries of pages that are no longer in memory.
    buffer: BTreeMap<MapPage, Vec<u32>>,
    buffered: u64,
    buffer_max: u64,
    /// The number of changed pages that left memory without a write.
    spared: u64,
}

/// Returns `true` if an entry begins a run. The first entry begins a run, and so does an entry that
/// does not follow the previous entry on flash.
fn begins(before: Option<Ppn>, here: Ppn) -> bool {
    match before {
        None => true,
        Some(Ppn::NONE) => here != Ppn::NONE,
        Some(before) => here.0 != before.0.wrapping_add(1),
    }
}

/// Returns the number of runs of a map page.
fn runs(entries: impl Iterator<Item = Ppn>) -> u32 {
    let mut before = None;
    entries.map(|here| u32::from(begins(before.replace(here), here))).sum()
}

/// Returns the number of runs that begin at an entry `here`, or at the entry after it.
fn runs_around(before: Option<Ppn>, here: Ppn, next: Option<Ppn>) -> u32 {
    u32::from(begins(before, here)) + u32::from(next.is_some_and(|next| begins(Some(here), next)))
}

impl Sftl {
    fn page_bytes(&self, page: MapPage) -> u64 {
        self.bitmap_bytes + u64::from(self.runs[page]) * self.entry_bytes
    }

    /// Evicts pages until the remaining pages and `more` bytes fit.
    fn make_room(&mut self, io: &mut Io<'_, '_>, more: u64) -> Result<OpId, FtlError> {
        let mut last = OpId::NONE;
        while self.bytes + more > self.limit {
            let page = self.pages.first().expect("one page always fits");
            let count = u64::from(io.map.changes.count(page));
            if io.map.changes.contains(page) {
                // if the changes of a page would fill more than half of the buffer, the page is
                // written
                if 2 * count <= self.buffer_max {
                    self.spare(io, page, count, &mut last)?;
                } else {
                    last = io.evict(page, true)?;
                }
            }
            self.bytes -= self.page_bytes(page);
            self.pages.remove(page);
        }
        Ok(last)
    }

    /// Moves the changed entries of a page to the buffer. Other pages are written first to make
    /// room.
    fn spare(
        &mut self,
        io: &mut Io<'_, '_>,
        page: MapPage,
        count: u64,
        last: &mut OpId,
    ) -> Result<(), FtlError> {
        while self.buffered + count > self.buffer_max {
            let fullest = self
                .buffer
                .iter()
                .max_by_key(|(p, entries)| (entries.len(), std::cmp::Reverse(**p)));
            let fullest = *fullest.expect("the buffer is too full, so it is not empty").0;
            *last = io.evict(fullest, false)?;
            self.forget(fullest);
        }
        let first = io.map.table.lpns(page).start;
        let changed = io.map.changes.entries(page).map(|i| first + i).collect();
        self.buffer.insert(page, changed);
        self.buffered += count;
        self.spared += 1;
        Ok(())
    }

    /// Removes the entries of a page from the buffer.
    fn forget(&mut self, page: MapPage) {
        if let Some(entries) = self.buffer.remove(&page) {
            self.buffered -= entries.len() as u64;
        }
    }
}

impl Cache for Sftl {
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        let page = map.table.page_of(lpn);
        self.pages.contains(page)
            || self.buffer.get(&page).is_some_and(|entries| entries.contains(&lpn.0))
    }

    fn holds_page(&self, page: MapPage) -> bool {
        self.pages.contains(page)
    }

    fn used(&mut self, map: &MapOnFlash, lpn: Lpn) {
        let page = map.table.page_of(lpn);
        if self.pages.contains(page) {
            self.pages.touch(page);
        }
    }

    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError> {
        let page = io.map.table.page_of(lpn);
        self.runs[page] = runs(io.map.table.entries(page));
        let evicted = self.make_room(io, self.page_bytes(page))?;
        // the page's entries in the buffer are part of the page again
        self.forget(page);
        self.bytes += self.page_bytes(page);
        self.pages.push(page);
        io.load(lpn, evicted)
    }

    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, old: Ppn) {
        let page = map.table.page_of(lpn);
        if !self.pages.contains(page) {
            return;
        }
        self.bytes -= self.page_bytes(page);
        let lpns = map.table.lpns(page);
        let before = (lpn.0 > lpns.start).then(|| map.table.get(Lpn(lpn.0 - 1)));
        let next = (lpn.0 + 1 < lpns.end).then(|| map.table.get(Lpn(lpn.0 + 1)));
        let runs = &mut self.runs[page];
        *runs += runs_around(before, map.table.get(lpn), next);
        *runs -= runs_around(before, old, next);
        self.bytes += self.page_bytes(page);
    }

    fn shrink(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        self.make_room(io, 0)
    }

    fn cleaned(&mut self, page: MapPage) {
        self.forget(page);
    }

    fn has_changes_of(&self, page: MapPage) -> bool {
        self.pages.contains(page) || self.buffer.contains_key(&page)
    }

    fn bytes(&self) -> u64 {
        self.bytes + self.buffered * ENTRY_BYTES
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let pages = u64::from(self.pages.len());
        let runs: u64 = self.pages.iter().map(|p| u64::from(self.runs[p])).sum();
        vec![("pages_spared", self.spared), ("pages_in_memory", pages), ("runs_in_memory", runs)]
    }

    fn reset_counters(&mut self) {
        self.spared = 0;
    }
}
