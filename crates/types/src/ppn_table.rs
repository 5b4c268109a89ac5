//! A table of physical pages by logical page.

use crate::{Lpn, Ppn};
use flashatlas_prefetch as prefetch;

/// Where each logical page is; nowhere at first.
///
/// Entries are kept as complements, so that [`Ppn::NONE`] is zero: the operating system provides
/// zeroed memory where it is first written, and the table of a large drive costs what is mapped.
pub struct PpnTable {
    complements: Vec<u32>,
}

impl PpnTable {
    /// `pages` logical pages that are nowhere.
    pub fn new(pages: u32) -> PpnTable {
        PpnTable { complements: vec![0; pages as usize] }
    }

    /// Logical pages.
    pub fn len(&self) -> u32 {
        self.complements.len() as u32
    }

    /// Whether there are no logical pages.
    pub fn is_empty(&self) -> bool {
        self.complements.is_empty()
    }

    /// Where a logical page is. Panics beyond the table.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        Ppn(!self.complements[lpn.0 as usize])
    }

    /// An entry is about to be asked for: load it from memory.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch::item_at(&self.complements, lpn.0 as usize);
    }

    /// Change an entry; returns what it was. Panics beyond the table.
    #[inline]
    pub fn replace(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        Ppn(!std::mem::replace(&mut self.complements[lpn.0 as usize], !ppn.0))
    }

    /// The table in shares of so many consecutive pages (the last may be smaller), each of which
    /// can be changed on a thread of its own.
    ///
    /// # Panics
    /// When `pages` is zero.
    pub fn shares(&mut self, pages: u32) -> impl Iterator<Item = PpnShare<'_>> {
        let firsts = (0u32..).step_by(pages as usize);
        let shares = self.complements.chunks_mut(pages as usize);
        firsts.zip(shares).map(|(first, complements)| PpnShare { first, complements })
    }

    /// The entries of consecutive logical pages. Panics beyond the table.
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
    /// Pages of it.
    #[allow(clippy::len_without_is_empty)] // no share is
    pub fn len(&self) -> usize {
        self.complements.len()
    }

    /// Most of these entries, by index, are about to be asked for in any order: load them from
    /// memory one after the other, which is faster.
    pub fn load(&self, entries: std::ops::Range<usize>) {
        let end = entries.end.min(self.complements.len());
        // one of each line of 64 bytes
        std::hint::black_box(self.complements[entries.start..end].iter().step_by(16).max());
    }

    /// Where a page is. Panics beyond the share.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        Ppn(!self.complements[lpn.0.wrapping_sub(self.first) as usize])
    }

    /// A page is there now. Panics beyond the share.
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
            "the last page but NONE is a page"
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
