//! A page stays at its second miss: pages that are looked up once do not drive others out. The
//! numbers of those that were missed last are kept in the order of their misses (`A1out` of 2Q).

use super::{CachePolicy, CachePolicyDef, MapAccess};
use crate::MemoryUse;
use flashatlas_types::{MemoryKind, Param};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

pub const DEF: CachePolicyDef = CachePolicyDef {
    name: "ghost",
    summary: "a map page stays if it was among the last ones that were missed, or there is room",
    paper: "Johnson and Shasha, 2Q: A Low Overhead High Performance Buffer Management Replacement \
            Algorithm (VLDB 1994)",
    params: &[PAGES.def],
    build: &|params, _| {
        let most = params.get(PAGES) as usize;
        Box::new(Ghost { most, queue: VecDeque::new(), there: FxHashSet::default() })
    },
};

const PAGES: Param<u32> =
    Param::int("map.ghost_pages", 1, 1 << 24, "missed map pages whose numbers are remembered")
        .or("64");

/// Bytes of a page's number.
const NUMBER_BYTES: u64 = 4;

struct Ghost {
    most: usize,
    /// Pages that were missed and left out, the oldest first.
    queue: VecDeque<u32>,
    /// The same, to look them up.
    there: FxHashSet<u32>,
}

impl CachePolicy for Ghost {
    fn missed(&mut self, access: &MapAccess, _: &mut Vec<u32>) -> bool {
        if self.there.remove(&access.page) {
            self.queue.retain(|&page| page != access.page);
            return true;
        }
        if access.room || access.change {
            return true;
        }
        if self.queue.len() == self.most
            && let Some(oldest) = self.queue.pop_front()
        {
            self.there.remove(&oldest);
        }
        self.queue.push_back(access.page);
        self.there.insert(access.page);
        false
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bytes = self.most as u64 * NUMBER_BYTES;
        vec![MemoryUse { table: "map pages missed last", memory: MemoryKind::Sram, bytes }]
    }
}
