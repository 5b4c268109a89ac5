//! A table of physical pages by logical page.

use crate::{Base, Lpn, Ppn, Table};
use std::ops::Range;
use std::sync::Arc;

/// The physical page of each logical page. At first no page is mapped.
///
/// Entries are stored as complements, so that [`Ppn::NONE`] is zero. The operating system provides
/// zeroed memory only where a program first writes. So the table of a large drive uses memory only
/// for the parts that are mapped.
///
/// A table may lie over a [`Base`] ([`PpnTable::lay`]). Zero then stands for the place that the
/// base computes.
pub struct PpnTable {
    complements: Table,
    base: Option<Arc<Base>>,
}

/// The entry of a page that is not mapped, in a table over a base. No slot has this complement,
/// because a drive has fewer slots.
const UNMAPPED: u32 = 1;

/// Returns the physical page that an entry of a table over a base stands for.
#[inline(never)]
fn over(base: &Base, lpn: Lpn, complement: u32) -> Ppn {
    match complement {
        0 => base.slot_of(lpn),
        UNMAPPED => Ppn::NONE,
        mapped => Ppn(!mapped),
    }
}

impl PpnTable {
    /// Builds a table of `pages` unmapped logical pages.
    pub fn new(pages: u32) -> PpnTable {
        PpnTable { complements: Table::new(pages), base: None }
    }

    /// Maps every page to its place in a base. No earlier entry is kept.
    pub fn lay(&mut self, base: Arc<Base>) {
        *self = PpnTable { complements: Table::growing(self.len()), base: Some(base) };
    }

    /// Returns whether the table lies over a base.
    pub fn lies_over_base(&self) -> bool {
        self.base.is_some()
    }

    /// Returns the base under the table, if there is one.
    pub fn base(&self) -> Option<&Arc<Base>> {
        self.base.as_ref()
    }

    /// Returns whether no page was ever mapped, and no base is under the table.
    pub fn is_blank(&self) -> bool {
        self.base.is_none() && self.complements.is_blank()
    }

    /// Returns the number of logical pages.
    pub fn len(&self) -> u32 {
        self.complements.len()
    }

    /// Returns whether there are no logical pages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the physical page of a logical page. Panics beyond the table.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        let complement = self.complements.get(lpn.0);
        match &self.base {
            None => Ppn(!complement),
            Some(base) => over(base, lpn, complement),
        }
    }

    /// Prefetches an entry that is about to be looked up.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.complements.prefetch(lpn.0);
    }

    /// Changes an entry and returns its old value. Panics beyond the table.
    #[inline]
    pub fn replace(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        let Some(base) = &self.base else {
            return Ppn(!self.complements.replace(lpn.0, !ppn.0));
        };
        let complement = ppn.mapped().map_or(UNMAPPED, |ppn| !ppn.0);
        over(base, lpn, self.complements.replace(lpn.0, complement))
    }

    /// Returns the pages that have moved since the table was laid over its base, in no particular
    /// order, with their places. Returns `None` if the table has no base.
    pub fn moved(&self) -> Option<impl Iterator<Item = (Lpn, Ppn)>> {
        let base = self.base.as_ref()?;
        let changed = self.complements.changed().map(|(at, complement)| (Lpn(at), complement));
        Some(changed.map(|(lpn, entry)| (lpn, over(base, lpn, entry))))
    }

    /// Divides the table into shares of `pages` consecutive pages. The last share may be smaller.
    /// Each share can be changed on a thread of its own.
    ///
    /// # Panics
    /// Panics if `pages` is zero, or if the table lies over a base.
    pub fn shares(&mut self, pages: u32) -> impl Iterator<Item = PpnShare<'_>> {
        let firsts = (0u32..).step_by(pages as usize);
        assert!(self.base.is_none(), "a table over a base is not filled");
        let shares = self.complements.words_mut().chunks_mut(pages as usize);
        firsts.zip(shares).map(|(first, complements)| PpnShare { first, complements })
    }

    /// Returns the entries of consecutive logical pages. Panics beyond the table.
    pub fn range(&self, lpns: Range<u32>) -> impl ExactSizeIterator<Item = Ppn> + '_ {
        lpns.map(|lpn| self.get(Lpn(lpn)))
    }
}

