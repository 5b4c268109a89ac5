//! LeaFTL: the map in memory consists of learned segments. They predict the places of pages. The
//! spare area of the page that is read shows whether the prediction was right (Sun, Li, Sun, Sun,
//! Vucinic and Huang, *LeaFTL: A Learning-based Flash Translation Layer for Solid-State Drives*,
//! ASPLOS 2023).
//!
//! Changes are gathered until there are `map.learn_batch` of them. Then they are sorted and learned
//! group by group. A wrong prediction is off by at most `map.gamma` and costs one more read: the
//! spare area of the predicted page names its neighbours. Map pages leave memory with all their
//! segments, least recently used first.
//!
//! A segment is a line through numbered places. Places are numbered in the order in which a stream
//! of writes fills them: frame after frame over all lanes. On flash a map page has plain entries,
//! as in every other store. Its segments are learned again when the page is loaded.

use super::dftl::ENTRY_BYTES;
use crate::list::IndexList;
use crate::maps::StoreConfig;
use crate::maps::pages::MapOnFlash;
use crate::maps::pages::ids::{GroupId, filled};
use crate::maps::pages::learned::{GROUP, Point, SegmentGroup};
use crate::maps::pages::order::Order;
use crate::maps::pages::paged::{
    Cache, Io, LOADS, PAGE_BYTES, Paged, WRITES_ON_EVICTION, cache_bytes, fits,
};
use crate::maps::pages::{LANES, OVER_PROVISIONING, PACK};
use crate::maps::{MapPage, MapStoreDef};
use crate::notes::LEAFTL_PLAIN_ENTRIES;
use flashatlas_nand::ReadPart;
use flashatlas_types::{Cause, FtlError, Lpn, Mechanism, Note, OpId, Param, Ppn, TiVec};
use std::collections::BTreeSet;

pub const DEF: MapStoreDef = MapStoreDef {
    name: "leaftl",
    summary: "learned segments in SRAM that predict the places of pages; the spare area of a page \
              confirms its place",
    paper: "Sun et al., LeaFTL: A Learning-based Flash Translation Layer for Solid-State Drives \
            (ASPLOS 2023)",
    params: &[
        cache_bytes("128KiB"),
        PAGE_BYTES.def,
        GAMMA.def,
        LEARN_BATCH.def,
        COMPACTION.def,
        PACK.def,
        OVER_PROVISIONING.def,
        LANES.def,
    ],
    fits: &|&StoreConfig { params, .. }, layout| {
        let batch = params.get(LEARN_BATCH) * ENTRY_BYTES;
        // in the worst case every entry needs a segment
        fits(
            params,
            layout,
            |shape| batch + u64::from(shape.per_page) * 8,
            "a batch, and a map page in which nothing can be learned,",
        )
    },
    exports_entries: false,
    build: &|&StoreConfig { params, .. }, layout| {
        let gamma = params.get(GAMMA);
        let (batch, compaction) = (params.get(LEARN_BATCH), params.get(COMPACTION));
        Box::new(Paged::new(params, layout, false, |map, budget| Leaftl {
            pages: IndexList::new(map.table.pages()),
            changed: filled(map.table.pages(), false),
            groups: filled(
                map.table.len().div_ceil(GROUP.min(map.table.per_page)),
                SegmentGroup::default(),
            ),
            group: GROUP.min(map.table.per_page),
            size: filled(map.table.pages(), 0),
            bytes: 0,
            limit: budget - batch * ENTRY_BYTES,
            recent: BTreeSet::new(),
            batch: batch as usize,
            gamma,
            compaction,
            until_compaction: compaction,
            order: Order::new(layout),
            counters: Counters::default(),
        }))
    },
    small: &[
        &["map.page_bytes=64", "map.cache_bytes=160", "map.learn_batch=4"],
        &[
            "map.page_bytes=128",
            "map.cache_bytes=400",
            "map.learn_batch=8",
            "map.gamma=4",
            "map.compaction=50",
        ],
    ],
    mechanisms: &[
        LOADS,
        WRITES_ON_EVICTION,
        Mechanism::new("prediction", "map.predictions"),
        Mechanism::new("misprediction", "map.mispredictions").without(&["map.gamma=0"]),
        Mechanism::new("compaction", "map.compactions").without(&["map.compaction=1099511627776"]),
    ],
};

const GAMMA: Param<u32> =
    Param::int("map.gamma", 0, 16, "largest error of a prediction, in pages").or("0");

