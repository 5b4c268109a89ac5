//! One seed for a run; a named stream of random numbers for each consumer.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The seed of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(pub u64);

/// A stream of random numbers (xoshiro256++), the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream called `name` of `seed`. A new consumer takes a new name and shifts no other
    /// stream.
    pub fn stream(seed: Seed, name: &str) -> Rng {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Rng(Xoshiro256PlusPlus::seed_from_u64(hash ^ seed.0.rotate_left(32)))
    }

    /// A number in `0..bound` (multiply-shift: the bias is under `bound / 2^64`).
    ///
    /// # Panics
    /// When `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a random number below zero was asked for");
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits. For workload generators; the model itself uses no
    /// floating point.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `per_million / 1,000,000`.
    #[inline]
    pub fn chance(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < u64::from(per_million)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_independent() {
        let draw = |seed, name| {
            let mut rng = Rng::stream(Seed(seed), name);
            [rng.below(1 << 40), rng.below(1 << 40)]
        };
        assert_eq!(draw(1, "gc"), draw(1, "gc"));
        assert_ne!(draw(1, "gc"), draw(1, "workload"));
        assert_ne!(draw(1, "gc"), draw(2, "gc"));
    }

    #[test]
    fn below_reaches_every_value_and_none_beyond() {
        let mut rng = Rng::stream(Seed(7), "test");
        let mut seen = [0u32; 5];
        for _ in 0..5000 {
            seen[rng.below(5) as usize] += 1;
        }
        // 1000 expected each, standard deviation 28
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
