//! Map pages that have changed since their last copy that survives a power cut, and the first
//! change of each page. Noting a change takes constant time. The time to list the changed pages is
//! proportional to their number.

use super::bits::BitRows;
use super::ids::filled;
use crate::list::IndexList;
use crate::maps::MapPage;
use flashatlas_types::{OpId, TiVec};

/// Changed map pages, each with the number of the first program that a mount must read for the
/// page.
pub(crate) struct Changes {
    /// Changed pages. The page whose first change is oldest comes first.
    order: IndexList<MapPage>,
    /// The number of the first program whose change is missing in the surviving copy of each page.
    since: TiVec<MapPage, u64>,
    /// The newest program of data among the entries of each page.
    newest: TiVec<MapPage, OpId>,
    /// Changed pages with a trimmed entry.
    trimmed: IndexList<MapPage>,
    /// A bit for each changed entry, and the number of changed entries of each page. Both tables
    /// are empty if changed entries are not counted.
    bits: BitRows<MapPage>,
    counts: TiVec<MapPage, u32>,
    /// `true` if `order` is sorted by age; `false` while a mount finds changes.
    sorted: bool,
}

impl Changes {
    /// Returns the state without changes for `pages` map pages of `per_page` entries. If `counted`
    /// is `true`, the changed entries of each page are counted.
    pub fn new(pages: u32, per_page: u32, counted: bool) -> Changes {
        let counted = if counted { pages } else { 0 };
        Changes {
            order: IndexList::new(pages),
            since: filled(pages, 0),
            newest: filled(pages, OpId::NONE),
            trimmed: IndexList::new(pages),
            bits: BitRows::new(counted, per_page),
            counts: filled(counted, 0),
            sorted: true,
        }
    }

    /// Notes that entry `index` of a page changed with program `op`. `since` is the number of that
    /// program, or the number of the next program.
    #[inline]
    pub fn mark(&mut self, page: MapPage, index: u32, since: u64, op: OpId, trim: bool) {
        if self.since[page] == 0 {
            self.since[page] = since;
            self.order.push(page);
        }
        self.newest[page] = self.newest[page].max(op);
        if trim && !self.trimmed.contains(page) {
            self.trimmed.push(page);
        }
        if let Some(count) = self.counts.get_mut(page) {
            *count += u32::from(self.bits.insert(page, index));
        }
    }

    /// Notes a newer entry that a mount found. Its page was programmed with number `sequence`. The
    /// calls may come in any order of age.
    pub fn mark_found(&mut self, page: MapPage, index: u32, sequence: u64) {
        self.mark(page, index, sequence, OpId::NONE, false);
        self.since[page] = self.since[page].min(sequence);
        self.sorted = false;
    }

    /// Sorts the pages after a mount, so that the page whose first change is oldest comes first
    /// again.
    pub fn sort(&mut self) {
        let mut pages: Vec<MapPage> = self.order.iter().collect();
        pages.sort_unstable_by_key(|&p| (self.since[p], p));
        pages.into_iter().for_each(|p| self.order.touch(p));
        self.sorted = true;
    }

    /// Clears a page whose surviving copy has all entries.
    pub fn clear(&mut self, page: MapPage) {
        if !self.order.remove(page) {
            return;
        }
        self.trimmed.remove(page);
        self.since[page] = 0;
        if let Some(count) = self.counts.get_mut(page) {
            *count = 0;
            self.bits.clear(page);
        }
    }

    /// Clears all pages.
    pub fn clear_all(&mut self) {
        while let Some(page) = self.order.first() {
            self.clear(page);
        }
        self.sorted = true;
    }

    /// Returns whether a page has changed.
    #[inline]
    pub fn contains(&self, page: MapPage) -> bool {
        self.since[page] != 0
    }

    /// Returns the number of entries of a page that have changed.
    pub fn count(&self, page: MapPage) -> u32 {
        self.counts[page]
    }

    /// Returns the changed entries of a page, as indices into the page.
    pub fn entries(&self, page: MapPage) -> impl Iterator<Item = u32> + '_ {
        self.bits.iter(page)
    }

    /// Returns the changed pages. The page whose first change is oldest comes first.
    pub fn iter(&self) -> impl Iterator<Item = MapPage> + '_ {
        self.order.iter()
    }

    /// Returns the pages with a trimmed entry that is missing in the surviving copy.
    pub fn trimmed(&self) -> &IndexList<MapPage> {
        &self.trimmed
    }

    /// Returns the number of pages that have changed.
    pub fn len(&self) -> u32 {
        self.order.len()
    }

    /// Returns the newest program of data among the entries of a page.
    pub fn newest(&self, page: MapPage) -> OpId {
        self.newest[page]
    }

    /// Returns the number of the first program whose change is missing in the surviving copy of a
    /// page. Returns `None` if the page has not changed.
    pub fn since(&self, page: MapPage) -> Option<u64> {
        Some(self.since[page]).filter(|&since| since > 0)
    }

    /// Returns the last program up to which all changes survive. `settled` is the last program
    /// whose changes are in the map.
    ///
    /// # Panics
    /// Panics if a mount found changes and did not [`sort`](Self::sort) them. A map page with a
    /// wrong number would hide older changes from the next mount.
    pub fn replay_from(&self, settled: u64) -> u64 {
        assert!(self.sorted, "changes that a mount found are not sorted");
        self.order.first().map_or(settled, |page| self.since[page] - 1)
    }
}
