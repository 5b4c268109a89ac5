//! Notices that wait until a response carries them to the host.

use super::Terms;
use flashatlas_ftl::list::IndexList;
use flashatlas_types::Lpn;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;

/// Greatest number of subregions, and also of regions, that one response names. JEDEC's sense data
/// has room for two subregions and two regions.
const NAMED_MAX: usize = 2;

/// Notice in a response to a host that caches the map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// `true` if all entries in the host are void (operation 2 in JEDEC's sense data).
    pub reset: bool,
    /// Subregions that the host should fetch, numbered over all regions.
    pub active: SmallVec<[u32; 2]>,
    /// Regions that the host should drop.
    pub inactive: SmallVec<[u32; 2]>,
    /// Entries that have changed, with their pages.
    pub pairs: Vec<(Lpn, u64)>,
}

/// Queues of notices that wait for a response.
pub(super) struct Notices {
    reset: bool,
    active: VecDeque<u32>,
    inactive: VecDeque<u32>,
    /// Changed pages in the order of their first change.
    changes: VecDeque<Lpn>,
    queued: FxHashSet<Lpn>,
    changes_max: usize,
    pairs: usize,
    subregions: u32,
    /// Regions that the host was told to cache, in the order of their last read.
    regions: IndexList,
    regions_max: u32,
}

impl Notices {
    pub fn new(terms: &Terms) -> Notices {
        Notices {
            reset: false,
            active: VecDeque::new(),
            inactive: VecDeque::new(),
            changes: VecDeque::new(),
            queued: FxHashSet::default(),
            changes_max: terms.changes,
            pairs: terms.pairs,
            subregions: terms.subregions,
            regions: IndexList::new(terms.region_count()),
            // a host in control decides itself which regions it caches
            regions_max: if terms.host_controls { u32::MAX } else { terms.active_regions },
        }
    }

    /// Discards all waiting notices and enqueues a reset. The reset makes the other notices void.
    pub fn reset(&mut self) {
        self.active.clear();
        self.inactive.clear();
        self.changes.clear();
        self.queued.clear();
        while self.regions.pop().is_some() {}
        self.reset = true;
    }

    /// Enqueues a subregion that the host should fetch.
    ///
    /// If the host already caches the maximum number of regions, the host is told to drop the least
    /// recently read region.
    pub fn activate(&mut self, subregion: u32) {
        let region = subregion / self.subregions;
        if !self.regions.contains(region) && self.regions.len() == self.regions_max {
            self.inactive.extend(self.regions.pop());
        }
        self.regions.touch(region);
        self.inactive.retain(|&r| r != region);
        if !self.active.contains(&subregion) {
            self.active.push_back(subregion);
        }
    }

    /// Notes that the host fetched a subregion.
    pub fn fetched(&mut self, subregion: u32) {
        self.active.retain(|&s| s != subregion);
    }

    /// Notes that a region was read.
    #[inline]
    pub fn touch(&mut self, region: u32) {
        if self.regions.contains(region) {
            self.regions.touch(region);
        }
    }

    /// Notes that the host returned a region.
    pub fn drop_region(&mut self, region: u32) {
        self.regions.remove(region);
        let (subregions, of) = (self.subregions, region);
        self.active.retain(|s| s / subregions != of);
        self.inactive.retain(|&r| r != of);
    }

    /// Enqueues a page whose entry changed. Returns `Some(true)` if the page is new in the queue,
    /// `Some(false)` if it was already waiting, and `None` if the queue is full.
    pub fn change(&mut self, lpn: Lpn) -> Option<bool> {
        if self.queued.contains(&lpn) {
            return Some(false);
        }
        if self.changes.len() == self.changes_max {
            return None;
        }
        self.queued.insert(lpn);
        self.changes.push_back(lpn);
        Some(true)
    }

    /// Removes the changes of pages whose entries reach the host in another way.
    pub fn forget(&mut self, pages: Range<u32>) {
        if !self.changes.is_empty() {
            self.changes.retain(|lpn| !pages.contains(&lpn.0));
            self.queued.retain(|lpn| !pages.contains(&lpn.0));
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.reset && self.active.is_empty() && self.inactive.is_empty() && self.changes.is_empty()
    }

    /// Returns the notices for one response and removes them from the queues. The entries in
    /// `pairs` are 0; the caller fills them in.
    pub fn take(&mut self) -> Notice {
        let pairs = self
            .changes
            .drain(..self.changes.len().min(self.pairs))
            .map(|lpn| (lpn, 0))
            .collect::<Vec<_>>();
        for (lpn, _) in &pairs {
            self.queued.remove(lpn);
        }
        Notice {
            reset: std::mem::take(&mut self.reset),
            active: self.active.drain(..self.active.len().min(NAMED_MAX)).collect(),
            inactive: self.inactive.drain(..self.inactive.len().min(NAMED_MAX)).collect(),
            pairs,
        }
    }
}
