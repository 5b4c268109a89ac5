//! The tables of Song et al. (2019), section 2.1: the LPMT, which leads from a logical address to
//! the first page of a file, and the block tables, which link the pages of a file.
//!
//! Every operation has one implementation, which shows a [`Memory`] its loads and stores in the
//! tables. So the code that answers lookups is also timed and checked.

mod block_tables;
mod check;
mod lpmt;
pub mod pack;
mod shape;

pub use block_tables::BlockTables;
pub use lpmt::{Lpmt, SearchResult};
pub use shape::{PARAMS, TableShape};

use crate::LookupError;
use crate::hashes::Hash;

/// Page number: a block table and a row in it, as `table << row_bits | row`.
pub type Pn = u32;

/// Observer of the loads and stores of an operation, in order. Each load except the first, and each
/// store, depends on the data of the earlier loads.
pub trait Memory {
    /// Notes that the ways of a set are compared, and one of them may `hit`. `set` counts secondary
    /// sets after the primary ones.
    fn scan(&mut self, set: u32, hit: Option<u32>) {
        let _ = (set, hit);
    }
    /// Notes that an entry is stored, or the header of its set.
    fn store_entry(&mut self, at: Location) {
        let _ = at;
    }
    /// Notes that a row of a block table is loaded.
    fn load_row(&mut self, pn: Pn) {
        let _ = pn;
    }
    /// Notes that a row of a block table is stored.
    fn store_row(&mut self, pn: Pn) {
        let _ = pn;
    }
    /// Notes that the bits around an address that mark beginnings of extents are loaded.
    fn load_starts(&mut self, la: u32) {
        let _ = la;
    }
    /// Notes that the bit of an address that marks the beginning of an extent is stored.
    fn store_start(&mut self, la: u32) {
        let _ = la;
    }
}

/// Observer that notes nothing.
impl Memory for () {}

/// The first page of a file, and whether it is the only one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hit {
    /// Place of its entry.
    pub at: Location,
    /// First page of the file.
    pub pn: Pn,
    /// Bit S: the file has one page.
    pub single: bool,
}

/// Place of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Location {
    /// Number of the set: primary ones from 0 on, secondary ones after them.
    pub set: u32,
    /// Way.
    pub way: u32,
}

/// LPMT and block tables together.
pub struct Tables {
    hash: Box<dyn Hash>,
    /// From addresses to first pages.
    pub lpmt: Lpmt,
    /// From page to page of a file.
    pub blocks: BlockTables,
}

impl Tables {
    /// Returns empty tables.
    pub fn new(shape: &TableShape, hash: Box<dyn Hash>) -> Tables {
        Tables { hash, lpmt: Lpmt::new(shape), blocks: BlockTables::new(shape) }
    }

    /// Returns the set in which an address is looked up first.
    #[inline]
    pub fn key(&self, la: u32) -> u32 {
        self.hash.key(la)
    }

    /// Searches for the file that begins at `la`: in the set of its key, then along NSid.
    #[inline]
    pub fn search(&self, la: u32, memory: &mut impl Memory) -> SearchResult {
        self.lpmt.find(self.key(la), la, memory)
    }

    /// Finds the file that begins at `la`, or returns `None` if no file does.
    #[inline]
    pub fn lookup(&self, la: u32, memory: &mut impl Memory) -> Option<Hit> {
        match self.search(la, memory) {
            SearchResult::At(at) => {
                let (pn, single) = self.lpmt.get(at);
                Some(Hit { at, pn, single })
            }
            SearchResult::Nowhere { .. } => None,
        }
    }

    /// Returns the page that follows in its file, or `None` after the last.
    pub fn next_page(&self, pn: Pn, memory: &mut impl Memory) -> Option<Pn> {
        memory.load_row(pn);
        self.blocks.next(pn)
    }

