//! Map pages that have changed since their last copy that survives a power cut, and the first
//! change of each. Noting a change takes constant time. Listing the changed pages takes a time in
//! proportion to their number.

use crate::list::IndexList;
use flashatlas_types::OpId;

/// Changed map pages, each with the number of the first program that a mount must look at for it.
pub(crate) struct Changes {
    /// Changed pages; the page that has been changed longest comes first.
    order: IndexList,
    /// The number of the first program whose change the surviving copy of each page lacks.
    since: Vec<u64>,
    /// The newest program of data that a page points to.
    newest: Vec<OpId>,
    /// Changed pages of which an entry was trimmed.
    trimmed: IndexList,
    /// A bit for each changed entry, and the number of changed entries of each page. Both are empty
    /// if changed entries are not counted.
    bits: Vec<u64>,
    counts: Vec<u32>,
    per_page: u32,
    /// `true` if `order` is sorted by age; `false` while a mount finds changes.
    sorted: bool,
}

impl Changes {
    /// Begins with nothing changed in `pages` map pages of `per_page` entries. If `counted`, the
    /// changed entries of each page are counted.
    pub fn new(pages: u32, per_page: u32, counted: bool) -> Changes {
        let words = if counted { pages as usize * per_page.div_ceil(64) as usize } else { 0 };
        Changes {
            order: IndexList::new(pages),
            since: vec![0; pages as usize],
            newest: vec![OpId::NONE; pages as usize],
            trimmed: IndexList::new(pages),
            bits: vec![0; words],
            counts: vec![0; if counted { pages as usize } else { 0 }],
            per_page,
            sorted: true,
        }
    }

    /// Notes that entry `index` of a page changed with program `op`. `since` is the number of that
    /// program, or of the next one.
    #[inline]
    pub fn mark(&mut self, page: u32, index: u32, since: u64, op: OpId, trim: bool) {
        if self.since[page as usize] == 0 {
            self.since[page as usize] = since;
            self.order.push(page);
        }
        self.newest[page as usize] = self.newest[page as usize].max(op);
        if trim && !self.trimmed.contains(page) {
            self.trimmed.push(page);
        }
        if let Some(count) = self.counts.get_mut(page as usize) {
            let word = page as usize * self.per_page.div_ceil(64) as usize + index as usize / 64;
            let bit = 1 << (index % 64);
            *count += u32::from(self.bits[word] & bit == 0);
            self.bits[word] |= bit;
        }
    }

    /// Notes a newer entry that a mount found. Its page was programmed with number `sequence`. The
    /// calls come in no order of age.
    pub fn mark_found(&mut self, page: u32, index: u32, sequence: u64) {
        self.mark(page, index, sequence, OpId::NONE, false);
        self.since[page as usize] = self.since[page as usize].min(sequence);
        self.sorted = false;
    }

    /// Sorts the pages after a mount: the longest changed page comes first again.
    pub fn sort(&mut self) {
        let mut pages: Vec<u32> = self.order.iter().collect();
        pages.sort_unstable_by_key(|&p| (self.since[p as usize], p));
        pages.into_iter().for_each(|p| self.order.touch(p));
        self.sorted = true;
    }

    /// Clears a page whose entries are all in the surviving copy.
    pub fn clear(&mut self, page: u32) {
        if !self.order.remove(page) {
            return;
        }
        self.trimmed.remove(page);
        self.since[page as usize] = 0;
        if let Some(count) = self.counts.get_mut(page as usize) {
            *count = 0;
            let words = self.per_page.div_ceil(64) as usize;
            self.bits[page as usize * words..][..words].fill(0);
        }
    }

    /// Returns whether a page has changed.
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        self.since[page as usize] != 0
    }

    /// Returns the number of entries of a page that have changed.
    pub fn count(&self, page: u32) -> u32 {
        self.counts[page as usize]
    }

    /// Returns the entries of a page that have changed, by their places in it.
    pub fn entries(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let words = self.per_page.div_ceil(64);
        (0..words).flat_map(move |word| {
            let bits = self.bits[(page * words + word) as usize];
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        })
    }

    /// Returns the changed pages, the longest changed first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter()
    }

    /// Returns the pages with a trimmed entry that no surviving copy has yet.
    pub fn trimmed(&self) -> &IndexList {
        &self.trimmed
    }

    /// Returns the number of pages that have changed.
    pub fn len(&self) -> u32 {
        self.order.len()
    }

    /// Returns the newest program of data that a page points to.
    pub fn newest(&self, page: u32) -> OpId {
        self.newest[page as usize]
    }

    /// Returns the number of the first program whose change the surviving copy of a page lacks.
    /// Returns `None` if the page has not changed.
    pub fn since(&self, page: u32) -> Option<u64> {
        Some(self.since[page as usize]).filter(|&since| since > 0)
    }

    /// Returns the last program up to which all changes survive. `settled` is the last program
    /// whose changes were made.
    ///
    /// # Panics
    /// Panics if a mount found changes and did not [`sort`](Self::sort) them: a map page with this
    /// number would hide older changes from the next mount.
    pub fn replay_from(&self, settled: u64) -> u64 {
        assert!(self.sorted, "changes that a mount found are not sorted");
        self.order.first().map_or(settled, |page| self.since[page as usize] - 1)
    }
}
