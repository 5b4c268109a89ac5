//! Two LRU lists: a page that is written while it is in the candidate list is hot.

use super::{Classifier, ClassifierDef, Page};
use crate::MemoryUse;
use flashatlas_types::{Lpn, MemoryKind, Param, StreamId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

pub const DEF: ClassifierDef = ClassifierDef {
    name: "two-lru",
    summary: "a page is hot if it is written again while it is in the candidate list; uses two \
              streams",
    paper: "Chang and Kuo, An Adaptive Striping Architecture for Flash Memory Storage Systems \
            (RTAS 2002)",
    params: &[HOT_PAGES.def, CANDIDATE_PAGES.def],
    streams: None,
    history: false,
    build: &|params, _, streams| {
        Box::new(TwoLru {
            hot: Lru::new(params.get(HOT_PAGES)),
            candidates: Lru::new(params.get(CANDIDATE_PAGES)),
            hot_stream: StreamId::new(streams.min(2) - 1),
        })
    },
};

const HOT_PAGES: Param<u64> =
    Param::int("ftl.hot_pages", 1, 1 << 30, "pages in the hot list").or("4096");

const CANDIDATE_PAGES: Param<u64> =
    Param::int("ftl.candidate_pages", 1, 1 << 30, "pages in the candidate list").or("4096");

struct TwoLru {
    hot: Lru,
    candidates: Lru,
    hot_stream: StreamId,
}

/// Pages in the order of their last use, up to a limit. The hash map is searched by key only, never
/// iterated.
struct Lru {
    limit: u64,
    used_at: FxHashMap<Lpn, u64>,
    order: BTreeMap<u64, Lpn>,
    uses: u64,
}

impl Lru {
    fn new(limit: u64) -> Lru {
        Lru { limit, used_at: FxHashMap::default(), order: BTreeMap::new(), uses: 0 }
    }

    fn remove(&mut self, lpn: Lpn) -> bool {
        self.used_at.remove(&lpn).is_some_and(|at| self.order.remove(&at).is_some())
    }

    /// Puts a page in front. Returns the page that falls off the end, or `None`.
    fn put(&mut self, lpn: Lpn) -> Option<Lpn> {
        self.remove(lpn);
        self.uses += 1;
        self.used_at.insert(lpn, self.uses);
        self.order.insert(self.uses, lpn);
        if self.order.len() as u64 <= self.limit {
            return None;
        }
        let (_, last) = self.order.pop_first()?;
        self.used_at.remove(&last);
        Some(last)
    }
}

impl Classifier for TwoLru {
    fn written(&mut self, page: &Page) -> StreamId {
        let lpn = page.lpn;
        if self.hot.used_at.contains_key(&lpn) || self.candidates.remove(lpn) {
            if let Some(cooled) = self.hot.put(lpn) {
                self.candidates.put(cooled);
            }
            return self.hot_stream;
        }
        self.candidates.put(lpn);
        StreamId::new(0)
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        if self.hot.used_at.contains_key(&page.lpn) { self.hot_stream } else { StreamId::new(0) }
    }

    fn memory(&self) -> Vec<MemoryUse> {
        // an entry has a page number and two links, of 4 bytes each
        let bytes = (self.hot.limit + self.candidates.limit) * 12;
        vec![MemoryUse { table: "two LRU lists", memory: MemoryKind::Dram, bytes }]
    }
}