const LEARN_BATCH: Param<u64> = Param::int(
    "map.learn_batch",
    1,
    1 << 16,
    "number of changes that are gathered before they are learned; each change needs 8 bytes",
)
.or("256");

const COMPACTION: Param<u64> = Param::int(
    "map.compaction",
    1,
    1 << 40,
    "after this number of changes, all segments in memory are learned again, so that no useless \
     segment is left",
)
.or("1000000");

#[derive(Clone, Copy, Default)]
struct Counters {
    predictions: u64,
    wrong: u64,
    levels: u64,
    compactions: u64,
}

struct Leaftl {
    pages: IndexList<MapPage>,
    /// Map pages in memory with an entry that has changed since the page was loaded.
    changed: TiVec<MapPage, bool>,
    /// Segments of each group. Groups of pages that are not in memory have no segments.
    groups: TiVec<GroupId, SegmentGroup>,
    /// Number of entries in a group.
    group: u32,
    /// The bytes of the segments of each page, the bytes of all segments in memory, and the limit
    /// for them.
    size: TiVec<MapPage, u64>,
    bytes: u64,
    limit: u64,
    /// Changes of pages in memory that are not learned yet.
    recent: BTreeSet<u32>,
    batch: usize,
    gamma: u32,
    compaction: u64,
    until_compaction: u64,
    order: Order,
    counters: Counters,
}

impl Leaftl {
    fn groups_of(&self, map: &MapOnFlash, page: MapPage) -> std::ops::Range<GroupId> {
        let range = map.table.lpns(page);
        GroupId::new(range.start / self.group)..GroupId::new(range.end.div_ceil(self.group))
    }

    /// Returns the group of a logical page, and the place of the page in it.
    fn place_in_group(&self, lpn: u32) -> (GroupId, u8) {
        (GroupId::new(lpn / self.group), (lpn % self.group) as u8)
    }

    /// Learns changes of pages in memory, given in ascending order.
    fn learn(&mut self, map: &MapOnFlash, changes: impl Iterator<Item = u32>) {
        let mut touched: Vec<MapPage> = Vec::new();
        let mut points: Vec<Point> = Vec::with_capacity(self.group as usize);
        let mut of = GroupId::new(0);
        for lpn in changes {
            let (group, at) = self.place_in_group(lpn);
            if group != of {
                self.groups[of].learn(&points, self.gamma);
                points.clear();
                of = group;
            }
            match map.table.get(Lpn(lpn)).mapped() {
                Some(ppn) => points.push((at, self.order.of(ppn))),
                None => self.groups[group].forget(at),
            }
            let page = map.table.page_of(Lpn(lpn));
            if touched.last() != Some(&page) {
                touched.push(page);
            }
        }
        self.groups[of].learn(&points, self.gamma);
        for page in touched {
            self.measure(map, page);
        }
    }

    /// Recomputes the bytes of a page.
    fn measure(&mut self, map: &MapOnFlash, page: MapPage) {
        let bytes = self.groups[self.groups_of(map, page)].iter().map(SegmentGroup::bytes).sum();
        self.bytes = self.bytes - self.size[page] + bytes;
        self.size[page] = bytes;
    }

    fn learn_recent(&mut self, map: &MapOnFlash) {
        let recent = std::mem::take(&mut self.recent);
        self.learn(map, recent.into_iter());
    }

    /// Learns all entries of a page in memory from their current values.
    fn relearn(&mut self, map: &MapOnFlash, page: MapPage) {
        let groups = self.groups_of(map, page);
        self.groups[groups].fill(SegmentGroup::default());
        self.learn(map, map.table.lpns(page).filter(|&lpn| map.table.get(Lpn(lpn)) != Ppn::NONE));
        self.measure(map, page);
    }

    /// Evicts pages other than `keep` until the remaining pages fit.
    fn make_room(&mut self, io: &mut Io<'_, '_>, keep: Option<MapPage>) -> Result<OpId, FtlError> {
        let mut last = OpId::NONE;
        while self.bytes > self.limit {
            let page = self.pages.iter().find(|&p| Some(p) != keep).expect("one page always fits");
            if std::mem::take(&mut self.changed[page]) {
                last = io.evict(page, true)?;
            }
            let groups = self.groups_of(io.map, page);
            self.groups[groups].fill(SegmentGroup::default());
            let range = io.map.table.lpns(page);
            let mut later = self.recent.split_off(&range.start);
            self.recent.append(&mut later.split_off(&range.end));
            self.bytes -= std::mem::take(&mut self.size[page]);
            self.pages.remove(page);
        }
        Ok(last)
    }
}

