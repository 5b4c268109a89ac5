//! The number of wrong bits in each codeword of a read.
//!
//! Each codeword has a number from 0 to 1. It follows from the seed, the frame, the number of the
//! program and the place of the codeword. The number is the codeword's place in the binomial
//! distribution of wrong bits. So the same codeword is weak in every read, and its wrong bits only
//! grow with wear, time and reads. A copy has another place in the distribution.

use super::power::whole_power;
use flashatlas_types::content::mix;
use smallvec::SmallVec;

/// Mean number of wrong bits of a codeword above which the mean replaces the draw. The smallest
/// probabilities of the distribution are then too small for 64 bits.
const MEAN_MAX: f64 = 600.0;

/// The places of the codewords of one read in the distribution of wrong bits, in ascending order.
pub struct Places(SmallVec<[f64; 32]>);

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

impl Places {
    /// Returns the places of these codewords of the program with this [`key`].
    pub fn of(key: u64, codewords: impl IntoIterator<Item = u32>) -> Places {
        let places = codewords.into_iter().map(|i| unit(key.wrapping_add(u64::from(i))));
        let mut places: SmallVec<[f64; 32]> = places.collect();
        places.sort_unstable_by(f64::total_cmp);
        Places(places)
    }

    /// Returns the wrong bits of codewords of `bits` bits. Each bit is wrong with probability
    /// `rate`.
    pub fn wrong_bits(&self, bits: u32, rate: f64) -> WrongBits {
        let mean = f64::from(bits) * rate;
        if mean > MEAN_MAX {
            let worst = (mean as u32).min(bits);
            return WrongBits { worst, sum: u64::from(worst) * self.0.len() as u64 };
        }
        // P(0) = (1 - rate)^bits and P(k + 1) = P(k) (bits - k) / (k + 1) rate / (1 - rate)
        let odds = rate / (1.0 - rate);
        let mut chance = whole_power(1.0 - rate, bits);
        let (mut below, mut wrong, mut sum) = (chance, 0u32, 0u64);
        for &place in &self.0 {
            // the sum of the chances may end just below 1; for a place above the sum, the loop ends
            // with the last chance that changes the sum
            while place >= below && wrong < bits {
                chance *= f64::from(bits - wrong) / f64::from(wrong + 1) * odds;
                let next = below + chance;
                if next == below && f64::from(wrong) > mean {
                    break;
                }
                (below, wrong) = (next, wrong + 1);
            }
            sum += u64::from(wrong);
        }
        WrongBits { worst: wrong, sum }
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

    #[test]
    fn wrong_bits_grow_with_the_rate_and_end_at_the_mean() {
        let places = Places::of(key(1, 2, 3), 0..4);
        let worst = |rate| places.wrong_bits(8192, rate).worst;
        let rates = [0.0, 1e-4, 1e-3, 5e-3, 0.02, 0.07, 0.1, 0.5];
        assert!(rates.map(worst).is_sorted(), "{:?}", rates.map(worst));
        assert_eq!((worst(0.0), worst(0.5)), (0, 4096));
    }
}
