//! A table of words in which zero stands for an entry that was never changed.

use flashatlas_prefetch as prefetch;
use rustc_hash::FxHashMap;

/// The number of entries above which [`Table::growing`] begins with a hash: a table of words for
/// them takes more than 128 MiB.
const LARGE: u32 = 1 << 25;

/// A hash becomes a table of words when one in this number of its entries has changed. It then
/// takes about a quarter of the table's memory.
const SHARE: usize = 16;

/// A table of words, all of them zero at first. It has no memory until the first is changed.
///
/// A table of words takes memory where the program first writes, a page of memory at a time. So
/// random changes of a large table soon take most of its memory. A growing table begins with a hash
/// of the entries that have changed, if it is large.
#[derive(Clone, Debug)]
pub struct Table {
    /// All entries. The vector is empty before the first change, and beside a hash.
    words: Vec<u32>,
    /// The entries that have changed, in a table that begins with a hash. Nothing depends on their
    /// order.
    changed: Option<FxHashMap<u32, u32>>,
    len: u32,
}

impl Table {
    /// Builds a table of words.
    pub fn new(len: u32) -> Table {
        Table { words: Vec::new(), changed: None, len }
    }

    /// Builds a table that begins with a hash, if it is large.
    pub fn growing(len: u32) -> Table {
        Table::growing_from(len, LARGE)
    }

    fn growing_from(len: u32, large: u32) -> Table {
        if len <= large {
            return Table::new(len);
        }
        Table { changed: Some(FxHashMap::default()), ..Table::new(len) }
    }

    /// Returns the number of entries.
    #[allow(clippy::len_without_is_empty)] // a drive has pages
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns an entry. Panics beyond the table.
    #[inline]
    pub fn get(&self, at: u32) -> u32 {
        match self.words.get(at as usize) {
            Some(&word) => word,
            None => self.get_sparsely(at),
        }
    }

    #[inline(never)]
    fn get_sparsely(&self, at: u32) -> u32 {
        assert!(at < self.len, "entry {at} is beyond the table");
        self.changed.as_ref().and_then(|words| words.get(&at).copied()).unwrap_or(0)
    }

    /// Changes an entry and returns its old value. Panics beyond the table.
    #[inline]
    pub fn replace(&mut self, at: u32, word: u32) -> u32 {
        match self.words.get_mut(at as usize) {
            Some(entry) => std::mem::replace(entry, word),
            None => self.replace_sparsely(at, word),
        }
    }

    #[inline(never)]
    fn replace_sparsely(&mut self, at: u32, word: u32) -> u32 {
        assert!(at < self.len, "entry {at} is beyond the table");
        let Some(changed) = &mut self.changed else {
            return std::mem::replace(&mut self.words_mut()[at as usize], word);
        };
        let old = changed.insert(at, word).unwrap_or(0);
        if changed.len() > self.len as usize / SHARE {
            let mut words = vec![0; self.len as usize];
            changed.iter().for_each(|(&at, &word)| words[at as usize] = word);
            (self.words, self.changed) = (words, None);
        }
        old
    }

    /// Returns the entries that are not zero, with their numbers, in no particular order.
    pub fn changed(&self) -> Box<dyn Iterator<Item = (u32, u32)> + '_> {
        match &self.changed {
            None => Box::new((0..).zip(self.words.iter().copied()).filter(|e| e.1 != 0)),
            Some(words) => {
                Box::new(words.iter().map(|(&at, &word)| (at, word)).filter(|e| e.1 != 0))
            }
        }
    }

    /// Returns whether no entry was ever changed.
    pub fn is_blank(&self) -> bool {
        self.words.is_empty() && self.changed.as_ref().is_none_or(FxHashMap::is_empty)
    }

    /// Returns all entries.
    ///
    /// # Panics
    /// Panics if the table is a hash.
    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        assert!(self.changed.is_none(), "all entries of a hash are asked for");
        if self.words.is_empty() {
            self.words = vec![0; self.len as usize];
        }
        &mut self.words
    }

    /// Prefetches an entry that is about to be looked up.
    #[inline]
    pub fn prefetch(&self, at: u32) {
        prefetch::item_at(&self.words, at as usize);
    }
}

impl From<Vec<u32>> for Table {
    fn from(words: Vec<u32>) -> Table {
        let len = u32::try_from(words.len()).expect("entries have numbers of 32 bits");
        Table { words, changed: None, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, Seed};

    #[test]
    fn a_hash_holds_what_a_table_of_words_holds() {
        const LEN: u32 = 1000;
        let (mut all, mut grown) = (Table::new(LEN), Table::growing_from(LEN, LEN - 1));
        assert!(Table::growing_from(LEN, LEN).changed.is_none());
        let mut rng = Rng::stream(Seed(1), "table");
        let mut switched = 0;
        for turn in 1..400 {
            let (at, word) = (rng.below(LEN.into()) as u32, rng.below(3) as u32);
            assert_eq!(all.replace(at, word), grown.replace(at, word));
            assert_eq!((all.get(at), grown.get(at)), (word, word));
            let sorted = |table: &Table| {
                let mut changed: Vec<_> = table.changed().collect();
                changed.sort_unstable();
                changed
            };
            assert_eq!(sorted(&all), sorted(&grown));
            if switched == 0 && grown.changed.is_none() {
                switched = turn;
            }
        }
        // one entry more than 1000 / 16 = 62 entries, some of which changed twice
        assert!((63..100).contains(&switched), "{switched}");
        assert!((0..LEN).all(|at| all.get(at) == grown.get(at)));
    }

    #[test]
    #[should_panic(expected = "beyond the table")]
    fn a_hash_has_an_end() {
        Table::growing_from(8, 4).get(8);
    }
}
