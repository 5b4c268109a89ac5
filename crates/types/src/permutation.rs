//! Permutations of numbers that are computed without a table.

use crate::Rng;

/// The number of rounds. After three rounds, the test below still distinguishes the distances
/// between neighbours from the distances in a random order. Five rounds pass the test, and a sixth
/// is added for safety.
const ROUNDS: usize = 6;

/// A pseudo-random permutation of `0..count`. Each stream of random numbers yields a different
/// permutation. No table is needed: the number at a place is computed without the numbers before
/// it.
///
/// Some orders cannot occur, because a permutation is drawn with a key of only 63 bits for each
/// round. Each round multiplies and mixes the number like the finalizer of MurmurHash3. Every step
/// can be undone modulo a power of two. A result of `count` or more goes through the rounds again,
/// until a result is below `count` (J. Black and P. Rogaway, "Ciphers with Arbitrary Finite
/// Domains", CT-RSA 2002).
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    keys: [u64; ROUNDS],
    /// The inverse of each key modulo 2^64.
    inverses: [u64; ROUNDS],
}

impl Permutation {
    /// The number of keys.
    pub(crate) const KEYS: usize = ROUNDS;

    /// Draws a permutation of `count` numbers.
    ///
    /// # Panics
    /// Panics if `count` is zero.
    pub fn new(count: u64, rng: &mut Rng) -> Permutation {
        Permutation::of_keys(count, [(); ROUNDS].map(|()| rng.below(u64::MAX)))
    }

    /// Returns the permutation of `count` numbers that has these keys. The lowest bit of a key does
    /// not count.
    ///
    /// # Panics
    /// Panics if `count` is zero.
    pub(crate) fn of_keys(count: u64, keys: [u64; ROUNDS]) -> Permutation {
        let bits = (64 - (count - 1).leading_zeros()).max(1);
        let keys = keys.map(|key| key | 1);
        let inverses = keys.map(inverse);
        let mask = u64::MAX >> (64 - bits);
        Permutation { count, mask, shift: bits.div_ceil(2), keys, inverses }
    }

    /// Returns the keys of the permutation.
    pub(crate) fn keys(&self) -> [u64; ROUNDS] {
        self.keys
    }

    /// Returns the number at a place, or `None` if `place` is `count` or more.
    #[inline]
    pub fn at(&self, place: u64) -> Option<u64> {
        if place >= self.count {
            return None;
        }
        let mut x = place;
        // the rounds permute all numbers below a power of two, and the loop ends at the first
        // result below `count`, after at most two turns on average
        loop {
            for key in self.keys {
                x = x.wrapping_add(key >> 32).wrapping_mul(key) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.count {
                return Some(x);
            }
        }
    }

    /// Returns the place of a number, or `None` if `number` is `count` or more. [`Permutation::at`]
    /// is the inverse.
    #[inline]
    pub fn find(&self, number: u64) -> Option<u64> {
        if number >= self.count {
            return None;
        }
        let mut x = number;
        // this loop visits the numbers of the loop in `at`, in the opposite order
        loop {
            for (key, inverse) in self.keys.iter().zip(self.inverses).rev() {
                // this is its own inverse, because `shift` is half of the bits or more
                x ^= x >> self.shift;
                x = x.wrapping_mul(inverse).wrapping_sub(key >> 32) & self.mask;
            }
            if x < self.count {
                return Some(x);
            }
        }
    }
}

/// Returns the inverse of an odd number modulo 2^64 (Newton's method).
fn inverse(odd: u64) -> u64 {
    // an odd number is its own inverse modulo 8, and each step doubles the number of correct bits
    (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    fn rng() -> Rng {
        Rng::stream(Seed(1), "permutation")
    }

    #[test]
    fn each_number_stands_at_one_place() {
        let mut rng = rng();
        for count in [1, 2, 7, 64, 1000, (1 << 20) + 5] {
            let permutation = Permutation::new(count, &mut rng);
            let mut numbers: Vec<u64> = (0..).map_while(|place| permutation.at(place)).collect();
            let found = numbers.iter().map(|&number| permutation.find(number));
            assert!(found.eq((0..count).map(Some)), "{count}: each number is found at its place");
            assert_eq!(permutation.find(count), None);
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "{count}");
        }
    }

    /// Checks that the counts differ from the means of a random order by at most 5 standard
    /// deviations.
    #[test]
    fn numbers_are_in_no_order() {
        let mut rng = rng();
        for count in [1 << 20, (1 << 20) + 5, (3 << 19) + 1] {
            let permutation = Permutation::new(count, &mut rng);
            let numbers: Vec<u64> = (0..).map_while(|place| permutation.at(place)).collect();
            let near = |what: &str, found: u64, mean: f64, deviation: f64| {
                let off = (found as f64 - mean).abs() / deviation;
                assert!(off < 5.0, "{what} of {count}: {found} rather than {mean}");
            };
            // a number of any sixteenth of the range is equally likely in each sixteenth of the
            // places
            let mut pairs = [[0; 16]; 16];
            for (&number, place) in numbers.iter().zip(0..) {
                let sixteenth = |n: u64| (n * 16 / count) as usize;
                pairs[sixteenth(place)][sixteenth(number)] += 1;
            }
            let mean = count as f64 / 256.0;
            pairs.iter().flatten().for_each(|&n| near("a pair", n, mean, mean.sqrt()));
            // at any distance, the second number of a pair is larger than the first in half of the
            // pairs; the two numbers of a pair are close to each other as often as two random
            // numbers
            for distance in [1, 2, 3, 4, 16, 64, 256, 4096] {
                let pairs = || numbers.iter().zip(&numbers[distance..]);
                let total = pairs().len() as f64;
                let rises = pairs().filter(|(a, b)| a < b).count() as u64;
                near("rises", rises, total / 2.0, (total / 12.0).sqrt());
                let close = pairs().filter(|(a, b)| a.abs_diff(**b) <= count / 1000).count() as u64;
                let mean = total * 0.002;
                near("neighbours", close, mean, mean.sqrt());
            }
            // each low bit is set as often at even places as at odd places
            for bit in 0..8 {
                let set = |parity: usize| {
                    numbers.iter().skip(parity).step_by(2).filter(|&n| n >> bit & 1 == 1).count()
                };
                near("a bit", set(0) as u64, set(1) as f64, (count as f64 / 4.0).sqrt());
            }
        }
        let both: [Vec<u64>; 2] = [(); 2].map(|()| {
            let permutation = Permutation::new(1000, &mut rng);
            (0..).map_while(|place| permutation.at(place)).collect()
        });
        assert_ne!(both[0], both[1], "the stream yields another permutation next");
    }
}
