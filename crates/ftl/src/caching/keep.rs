//! The cache that the map stores' papers describe. Every map page that was read stays in memory,
//! and no other page is prefetched.

use super::{CachePolicy, CachePolicyDef, MapAccess};

pub const DEF: CachePolicyDef = CachePolicyDef {
    name: "keep",
    summary: "every map page that was read stays in memory, and no other page is prefetched",
    paper: "none",
    params: &[],
    build: &|_, _| Box::new(Keep),
};

struct Keep;

impl CachePolicy for Keep {
    fn missed(&mut self, _: &MapAccess, _: &mut Vec<u32>) -> bool {
        true
    }

    fn keeps_all(&self) -> bool {
        true
    }
}
