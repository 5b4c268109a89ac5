//! Read-ahead as in file systems. A miss that continues a sequence prefetches twice as many pages
//! as the miss before it, up to a limit. Any other miss ends the sequence.

use super::{CachePolicy, CachePolicyDef, MapAccess};
use flashatlas_types::Param;

pub const DEF: CachePolicyDef = CachePolicyDef {
    name: "readahead",
    summary: "each miss of a sequence prefetches twice as many map pages as the miss before",
    paper: "Wu, Xi, Li and Zou, The Design of New Linux File System Readahead Framework, \
            SIGOPS Operating Systems Review (2008)",
    params: &[WINDOW.def],
    build: &|params, pages| {
        Box::new(Readahead { most: params.get(WINDOW), pages, follows: u32::MAX, window: 0 })
    },
};

const WINDOW: Param<u32> = Param::int(
    "map.readahead_pages",
    1,
    1024,
    "the largest number of map pages that a miss prefetches",
)
.or("8");

struct Readahead {
    most: u32,
    pages: u32,
    /// The page after the last page that the last miss loaded.
    follows: u32,
    /// The number of pages that the last miss prefetched.
    window: u32,
}

impl CachePolicy for Readahead {
    fn missed(&mut self, access: &MapAccess, ahead: &mut Vec<u32>) -> bool {
        self.window = if access.page == self.follows {
            (2 * self.window).clamp(1, self.most).min(access.most)
        } else {
            0
        };
        let next = access.page + 1;
        self.follows = next + self.window;
        ahead.extend(next..self.follows.min(self.pages).max(next));
        true
    }

    fn keeps_all(&self) -> bool {
        true
    }
}
