//! Demand-paged map stores compared with naive references. The references are plain vectors that
//! are scanned completely, and they share no code with the stores. After every call of a random
//! sequence, both sides have counted the same hits and misses, and the same map pages read and
//! written for each reason. From time to time the whole maps are compared.

mod cdftl;
mod dftl;
mod rules;
mod sftl;
mod tpftl;

use flashatlas_fixtures::layouts::{UNIT_BYTES, lanes};
use flashatlas_fixtures::proofs;
use flashatlas_ftl::maps::{MapContext, MapStore, Update};
use flashatlas_ftl::pool::Pool;
use flashatlas_ftl::{
    Command, Copies, FtlContext, Outcome, PARAMS, Reason, Registry, SchemeConfig,
};
use flashatlas_nand::{Flash, Medium, Rules as FlashRules};
use flashatlas_types::{BlockId, Cause, Layout, Lpn, OpId, Plan, Ppn, RawConfig, Rng, Seed};
use rules::{Memory, Reference};
use std::collections::BTreeMap;
use std::sync::Arc;

const CALLS: u32 = 4000;
/// Random sequences for each shape. [`proofs::cases`] decides how many seeds are tried.
const SEEDS: usize = 20;
const PAGES_PER_BLOCK: u32 = 8;
/// Number of blocks of each lane, which exceeds the number that map pages may have.
const BLOCKS: u32 = 20;
/// The number of blocks of each lane that entries point to. Map pages use other blocks.
const DATA_BLOCKS: u32 = 6;

/// A store, and the reference that it is compared with.
struct Subject {
    /// Name of the store in the registry.
    name: &'static str,
    memory: fn(&Shape) -> Box<dyn Memory>,
    shapes: &'static [Shape],
    /// The store's own paths. Every run must take all paths in `always`, and some run each path in
    /// `sometimes`.
    always: &'static [&'static str],
    sometimes: &'static [&'static str],
}

/// The configuration of the store, and the load on it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    logical_pages: u32,
    map_page_bytes: u32,
    entry_bytes: u32,
    cache_bytes: u32,
    /// Parameters of the store.
    settings: &'static [(&'static str, &'static str)],
    lanes: u32,
    frame_bytes: u32,
    pack: bool,
    /// The number of hot logical pages, and the distance between two of them.
    hot: u32,
    stride: u32,
    /// The number of logical pages of the longest request.
    longest: u32,
}

const DEFAULT: Shape = Shape {
    logical_pages: 90,
    map_page_bytes: 64,
    entry_bytes: 4,
    cache_bytes: 0,
    settings: &[],
    lanes: 1,
    frame_bytes: UNIT_BYTES,
    pack: true,
    hot: 8,
    stride: 1,
    longest: 1,
};

impl Shape {
    fn per_page(&self) -> u32 {
        self.map_page_bytes / self.entry_bytes
    }

    /// Returns a parameter of the store, which every shape sets.
    fn setting(&self, key: &str) -> &'static str {
        let found = self.settings.iter().find(|(name, _)| *name == key);
        found.unwrap_or_else(|| panic!("{key} is not set in {self:?}")).1
    }

    fn number(&self, key: &str) -> f64 {
        self.setting(key).parse().unwrap()
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Get(u32),
    Set(u32, Ppn),
    Trim(u32),
    Moved(u32, Ppn),
    Flush,
    BeforeErase(u32),
}

/// Counters that both sides have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    hits: u64,
    misses: u64,
    update_hits: u64,
    update_misses: u64,
    loads: u64,
    merges: u64,
    writes: [u64; Reason::ALL.len()],
}

