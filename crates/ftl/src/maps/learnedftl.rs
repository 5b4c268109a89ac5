//! LearnedFTL: entries in memory as in TPFTL, and in addition a small model of each map page. A bit
//! for each entry shows whether the model is right.
//!
//! The lookup of a page whose bit is set reads no map page, and a wrong prediction is never used
//! (Wang, Lin, Wu, Jiang, Zhang and Mao, *LearnedFTL: A Learning-Based Page-Level FTL for Reducing
//! Double Reads in Flash-Based SSDs*, HPCA 2024).
//!
//! The parts of the paper are implemented here:
//!
//! - models in place with a bitmap (III-B): [`Lines`];
//! - virtual page numbers, in the order in which writes visit the lanes (III-C): [`Order`];
//! - groups of map pages with blocks of their own (III-D): `map.group_pages` map pages share one of
//!   the `ftl.streams` host frontiers and one collection frontier, unless a classifier chooses
//!   ([`MapStore::frontier`]);
//! - collection that sorts the pages it moves (III-D): [`MapStore::sorts_copies`]. In the paper, a
//!   collection spans a group of all chips. Here it spans one block of one lane, and therefore
//!   lines are at most as long as a block;
//! - training (III-E): when a block of the host or of collection is full ([`MapStore::closed`]).
//!   Training uses the current model and the logical page numbers of the block, which the
//!   controller keeps in memory until then. So training reads nothing from flash. After a mount all
//!   models are empty. With `map.train = load`, a map page that is loaded trains its model, too.
//!
//! [`MapStore::frontier`]: crate::maps::MapStore::frontier
//! [`MapStore::sorts_copies`]: crate::maps::MapStore::sorts_copies
//! [`MapStore::closed`]: crate::maps::MapStore::closed

use super::tpftl::{self, Tpftl};
use crate::maps::StoreConfig;
use crate::maps::pages::MapOnFlash;
use crate::maps::pages::ids::filled;
use crate::maps::pages::lines::{Lines, Point};
use crate::maps::pages::order::Order;
use crate::maps::pages::paged::{
    Cache, Io, LOADS, PAGE_BYTES, Paged, WRITES_ON_EVICTION, cache_bytes, fits, shape,
};
use crate::maps::pages::{LANES, OVER_PROVISIONING, PACK};
use crate::maps::{MapPage, MapStoreDef};
use crate::notes::{LEARNEDFTL_FREE_TRAINING, LEARNEDFTL_SORTS_A_BLOCK};
use flashatlas_types::{
    BlockId, ConfigError, FtlError, Lpn, Mechanism, Note, OpId, Param, Ppn, StreamId, Text, TiVec,
};
use std::collections::BTreeMap;

pub const DEF: MapStoreDef = MapStoreDef {
    name: "learnedftl",
    summary: "TPFTL's entries in SRAM, and a model of each map page that marks the entries it \
              predicts right",
    paper: "Wang et al., LearnedFTL: A Learning-Based Page-Level FTL for Reducing Double Reads in \
            Flash-Based SSDs (HPCA 2024)",
    params: &[
        cache_bytes("64KiB"),
        PAGE_BYTES.def,
        LINES.def,
        GROUP_PAGES.def,
        TRAIN.def,
        tpftl::PREFETCH_REQUEST.def,
        tpftl::PREFETCH_THRESHOLD.def,
        PACK.def,
        OVER_PROVISIONING.def,
        LANES.def,
    ],
    fits: &|&StoreConfig { params, .. }, layout| {
        if shape(params, layout)?.per_page > 1 << 15 {
            let why = "learnedftl has models of up to 32,768 entries";
            return Err(ConfigError::new(PAGE_BYTES.key(), why));
        }
        fits(params, layout, |_| tpftl::LEAST_BYTES, "two entries and their nodes")
    },
    exports_entries: true,
    build: &|&StoreConfig { params, .. }, layout| {
        Box::new(Paged::new(params, layout, false, |map, budget| {
            let (pages, per_page) = (map.table.pages(), map.table.per_page);
            LearnedFtl {
                entries: Tpftl::new(params, budget),
                models: filled(pages, Lines::new(per_page)),
                per_page,
                lines: params.get(LINES) as usize,
                group_pages: params.get(GROUP_PAGES),
                on_load: params.get(TRAIN) == "load",
                order: Order::new(layout),
                counters: Counters::default(),
            }
        }))
    },
    small: &[
        &["map.page_bytes=64", "map.cache_bytes=44"],
        &[
            "map.page_bytes=64",
            "map.cache_bytes=120",
            "map.lines=2",
            "map.group_pages=1",
            "map.train=load",
            "ftl.streams=2",
        ],
    ],
    mechanisms: &[
        LOADS,
        WRITES_ON_EVICTION,
        Mechanism::new("read by a model", "map.model_hits"),
        Mechanism::new("double read", "map.double_reads"),
        Mechanism::new("model trained", "map.trainings"),
        Mechanism::new("prediction that became wrong", "map.forgotten"),
    ],
};

const LINES: Param<u32> =
    Param::int("map.lines", 1, 64, "largest number of lines in the model of a map page").or("8");

const GROUP_PAGES: Param<u32> = Param::int(
    "map.group_pages",
    1,
    1 << 20,
    "number of map pages whose data goes to the same of the ftl.streams frontiers",
)
.or("64");

