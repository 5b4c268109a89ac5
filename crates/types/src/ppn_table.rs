//! A table of physical pages by logical page.

use crate::{Lpn, Ppn};
use flashatlas_prefetch as prefetch;

/// The physical page of each logical page. At first no page is mapped.
///
/// Entries are stored as complements, so that [`Ppn::NONE`] is zero. The operating system provides
/// zeroed memory only where a program first writes. So the table of a large drive uses memory only
/// for the parts that are mapped.
pub struct PpnTable {
    complements: Vec<u32>,
}

impl PpnTable {
    /// Builds a table of `pages` unmapped logical pages.
    pub fn new(pages: u32) -> PpnTable {
        PpnTable { complements: vec![0; pages as usize] }
    }

    /// Returns the number of logical pages.
    pub fn len(&self) -> u32 {
        self.complements.len() as u32
    }

    /// Returns whether there are no logical pages.
    pub fn is_empty(&self) -> bool {
        self.complements.is_empty()
    }

    /// Returns the physical page of a logical page. Panics beyond the table.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        Ppn(!self.complements[lpn.0 as usize])
    }

    /// Prefetches an entry that is about to be looked up.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch::item_at(&self.complements, lpn.0 as usize);
    }

    /// Changes an entry and returns its old value. Panics beyond the table.
    #[inline]
    pub fn replace(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        Ppn(!std::mem::replace(&mut self.complements[lpn.0 as usize], !ppn.0))
    }

    /// Divides the table into shares of `pages` consecutive pages. The last share may be smaller.
    /// Each share can be changed on a thread of its own.
    ///
    /// # Panics
    /// Panics if `pages` is zero.
    pub fn shares(&mut self, pages: u32) -> impl Iterator<Item = PpnShare<'_>> {
        let firsts = (0u32..).step_by(pages as usize);
        let shares = self.complements.chunks_mut(pages as usize);
        firsts.zip(shares).map(|(first, complements)| PpnShare { first, complements })
    }

    /// Returns the entries of consecutive logical pages. Panics beyond the table.
    pub fn range(&self, lpns: std::ops::Range<u32>) -> impl ExactSizeIterator<Item = Ppn> + '_ {
        self.complements[lpns.start as usize..lpns.end as usize].iter().map(|&c| Ppn(!c))
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