/// The store and its reference, which receive the same calls.
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
    fn new(subject: &Subject, shape: &Shape, name: String) -> Pair {
        let def = Registry::STANDARD.store(subject.name).unwrap();
        let mut raw = RawConfig::default();
        for (key, value) in [
            ("map.unit", UNIT_BYTES.to_string()),
            ("map.entry_bytes", shape.entry_bytes.to_string()),
            ("map.page_bytes", shape.map_page_bytes.to_string()),
            ("map.cache_bytes", shape.cache_bytes.to_string()),
            ("map.pack", shape.pack.to_string()),
        ] {
            raw.set(key, &value, "test");
        }
        shape.settings.iter().for_each(|(key, value)| raw.set(key, value, "test"));
        let defs: Vec<_> = PARAMS.iter().chain(def.params).collect();
        let params = raw.resolve(&defs, |_| None).unwrap();
        let slots = shape.frame_bytes / UNIT_BYTES;
        let layout = lanes(shape.lanes, [BLOCKS, PAGES_PER_BLOCK, slots], shape.logical_pages);
        let config = SchemeConfig { params: &params, parts: &Registry::STANDARD };
        let medium = Medium::new(Arc::new(layout.clone()), FlashRules::PLAIN, 0, Seed(1)).unwrap();
        let mut pool =
            Pool::new(&layout, &medium, true, (def.fits)(&config.store(), &layout).unwrap());
        for block in
            (0..layout.blocks()).filter(|block| block % layout.blocks_per_lane >= DATA_BLOCKS)
        {
            pool.put(&medium, BlockId::new(block));
        }
        let mut plan = Plan::default();
        plan.set_recording(false);
        Pair {
            name,
            reference: Reference::new(shape, layout.slots_per_block, (subject.memory)(shape)),
            store: (def.build)(&config.store(), &layout),
            medium,
            pool,
            plan,
            calls: 0,
        }
    }

    /// Calls both sides. After this page, `ahead` more pages of the request follow.
    fn call(&mut self, call: Call, ahead: u32) {
        let command = Command { oldest_unfinished: OpId::NONE, ..Command::UNTIMED };
        let (mut copies, mut outcome) = (Copies::default(), Outcome::default());
        let flash = Flash { medium: &mut self.medium, plan: &mut self.plan };
        let mut cx = FtlContext::new(flash, &command, &mut copies, &mut outcome);
        let update = |lpn, ppn| Update { lpn: Lpn(lpn), ppn, op: OpId::NONE };
        let (io, store) =
            (&mut MapContext { cx: &mut cx, pool: &mut self.pool, ahead }, &mut self.store);
        let answer = match call {
            Call::Get(lpn) => store.get(io, Lpn(lpn)).map(|(ppn, _)| Some(ppn)),
            Call::Set(lpn, ppn) => store.set(io, update(lpn, ppn)).map(|(old, _)| Some(old)),
            Call::Trim(lpn) => store.set(io, update(lpn, Ppn::NONE)).map(|(old, _)| Some(old)),
            Call::Moved(lpn, ppn) => store.moved(io, update(lpn, ppn)).map(Some),
            Call::Flush => store.flush(io).map(|_| None),
            Call::BeforeErase(block) => store.before_erase(io, BlockId::new(block)).map(|_| None),
        };
        let expected = self.reference.call(call, ahead);
        let at = || format!("{}, call {}, {call:?}, ahead {ahead}", self.name, self.calls);
        assert_eq!(answer, Ok(expected), "{}: answer of the store, of the reference", at());
        assert_eq!(
            self.counts(),
            self.reference.rules.counts,
            "{}: counts of the store, of the reference",
            at()
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

    /// Checks that both sides have the same map and the same additional counters, that the store's
    /// own rules hold, and that the flash was read as often as the store counted.
    fn compare_maps(&self) {
        let at = format!("{}, after {} calls", self.name, self.calls);
        for (lpn, &ppn) in self.reference.rules.map.iter().enumerate() {
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
        assert_eq!(
            self.store.details(),
            self.reference.details(),
            "{at}: details of the store, of the reference"
        );
    }
}

/// A request whose pages are processed one after another.
#[derive(Clone, Copy)]
struct Request {
    lpn: u32,
    left: u32,
    /// The place of the next page of a write; `None` for a read.
    ppn: Option<Ppn>,
    /// `true` if this is one request, `false` if it is several requests of one page each.
    whole: bool,
}

/// The source of the calls for a pair.
struct Workload {
    rng: Rng,
    shape: Shape,
    trims: bool,
    request: Option<Request>,
}

impl Workload {
    fn below(&mut self, bound: u32) -> u32 {
        self.rng.below(bound.into()) as u32
    }

    /// Draws a page, usually a hot page. Memory is slightly too small for all hot pages.
    fn lpn(&mut self) -> u32 {
        let Shape { logical_pages, hot, stride, .. } = self.shape;
        if self.below(10) < 7 {
            self.below(hot) * stride % logical_pages
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

    /// Returns the first place that a request writes to. It is a random place, or the place that
    /// its page would have if all pages were written in order.
    fn first_ppn(&mut self, layout: &Layout, lpn: u32, pages: u32) -> Ppn {
        let room = DATA_BLOCKS * layout.slots_per_block - pages;
        Ppn(if self.below(2) == 0 { self.below(room) } else { lpn % room })
    }

    fn begin(&mut self, layout: &Layout, lpn: u32) {
        let most = self.shape.longest.min(self.shape.logical_pages - lpn);
        let left = 1 + self.below(most);
        let ppn = (self.below(2) == 0).then(|| self.first_ppn(layout, lpn, left));
        self.request = Some(Request { lpn, left, ppn, whole: self.below(2) == 0 });
    }

    /// Returns the next page of the request.
    fn advance(&mut self, mut request: Request) -> (Call, u32) {
        let call = match request.ppn {
            None => Call::Get(request.lpn),
            Some(ppn) => Call::Set(request.lpn, ppn),
        };
        request.left -= 1;
        request.lpn += 1;
        request.ppn = request.ppn.map(|ppn| Ppn(ppn.0 + 1));
        self.request = (request.left > 0).then_some(request);
        (call, if request.whole { request.left } else { 0 })
    }

    fn next(&mut self, pair: &Pair) -> (Call, u32) {
        let layout = pair.pool.layout();
        if let Some(request) = self.request {
            return self.advance(request);
        }
        let lpn = self.lpn();
        if self.shape.longest > 1 && self.below(8) == 0 {
            self.begin(layout, lpn);
            return self.advance(self.request.expect("it was just begun"));
        }
        let call = match self.below(100) {
            0..40 => Call::Get(lpn),
            40..70 => Call::Set(lpn, self.ppn(layout)),
            70..90 if pair.reference.rules.map[lpn as usize] != Ppn::NONE => {
                Call::Moved(lpn, self.ppn(layout))
            }
            90..95 if self.trims => Call::Trim(lpn),
            95..98 => Call::BeforeErase(self.block(layout)),
            98 => Call::Flush,
            _ => Call::Set(lpn, self.ppn(layout)),
        };
        (call, 0)
    }
}

/// Runs every shape of a store, and checks that all its paths were taken.
fn run(subject: &Subject, trims: bool) {
    let mut total: BTreeMap<&str, u64> = BTreeMap::new();
    // at least two seeds, because a single seed takes some paths too seldom
    for seed in 0..proofs::cases(SEEDS).max(2) as u64 {
        for &shape in subject.shapes {
            let mut pair = Pair::new(subject, &shape, format!("seed {seed}, {shape:?}"));
            let rng = Rng::stream(Seed(seed), "calls");
            let mut workload = Workload { rng, shape, trims, request: None };
            for i in 0..CALLS {
                let (call, ahead) = workload.next(&pair);
                pair.call(call, ahead);
                if i % 97 == 0 || i + 1 == CALLS {
                    pair.compare_maps();
                }
            }
            let rules = pair.reference.rules;
            for path in rules::ALWAYS.iter().chain(subject.always) {
                assert!(rules.paths.contains_key(path), "{}: never: {path}", pair.name);
            }
            let counts = rules.counts;
            assert!(
                counts.merges > 0 && counts.loads > 0 && counts.hits > 0 && counts.update_hits > 0,
                "{}",
                pair.name
            );
            rules.paths.into_iter().for_each(|(path, n)| *total.entry(path).or_default() += n);
            *total.entry("map pages copied").or_default() += pair.store.pages().copies;
        }
    }
    let of_trims = if trims { rules::WITH_TRIMS } else { &[] };
    for path in rules::SOMETIMES.iter().chain(subject.sometimes).chain(of_trims) {
        assert!(
            total.get(path).is_some_and(|&times| times > 100),
            "{path}: too seldom in {total:?}"
        );
    }
}

/// Makes the calls of a case that was calculated by hand.
fn by_hand(subject: &Subject, shape: &Shape, calls: &[Call]) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let mut pair = Pair::new(subject, shape, name);
    calls.iter().for_each(|&call| pair.call(call, 0));
    pair.compare_maps();
}