    /// Inserts a new file of one page, `pn`, whose row must be free.
    ///
    /// # Errors
    /// Returns an error if the address is wider than its field or is there already, the row is
    /// taken or out of range, or the LPMT has no set left for the key. Nothing is changed then.
    pub fn insert(
        &mut self,
        la: u32,
        pn: Pn,
        memory: &mut impl Memory,
    ) -> Result<Location, LookupError> {
        self.lpmt.shape().fits_address(la)?;
        let found = self.search(la, memory);
        self.insert_where(found, la, pn, memory)
    }

    /// Inserts a file as [`Tables::insert`] does, after a search for `la` since which nothing was
    /// changed.
    ///
    /// # Errors
    /// Returns the errors of [`Tables::insert`].
    pub fn insert_where(
        &mut self,
        found: SearchResult,
        la: u32,
        pn: Pn,
        memory: &mut impl Memory,
    ) -> Result<Location, LookupError> {
        self.lpmt.shape().fits_address(la)?;
        self.blocks.is_free(pn)?;
        let at = self.lpmt.insert(found, la, pn, memory)?;
        self.blocks.put_first(pn, at);
        memory.store_row(pn);
        Ok(at)
    }

    /// Appends the page `pn` to the file whose last page is `last`.
    ///
    /// # Errors
    /// Returns an error if `last` is not the last page of a file, or the row of `pn` is taken or
    /// out of range.
    pub fn extend(
        &mut self,
        last: Pn,
        pn: Pn,
        memory: &mut impl Memory,
    ) -> Result<(), LookupError> {
        self.blocks.is_last(last)?;
        self.blocks.is_free(pn)?;
        memory.load_row(last);
        self.mark_single(last, false, memory);
        self.blocks.append(last, pn);
        memory.store_row(last);
        memory.store_row(pn);
        Ok(())
    }