impl Cache for Leaftl {
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        self.pages.contains(map.table.page_of(lpn))
    }

    fn holds_page(&self, page: MapPage) -> bool {
        self.pages.contains(page)
    }

    fn used(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.pages.touch(map.table.page_of(lpn));
    }

    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError> {
        let page = io.map.table.page_of(lpn);
        self.pages.push(page);
        self.relearn(io.map, page);
        let evicted = self.make_room(io, Some(page))?;
        io.load(lpn, evicted)
    }

    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, _: Ppn) {
        self.changed[map.table.page_of(lpn)] = true;
        self.recent.insert(lpn.0);
        self.until_compaction -= 1;
        if self.until_compaction == 0 {
            self.until_compaction = self.compaction;
            self.counters.compactions += 1;
            self.recent.clear();
            let pages: Vec<MapPage> = self.pages.iter().collect();
            pages.into_iter().for_each(|page| self.relearn(map, page));
        } else if self.recent.len() == self.batch {
            self.learn_recent(map);
        }
    }

    /// Returns `false`, because map pages leave as a whole.
    fn takes_moves(&self, _: &MapOnFlash, _: Lpn) -> bool {
        false
    }

    fn shrink(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        self.make_room(io, None)
    }

    fn finish(
        &mut self,
        io: &mut Io<'_, '_>,
        lpn: Lpn,
        lookup: bool,
        ready: OpId,
    ) -> Result<OpId, FtlError> {
        let truth = io.map.table.get(lpn);
        if !lookup || self.recent.contains(&lpn.0) {
            return Ok(ready);
        }
        let (group, at) = self.place_in_group(lpn.0);
        let Some((number, levels)) = self.groups[group].predict(at) else {
            assert!(truth == Ppn::NONE, "page {lpn} is at {truth}, but no segment covers it");
            return Ok(ready);
        };
        self.counters.predictions += 1;
        self.counters.levels += u64::from(levels);
        let wanted = self.order.of(truth);
        assert!(
            number.abs_diff(wanted) <= self.gamma,
            "page {lpn} is at {wanted}, but {number} was predicted"
        );
        if number == wanted {
            return Ok(ready);
        }
        // another page is at the predicted place; its spare area names its neighbours
        self.counters.wrong += 1;
        let neighbours = number.saturating_sub(self.gamma)..=number + self.gamma;
        if io.cx.flash.medium.lpn(truth).is_err() {
            return Ok(ready); // the later read of the page reports the error
        }
        let named = neighbours
            .filter_map(|n| self.order.slot(n))
            .any(|slot| io.cx.flash.medium.lpn(slot) == Ok(lpn));
        assert!(named, "the neighbours of {number} do not name page {lpn}");
        let readable = |slot: &Ppn| io.cx.flash.medium.lpn(*slot).is_ok();
        let Some(slot) = self.order.slot(number).filter(readable) else { return Ok(ready) };
        let layout = io.cx.flash.medium.layout();
        let (frame, bit) = (layout.frame_of(slot), slot.0 % layout.slots_per_frame);
        Ok(io.cx.flash.read(frame, 1 << bit, ReadPart::Whole, Cause::Map, &[ready])?)
    }

    fn cleaned(&mut self, page: MapPage) {
        self.changed[page] = false;
    }

    fn has_changes_of(&self, page: MapPage) -> bool {
        self.changed[page]
    }

    fn bytes(&self) -> u64 {
        self.bytes + self.recent.len() as u64 * ENTRY_BYTES
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let groups = self.groups.iter().filter(|g| g.segments() > 0);
        let c = self.counters;
        vec![
            ("predictions", c.predictions),
            ("mispredictions", c.wrong),
            ("levels_searched", c.levels),
            ("compactions", c.compactions),
            ("groups_in_memory", groups.clone().count() as u64),
            ("segments_in_memory", groups.map(SegmentGroup::segments).sum()),
            ("segment_bytes", self.bytes),
        ]
    }

    fn reset_counters(&mut self) {
        self.counters = Counters::default();
    }

    fn approximations(&self) -> Vec<Note> {
        vec![LEAFTL_PLAIN_ENTRIES.note()]
    }
}
