//! TPFTL: entries in memory, gathered by map page (Zhou, Wu, Huang, He and Zhang, *An Efficient
//! Page-level FTL to Optimize Address Translation in Flash Memory*, EuroSys 2015). The map page
//! whose entries have the oldest average time of last use gives up entries first. An entry is
//! loaded together with the entries that the request, or a sequential reader, will need next.
//!
//! A node is a map page with entries in memory. An entry consists of its index in the map page and
//! its physical page, in 6 bytes instead of 8. The least recently used entry of a node leaves
//! first, but unchanged entries leave before changed entries. When a changed entry leaves, all
//! changed entries of the node are written.
//!
//! Prefetching loads the entries that the current request still needs. While more nodes leave
//! memory than enter it (a sign of sequential access), at least one entry is prefetched for each
//! entry in memory directly before the missed entry. Prefetching stays within the map page, and
//! only one node gives up entries to make room.
//!
//! Behind a write cache, the map changes only when a frame is programmed, after the write request
//! is complete. So for writes, only units of the same frame count as needed by the request.

use crate::maps::StoreConfig;
use crate::maps::pages::MapOnFlash;
use crate::maps::pages::paged::{
    Cache, Io, LOADS, PAGE_BYTES, Paged, WRITES_ON_EVICTION, cache_bytes, fits,
};
use crate::maps::pages::{LANES, OVER_PROVISIONING, PACK};
use crate::maps::{MapPage, MapStoreDef};
use flashatlas_types::{FtlError, Lpn, Mechanism, OpId, Param, Params, Ppn};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The bytes of an entry: its index in the map page (10 to 12 bits) and its physical page.
const ENTRY_BYTES: u64 = 6;
/// The bytes of a node: map page, hotness, count and two links.
const NODE_BYTES: u64 = 16;
/// The bytes of two entries and their nodes.
pub(crate) const LEAST_BYTES: u64 = 2 * (NODE_BYTES + ENTRY_BYTES);

pub const DEF: MapStoreDef = MapStoreDef {
    name: "tpftl",
    summary: "entries in SRAM gathered by map page, with prefetching by request and by sequence",
    paper: "Zhou, Wu, Huang, He and Zhang, An Efficient Page-level FTL to Optimize Address \
            Translation (EuroSys 2015)",
    params: &[
        cache_bytes("64KiB"),
        PAGE_BYTES.def,
        PREFETCH_REQUEST.def,
        PREFETCH_THRESHOLD.def,
        PACK.def,
        OVER_PROVISIONING.def,
        LANES.def,
    ],
    fits: &|&StoreConfig { params, .. }, layout| {
        fits(params, layout, |_| LEAST_BYTES, "two entries and their nodes")
    },
    exports_entries: true,
    build: &|&StoreConfig { params, .. }, layout| {
        Box::new(Paged::new(params, layout, false, |_, budget| Tpftl::new(params, budget)))
    },
    small: &[
        &["map.page_bytes=64", "map.cache_bytes=44"],
        &["map.page_bytes=64", "map.cache_bytes=250", "map.prefetch_threshold=1"],
    ],
    mechanisms: &[
        LOADS,
        WRITES_ON_EVICTION,
        Mechanism::new("request-level prefetching", "map.entries_prefetched_request")
            .without(&["map.prefetch_request=false"]),
        Mechanism::new("selective prefetching", "map.entries_prefetched_selective")
            .without(&["map.prefetch_threshold=0"]),
        Mechanism::new("batch update", "map.entries_written"),
    ],
};

pub(crate) const PREFETCH_REQUEST: Param<bool> = Param::flag(
    "map.prefetch_request",
    "true: load together all entries of a map page that the request needs",
)
.or("true");

pub(crate) const PREFETCH_THRESHOLD: Param<u64> = Param::int(
    "map.prefetch_threshold",
    0,
    1 << 20,
    "number of nodes: selective prefetching begins when the nodes that have left memory exceed the \
     nodes that have entered it by this number, and ends in the opposite case; 0: never",
)
.or("3");