const TRAIN: Param<Text> = Param::choice(
    "map.train",
    &["blocks", "load"],
    "time at which models are trained: when a block is full, as in the paper (`blocks`), or also \
     when a map page is loaded (`load`)",
)
.or("blocks");

#[derive(Clone, Copy, Default)]
struct Counters {
    model_hits: u64,
    double_reads: u64,
    trainings: u64,
    forgotten: u64,
}

struct LearnedFtl {
    entries: Tpftl,
    models: TiVec<MapPage, Lines>,
    per_page: u32,
    lines: usize,
    group_pages: u32,
    on_load: bool,
    order: Order,
    counters: Counters,
}

impl LearnedFtl {
    /// Returns the place of a page's entry in its map page.
    fn at(&self, lpn: u32) -> u16 {
        (lpn % self.per_page) as u16
    }

    fn forget(&mut self, map: &MapOnFlash, lpn: Lpn) {
        let at = self.at(lpn.0);
        let model = &mut self.models[map.table.page_of(lpn)];
        self.counters.forgotten += u64::from(model.predict(at).is_some());
        model.forget(at);
    }

    fn train(&mut self, page: MapPage, points: &[Point]) {
        self.models[page].train(points, self.lines);
        self.counters.trainings += 1;
    }
}

impl Cache for LearnedFtl {
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        self.entries.holds(map, lpn)
    }

    fn holds_page(&self, page: MapPage) -> bool {
        self.entries.holds_page(page)
    }

    fn used(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.entries.used(map, lpn);
    }

    fn predicts(&mut self, map: &MapOnFlash, lpn: Lpn) -> bool {
        let predicted = self.models[map.table.page_of(lpn)].predict(self.at(lpn.0));
        let Some(number) = predicted else {
            self.counters.double_reads += 1;
            return false;
        };
        let truth = map.table.get(lpn);
        assert!(
            self.order.slot(number) == Some(truth),
            "page {lpn} is at {truth}, but its model predicts number {number} and marks it as right"
        );
        self.counters.model_hits += 1;
        true
    }

    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError> {
        let ready = self.entries.fetch(io, lpn)?;
        if self.on_load {
            let page = io.map.table.page_of(lpn);
            let place = |lpn: u32| io.map.table.get(Lpn(lpn)).mapped().map(|p| self.order.of(p));
            let known = io.map.table.lpns(page).filter_map(|lpn| Some((self.at(lpn), place(lpn)?)));
            let points: Vec<Point> = known.collect();
            self.train(page, &points);
        }
        Ok(ready)
    }

    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, old: Ppn) {
        self.forget(map, lpn);
        self.entries.changed(map, lpn, old);
    }

    /// Passes the call on. The model dropped the entry when its page was moved, and may have
    /// learned the entry again since then.
    fn overlaid(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.entries.overlaid(map, lpn);
    }

    fn moved(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.forget(map, lpn);
    }

    fn shrink(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        self.entries.shrink(io)
    }

    fn cleaned(&mut self, page: MapPage) {
        self.entries.cleaned(page);
    }

    fn has_changes_of(&self, page: MapPage) -> bool {
        self.entries.has_changes_of(page)
    }

    fn frontier(&self, map: &MapOnFlash, lpn: Lpn, frontiers: u32) -> Option<StreamId> {
        let group = map.table.page_of(lpn).number() / self.group_pages;
        Some(StreamId::new(group % frontiers))
    }

    fn sorts_copies(&self) -> bool {
        true
    }

    fn closed(&mut self, io: &mut Io<'_, '_>, block: BlockId) -> Result<(), FtlError> {
        let layout = io.cx.flash.medium.layout();
        let first = layout.block_slot(block).0;
        let slots = (first..first + layout.slots_per_block).map(Ppn);
        let mut points: BTreeMap<MapPage, Vec<Point>> = BTreeMap::new();
        for slot in slots.filter(|&slot| io.pool.blocks.is_valid(slot)) {
            // a model can learn nothing about a page that is no longer readable
            let Ok(lpn) = io.cx.flash.medium.lpn(slot) else { continue };
            let of_page = points.entry(io.map.table.page_of(lpn)).or_default();
            of_page.push((self.at(lpn.0), self.order.of(slot)));
        }
        for (page, mut points) in points {
            points.sort_unstable();
            self.train(page, &points);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.entries.bytes()
    }

    fn tables(&self) -> Vec<(&'static str, u64)> {
        let bytes = Lines::bytes(self.lines, self.per_page);
        vec![("models of map pages", bytes * self.models.len() as u64)]
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let c = self.counters;
        let mut details = self.entries.details();
        details.extend([
            ("model_hits", c.model_hits),
            ("double_reads", c.double_reads),
            ("trainings", c.trainings),
            ("forgotten", c.forgotten),
            ("lines_in_use", self.models.iter().map(|model| model.len() as u64).sum()),
            ("pages_known", self.models.iter().map(|model| u64::from(model.right())).sum()),
        ]);
        details
    }

    fn reset_counters(&mut self) {
        self.counters = Counters::default();
        self.entries.reset_counters();
    }

    fn approximations(&self) -> Vec<Note> {
        vec![LEARNEDFTL_FREE_TRAINING.note(), LEARNEDFTL_SORTS_A_BLOCK.note()]
    }
}
