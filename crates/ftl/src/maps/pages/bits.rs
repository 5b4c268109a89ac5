//! Bitmaps stored in words of 64 bits.

use flashatlas_types::Index;
use std::marker::PhantomData;

/// Returns the index of the word with a bit, and the mask of the bit in that word.
#[inline]
fn place(at: u32) -> (usize, u64) {
    ((at / 64) as usize, 1 << (at % 64))
}

/// Returns the number of words of a bitmap.
#[inline]
fn words(bits: u32) -> usize {
    bits.div_ceil(64) as usize
}

/// Returns the index of the first word of a row.
#[inline]
fn start(row: impl Index, bits: u32) -> usize {
    row.index() * words(bits)
}

/// A bitmap that owns its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bits<W>(W);

impl Bits<Vec<u64>> {
    /// Returns a bitmap of at least `bits` bits, none of which is set.
    pub fn new(bits: u32) -> Bits<Vec<u64>> {
        Bits(vec![0; words(bits)])
    }
}

impl<W: AsRef<[u64]> + AsMut<[u64]>> Bits<W> {
    /// Returns whether a bit is set.
    #[inline]
    pub fn contains(&self, at: impl Into<u32>) -> bool {
        let (word, bit) = place(at.into());
        self.0.as_ref()[word] & bit != 0
    }

    /// Sets a bit.
    #[inline]
    pub fn insert(&mut self, at: impl Into<u32>) {
        let (word, bit) = place(at.into());
        self.0.as_mut()[word] |= bit;
    }

    /// Clears a bit.
    #[inline]
    pub fn remove(&mut self, at: impl Into<u32>) {
        let (word, bit) = place(at.into());
        self.0.as_mut()[word] &= !bit;
    }

    /// Clears the bits that are set in `others`.
    pub fn remove_all(&mut self, others: &Bits<W>) {
        let words = self.0.as_mut().iter_mut().zip(others.0.as_ref());
        words.for_each(|(mine, theirs)| *mine &= !theirs);
    }

    /// Clears every bit.
    pub fn clear(&mut self) {
        self.0.as_mut().fill(0);
    }

    /// Returns the number of bits that are set.
    pub fn len(&self) -> u32 {
        self.0.as_ref().iter().map(|word| word.count_ones()).sum()
    }

    /// Returns whether no bit is set.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().iter().all(|&word| word == 0)
    }

    /// Returns the highest bit that is set, or `None` if no bit is set.
    pub fn last(&self) -> Option<u32> {
        let words = self.0.as_ref();
        let word = words.iter().rposition(|&word| word != 0)?;
        Some(word as u32 * 64 + words[word].ilog2())
    }

    /// Returns the number of bits in the words, set or not.
    pub fn bound(&self) -> u32 {
        self.0.as_ref().len() as u32 * 64
    }
}

/// A bitmap with one row of bits for each identifier of one kind.
pub(crate) struct BitRows<K> {
    words: Vec<u64>,
    /// The number of bits of a row.
    bits: u32,
    kind: PhantomData<K>,
}

impl<K: Index> BitRows<K> {
    /// Returns `rows` rows of `bits` bits, none of which is set.
    pub fn new(rows: u32, bits: u32) -> BitRows<K> {
        BitRows { words: vec![0; start(K::from_number(rows), bits)], bits, kind: PhantomData }
    }

    #[inline]
    fn row(&self, row: K) -> &[u64] {
        &self.words[start(row, self.bits)..][..words(self.bits)]
    }

    /// Sets a bit of a row; returns `true` if it was not set.
    #[inline]
    pub fn insert(&mut self, row: K, at: u32) -> bool {
        let (word, bit) = place(at);
        let word = &mut self.words[start(row, self.bits) + word];
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Clears the bits of a row.
    pub fn clear(&mut self, row: K) {
        self.words[start(row, self.bits)..][..words(self.bits)].fill(0);
    }

    /// Returns the numbers of the set bits of a row, in ascending order.
    pub fn iter(&self, row: K) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).step_by(64).zip(self.row(row));
        words.flat_map(|(first, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::MapPage;
    use flashatlas_types::{Rng, Seed};
    use std::collections::BTreeSet;

    #[test]
    fn bits_are_a_set_of_numbers() {
        let mut rng = Rng::stream(Seed(1), "bits");
        let (mut bits, mut model) = (Bits::<[u64; 4]>::default(), BTreeSet::new());
        for _ in 0..if cfg!(miri) { 100 } else { 2000 } {
            let at = rng.below(256) as u8;
            if rng.below(3) > 0 {
                bits.remove(at);
                model.remove(&at);
            } else {
                bits.insert(at);
                model.insert(at);
            }
            assert_eq!(bits.last(), model.last().map(|&at| u32::from(at)));
            assert_eq!(bits.len(), model.len() as u32);
            assert_eq!(bits.is_empty(), model.is_empty());
            assert!((0..=255u8).all(|at| bits.contains(at) == model.contains(&at)));
        }
    }

    #[test]
    fn a_row_keeps_to_itself() {
        let mut rows = BitRows::new(3, 70);
        let [above, row, below] = [0, 1, 2].map(MapPage::new);
        assert!(rows.insert(row, 0) && rows.insert(row, 69) && rows.insert(row, 63));
        assert!(!rows.insert(row, 69), "the bit is already set");
        assert!(rows.insert(below, 1) && rows.insert(above, 2));
        assert_eq!(rows.iter(row).collect::<Vec<_>>(), [0, 63, 69]);
        rows.clear(row);
        assert_eq!(rows.iter(row).count(), 0);
        assert_eq!([above, below].map(|row| rows.iter(row).next()), [Some(2), Some(1)]);
    }
}
