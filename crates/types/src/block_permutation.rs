//! Permutations of the slots of a block. They are computed without a table.

use crate::Divisor;

/// Pseudo-random permutations of `0..count`, one for each key of 64 bits.
///
/// A number is a cell of a rectangle that is nearly a square. Each round shifts the cells of a
/// column by an amount that depends on the column. Then it shifts the cells of a row by an amount
/// that depends on the row. These are two steps of a Feistel network on a rectangle. A result of
/// `count` or more goes through the rounds again, until a result is below `count` (J. Black and P.
/// Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, methods 2 and 3). The rectangle
/// has less than one row too many, so this is rare in a large block. [`crate::Permutation`] needs
/// up to two turns, because the numbers of its rounds lie below a power of two.
///
/// The numbers `0..n` of each permutation are at random places. An affine permutation would be
/// faster, but its numbers `0..n` are at even distances.
#[derive(Clone, Debug)]
pub struct BlockPermutation {
    count: u32,
    rows: u32,
    columns: u32,
    by_columns: Divisor,
    /// The number of rounds.
    rounds: u64,
}

impl BlockPermutation {
    /// Prepares permutations of `count` numbers.
    ///
    /// # Panics
    /// Panics if `count` is zero.
    pub fn new(count: u32) -> BlockPermutation {
        assert!(count > 0, "a permutation of no numbers");
        let root = count.isqrt();
        let columns = root + u32::from(root * root < count);
        BlockPermutation {
            count,
            rows: count.div_ceil(columns),
            columns,
            by_columns: Divisor::new(columns),
            rounds: rounds(count),
        }
    }

    /// Returns the number at a place in the permutation of `key`. `place` is below the count.
    #[inline]
    pub fn at(&self, key: u64, place: u32) -> u32 {
        debug_assert!(place < self.count, "place {place} of {}", self.count);
        let mut x = place;
        loop {
            let mut row = self.by_columns.divide(x);
            let mut column = x - row * self.columns;
            for round in 0..self.rounds {
                row = add(row, shift(key, 2 * round, column, self.rows), self.rows);
                column = add(column, shift(key, 2 * round + 1, row, self.columns), self.columns);
            }
            x = row * self.columns + column;
            if x < self.count {
                return x;
            }
        }
    }

    /// Returns the place of a number in the permutation of `key`. [`BlockPermutation::at`] is the
    /// inverse.
    #[inline]
    pub fn find(&self, key: u64, number: u32) -> u32 {
        debug_assert!(number < self.count, "number {number} of {}", self.count);
        let mut x = number;
        loop {
            let mut row = self.by_columns.divide(x);
            let mut column = x - row * self.columns;
            for round in (0..self.rounds).rev() {
                column =
                    subtract(column, shift(key, 2 * round + 1, row, self.columns), self.columns);
                row = subtract(row, shift(key, 2 * round, column, self.rows), self.rows);
            }
            x = row * self.columns + column;
            if x < self.count {
                return x;
            }
        }
    }
}

/// Returns the number of rounds for permutations of `count` numbers. After two rounds, two numbers
/// of a row or column still prefer some pairs of places, even in a block of 4,096 slots. The
/// preference falls with each round and with the length of a row; the test below finds no
/// preference.
fn rounds(count: u32) -> u64 {
    if count < 64 { 8 } else { 3 }
}

/// Returns the shift of a row or column in a round, from 0 to below `bound`.
#[inline]
fn shift(key: u64, round: u64, line: u32, bound: u32) -> u32 {
    // two steps of the mixer of a key that is mixed already
    let mut hash = (key ^ (round << 32 | u64::from(line))).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (((hash >> 32) * u64::from(bound)) >> 32) as u32
}

/// Returns the sum of two numbers below `bound` modulo `bound`. `bound` is at most 2^31.
#[inline]
fn add(a: u32, b: u32, bound: u32) -> u32 {
    // the smaller of the sum and the reduced sum is right, because a difference below zero wraps
    // around. This needs no branch, and takes a third of the time.
    let sum = a + b;
    sum.min(sum.wrapping_sub(bound))
}

/// Returns the difference of two numbers below `bound` modulo `bound`.
#[inline]
fn subtract(a: u32, b: u32, bound: u32) -> u32 {
    let difference = a.wrapping_sub(b);
    difference.min(difference.wrapping_add(bound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::mix;

    #[test]
    fn each_number_stands_at_one_place() {
        for count in [1, 2, 3, 5, 8, 60, 64, 65, 72, 1000, 9216, 18_432, (1 << 16) + 1] {
            let permutation = BlockPermutation::new(count);
            for key in [0, 1, u64::MAX] {
                let mut numbers: Vec<u32> =
                    (0..count).map(|place| permutation.at(key, place)).collect();
                let found = numbers.iter().map(|&number| permutation.find(key, number));
                assert!(found.eq(0..count), "{count}: each number is found at its place");
                numbers.sort_unstable();
                assert!(numbers.into_iter().eq(0..count), "{count}");
            }
        }
    }

    /// Draws permutations with many keys. Each pair of different numbers must be at each pair of
    /// different places equally often: the sum of squares may lie 5 standard deviations above its
    /// mean. For larger blocks, sixteenths of the numbers are compared. The key of a block is a
    /// hash, as in a drive.
    #[test]
    fn two_slots_get_any_two_numbers() {
        let keys = 60_000;
        for count in [2, 3, 8, 12, 60, 64, 100, 4095, 4096, 18_432] {
            let permutation = BlockPermutation::new(count);
            let parts = if count <= 100 { count } else { 16 };
            let part_of = |number: u32| number * parts / count;
            let mut sizes = vec![0.0; parts as usize];
            (0..count).for_each(|number| sizes[part_of(number) as usize] += 1.0);
            let side = permutation.columns.min(count - 1);
            for (a, b) in [(0, 1), (0, side), (count / 2 - 1, count / 2), (0, count - 1)] {
                let mut found = vec![0u32; (parts * parts) as usize];
                for key in (0..keys).map(mix) {
                    let pair = (permutation.at(key, a), permutation.at(key, b));
                    assert_ne!(pair.0, pair.1);
                    found[(part_of(pair.0) * parts + part_of(pair.1)) as usize] += 1;
                }
                let (mut sum, mut freedom) = (0.0, -1.0);
                for (cell, found) in found.into_iter().enumerate() {
                    let (i, j) = (cell / parts as usize, cell % parts as usize);
                    let pairs = sizes[i] * (sizes[j] - if i == j { 1.0 } else { 0.0 });
                    let mean = keys as f64 * pairs / f64::from(count) / f64::from(count - 1);
                    if mean > 0.0 {
                        sum += (f64::from(found) - mean) * (f64::from(found) - mean) / mean;
                        freedom += 1.0;
                    }
                }
                let bound = freedom + 5.0 * f64::sqrt(2.0 * freedom);
                assert!(sum < bound, "{count}, {a} and {b}: {sum} of {freedom}");
            }
        }
    }
}
