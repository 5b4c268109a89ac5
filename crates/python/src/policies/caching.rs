//! A map cache policy in Python.
//!
//! Either the policy is asked at every miss, or it has tables by map page and changes these tables
//! after a batch of misses.

use super::tables::Learning;
use super::{Described, leaked, raised, values};
use flashatlas_ftl::MemoryUse;
use flashatlas_ftl::caching::{CachePolicy, CachePolicyDef, MapAccess};
use flashatlas_types::{MemoryKind, ParamDef, Params, PartFault};
use pyo3::prelude::*;

struct Keeper {
    who: &'static str,
    policy: Py<PyAny>,
    pages: u32,
    /// For each map page, whether it stays in memory, and the number of prefetched pages after it.
    learning: Learning,
    hears_hits: bool,
}

/// Returns the definition of a policy that is written in Python.
pub fn definition(described: Described, params: &'static [ParamDef]) -> CachePolicyDef {
    let who = leaked(&format!("map cache policy `{}` ({})", described.name, described.origin.0));
    let (make, batch, hears_hits) = (described.make, described.batch, described.history);
    let build = move |set: &Params, pages: u32| {
        let learning = Learning::new(pages, [1, 0], batch);
        Python::attach(|py| {
            let made = values(py, set, params)
                .and_then(|set| make.call1(py, (set, learning.shown(pages))));
            let policy = made.unwrap_or_else(|e| raised(who, "__init__", None, py, e));
            Box::new(Keeper { who, policy, pages, learning, hears_hits }) as Box<dyn CachePolicy>
        })
    };
    CachePolicyDef {
        name: leaked(&described.name),
        summary: leaked(&described.summary),
        paper: leaked(&described.paper),
        params,
        build: Box::leak(Box::new(build)),
    }
}

impl Keeper {
    /// Asks Python about a page, and returns `true` if the page stays in memory.
    ///
    /// Adds the pages that are prefetched to `ahead`.
    fn ask(&self, access: &MapAccess, ahead: &mut Vec<u32>) -> bool {
        Python::attach(|py| {
            let MapAccess { page, clock, change, room, most, .. } = *access;
            let fault = |method: &str, error| -> ! { raised(self.who, method, None, py, error) };
            let stays = self.policy.call_method1(py, "admit", (page, clock, change, room));
            let stays = stays.and_then(|stays| stays.is_truthy(py));
            let stays = stays.unwrap_or_else(|e| fault("admit", e));
            let more = self.policy.call_method1(py, "_prefetch", (page, clock, change, most));
            let more = more.and_then(|more| more.extract::<Vec<u32>>(py));
            ahead.extend(more.unwrap_or_else(|e| fault("prefetch", e)));
            stays
        })
    }
}

impl CachePolicy for Keeper {
    fn used(&mut self, access: &MapAccess) {
        if !self.hears_hits {
            return;
        }
        Python::attach(|py| {
            let of = (access.page, access.clock, access.change);
            let heard = self.policy.call_method1(py, "used", of);
            heard.unwrap_or_else(|e| raised(self.who, "used", None, py, e));
        });
    }

    fn missed(&mut self, access: &MapAccess, ahead: &mut Vec<u32>) -> bool {
        let stays = if self.learning.is_asked() {
            self.ask(access, ahead)
        } else {
            if self.learning.hear(access.page, access.clock) {
                Python::attach(|py| {
                    let learnt = self.policy.call_method1(py, "_learn", (access.clock,));
                    learnt.unwrap_or_else(|e| raised(self.who, "learn", None, py, e));
                });
            }
            let (next, more) = (access.page + 1, self.learning.of(1, access.page));
            ahead.extend(next..next.saturating_add(more).min(self.pages).max(next));
            self.learning.of(0, access.page) != 0
        };
        if let Some(page) = ahead.iter().find(|&&page| page >= self.pages) {
            PartFault::raise(
                self.who,
                format!(
                    "`prefetch` returned map page {page}, but the map pages are 0 to {}",
                    self.pages - 1
                ),
            );
        }
        stays
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bytes = Python::attach(|py| {
            let bytes = self.policy.call_method0(py, "memory");
            bytes
                .and_then(|bytes| bytes.extract::<u64>(py))
                .unwrap_or_else(|e| raised(self.who, "memory", None, py, e))
        });
        match bytes {
            0 => Vec::new(),
            bytes => vec![MemoryUse { table: "map cache policy", memory: MemoryKind::Sram, bytes }],
        }
    }
}
