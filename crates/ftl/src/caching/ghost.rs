//! Admission at the second miss: a page that is looked up only once does not push other pages out.
//! The policy stores the numbers of the pages that were missed last, in the order of their misses
//! (`A1out` of 2Q).

use super::{CachePolicy, CachePolicyDef, MapAccess};
use crate::MemoryUse;
use flashatlas_types::{MemoryKind, Param};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

pub const DEF: CachePolicyDef = CachePolicyDef {
    name: "ghost",
    summary: "a map page stays in memory if it was missed a short time before, or if there is room",
    paper: "Johnson and Shasha, 2Q: A Low Overhead High Performance Buffer Management Replacement \
            Algorithm (VLDB 1994)",
    params: &[PAGES.def],
    build: &|params, _| {
        let most = params.get(PAGES) as usize;
        Box::new(Ghost { most, misses: 0, queue: VecDeque::new(), there: FxHashMap::default() })
    },
};

const PAGES: Param<u32> = Param::int(
    "map.ghost_pages",
    1,
    1 << 24,
    "number of missed map pages that the policy remembers",
)
.or("64");

/// Bytes of a page's number.
const NUMBER_BYTES: u64 = 4;

struct Ghost {
    most: usize,
    /// The number of misses so far that did not admit their page.
    misses: u64,
    /// Pages that were not admitted, each with the number of its miss, oldest miss first. If a page
    /// was missed again later, its old entry is still in the queue, but `there` maps the page to
    /// another number.
    queue: VecDeque<(u32, u64)>,
    /// The number of the last miss of each page that is remembered.
    there: FxHashMap<u32, u64>,
}

impl CachePolicy for Ghost {
    fn missed(&mut self, access: &MapAccess, _: &mut Vec<u32>) -> bool {
        if self.there.remove(&access.page).is_some() || access.room || access.change {
            return true;
        }
        while self.there.len() >= self.most
            && let Some((page, miss)) = self.queue.pop_front()
        {
            if self.there.get(&page) == Some(&miss) {
                self.there.remove(&page);
            }
        }
        self.misses += 1;
        self.queue.push_back((access.page, self.misses));
        self.there.insert(access.page, self.misses);
        if self.queue.len() > 2 * self.most {
            self.queue.retain(|(page, miss)| self.there.get(page) == Some(miss));
        }
        false
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bytes = self.most as u64 * NUMBER_BYTES;
        vec![MemoryUse { table: "map pages missed last", memory: MemoryKind::Sram, bytes }]
    }
}
