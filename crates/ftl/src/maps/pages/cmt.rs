//! A cached mapping table (CMT): single entries of the map in memory, in the order of a segmented
//! LRU, with the changed ones of each map page at hand.

use crate::list::IndexList;
use rustc_hash::FxHashMap;

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct CachedEntry {
    lpn: u32,
    page: u32,
    changed: bool,
    /// Neighbours among the changed entries of its map page.
    previous: u32,
    next: u32,
}

/// Entries of the map. New ones are on probation. An entry that is used again is protected until
/// others push it out. Protected entries never leave before the ones on probation. Without
/// protected entries, the table is one LRU list.
pub(crate) struct Cmt {
    entries: Vec<CachedEntry>,
    free: Vec<u32>,
    index: FxHashMap<u32, u32>,
    probation: IndexList,
    protected: IndexList,
    protected_max: u32,
    limit: u32,
    /// First changed entry of each map page.
    changed: Vec<u32>,
}

impl Cmt {
    /// Makes room for `limit` entries of `pages` map pages, at most `protected_max` of them
    /// protected.
    pub fn new(limit: u32, protected_max: u32, pages: u32) -> Cmt {
        Cmt {
            entries: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            probation: IndexList::new(limit),
            protected: IndexList::new(limit),
            protected_max,
            limit,
            changed: vec![NIL; pages as usize],
        }
    }

    /// Returns the number of entries in memory.
    pub fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Returns whether one more entry needs another to leave.
    pub fn is_full(&self) -> bool {
        self.len() == self.limit
    }

    /// Returns whether an entry is in memory.
    #[inline]
    pub fn contains(&self, lpn: u32) -> bool {
        self.index.contains_key(&lpn)
    }

    /// Notes that an entry that is in memory was used.
    #[inline]
    pub fn touch(&mut self, lpn: u32) {
        let slot = self.index[&lpn];
        if self.protected_max == 0 {
            self.probation.touch(slot);
            return;
        }
        if !self.protected.contains(slot) {
            self.probation.remove(slot);
            if self.protected.len() == self.protected_max {
                let demoted = self.protected.pop().expect("it is full");
                self.probation.push(demoted);
            }
        }
        self.protected.touch(slot);
    }

    /// Adds an entry that is not in memory.
    ///
    /// # Panics
    /// Panics if there is no room.
    pub fn insert(&mut self, lpn: u32, page: u32) {
        assert!(!self.is_full(), "the CMT is full");
        let entry = CachedEntry { lpn, page, changed: false, previous: NIL, next: NIL };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.index.insert(lpn, slot);
        self.probation.push(slot);
    }

    /// Returns the entries in the order in which they would leave. Each has its logical page, its
    /// map page, and `true` if it has changed.
    pub fn victims(&self) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        let slots = self.probation.iter().chain(self.protected.iter());
        slots.map(|slot| &self.entries[slot as usize]).map(|e| (e.lpn, e.page, e.changed))
    }

    /// Removes an entry.
    pub fn remove(&mut self, lpn: u32) {
        let slot = self.index.remove(&lpn).expect("it is in memory");
        self.unlink(slot);
        if !self.probation.remove(slot) {
            self.protected.remove(slot);
        }
        self.free.push(slot);
    }

    /// Marks an entry that is in memory as changed.
    pub fn change(&mut self, lpn: u32) {
        let slot = self.index[&lpn];
        let CachedEntry { page, changed, .. } = self.entries[slot as usize];
        if changed {
            return;
        }
        let first = std::mem::replace(&mut self.changed[page as usize], slot);
        if first != NIL {
            self.entries[first as usize].previous = slot;
        }
        let entry = &mut self.entries[slot as usize];
        (entry.changed, entry.previous, entry.next) = (true, NIL, first);
    }

    fn unlink(&mut self, slot: u32) {
        let CachedEntry { page, changed, previous, next, .. } = self.entries[slot as usize];
        if !changed {
            return;
        }
        match previous {
            NIL => self.changed[page as usize] = next,
            p => self.entries[p as usize].next = next,
        }
        if next != NIL {
            self.entries[next as usize].previous = previous;
        }
        let entry = &mut self.entries[slot as usize];
        (entry.changed, entry.previous, entry.next) = (false, NIL, NIL);
    }

    /// Marks all entries of a map page as unchanged. Returns the number that were changed.
    pub fn clean(&mut self, page: u32) -> u64 {
        let mut count = 0;
        while self.changed[page as usize] != NIL {
            self.unlink(self.changed[page as usize]);
            count += 1;
        }
        count
    }

    /// Returns whether a changed entry of a map page is in memory.
    pub fn has_changes_of(&self, page: u32) -> bool {
        self.changed[page as usize] != NIL
    }
}
