//! The number of wrong bits in each codeword of a read.
//!
//! Each codeword has a number from 0 to 1. It follows from the seed, the frame, the number of the
//! program and the place of the codeword. The number is the codeword's place in the binomial
//! distribution of wrong bits. So the same codeword is weak in every read, and its wrong bits only
//! grow with wear, time and reads. A copy has another place in the distribution.

use super::power::whole_power;
use flashatlas_types::content::mix;
use smallvec::SmallVec;
use std::ops::Range;

/// Mean number of wrong bits of a codeword above which the mean replaces the draw. The smallest
/// probabilities of the distribution are then too small for 64 bits.
const MEAN_MAX: f64 = 600.0;

/// The places of the codewords of one read in the distribution of wrong bits, in ascending order.
pub struct Places(SmallVec<[f64; 32]>);

/// The places of the codewords of one read, in ascending order, with the wrong bits that each
/// carries from the sources of a copyback.
pub struct CarriedPlaces(SmallVec<[(f64, u16); 32]>);

/// Wrong bits of the codewords of one read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WrongBits {
    /// Wrong bits of the worst codeword.
    pub worst: u32,
    /// Wrong bits of all codewords.
    pub sum: u64,
}

/// Returns a number from 0 to below 1, computed from `x`.
pub fn unit(x: u64) -> f64 {
    (mix(x) >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns a number computed from the seed, a frame and the number of its program.
pub fn key(seed: u64, frame: u32, sequence: u64) -> u64 {
    mix(mix(seed ^ u64::from(frame)).wrapping_add(sequence))
}

/// The binomial distribution of the wrong bits of a codeword, walked from 0 wrong bits upwards.
///
/// `P(0) = (1 - rate)^bits` and `P(k + 1) = P(k) (bits - k) / (k + 1) rate / (1 - rate)`.
struct Walk {
    bits: u32,
    mean: f64,
    odds: f64,
    /// The number of wrong bits reached, its probability, and the probability of at most it.
    wrong: u32,
    chance: f64,
    below: f64,
}

impl Walk {
    /// Begins a walk for codewords of `bits` bits. Each bit is wrong with probability `rate`.
    fn new(bits: u32, rate: f64) -> Walk {
        let mean = f64::from(bits) * rate;
        let odds = rate / (1.0 - rate);
        if mean > MEAN_MAX {
            // no place is above, so the walk stays here
            let wrong = (mean as u32).min(bits);
            return Walk { bits, mean, odds, wrong, chance: 0.0, below: f64::INFINITY };
        }
        let chance = whole_power(1.0 - rate, bits);
        Walk { bits, mean, odds, wrong: 0, chance, below: chance }
    }

    /// Returns the wrong bits of the codeword at a place. The places of a walk ascend.
    #[inline]
    fn to(&mut self, place: f64) -> u32 {
        // the sum of the chances may end just below 1; for a place above the sum, the loop ends
        // with the last chance that changes the sum
        while place >= self.below && self.wrong < self.bits {
            let (left, next) = (self.bits - self.wrong, self.wrong + 1);
            self.chance *= f64::from(left) / f64::from(next) * self.odds;
            let sum = self.below + self.chance;
            if sum == self.below && f64::from(self.wrong) > self.mean {
                break;
            }
            (self.below, self.wrong) = (sum, next);
        }
        self.wrong
    }
}

/// Returns the place of a codeword of the program with this [`key`].
fn place(key: u64, codeword: u32) -> f64 {
    unit(key.wrapping_add(u64::from(codeword)))
}

impl Places {
    /// Returns the places of these codewords of the program with this [`key`].
    pub fn of(key: u64, codewords: impl IntoIterator<Item = u32>) -> Places {
        let places = codewords.into_iter().map(|i| place(key, i));
        let mut places: SmallVec<[f64; 32]> = places.collect();
        places.sort_unstable_by(f64::total_cmp);
        Places(places)
    }

    /// Returns the place of the codeword with the most wrong bits alone, as [`Places::of`] has it.
    pub fn worst_of(key: u64, codewords: impl IntoIterator<Item = u32>) -> Places {
        let places = codewords.into_iter().map(|i| place(key, i));
        Places(places.reduce(f64::max).into_iter().collect())
    }

    /// Returns the wrong bits of codewords of `bits` bits. Each bit is wrong with probability
    /// `rate`.
    pub fn wrong_bits(&self, bits: u32, rate: f64) -> WrongBits {
        let mut walk = Walk::new(bits, rate);
        let mut found = WrongBits::default();
        for &place in &self.0 {
            found.worst = walk.to(place);
            found.sum += u64::from(found.worst);
        }
        found
    }
}

/// Returns the wrong bits of each of these codewords of `bits` bits, in their order.
pub fn each_wrong(key: u64, codewords: Range<u32>, bits: u32, rate: f64) -> SmallVec<[u32; 64]> {
    let mut places: SmallVec<[(f64, usize); 64]> =
        codewords.clone().map(|i| place(key, i)).zip(0..).collect();
    places.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let mut walk = Walk::new(bits, rate);
    let mut wrong = SmallVec::from_elem(0, codewords.len());
    places.into_iter().for_each(|(place, at)| wrong[at] = walk.to(place));
    wrong
}

impl CarriedPlaces {
    /// Returns the places of these codewords of the program with this [`key`]. Before its own wrong
    /// bits, each codeword has the wrong bits that `carried` names.
    pub fn of(key: u64, codewords: impl Iterator<Item = u32>, carried: &[u16]) -> CarriedPlaces {
        let places = codewords.map(|i| (place(key, i), carried[i as usize]));
        let mut places: SmallVec<[(f64, u16); 32]> = places.collect();
        places.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        CarriedPlaces(places)
    }

    /// Returns the wrong bits of codewords as [`Places::wrong_bits`] does, with the carried ones.
    pub fn wrong_bits(&self, bits: u32, rate: f64) -> WrongBits {
        let mut walk = Walk::new(bits, rate);
        let mut found = WrongBits::default();
        for &(place, carried) in &self.0 {
            let wrong = (walk.to(place) + u32::from(carried)).min(bits);
            found.worst = found.worst.max(wrong);
            found.sum += u64::from(wrong);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of a binomial distribution is `n p`, and its variance `n p (1 - p)`.
    #[test]
    fn codewords_have_the_mean_and_the_variance_of_the_distribution() {
        for (bits, rate) in [(8192, 1.5e-3), (16384, 5e-3), (4096, 1e-4), (8192, 0.03)] {
            let draws = 20_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for n in 0..draws {
                let wrong = Places::of(key(7, n, 3), 0..1).wrong_bits(bits, rate).worst;
                sum += f64::from(wrong);
                squares += f64::from(wrong) * f64::from(wrong);
            }
            let mean = sum / f64::from(draws);
            let variance = squares / f64::from(draws) - mean * mean;
            let expected = f64::from(bits) * rate;
            // the mean of 20,000 draws has a standard deviation of sqrt(n p / 20,000)
            let off = (mean - expected).abs() / (expected / f64::from(draws)).sqrt();
            assert!(off < 4.0, "{bits} {rate}: mean {mean}, expected {expected}");
            let ratio = variance / (expected * (1.0 - rate));
            assert!((0.95..1.05).contains(&ratio), "{bits} {rate}: variance off by {ratio}");
        }
    }

    #[test]
    fn the_worst_and_the_sum_are_of_the_single_codewords() {
        let key = key(1, 2, 3);
        let single = |i: u32| Places::of(key, i..i + 1).wrong_bits(8192, 2e-3).worst;
        let all = Places::of(key, 3..11).wrong_bits(8192, 2e-3);
        let each: Vec<u32> = (3..11).map(single).collect();
        assert_eq!(all.worst, *each.iter().max().unwrap());
        assert_eq!(all.sum, each.iter().map(|&n| u64::from(n)).sum::<u64>());
        assert!(each.iter().min() < each.iter().max());
    }

    /// Codewords that are drawn together have the wrong bits that each has alone.
    #[test]
    fn codewords_drawn_together_are_those_drawn_alone() {
        for (n, rate) in [(1, 1e-3), (2, 4e-3), (3, 0.2)] {
            let key = key(n, 2, 3);
            let alone = |i: u32| Places::of(key, [i]).wrong_bits(8192, rate).worst;
            let each: Vec<u32> = (5..21).map(alone).collect();
            assert_eq!(each_wrong(key, 5..21, 8192, rate)[..], each);
            let worst = Places::worst_of(key, 5..21).wrong_bits(8192, rate).worst;
            assert_eq!(Some(&worst), each.iter().max());
            let carried: Vec<u16> = (0..21).map(|i| 30 * (i % 3)).collect();
            let all = each.iter().zip(&carried[5..]).map(|(&own, &more)| own + u32::from(more));
            let all: Vec<u32> = all.collect();
            let found = CarriedPlaces::of(key, 5..21, &carried).wrong_bits(8192, rate);
            assert_eq!(Some(&found.worst), all.iter().max());
            assert_eq!(found.sum, all.iter().map(|&wrong| u64::from(wrong)).sum::<u64>());
        }
    }

    #[test]
    fn wrong_bits_grow_with_the_rate_and_end_at_the_mean() {
        let places = Places::of(key(1, 2, 3), 0..4);
        let worst = |rate| places.wrong_bits(8192, rate).worst;
        let rates = [0.0, 1e-4, 1e-3, 5e-3, 0.02, 0.07, 0.1, 0.5];
        assert!(rates.map(worst).is_sorted(), "{:?}", rates.map(worst));
        assert_eq!((worst(0.0), worst(0.5)), (0, 4096));
    }
}