/// The entries of consecutive logical pages ([`PpnTable::shares`]).
pub struct PpnShare<'a> {
    first: u32,
    complements: &'a mut [u32],
}

impl PpnShare<'_> {
    /// Returns the number of pages of the share.
    #[allow(clippy::len_without_is_empty)] // no share is empty
    pub fn len(&self) -> usize {
        self.complements.len()
    }

    /// Loads entries from memory in the order of their indices. If most of the entries are about to
    /// be looked up in another order, this is faster than loading each entry on demand.
    pub fn load(&self, entries: std::ops::Range<usize>) {
        let end = entries.end.min(self.complements.len());
        // one entry in each cache line of 64 bytes
        std::hint::black_box(self.complements[entries.start..end].iter().step_by(16).max());
    }

    /// Returns the physical page of a logical page. Panics beyond the share.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        Ppn(!self.complements[lpn.0.wrapping_sub(self.first) as usize])
    }

    /// Sets the physical page of a logical page. Panics beyond the share.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, ppn: Ppn) {
        self.complements[lpn.0.wrapping_sub(self.first) as usize] = !ppn.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Filled;
    use crate::{AllocationOrder, BlockId, Cell, Geometry, Index, Layout, Span};

    #[test]
    fn pages_are_nowhere_until_they_are_mapped() {
        let mut table = PpnTable::new(4);
        assert_eq!((table.len(), table.get(Lpn(3))), (4, Ppn::NONE));
        assert_eq!(table.replace(Lpn(3), Ppn(0)), Ppn::NONE);
        assert_eq!(table.replace(Lpn(3), Ppn(u32::MAX - 1)), Ppn(0));
        assert_eq!(
            table.range(2..4).collect::<Vec<_>>(),
            [Ppn::NONE, Ppn(u32::MAX - 1)],
            "the number before NONE is a page"
        );
    }

    #[test]
    fn over_a_base_only_changes_are_entries() {
        let layout = Layout::new(
            Geometry {
                channels: 1,
                ways: 1,
                dies: 1,
                planes: 1,
                blocks: 2,
                pages: 4,
                page_bytes: 1024,
                spare_bytes: 64,
                cell: Cell::Slc,
            },
            Span::ONE,
            512,
            AllocationOrder::parse("CWDP").unwrap(),
            8,
        );
        // eight pages in the four frames of block 1, whose first slot is 8
        let filled = Filled::new(&Arc::new(layout.unwrap()), &[vec![BlockId::from_number(1)]]);
        let mut table = PpnTable::new(8);
        table.replace(Lpn(0), Ppn(3));
        assert!(table.moved().is_none() && !table.lies_over_base());
        table.lay(Arc::new(Base::Filled(filled)));
        assert!(table.range(0..8).eq((8..16).map(Ppn)), "no earlier entry is kept");
        assert_eq!(table.replace(Lpn(2), Ppn(5)), Ppn(10));
        assert_eq!(table.replace(Lpn(2), Ppn::NONE), Ppn(5));
        assert_eq!((table.get(Lpn(2)), table.replace(Lpn(2), Ppn(0))), (Ppn::NONE, Ppn::NONE));
        assert_eq!(table.replace(Lpn(7), Ppn::NONE), Ppn(15));
        let mut moved: Vec<_> = table.moved().unwrap().collect();
        moved.sort_unstable();
        assert_eq!(moved, [(Lpn(2), Ppn(0)), (Lpn(7), Ppn::NONE)]);
    }

    #[test]
    fn shares_are_of_their_pages_alone() {
        let mut table = PpnTable::new(5);
        for (mut share, pages) in table.shares(2).zip([0..2, 2..4, 4..5]) {
            assert_eq!(share.len(), pages.len());
            for lpn in pages.map(Lpn) {
                assert_eq!(share.get(lpn), Ppn::NONE);
                share.set(lpn, Ppn(10 + lpn.0));
                assert_eq!(share.get(lpn), Ppn(10 + lpn.0));
            }
        }
        assert!(table.range(0..5).eq((10..15).map(Ppn)));
    }
}