/// The entries of one map page that are in memory.
#[derive(Default)]
struct CachedPage {
    /// The time of last use of each entry, and `true` if the entry has changed.
    entries: FxHashMap<u32, (u64, bool)>,
    /// The entries by time of last use. Unchanged and changed entries have separate lists.
    clean: BTreeMap<u64, u32>,
    changed: BTreeMap<u64, u32>,
    /// Sum of the times of last use.
    sum: u64,
}

impl CachedPage {
    /// Returns the average time of last use. A node with a later average is hotter.
    fn hotness(&self) -> u64 {
        self.sum / (self.entries.len() as u64).max(1)
    }

    fn put(&mut self, entry: u32, time: u64, changed: bool) {
        self.take(entry);
        self.entries.insert(entry, (time, changed));
        let order = if changed { &mut self.changed } else { &mut self.clean };
        order.insert(time, entry);
        self.sum += time;
    }

    fn take(&mut self, entry: u32) -> Option<(u64, bool)> {
        let (time, changed) = self.entries.remove(&entry)?;
        if changed {
            self.changed.remove(&time)
        } else {
            self.clean.remove(&time)
        };
        self.sum -= time;
        Some((time, changed))
    }
}

pub(crate) struct Tpftl {
    nodes: FxHashMap<MapPage, CachedPage>,
    /// Nodes by hotness.
    coldest: BTreeSet<(u64, MapPage)>,
    used: u64,
    budget: u64,
    clock: u64,
    /// The number of nodes that entered memory minus the number of nodes that left, since selective
    /// prefetching was last switched on or off.
    balance: i64,
    sequential: bool,
    request: bool,
    threshold: i64,
    /// The number of entries that were prefetched for the request, and by selective prefetching.
    prefetched: [u64; 2],
    cleaned: u64,
}

impl Tpftl {
    /// Returns an empty cache for `budget` bytes.
    pub fn new(params: &Params, budget: u64) -> Tpftl {
        Tpftl {
            nodes: FxHashMap::default(),
            coldest: BTreeSet::new(),
            used: 0,
            budget,
            clock: 0,
            balance: 0,
            sequential: false,
            request: params.get(PREFETCH_REQUEST),
            threshold: params.get(PREFETCH_THRESHOLD) as i64,
            prefetched: [0; 2],
            cleaned: 0,
        }
    }

    /// Changes a node, and updates its position in the order of hotness.
    fn with<T>(&mut self, page: MapPage, work: impl FnOnce(&mut CachedPage, u64) -> T) -> T {
        self.clock += 1;
        let node = self.nodes.get_mut(&page).expect("the node is in memory");
        self.coldest.remove(&(node.hotness(), page));
        let done = work(node, self.clock);
        self.coldest.insert((node.hotness(), page));
        done
    }

    fn count(&mut self, step: i64) {
        self.balance += step;
        if self.threshold > 0 && self.balance.abs() >= self.threshold {
            self.sequential = self.balance < 0;
            self.balance = 0;
        }
    }

    /// Returns the node whose entries have the oldest average time of last use, or `None` if there
    /// is no node.
    fn coldest(&self) -> Option<MapPage> {
        self.coldest.first().map(|&(_, page)| page)
    }

    /// Evicts an entry of the node of `page`.
    fn evict(&mut self, io: &mut Io<'_, '_>, page: MapPage) -> Result<OpId, FtlError> {
        let mut evicted = OpId::NONE;
        if self.nodes[&page].clean.is_empty() {
            evicted = io.evict(page, false)?;
            self.clean(page);
        }
        let entries = self.with(page, |node, _| {
            let (_, &entry) = node.clean.first_key_value().expect("a node has entries");
            node.take(entry);
            node.entries.len()
        });
        self.used -= ENTRY_BYTES;
        if entries == 0 {
            let node = self.nodes.remove(&page).expect("the node is in memory");
            self.coldest.remove(&(node.hotness(), page));
            self.used -= NODE_BYTES;
            self.count(-1);
        }
        Ok(evicted)
    }

