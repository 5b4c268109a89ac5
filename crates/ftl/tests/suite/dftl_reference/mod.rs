//! The DFTL map store against a naive reference: plain vectors, scanned from end to end, that share
//! no code with the store. After every call of a random sequence both have counted the same hits
//! and misses, and the same map pages read and written for each reason; now and then, both are
//! asked for the whole map.

mod reference;

use flashatlas_ftl::maps::{MapContext, MapStore, Update};
use flashatlas_ftl::pool::Pool;
use flashatlas_ftl::{FtlContext, PARAMS, Reason, Registry};
use flashatlas_nand::{Flash, Medium, Rules};
use flashatlas_types::{
    AllocationOrder, BlockId, Cause, Cell, Geometry, Layout, Lpn, OpId, Plan, Ppn, Ps, RawConfig,
    Rng, Seed, Span,
};
use reference::{ALWAYS, Reference, SOMETIMES};
use std::collections::BTreeMap;
use std::sync::Arc;

const CALLS: u32 = 4000;
const SEEDS: u64 = 3;
const UNIT_BYTES: u32 = 512;
const PAGES_PER_BLOCK: u32 = 8;
/// Blocks of each lane, more than map pages may have.
const BLOCKS: u32 = 20;
/// Those of them that entries point to; map pages have others.
const DATA_BLOCKS: u32 = 6;

/// What the store is built for, and what is asked of it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    logical_pages: u32,
    map_page_bytes: u32,
    entry_bytes: u32,
    /// Entries in memory.
    room: u32,
    /// Tenths of them that may be protected.
    protected_tenths: u32,
    lanes: u32,
    frame_bytes: u32,
    pack: bool,
    /// From one hot logical page to the next.
    stride: u32,
}

const fn shape(
    logical_pages: u32,
    map_page_bytes: u32,
    room: u32,
    protected_tenths: u32,
    stride: u32,
) -> Shape {
    Shape {
        logical_pages,
        map_page_bytes,
        entry_bytes: 4,
        room,
        protected_tenths,
        lanes: 1,
        frame_bytes: UNIT_BYTES,
        pack: true,
        stride,
    }
}

const SHAPES: &[Shape] = &[
    shape(90, 64, 2, 0, 1),
    shape(90, 64, 3, 5, 1),
    shape(90, 64, 64, 8, 1),
    shape(200, 64, 5, 8, 7),
    shape(256, 128, 9, 0, 1),
    shape(300, 128, 16, 5, 3),
    shape(500, 256, 24, 0, 11),
    shape(1000, 512, 40, 8, 1),
    shape(2000, 512, 64, 8, 13),
    // several map pages in a frame, and several lanes
    Shape { lanes: 2, frame_bytes: 2048, ..shape(2000, 64, 64, 5, 1) },
    Shape { lanes: 2, frame_bytes: 2048, pack: false, ..shape(1200, 128, 30, 8, 31) },
    // entries of eight bytes; map pages of two slots
    Shape { lanes: 3, entry_bytes: 8, ..shape(777, 512, 33, 5, 5) },
    Shape { lanes: 2, frame_bytes: 2048, entry_bytes: 8, ..shape(640, 1024, 12, 8, 1) },
];

#[derive(Clone, Copy, Debug)]
enum Call {
    Get(u32),
    Set(u32, Ppn),
    Trim(u32),
    Moved(u32, Ppn),
    Flush,
    BeforeErase(u32),
}

/// What both sides count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    hits: u64,
    misses: u64,
    update_hits: u64,
    update_misses: u64,
    loads: u64,
    merges: u64,
    writes: [u64; Reason::ALL.len()],
}

/// The store and the reference, which are asked the same.
struct Pair {
    name: String,
    reference: Reference,
    store: Box<dyn MapStore>,
    medium: Medium,
    pool: Pool,
    plan: Plan,
    calls: u32,
}

