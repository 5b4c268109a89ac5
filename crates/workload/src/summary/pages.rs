//! Sets of pages.

use rustc_hash::FxHashMap;

/// Number of pages of a chunk: 512 pages, 2 MiB.
const CHUNK_PAGES: u64 = 512;
const WORD_PAGES: u64 = 64;

/// A set of pages as bitmaps of the chunks that hold any.
#[derive(Clone, Default, Debug)]
pub(super) struct PageSet {
    chunks: FxHashMap<(u32, u64), [u64; (CHUNK_PAGES / WORD_PAGES) as usize]>,
    /// Number of pages in the set.
    pub len: u64,
}

impl PageSet {
    /// Adds `pages` of `device`.
    pub fn insert(&mut self, device: u32, pages: std::ops::Range<u64>) {
        let mut page = pages.start;
        while page < pages.end {
            let chunk = page / CHUNK_PAGES;
            let words = self.chunks.entry((device, chunk)).or_default();
            let stop = pages.end.min((chunk + 1) * CHUNK_PAGES);
            while page < stop {
                let bit = page % WORD_PAGES;
                let count = (WORD_PAGES - bit).min(stop - page);
                let mask = (u64::MAX >> (WORD_PAGES - count)) << bit;
                let word = &mut words[(page % CHUNK_PAGES / WORD_PAGES) as usize];
                self.len += u64::from((mask & !*word).count_ones());
                *word |= mask;
                page += count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_page_set_agrees_with_a_plain_one() {
        let mut rng = flashatlas_types::Rng::stream(flashatlas_types::Seed(1), "pages");
        let (mut set, mut plain) = (PageSet::default(), BTreeSet::new());
        for _ in 0..2000 {
            let (device, first) = (rng.below(2) as u32, rng.below(4000));
            let longest = [3, 70, 1200][rng.below(3) as usize];
            let len = rng.below(longest);
            set.insert(device, first..first + len);
            plain.extend((first..first + len).map(|page| (device, page)));
            assert_eq!(set.len, plain.len() as u64);
            if set.len > 6000 {
                (set, plain) = (PageSet::default(), BTreeSet::new());
            }
        }
    }
}
