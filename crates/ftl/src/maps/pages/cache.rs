//! The memory of a store that loads map pages on demand: the entries in it, and the eviction of
//! entries.

use super::MapOnFlash;
use crate::FtlContext;
use crate::maps::{MapContext, MapPage};
use crate::pool::Pool;
use crate::report::Reason;
use flashatlas_types::{BlockId, FtlError, Lpn, Note, OpId, Ppn, StreamId};

/// The context and the map that a cache uses during one call.
pub(crate) struct Io<'a, 'c> {
    pub cx: &'a mut FtlContext<'c>,
    pub pool: &'a mut Pool,
    /// The number of pages of the same request that follow the page of this call.
    pub ahead: u32,
    pub map: &'a mut MapOnFlash,
    /// Map pages that this call has written. Their entries in memory are now unchanged.
    pub(super) written: Vec<MapPage>,
}

impl Io<'_, '_> {
    /// Writes a map page to make room. If `whole` is `true`, the whole page is in memory. Otherwise
    /// the page on flash is read first.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the power fails.
    pub fn evict(&mut self, page: MapPage, whole: bool) -> Result<OpId, FtlError> {
        self.write(&mut [page], Reason::Evict, |_| whole)
    }

    pub(super) fn write(
        &mut self,
        pages: &mut [MapPage],
        reason: Reason,
        whole: impl Fn(MapPage) -> bool,
    ) -> Result<OpId, FtlError> {
        let mut after = vec![self.cx.command.first];
        for &page in pages.iter() {
            if !whole(page) {
                let merged = self.map.merge(self.cx, page, &[self.cx.command.first])?;
                after.push(merged);
            }
        }
        let op = self.map.write(
            &mut MapContext { cx: self.cx, pool: self.pool, ahead: self.ahead },
            pages,
            reason,
            &after,
        )?;
        self.written.extend_from_slice(pages);
        Ok(op)
    }

    /// Loads the map page with the entry of `lpn`, after `evicted`, and checks that entry.
    ///
    /// # Errors
    /// Returns an error if the map page is damaged.
    pub fn load(&mut self, lpn: Lpn, evicted: OpId) -> Result<OpId, FtlError> {
        let page = self.map.table.page_of(lpn);
        self.map.load(self.cx, page, lpn, &[self.cx.command.first, evicted])
    }
}

/// The part of the map that a store has in memory.
pub(crate) trait Cache: Send {
    /// Returns whether the entry of a page is in memory.
    fn holds(&self, map: &MapOnFlash, lpn: Lpn) -> bool;

    /// Returns whether all entries of a map page are in memory.
    fn holds_page(&self, page: MapPage) -> bool;

    /// Returns the number of map pages that fit into memory, or 0 if the store does not cache whole
    /// pages.
    fn pages_most(&self) -> u32 {
        0
    }

    /// Returns the number of map pages for which there is room now, or 0 without whole pages in
    /// memory.
    fn pages_free(&self) -> u32 {
        0
    }

    /// Returns `true` if the next fetch of a map page needs no write of another map page.
    fn evicts_unchanged(&self) -> bool {
        true
    }

    /// Notes that the host used an entry that is in memory.
    fn used(&mut self, map: &MapOnFlash, lpn: Lpn);

    /// Returns `true` if a model predicts the place of a page whose entry is not in memory. The
    /// function is called once for each lookup of such a page.
    fn predicts(&mut self, map: &MapOnFlash, lpn: Lpn) -> bool {
        let _ = (map, lpn);
        false
    }

    /// Loads an entry that is not in memory, after evicting entries to make room. Returns the
    /// operation after which the entry is in memory.
    fn fetch(&mut self, io: &mut Io<'_, '_>, lpn: Lpn) -> Result<OpId, FtlError>;

    /// Notes that an entry in memory has changed from `old`. [`Cache::shrink`] then restores the
    /// limits of memory.
    fn changed(&mut self, map: &MapOnFlash, lpn: Lpn, old: Ppn);

    /// Returns whether an entry that has just been loaded counts as changed, because collection had
    /// moved the page of the entry. If not, the entry stays in the table of moves, so that its map
    /// page can leave memory without a write.
    fn takes_moves(&self, map: &MapOnFlash, lpn: Lpn) -> bool {
        self.holds(map, lpn)
    }

    /// Adopts the entry of a moved page from the table of moves.
    fn overlaid(&mut self, map: &MapOnFlash, lpn: Lpn) {
        self.changed(map, lpn, map.table.get(lpn));
    }

    /// Notes that an entry that is not in memory has changed, because collection moved its page.
    fn moved(&mut self, map: &MapOnFlash, lpn: Lpn) {
        let _ = (map, lpn);
    }

    /// Chooses the frontier of a page, as [`MapStore::frontier`] does.
    fn frontier(&self, map: &MapOnFlash, lpn: Lpn, frontiers: u32) -> Option<StreamId> {
        let _ = (map, lpn, frontiers);
        None
    }

    /// Returns whether collection sorts the pages it moves, as [`MapStore::sorts_copies`] does.
    fn sorts_copies(&self) -> bool {
        false
    }

    /// Notes that a block is full, as [`MapStore::closed`] does.
    fn closed(&mut self, io: &mut Io<'_, '_>, block: BlockId) -> Result<(), FtlError> {
        let _ = (io, block);
        Ok(())
    }

    /// Restores the limits of memory after a change. Returns the write that was necessary.
    fn shrink(&mut self, io: &mut Io<'_, '_>) -> Result<OpId, FtlError> {
        let _ = io;
        Ok(OpId::NONE)
    }

    /// Notes that a map page was written. None of its entries in memory differs from flash now.
    fn cleaned(&mut self, page: MapPage);

    /// Returns `true` if memory has changes of a map page that can be written.
    fn has_changes_of(&self, page: MapPage) -> bool;

    /// Returns the changed map pages that a FLUSH writes.
    fn to_flush(&self, map: &MapOnFlash) -> Vec<MapPage> {
        let _ = map;
        Vec::new()
    }

    /// Ends the host's use of an entry that is in memory now. A lookup starts after `ready`.
    /// Returns the operation after which the place of the page is known, such as a second read
    /// after a wrong prediction.
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

    /// Returns the bytes of memory in use. They never exceed the budget.
    fn bytes(&self) -> u64;

    /// Returns the other tables in memory, without the entries, with their bytes.
    fn tables(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Returns additional counters by name.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Sets the counters of [`Cache::details`] to zero.
    fn reset_counters(&mut self) {}

    /// Returns the approximations of the store, as notes.
    fn approximations(&self) -> Vec<Note> {
        Vec::new()
    }
}
