//! Sets of identifiers, such as pages or slots, with one bit for each identifier.

use flashatlas_prefetch as prefetch;
use flashatlas_types::Index;
use std::marker::PhantomData;

/// A set of identifiers below a bound. Each identifier has one bit.
#[derive(Clone, Debug)]
pub struct BitSet<I> {
    /// The words of the bits, and one more word, so that a mask may begin at any bit.
    words: Vec<u64>,
    of: PhantomData<I>,
}

impl<I: Index> BitSet<I> {
    /// Returns an empty set of identifiers below `bound`.
    pub fn new(bound: u32) -> BitSet<I> {
        BitSet { words: vec![0; bound.index().div_ceil(64) + 1], of: PhantomData }
    }

    /// Returns an empty set with the same bound.
    pub fn cleared(&self) -> BitSet<I> {
        BitSet { words: vec![0; self.words.len()], of: PhantomData }
    }

    /// Returns the index of the word that has an identifier's bit, and the bit's place in that
    /// word.
    #[inline]
    fn place(id: I) -> (usize, usize) {
        (id.index() / 64, id.index() % 64)
    }

    /// Returns whether an identifier is in the set. Panics beyond the bound.
    #[inline]
    pub fn contains(&self, id: I) -> bool {
        let (word, bit) = Self::place(id);
        self.words[word] >> bit & 1 == 1
    }

    /// Adds an identifier; returns `true` if it was not in the set. Panics beyond the bound.
    #[inline]
    pub fn insert(&mut self, id: I) -> bool {
        let (word, bit) = Self::place(id);
        let word = &mut self.words[word];
        let is_new = *word >> bit & 1 == 0;
        *word |= 1 << bit;
        is_new
    }

    /// Removes an identifier; returns `true` if it was in the set. Panics beyond the bound.
    #[inline]
    pub fn remove(&mut self, id: I) -> bool {
        let (word, bit) = Self::place(id);
        let word = &mut self.words[word];
        let was_there = *word >> bit & 1 == 1;
        *word &= !(1 << bit);
        was_there
    }

    /// Adds every identifier of a set with the same bound. Returns `true` if no identifier was in
    /// both sets.
    pub fn add(&mut self, other: &BitSet<I>) -> bool {
        let mut common = 0;
        for (word, &more) in self.words.iter_mut().zip(&other.words) {
            common |= *word & more;
            *word |= more;
        }
        common == 0
    }

    /// Returns a mask of `count` identifiers, at most 64. Bit `i` is set if `first` plus `i` is in
    /// the set.
    #[inline]
    pub fn mask(&self, first: I, count: u32) -> u64 {
        let (word, shift) = Self::place(first);
        let mut mask = self.words[word] >> shift;
        if shift != 0 {
            mask |= self.words[word + 1] << (64 - shift);
        }
        if count == 64 { mask } else { mask & ((1 << count) - 1) }
    }

    /// Returns the number of identifiers in the set that are among the `count` identifiers from
    /// `first` on.
    pub fn count(&self, first: I, count: u32) -> u32 {
        let (word, shift) = Self::place(first);
        if shift == 0 && count % 64 == 0 {
            // most blocks: their words alone
            let words = &self.words[word..word + count as usize / 64];
            return words.iter().map(|word| word.count_ones()).sum();
        }
        self.within(first, count).count() as u32
    }

    /// Returns the identifiers in the set that are among the `count` identifiers from `first` on,
    /// in ascending order.
    pub fn within(&self, first: I, count: u32) -> impl Iterator<Item = I> {
        let first = first.index() as u32;
        let masks = (0..count)
            .step_by(64)
            .map(move |at| (at, self.mask(I::from_number(first + at), (count - at).min(64))));
        // most masks are empty, so they are passed over first
        masks.filter(|&(_, mask)| mask != 0).flat_map(move |(at, mask)| {
            let masks = std::iter::successors(Some(mask), |mask| Some(mask & (mask - 1)));
            let masks = masks.take(mask.count_ones() as usize);
            masks.map(move |mask| I::from_number(first + at + mask.trailing_zeros()))
        })
    }

    /// Returns the identifiers in the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = I> + '_ {
        let words = (0..).step_by(64).zip(&self.words);
        words.flat_map(|(first, &bits)| {
            let set = (0..64).filter(move |bit| bits >> bit & 1 == 1);
            set.map(move |bit| I::from_number(first + bit))
        })
    }

    /// Returns the words of the set, with 64 identifiers each. At least one extra word follows.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Prefetches an identifier's bit into the CPU cache.
    #[inline]
    pub fn prefetch(&self, id: I) {
        prefetch::item_at(&self.words, Self::place(id).0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Ppn, Rng, Seed};
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_set_of_which_masks_show_parts() {
        const BOUND: u32 = 200;
        let (mut bits, mut model) = (BitSet::new(BOUND), BTreeSet::new());
        let mut rng = Rng::stream(Seed(1), "bits");
        for _ in 0..2000 {
            let ppn = Ppn(rng.below(BOUND.into()) as u32);
            match rng.below(3) {
                0 => assert_eq!(bits.remove(ppn), model.remove(&ppn)),
                _ => assert_eq!(bits.insert(ppn), model.insert(ppn)),
            }
            assert_eq!(bits.contains(ppn), model.contains(&ppn));
            let count = 1 + rng.below(64) as u32;
            let mask = bits.mask(ppn, count);
            let of_model = |i: &u32| *i < count && model.contains(&Ppn(ppn.0 + i));
            assert!((0..64).all(|i| (mask >> i & 1 == 1) == of_model(&i)), "{ppn}, {count}");
            let (first, count) = (ppn.0 / 2, count * 3 / 2);
            let within = model.range(Ppn(first)..Ppn(first + count)).copied();
            assert_eq!(bits.count(Ppn(first), count), within.clone().count() as u32);
            let whole = model.range(Ppn(64)..Ppn(192)).count() as u32;
            assert_eq!(bits.count(Ppn(64), 128), whole);
            assert!(bits.within(Ppn(first), count).eq(within), "{first}, {count}");
        }
        assert!(bits.iter().eq(model.iter().copied()));
        let mut other = bits.cleared();
        assert!(other.iter().next().is_none() && other.add(&bits) && !other.add(&bits));
        assert!(other.iter().eq(model.iter().copied()));
    }
}
