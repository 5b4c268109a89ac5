//! Fig. 6 of Song et al. (2019), taken literally: the latency of one read, by the number of reads
//! since the last read of the same bank.
//!
//! This table is a reference for the engine. It assumes that every read in between took exactly DL,
//! and so it counts overlapping row misses twice. By this table, a set that is spread over four
//! banks and read in rotation is slower than a set in a single bank.

use super::Timings;

/// Classes of reads in Table V, in the order of the table. The first five are row changes whose
/// bank was last read 1, 2, 3, 4 or more reads ago. The sixth is row hits.
pub const CLASSES: [&str; 6] = ["b[t-1]", "b[t-2]", "b[t-3]", "b[t-4]", "earlier", "same row"];

/// Returns the clocks of a read whose row differs from the row of the last read of its bank,
/// `distance` (at least 1) reads ago.
pub const fn row_change(t: &Timings, distance: u32) -> u32 {
    if distance > 4 {
        return t.dl;
    }
    let hidden = t.cl + distance * t.dl;
    let whole = t.rtp + t.rp + t.rcd + t.cl + t.dl;
    if whole > hidden + t.dl { whole - hidden } else { t.dl }
}

/// Returns the clocks of a read of `class`, an index of [`CLASSES`].
pub const fn latency(t: &Timings, class: usize) -> u32 {
    if class < 4 { row_change(t, class as u32 + 1) } else { t.dl }
}

/// A sorter of reads into the classes.
pub struct Classifier {
    /// Row and number of the last read of each bank. The number is 0 if the bank was not read.
    last: Vec<(u32, u64)>,
    reads: u64,
}

impl Classifier {
    /// Returns a classifier for `banks` banks that were not read yet.
    pub fn new(banks: u32) -> Classifier {
        Classifier { last: vec![(0, 0); banks as usize], reads: 0 }
    }

    /// Returns the class of the first of the next `count` reads. All these reads are of one row, so
    /// the later reads are row hits. The first read of a bank is a row change of the class
    /// "earlier".
    #[inline]
    pub fn read(&mut self, bank: u8, row: u32, count: u64) -> usize {
        let number = self.reads + 1;
        self.reads += count;
        match std::mem::replace(&mut self.last[bank as usize], (row, self.reads)) {
            (_, 0) => 4,
            (open, _) if open == row => 5,
            (_, at) => (number - at - 1).min(4) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PRESETS;

    #[test]
    fn figure_6() {
        let t = &PRESETS[0].timings;
        // 36 - (9 + 4 n) for the first four distances, DL for larger ones
        assert_eq!([1, 2, 3, 4, 5, 9].map(|n| row_change(t, n)), [23, 19, 15, 11, 4, 4]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|class| latency(t, class)), [23, 19, 15, 11, 4, 4]);
    }

    #[test]
    fn reads_are_classed_by_distance_and_row() {
        let mut classes = Classifier::new(4);
        let reads = [
            (0, 1),
            (0, 1),
            (0, 2),
            (1, 1),
            (0, 3),
            (2, 1),
            (3, 1),
            (1, 2),
            (2, 1),
            (0, 4),
            (1, 2),
        ];
        // the first read of a bank is of class "earlier"; the last reads of banks 1 and 2 are row
        // hits
        let expected = [4, 5, 0, 4, 1, 4, 4, 3, 5, 4, 5];
        assert_eq!(reads.map(|(bank, row)| classes.read(bank, row, 1)), expected);
    }
}
