//! A cached mapping table (CMT): single entries of the map in memory, in the order of a segmented
//! LRU, with a list of the changed entries of each map page.

use super::ids::{CmtPlace, filled};
use crate::list::IndexList;
use crate::maps::MapPage;
use flashatlas_types::{Lpn, TiVec};
use rustc_hash::FxHashMap;

const NIL: CmtPlace = CmtPlace::new(u32::MAX);

#[derive(Clone, Copy, Debug)]
struct CachedEntry {
    lpn: Lpn,
    page: MapPage,
    changed: bool,
    /// Links to the other changed entries of the same map page.
    previous: CmtPlace,
    next: CmtPlace,
}

/// Entries of the map. A new entry is on probation. An entry that is used again becomes protected,
/// until other entries push it out. Entries on probation leave before protected entries. If no
/// entry may be protected, the table is one LRU list.
pub(crate) struct Cmt {
    entries: TiVec<CmtPlace, CachedEntry>,
    free: Vec<CmtPlace>,
    index: FxHashMap<Lpn, CmtPlace>,
    probation: IndexList<CmtPlace>,
    protected: IndexList<CmtPlace>,
    protected_max: u32,
    limit: u32,
    /// First changed entry of each map page.
    changed: TiVec<MapPage, CmtPlace>,
}

impl Cmt {
    /// Builds an empty table for `limit` entries of `pages` map pages. At most `protected_max`
    /// entries may be protected.
    pub fn new(limit: u32, protected_max: u32, pages: u32) -> Cmt {
        Cmt {
            entries: TiVec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            probation: IndexList::new(limit),
            protected: IndexList::new(limit),
            protected_max,
            limit,
            changed: filled(pages, NIL),
        }
    }

    /// Returns the number of entries in memory.
    pub fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Returns whether an entry must leave before another can be added.
    pub fn is_full(&self) -> bool {
        self.len() == self.limit
    }

    /// Returns whether an entry is in memory.
    #[inline]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.index.contains_key(&lpn)
    }

    /// Notes that an entry that is in memory was used.
    #[inline]
    pub fn touch(&mut self, lpn: Lpn) {
        let place = self.index[&lpn];
        if self.protected_max == 0 {
            self.probation.touch(place);
            return;
        }
        if !self.protected.contains(place) {
            self.probation.remove(place);
            if self.protected.len() == self.protected_max {
                let demoted = self.protected.pop().expect("it is full");
                self.probation.push(demoted);
            }
        }
        self.protected.touch(place);
    }

    /// Adds an entry that is not in memory.
    ///
    /// # Panics
    /// Panics if there is no room.
    pub fn insert(&mut self, lpn: Lpn, page: MapPage) {
        assert!(!self.is_full(), "the CMT is full");
        let entry = CachedEntry { lpn, page, changed: false, previous: NIL, next: NIL };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place] = entry;
                place
            }
            None => self.entries.push_and_get_key(entry),
        };
        self.index.insert(lpn, place);
        self.probation.push(place);
    }

    /// Returns the entries in the order in which they would leave. Each item has the logical page,
    /// the map page, and `true` if the entry has changed.
    pub fn victims(&self) -> impl Iterator<Item = (Lpn, MapPage, bool)> + '_ {
        let places = self.probation.iter().chain(self.protected.iter());
        places.map(|place| &self.entries[place]).map(|e| (e.lpn, e.page, e.changed))
    }

    /// Removes an entry.
    pub fn remove(&mut self, lpn: Lpn) {
        let place = self.index.remove(&lpn).expect("the entry is in memory");
        self.unlink(place);
        if !self.probation.remove(place) {
            self.protected.remove(place);
        }
        self.free.push(place);
    }

    /// Marks an entry that is in memory as changed.
    pub fn change(&mut self, lpn: Lpn) {
        let place = self.index[&lpn];
        let CachedEntry { page, changed, .. } = self.entries[place];
        if changed {
            return;
        }
        let first = std::mem::replace(&mut self.changed[page], place);
        if first != NIL {
            self.entries[first].previous = place;
        }
        let entry = &mut self.entries[place];
        (entry.changed, entry.previous, entry.next) = (true, NIL, first);
    }

    fn unlink(&mut self, place: CmtPlace) {
        let CachedEntry { page, changed, previous, next, .. } = self.entries[place];
        if !changed {
            return;
        }
        match previous {
            NIL => self.changed[page] = next,
            p => self.entries[p].next = next,
        }
        if next != NIL {
            self.entries[next].previous = previous;
        }
        let entry = &mut self.entries[place];
        (entry.changed, entry.previous, entry.next) = (false, NIL, NIL);
    }

    /// Marks all entries of a map page as unchanged. Returns the number of entries that had
    /// changed.
    pub fn clean(&mut self, page: MapPage) -> u64 {
        let mut count = 0;
        while self.changed[page] != NIL {
            self.unlink(self.changed[page]);
            count += 1;
        }
        count
    }

    /// Returns whether a changed entry of a map page is in memory.
    pub fn has_changes_of(&self, page: MapPage) -> bool {
        self.changed[page] != NIL
    }
}