    /// Takes the last page off the file that begins at `la`, and returns it. If it was the only
    /// page, the file is gone.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn shrink(&mut self, la: u32, memory: &mut impl Memory) -> Result<Pn, LookupError> {
        let hit = self.lookup(la, memory).ok_or(LookupError::Missing { la })?;
        let mut last = hit.pn;
        while !hit.single
            && let Some(next) = self.next_page(last, memory)
        {
            last = next;
        }
        if last == hit.pn {
            self.lpmt.remove(hit.at, &mut self.blocks, memory);
        } else {
            let before = self.blocks.previous(last).expect("a page that is not the first");
            self.cut_after(before, memory);
        }
        self.blocks.clear(last);
        memory.store_row(last);
        Ok(last)
    }

    /// Deletes the file that begins at `la`. Calls `pages` with each of its pages.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn delete(
        &mut self,
        la: u32,
        memory: &mut impl Memory,
        mut pages: impl FnMut(Pn),
    ) -> Result<(), LookupError> {
        let hit = self.lookup(la, memory).ok_or(LookupError::Missing { la })?;
        let mut next = Some(hit.pn);
        while let Some(pn) = next {
            next = self.next_page(pn, memory);
            self.blocks.clear(pn);
            memory.store_row(pn);
            pages(pn);
        }
        self.lpmt.remove(hit.at, &mut self.blocks, memory);
        Ok(())
    }

    /// Splits a file before its page `pn`, which is not its first. The rest becomes the file that
    /// begins at `la`.
    ///
    /// # Errors
    /// Returns the errors of [`Tables::insert`]; nothing is changed then.
    pub fn split(
        &mut self,
        pn: Pn,
        la: u32,
        memory: &mut impl Memory,
    ) -> Result<Location, LookupError> {
        self.lpmt.shape().fits_address(la)?;
        let before = self
            .blocks
            .previous(pn)
            .ok_or(LookupError::Row { pn, why: "is the first page of its file" })?;
        let found = self.search(la, memory);
        let at = self.lpmt.insert(found, la, pn, memory)?;
        self.lpmt.set_single(at, self.blocks.next(pn).is_none());
        self.cut_after(before, memory);
        self.blocks.make_first(pn, at);
        memory.store_row(pn);
        Ok(at)
    }

    /// Makes a page the last of its file, by cutting the link to the page that followed it.
    fn cut_after(&mut self, pn: Pn, memory: &mut impl Memory) {
        self.blocks.make_last(pn);
        memory.store_row(pn);
        self.mark_single(pn, true, memory);
    }

    /// Sets or clears bit S of the file of a page, if the page is its first.
    fn mark_single(&mut self, pn: Pn, single: bool, memory: &mut impl Memory) {
        if let Some(at) = self.blocks.location(pn) {
            self.lpmt.set_single(at, single);
            memory.store_entry(at);
        }
    }

    /// Drops the page `pn` from its file, and frees its row. The pages that follow it in the file
    /// become a file that begins at `rest`.
    ///
    /// # Errors
    /// Returns the errors of [`Tables::insert`] for `rest`, if pages follow; nothing is changed
    /// then.
    pub fn drop_page(
        &mut self,
        pn: Pn,
        rest: u32,
        memory: &mut impl Memory,
    ) -> Result<(), LookupError> {
        self.blocks.is_used(pn)?;
        memory.load_row(pn);
        if let Some(next) = self.blocks.next(pn) {
            self.split(next, rest, memory)?;
        }
        match (self.blocks.location(pn), self.blocks.previous(pn)) {
            (Some(at), _) => self.lpmt.remove(at, &mut self.blocks, memory),
            (None, before) => self.cut_after(before.expect("a page that is not the first"), memory),
        }
        self.blocks.clear(pn);
        memory.store_row(pn);
        Ok(())
    }

    /// Joins two files: the file whose first page is `first` becomes the rest of the file whose
    /// last page is `last`. The second file's entry is removed.
    ///
    /// # Errors
    /// Returns an error if `last` is no last page, if `first` is no first page, or if both are
    /// pages of one file.
    pub fn join(
        &mut self,
        last: Pn,
        first: Pn,
        memory: &mut impl Memory,
    ) -> Result<(), LookupError> {
        self.blocks.is_last(last)?;
        self.blocks.is_used(first)?;
        let at = self
            .blocks
            .location(first)
            .ok_or(LookupError::Row { pn: first, why: "is not the first of its file" })?;
        if self.first_page(last) == first {
            return Err(LookupError::Row { pn: first, why: "cannot follow its own file" });
        }
        self.lpmt.remove(at, &mut self.blocks, memory);
        self.blocks.link(last, first);
        memory.store_row(last);
        memory.store_row(first);
        self.mark_single(last, false, memory);
        Ok(())
    }

    /// Returns the first page of a page's file.
    pub fn first_page(&self, pn: Pn) -> Pn {
        std::iter::successors(Some(pn), |&pn| self.blocks.previous(pn))
            .last()
            .expect("it begins with itself")
    }

    /// Moves a page from `old` to `new`, whose row must be free.
    ///
    /// The page's neighbours, or its LPMT entry, are updated. The links lead to them without a
    /// lookup, which is the purpose of PPid.
    ///
    /// # Errors
    /// Returns an error if `old` holds no page, or the row of `new` is taken or out of range.
    pub fn relocate(
        &mut self,
        old: Pn,
        new: Pn,
        memory: &mut impl Memory,
    ) -> Result<(), LookupError> {
        self.blocks.is_used(old)?;
        self.blocks.is_free(new)?;
        memory.load_row(old);
        self.blocks.copy(old, new);
        match (self.blocks.location(new), self.blocks.previous(new)) {
            (Some(at), _) => {
                self.lpmt.set_pn(at, new);
                memory.store_entry(at);
            }
            (None, before) => {
                let before = before.expect("a page that is not the first");
                self.blocks.set_next(before, new);
                memory.store_row(before);
            }
        }
        if let Some(next) = self.blocks.next(new) {
            self.blocks.set_previous(next, new);
            memory.store_row(next);
        }
        self.blocks.clear(old);
        memory.store_row(old);
        memory.store_row(new);
        Ok(())
    }
}