impl Pair {
    fn new(shape: &Shape, name: String) -> Pair {
        let def = Registry::STANDARD.store("dftl").unwrap();
        let mut raw = RawConfig::default();
        for (key, value) in [
            ("map.unit", UNIT_BYTES.to_string()),
            ("map.entry_bytes", shape.entry_bytes.to_string()),
            ("map.page_bytes", shape.map_page_bytes.to_string()),
            // less than one entry is left over
            ("map.cache_bytes", (8 * shape.room + 7).to_string()),
            ("map.protected_share", format!("0.{}", shape.protected_tenths)),
            ("map.pack", shape.pack.to_string()),
        ] {
            raw.set(key, &value, "test");
        }
        let defs: Vec<_> = PARAMS.iter().chain(def.params).collect();
        let params = raw.resolve(&defs, |_| None).unwrap();
        let geometry = Geometry {
            channels: shape.lanes,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: BLOCKS,
            pages: PAGES_PER_BLOCK,
            page_bytes: shape.frame_bytes,
            spare_bytes: 256,
            cell: Cell::Slc,
        };
        let order = AllocationOrder::parse("CWDP").unwrap();
        let layout =
            Layout::new(geometry, Span::ONE, UNIT_BYTES, order, shape.logical_pages).unwrap();
        let medium = Medium::new(Arc::new(layout.clone()), Rules::PLAIN, 0, Seed(1)).unwrap();
        let mut pool = Pool::new(&layout, &medium, true, (def.fits)(&params, &layout).unwrap());
        for block in
            (0..layout.blocks()).filter(|block| block % layout.blocks_per_lane >= DATA_BLOCKS)
        {
            pool.put(&medium, BlockId(block));
        }
        let mut plan = Plan::default();
        plan.set_recording(false);
        Pair {
            name,
            reference: Reference::new(shape, layout.slots_per_block),
            store: (def.build)(&params, &layout),
            medium,
            pool,
            plan,
            calls: 0,
        }
    }

    fn call(&mut self, call: Call) {
        let mut programmed = Vec::new();
        let mut cx = FtlContext {
            flash: Flash { medium: &mut self.medium, plan: &mut self.plan },
            now: Ps::ZERO,
            command: OpId::NONE,
            oldest_unfinished: OpId::NONE,
            ahead: 0,
            programmed: &mut programmed,
            remapped: None,
        };
        let update = |lpn, ppn| Update { lpn: Lpn(lpn), ppn, op: OpId::NONE };
        let (io, store) = (&mut MapContext { cx: &mut cx, pool: &mut self.pool }, &mut self.store);
        let answer = match call {
            Call::Get(lpn) => store.get(io, Lpn(lpn)).map(|(ppn, _)| Some(ppn)),
            Call::Set(lpn, ppn) => store.set(io, update(lpn, ppn)).map(|(old, _)| Some(old)),
            Call::Trim(lpn) => store.set(io, update(lpn, Ppn::NONE)).map(|(old, _)| Some(old)),
            Call::Moved(lpn, ppn) => store.moved(io, update(lpn, ppn)).map(Some),
            Call::Flush => store.flush(io).map(|_| None),
            Call::BeforeErase(block) => store.before_erase(io, BlockId(block)).map(|_| None),
        };
        let expected = self.reference.call(call);
        let at = format!("{}, call {}, {call:?}", self.name, self.calls);
        assert_eq!(answer, Ok(expected), "{at}: answer of the store, of the reference");
        assert_eq!(
            self.counts(),
            self.reference.counts,
            "{at}: counts of the store, of the reference"
        );
        self.calls += 1;
    }

    fn counts(&self) -> Counts {
        let (of_map, of_pages) = (self.store.counters(), self.store.pages());
        assert_eq!(of_map.lookups, of_map.hits + of_map.misses, "{}", self.name);
        assert_eq!(of_map.updates, of_map.update_hits + of_map.update_misses, "{}", self.name);
        Counts {
            hits: of_map.hits,
            misses: of_map.misses,
            update_hits: of_map.update_hits,
            update_misses: of_map.update_misses,
            loads: of_pages.loads,
            merges: of_pages.merges,
            writes: of_pages.writes,
        }
    }

    /// The whole map is the same, the store's own rules hold, and the flash was read as often as is
    /// said.
    fn compare_maps(&self) {
        let at = format!("{}, after {} calls", self.name, self.calls);
        for (lpn, &ppn) in self.reference.map.iter().enumerate() {
            assert_eq!(self.store.peek(Lpn(lpn as u32)), ppn, "{at}: page {lpn}");
        }
        self.store.check(&self.medium, &self.pool).unwrap_or_else(|e| panic!("{at}: {e}"));
        let pages = self.store.pages();
        let reads = self.medium.counters.reads[Cause::Map as usize];
        assert_eq!(
            reads,
            pages.loads + pages.merges + pages.copies,
            "{at}: reads of the flash, of map pages"
        );
    }
}

