//! The tables of Song et al. (2019), section 2.1. The LPMT maps a logical address to the first page
//! of a file. The block tables link the pages of a file.
//!
//! Every operation has one implementation, which reports its loads and stores in the tables to a
//! [`Memory`]. So the same code answers lookups and determines their times.

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

/// Observer of the loads and stores of an operation, in order. Every store, and every load except
/// the first, depends on the data of the earlier loads.
pub trait Memory {
    /// Notes that the ways of a set are compared. `hit` is the way with the entry, or `None`.
    /// Secondary sets are numbered after the primary sets.
    fn scan(&mut self, set: u32, hit: Option<u32>) {
        let _ = (set, hit);
    }
    /// Notes that an entry or the header of its set is stored.
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
    /// Notes that the bits around an address are loaded from the bit map of extents.
    fn load_starts(&mut self, la: u32) {
        let _ = la;
    }
    /// Notes that the bit of an address is stored in the bit map of extents.
    fn store_start(&mut self, la: u32) {
        let _ = la;
    }
}

/// Observer that notes nothing.
impl Memory for () {}

/// The first page of a file, and whether it is the only page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hit {
    /// Place of the file's entry.
    pub at: Location,
    /// First page of the file.
    pub pn: Pn,
    /// Bit S, which is set if the file has one page.
    pub single: bool,
}

/// Place of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Location {
    /// Number of the set: primary sets from 0 on, then secondary sets.
    pub set: u32,
    /// Way.
    pub way: u32,
}

/// LPMT and block tables together.
pub struct Tables {
    hash: Box<dyn Hash>,
    /// The table from addresses to first pages.
    pub lpmt: Lpmt,
    /// The tables from a page of a file to the next.
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

    /// Searches for the file that begins at `la`, first in the set of its key, then along NSid.
    #[inline]
    pub fn search(&self, la: u32, memory: &mut impl Memory) -> SearchResult {
        self.lpmt.find(self.key(la), la, memory)
    }

    /// Finds the file that begins at `la`, or returns `None` if no file begins there.
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

    /// Returns the next page of the page's file, or `None` after the last page.
    pub fn next_page(&self, pn: Pn, memory: &mut impl Memory) -> Option<Pn> {
        memory.load_row(pn);
        self.blocks.next(pn)
    }

    /// Inserts a new file of one page, `pn`, whose row must be free.
    ///
    /// # Errors
    /// Returns an error if the address is wider than its field or already there, if the row is
    /// taken or out of range, or if the LPMT has no free set for the key. After an error, nothing
    /// is changed.
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

    /// Inserts a file as [`Tables::insert`] does. `found` is the result of a search for `la`, after
    /// which the tables were not changed.
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

    /// Removes the last page of the file that begins at `la`, and returns it. If it was the only
    /// page, the file is deleted.
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

    /// Deletes the file that begins at `la`. Calls `pages` with each page of the file.
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

    /// Splits a file before its page `pn`, which must not be its first page. The pages from `pn` on
    /// become a file that begins at `la`.
    ///
    /// # Errors
    /// Returns the errors of [`Tables::insert`]. After an error, nothing is changed.
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

    /// Makes a page the last page of its file, by cutting the link to the next page.
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

    /// Removes the page `pn` from its file, and frees its row. Later pages of the file become a
    /// file that begins at `rest`.
    ///
    /// # Errors
    /// Returns the errors of [`Tables::insert`] for `rest`, if there are later pages. After an
    /// error, nothing is changed.
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

    /// Joins two files. The file that begins with page `first` is appended to the file that ends
    /// with page `last`, and its entry is removed.
    ///
    /// # Errors
    /// Returns an error if `last` is not a last page, if `first` is not a first page, or if both
    /// belong to one file.
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
            .expect("the list begins with the page")
    }

    /// Moves a page from `old` to `new`, whose row must be free.
    ///
    /// The page's neighbours or its LPMT entry are updated. They are found by the links and without
    /// a lookup, which is the purpose of PPid.
    ///
    /// # Errors
    /// Returns an error if `old` holds no page, or if the row of `new` is taken or out of range.
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
