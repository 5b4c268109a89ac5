//! What a store that loads map pages on demand says of its memory: which entries are there, and
//! which leave.

use super::MapOnFlash;
use crate::FtlContext;
use crate::maps::MapContext;
use crate::pool::Pool;
use crate::report::Reason;
use flashatlas_types::{BlockId, FtlError, Lpn, Note, OpId, Ppn};

/// What a cache works with.
pub(crate) struct Io<'a, 'c> {
    pub cx: &'a mut FtlContext<'c>,
    pub pool: &'a mut Pool,
    pub map: &'a mut MapOnFlash,
    /// Map pages that were written by this call: their entries in memory are unchanged now.
    pub(super) written: Vec<u32>,
}

impl Io<'_, '_> {
    /// Write a map page to make room; `whole`: all of it is in memory, otherwise what is on flash
    /// is read first.
    ///
    /// # Errors
    /// When there is no room, or no power.
    pub fn evict(&mut self, page: u32, whole: bool) -> Result<OpId, FtlError> {
        self.write(&mut [page], Reason::Evict, |_| whole)
    }

    pub(super) fn write(
        &mut self,
        pages: &mut [u32],
        reason: Reason,
        whole: impl Fn(u32) -> bool,
    ) -> Result<OpId, FtlError> {
        let mut after = vec![self.cx.command];
        for &page in pages.iter() {
            if !whole(page) {
                let merged = self.map.merge(self.cx, page, &[self.cx.command])?;
                after.push(merged);
            }
        }
        let op = self.map.write(
            &mut MapContext { cx: self.cx, pool: self.pool },
            pages,
            reason,
            &after,
        )?;
        self.written.extend_from_slice(pages);
        Ok(op)
    }

    /// Load the map page that has the entry of `lpn`, after `evicted`; what it says of that entry
    /// is checked.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn load(&mut self, lpn: Lpn, evicted: OpId) -> Result<OpId, FtlError> {
        let page = self.map.table.page_of(lpn);
        self.map.load(self.cx, page, lpn, &[self.cx.command, evicted])
    }
}

/// The part of the map that a store has in memory.
pub(crate) trait Cache: Send {
    /// Whether the entry of a page is in memory.
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool;

    /// Whether all entries of a map page are in memory.
    fn holds_page(&self, page: u32) -> bool;

    /// Of a store that keeps map pages whole: how many fit, and how many more do now.
    fn pages_most(&self) -> u32 {
        0
    }

    /// See [`Cache::pages_most`].
    fn pages_free(&self) -> u32 {
        0
    }

    /// Whether a map page that is fetched now needs no other one to be written.
    fn evicts_unchanged(&self) -> bool {
        true
    }

    /// The host used an entry that is in memory.
    fn used(&mut self, map: &MapOnFlash, lpn: Lpn);

    /// Whether a page whose entry is not in memory is found without it. Called once for each lookup
    /// of one.
    fn predicts(&mut self, map: &MapOnFlash, lpn: Lpn) -> bool {
        let _ = (map, lpn);
        false
    }

    /// Bring an entry into memory that is not there: evict what must leave, load what is needed.
    /// Returns the operation after which the entry is there.
    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError>;

    /// An entry that is in memory has changed from `old`. What is no longer in order, such as a
    /// size, is put right by [`Cache::shrink`].
    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, old: Ppn);

    /// Returns whether an entry that has just come into memory, and that collection had moved, is
    /// a changed one there from now on. Otherwise it stays in the table of moves, so that a map
    /// page that leaves memory need not be written for it.
    fn takes_moves(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        self.holds(map, lpn)
    }

    /// Takes over such an entry.
    fn overlaid(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.changed(map, lpn, map.table.get(lpn));
    }

    /// An entry that is not in memory has changed, because collection moved its page.
    fn moved(&mut self, map: &MapOnFlash, lpn: Lpn) {
        let _ = (map, lpn);
    }

    /// As [`MapStore::frontier`].
    fn frontier(&self, map: &MapOnFlash, lpn: Lpn, frontiers: u32) -> Option<u32> {
        let _ = (map, lpn, frontiers);
        None
    }

    /// As [`MapStore::sorts_copies`].
    fn sorts_copies(&self) -> bool {
        false
    }

    /// As [`MapStore::closed`].
    fn closed(&mut self, io: &mut Io<'_, '_>, block: BlockId) -> Result<(), FtlError> {
        let _ = (io, block);
        Ok(())
    }

    /// After a change: keep within the limits of memory. Returns what was written for it.
    fn shrink(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        let _ = io;
        Ok(OpId::NONE)
    }

    /// A map page was written: none of its entries in memory differs from flash.
    fn cleaned(&mut self, page: u32);

    /// Whether something of a changed map page is in memory, from which it can be written.
    fn has_changes_of(&self, page: u32) -> bool;

    /// Changed map pages that a FLUSH writes.
    fn to_flush(&self, map: &MapOnFlash) -> Vec<u32> {
        let _ = map;
        Vec::new()
    }

    /// The host used an entry, which is in memory now and, for a lookup, `ready` then. Returns what
    /// the answer waits for, such as a second read after a wrong prediction.
    fn finish(
        &mut self,
        io: &mut Io<'_, '_>,
        lpn: Lpn,
        lookup: bool,
        ready: OpId,
    ) -> Result<OpId, FtlError> {
        let _ = (io, lpn, lookup);
        Ok(ready)
    }

    /// Bytes of memory in use, at most the budget.
    fn bytes(&self) -> u64;

    /// Tables in memory beside that, with their bytes.
    fn tables(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Further counters by name, and set them to zero.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Set counters to zero.
    fn reset_counters(&mut self) {}

    /// What the store approximates, in words.
    fn approximations(&self) -> Vec<Note> {
        Vec::new()
    }
}