/// What is asked of a pair.
struct Workload {
    rng: Rng,
    shape: Shape,
    trims: bool,
}

impl Workload {
    fn below(&mut self, bound: u32) -> u32 {
        self.rng.below(bound.into()) as u32
    }

    /// Mostly of the hot ones, of which not quite all have room in memory.
    fn lpn(&mut self) -> u32 {
        let Shape { logical_pages, room, stride, .. } = self.shape;
        if self.below(10) < 7 {
            self.below(room + 3) * stride % logical_pages
        } else {
            self.below(logical_pages)
        }
    }

    fn block(&mut self, layout: &Layout) -> u32 {
        self.below(layout.lanes) * layout.blocks_per_lane + self.below(DATA_BLOCKS)
    }

    fn ppn(&mut self, layout: &Layout) -> Ppn {
        Ppn(self.block(layout) * layout.slots_per_block + self.below(layout.slots_per_block))
    }

    fn next(&mut self, pair: &Pair) -> Call {
        let layout = pair.pool.layout();
        let lpn = self.lpn();
        match self.below(100) {
            0..40 => Call::Get(lpn),
            40..70 => Call::Set(lpn, self.ppn(layout)),
            70..90 if pair.reference.map[lpn as usize] != Ppn::NONE => {
                Call::Moved(lpn, self.ppn(layout))
            }
            90..95 if self.trims => Call::Trim(lpn),
            95..98 => Call::BeforeErase(self.block(layout)),
            98 => Call::Flush,
            _ => Call::Set(lpn, self.ppn(layout)),
        }
    }
}

/// Run every shape, and make sure that the paths were taken.
fn run(trims: bool) {
    let mut total: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        for &shape in SHAPES {
            let mut pair = Pair::new(&shape, format!("seed {seed}, {shape:?}"));
            let mut workload = Workload { rng: Rng::stream(Seed(seed), "calls"), shape, trims };
            for i in 0..CALLS {
                let call = workload.next(&pair);
                pair.call(call);
                if i % 97 == 0 || i + 1 == CALLS {
                    pair.compare_maps();
                }
            }
            let Reference { paths, counts, .. } = pair.reference;
            for path in ALWAYS {
                assert!(paths.contains_key(path), "{}: never: {path}", pair.name);
            }
            assert!(
                counts.merges > 0 && counts.loads > 0 && counts.hits > 0 && counts.update_hits > 0,
                "{}",
                pair.name
            );
            paths.into_iter().for_each(|(path, times)| *total.entry(path).or_default() += times);
            *total.entry("map pages copied").or_default() += pair.store.pages().copies;
        }
    }
    let wanted = if trims { SOMETIMES } else { &SOMETIMES[..SOMETIMES.len() - 3] };
    for path in wanted {
        assert!(
            total.get(path).is_some_and(|&times| times > 100),
            "{path}: too seldom in {total:?}"
        );
    }
}

#[test]
fn as_many_map_pages_are_read_and_written_as_the_rules_say() {
    run(false);
}

#[test]
fn trims_are_written_when_the_rules_say() {
    run(true);
}

/// Memory for two entries, in one list; map pages of 16.
const SMALLEST: Shape = shape(90, 64, 2, 0, 1);

fn calls(name: &str, calls: &[Call]) {
    let mut pair = Pair::new(&SMALLEST, name.to_owned());
    calls.iter().for_each(|&call| pair.call(call));
    pair.compare_maps();
}

/// By the rules the entry is trimmed after another has left for it, so that the flush has a trim to
/// write.
#[test]
fn a_trim_comes_after_the_eviction_that_wrote_its_map_page() {
    calls(
        "trim of page 2",
        &[Call::Set(0, Ppn(0)), Call::Set(1, Ppn(1)), Call::Trim(2), Call::Flush],
    );
}

/// By the rules the trim of page 0 is written before that of page 16 is made, so that block 0 is
/// not needed any more.
#[test]
fn a_trim_comes_after_the_eviction_that_wrote_all_trims_before_it() {
    calls(
        "trim of page 16",
        &[Call::Set(0, Ppn(0)), Call::Trim(0), Call::Get(32), Call::Trim(16), Call::BeforeErase(0)],
    );
}
