//! Random numbers: one seed for each run, and a named stream for each consumer.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The seed of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns the seed of drive number `index` in a set of drives. Drive 0 uses this seed
    /// unchanged.
    pub fn of_drive(self, index: u32) -> Seed {
        Seed(self.0.wrapping_add(u64::from(index) << 32))
    }
}

/// A stream of random numbers (xoshiro256++), the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    numbers: Xoshiro256PlusPlus,
    /// Name of the stream, until the first number is drawn.
    unused: Option<Box<str>>,
}

thread_local! {
    /// Streams from which this thread has drawn a number. A run stays on its thread. The set
    /// influences no result. It only shows whether another seed could have changed a result.
    static DRAWN: RefCell<BTreeSet<Box<str>>> = const { RefCell::new(BTreeSet::new()) };
}

/// Returns the streams from which this thread has drawn since the last call, in order of name.
/// Streams whose names differ only in a number (`ftl.victim.3`) are listed as one.
pub fn drawn_streams() -> Vec<String> {
    let drawn = DRAWN.take();
    let numberless = |name: &str| {
        let words = name.split('.').filter(|word| word.parse::<u32>().is_err());
        words.collect::<Vec<_>>().join(".")
    };
    drawn.iter().map(|name| numberless(name)).collect::<BTreeSet<_>>().into_iter().collect()
}

impl Rng {
    /// Returns the stream called `name` for `seed`. Every new consumer uses a new name, so that the
    /// other streams yield the same numbers as before.
    pub fn stream(seed: Seed, name: &str) -> Rng {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let numbers = Xoshiro256PlusPlus::seed_from_u64(hash ^ seed.0.rotate_left(32));
        Rng { numbers, unused: Some(name.into()) }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.unused.is_some() {
            self.first_drawn();
        }
        self.numbers.next_u64()
    }

    #[cold]
    fn first_drawn(&mut self) {
        if let Some(name) = self.unused.take() {
            DRAWN.with_borrow_mut(|drawn| drawn.insert(name));
        }
    }

    /// Returns a number in `0..bound` by multiply-shift, with a bias under `bound / 2^64`.
    ///
    /// # Panics
    /// Panics if `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "the range of the random number is empty");
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a random index into a list of `len` entries.
    ///
    /// # Panics
    /// Panics if `len` is zero.
    #[inline]
    pub fn place(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns a number in `[0, 1)` with 53 random bits. Workload generators use it; the model
    /// itself uses no floating point.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns `true` with probability `per_million / 1,000,000`.
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
    fn streams_count_once_a_number_was_drawn() {
        drawn_streams();
        let mut lanes = [0, 1].map(|lane| Rng::stream(Seed(1), &format!("ftl.victim.{lane}")));
        let mut other = Rng::stream(Seed(1), "workload.kinds");
        assert_eq!(drawn_streams(), [""; 0]);
        lanes.iter_mut().for_each(|lane| _ = lane.below(2));
        assert_eq!(drawn_streams(), ["ftl.victim"]);
        let _ = lanes[0].below(2) as f64 + other.unit();
        assert_eq!(drawn_streams(), ["workload.kinds"], "each stream is listed once");
    }

    #[test]
    fn below_reaches_every_value_and_none_beyond() {
        let mut rng = Rng::stream(Seed(7), "test");
        let mut seen = [0u32; 5];
        for _ in 0..5000 {
            seen[rng.below(5) as usize] += 1;
        }
        // each value is expected 1000 times, with a standard deviation of 28
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