    fn clean(&mut self, page: MapPage) {
        let Some(node) = self.nodes.get_mut(&page) else { return };
        self.cleaned += node.changed.len() as u64;
        for (time, entry) in std::mem::take(&mut node.changed) {
            node.clean.insert(time, entry);
            node.entries.insert(entry, (time, false));
        }
    }

    /// Returns the number of entries after `lpn` that are loaded for the request, and the number of
    /// all entries after `lpn` that are loaded.
    fn wanted(&self, io: &Io<'_, '_>, lpn: Lpn, page: MapPage) -> (u32, u32) {
        let range = io.map.table.lpns(page);
        let request = if self.request { io.ahead } else { 0 };
        let mut selective = 0;
        if self.sequential
            && let Some(node) = self.nodes.get(&page)
        {
            selective = (range.start..lpn.0)
                .rev()
                .take_while(|before| node.entries.contains_key(before))
                .count() as u32;
        }
        let rest = range.end - 1 - lpn.0;
        (request.min(rest), request.max(selective).min(rest))
    }

    fn insert(&mut self, page: MapPage, lpn: u32) {
        if let Entry::Vacant(vacant) = self.nodes.entry(page) {
            vacant.insert(CachedPage::default());
            self.coldest.insert((0, page));
            self.used += NODE_BYTES;
            self.count(1);
        }
        self.with(page, |node, time| node.put(lpn, time, false));
        self.used += ENTRY_BYTES;
    }
}

impl Cache for Tpftl {
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        self.nodes
            .get(&map.table.page_of(lpn))
            .is_some_and(|node| node.entries.contains_key(&lpn.0))
    }

    fn holds_page(&self, _: MapPage) -> bool {
        false
    }

    fn used(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.with(map.table.page_of(lpn), |node, time| {
            let changed = node.entries[&lpn.0].1;
            node.put(lpn.0, time, changed);
        });
    }

    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError> {
        let page = io.map.table.page_of(lpn);
        let (request, more) = self.wanted(io, lpn, page);
        let (mut evicted, mut from) = (OpId::NONE, None);
        while self.used + NODE_BYTES + ENTRY_BYTES > self.budget {
            let coldest = self.coldest().expect("two entries fit");
            evicted = evicted.max(self.evict(io, coldest)?);
            from = Some(coldest);
        }
        self.insert(page, lpn.0);
        for next in lpn.0 + 1..=lpn.0 + more {
            if self.nodes[&page].entries.contains_key(&next) {
                continue;
            }
            // Room for prefetched entries is taken from one node until it is empty. The node is
            // chosen only once, because each entry that leaves makes the remaining entries hotter
            // on average.
            while self.used + ENTRY_BYTES > self.budget {
                let Some(victim) = from.or_else(|| self.coldest()) else { break };
                if victim == page || !self.nodes.contains_key(&victim) {
                    break;
                }
                evicted = evicted.max(self.evict(io, victim)?);
                from = Some(victim);
            }
            if self.used + ENTRY_BYTES > self.budget {
                break;
            }
            self.insert(page, next);
            self.prefetched[usize::from(next > lpn.0 + request)] += 1;
        }
        io.load(lpn, evicted)
    }

    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, _: Ppn) {
        self.with(map.table.page_of(lpn), |node, _| {
            let (time, _) = node.entries[&lpn.0];
            node.put(lpn.0, time, true);
        });
    }

    fn cleaned(&mut self, page: MapPage) {
        self.clean(page);
    }

    fn has_changes_of(&self, page: MapPage) -> bool {
        self.nodes.get(&page).is_some_and(|node| !node.changed.is_empty())
    }

    fn bytes(&self) -> u64 {
        self.used
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let [request, selective] = self.prefetched;
        vec![
            ("entries_prefetched_request", request),
            ("entries_prefetched_selective", selective),
            ("entries_written", self.cleaned),
        ]
    }

    fn reset_counters(&mut self) {
        (self.prefetched, self.cleaned) = ([0; 2], 0);
    }
}
