//! Policies of the map's cache. A policy decides whether a map page stays in memory after a lookup
//! has read it (admission), and which other pages are loaded together with it (prefetch). The store
//! decides which page leaves.
//!
//! The store `demand` asks its policy at every miss. A page with a change stays in memory whatever
//! the policy answers, because the change must be stored somewhere.

mod ghost;
mod keep;
mod readahead;

use crate::MemoryUse;
use flashatlas_types::{Entry, Lpn, Param, ParamDef, Params, Text};

/// A lookup or a change of a map entry that the host needs.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapAccess {
    /// The map page that has the entry.
    pub page: u32,
    /// The logical page of the entry.
    pub lpn: Lpn,
    /// `true` if the entry changes.
    pub change: bool,
    /// The number of lookups and changes before this access.
    pub clock: u64,
    /// `true` if there is room in memory for one more map page without an eviction.
    pub room: bool,
    /// The largest number of map pages that can be loaded together with this page.
    pub most: u32,
}

/// A policy that decides which map pages stay in the map's cache.
pub trait CachePolicy: Send {
    /// Notes an access to a page that is in memory.
    fn used(&mut self, access: &MapAccess) {
        let _ = access;
    }

    /// Decides whether a page that is not in memory stays there once it is read.
    ///
    /// The policy appends the pages to prefetch to `ahead`, the most important pages first. A page
    /// is skipped if it does not exist, if it is already in memory, or if there is no room for it
    /// in addition to the missed page.
    fn missed(&mut self, access: &MapAccess, ahead: &mut Vec<u32>) -> bool;

    /// Returns `true` if every page stays. Otherwise the cache needs a buffer for a page that was
    /// read and does not stay.
    fn keeps_all(&self) -> bool {
        false
    }

    /// Returns the tables of the policy.
    fn memory(&self) -> Vec<MemoryUse> {
        Vec::new()
    }
}

/// A function that builds a policy for a map with a given number of pages.
pub type Builder = dyn Fn(&Params, u32) -> Box<dyn CachePolicy> + Send + Sync;

/// One policy of the registry.
pub struct CachePolicyDef {
    /// Name in `map.policy`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// The paper that describes the policy.
    pub paper: &'static str,
    /// Parameters of the policy itself.
    pub params: &'static [ParamDef],
    /// Builds a policy for a given number of map pages.
    pub build: &'static Builder,
}

flashatlas_types::entry!(CachePolicyDef, "map cache policy", "map.policy");

/// All policies.
pub const CACHE_POLICIES: &[CachePolicyDef] = &[keep::DEF, readahead::DEF, ghost::DEF];

pub(crate) const POLICY: Param<Text> = Param::part(
    "map.policy",
    CachePolicyDef::KIND,
    "which map pages stay in memory after a lookup has read them, and which others are prefetched",
)
.or("keep");

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Entries, RawConfig};

    fn build(name: &str, set: &[(&str, &str)]) -> Box<dyn CachePolicy> {
        let def = Entries::of(CACHE_POLICIES).named(name).unwrap();
        let mut raw = RawConfig::default();
        set.iter().for_each(|(k, v)| raw.set(k, v, ""));
        (def.build)(&raw.resolve(&def.params.iter().collect::<Vec<_>>(), |_| None).unwrap(), 100)
    }

    /// Returns the answers of a policy to misses of `pages`.
    fn misses(policy: &mut dyn CachePolicy, pages: &[u32], room: bool) -> Vec<(bool, Vec<u32>)> {
        let miss = |&page: &u32| {
            let access =
                MapAccess { page, lpn: Lpn(8 * page), change: false, clock: 0, room, most: 99 };
            let mut ahead = Vec::new();
            (policy.missed(&access, &mut ahead), ahead)
        };
        pages.iter().map(miss).collect()
    }

    #[test]
    fn a_window_doubles_while_misses_follow_each_other() {
        let mut policy = build("readahead", &[("map.readahead_pages", "4")]);
        let said = misses(&mut *policy, &[7, 8, 10, 15, 20, 40, 41], false);
        let ahead: Vec<Vec<u32>> = said.into_iter().map(|(_, ahead)| ahead).collect();
        let from = |first: u32, pages: u32| (first..first + pages).collect::<Vec<u32>>();
        // page 8 follows page 7, and page 10 follows the pages that were prefetched with page 8;
        // page 40 follows no earlier page
        assert_eq!(
            ahead,
            [vec![], from(9, 1), from(11, 2), vec![], vec![], vec![], from(42, 1)],
            "page 13 follows pages 11 and 12, but page 15 does not"
        );
        let said = misses(&mut *policy, &[43, 46, 51, 56], false);
        let lengths: Vec<usize> = said.iter().map(|(_, ahead)| ahead.len()).collect();
        assert_eq!(lengths, [2, 4, 4, 4], "the window grows to at most four pages");
    }

    #[test]
    fn a_window_is_no_larger_than_what_finds_room() {
        let mut policy = build("readahead", &[]);
        let (mut ahead, mut next) = (Vec::new(), 0);
        for misses in 0..6 {
            let access = MapAccess {
                page: next,
                lpn: Lpn(0),
                change: false,
                clock: 0,
                room: false,
                most: 3,
            };
            ahead.clear();
            policy.missed(&access, &mut ahead);
            assert_eq!(ahead.len(), [0, 1, 2, 3, 3, 3][misses]);
            next += 1 + ahead.len() as u32;
        }
    }

    #[test]
    fn a_page_stays_when_it_was_missed_before_and_not_long_ago() {
        let mut policy = build("ghost", &[("map.ghost_pages", "2")]);
        let kept = |policy: &mut dyn CachePolicy, pages: &[u32], room| -> Vec<bool> {
            misses(policy, pages, room).into_iter().map(|(keep, _)| keep).collect()
        };
        // page 1 is missed again after two other pages, and is no longer known; its third miss
        // comes after only one other page
        assert_eq!(
            kept(&mut *policy, &[1, 2, 3, 1, 2, 1], false),
            [false, false, false, false, false, true]
        );
        assert_eq!(kept(&mut *policy, &[50, 51], true), [true, true], "there is room");
    }

    #[test]
    fn the_default_keeps_every_page_and_loads_no_other() {
        let mut policy = build("keep", &[]);
        assert!(policy.keeps_all() && policy.memory().is_empty());
        assert_eq!(misses(&mut *policy, &[3, 4, 5], false), vec![(true, vec![]); 3]);
    }
}
