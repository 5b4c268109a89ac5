//! The clock that replies wait for.

use flashatlas_types::Ps;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The clock of the program that serves the drive.
pub trait Clock: Send + Sync {
    /// Returns the time since serving began.
    fn now(&self) -> Ps;

    /// Waits until the clock reaches `at`.
    fn sleep_until(&self, at: Ps);

    /// Returns the simulated time of a drive that is slowed down by this factor.
    fn simulated(&self, slower: f64) -> Ps {
        Ps((self.now().0 as f64 / slower) as u64)
    }
}

impl<C: Clock> Clock for Arc<C> {
    fn now(&self) -> Ps {
        (**self).now()
    }

    fn sleep_until(&self, at: Ps) {
        (**self).sleep_until(at);
    }
}

/// Maximum time by which a sleep is requested too short, in nanoseconds.
const EARLY_MAX: u64 = 50_000;
/// Step by which this time adapts to the sleeps, in nanoseconds.
const EARLY_STEP: u64 = 250;

/// The machine's clock, counted from an instant that the caller has read.
///
/// A thread wakes up some microseconds after the requested time. So it asks for an earlier time, by
/// the median delay of its sleeps, and spins until the time has come.
pub struct Wall {
    begin: Instant,
    early: AtomicU64,
}

impl Wall {
    /// Returns a clock that was zero at `begin`.
    pub const fn since(begin: Instant) -> Wall {
        Wall { begin, early: AtomicU64::new(0) }
    }
}

impl Clock for Wall {
    fn now(&self) -> Ps {
        Ps(u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000) * 1000)
    }

    fn sleep_until(&self, at: Ps) {
        let early = self.early.load(Ordering::Relaxed);
        let until = Ps(at.0.saturating_sub(early * 1000));
        let left = Duration::from_nanos(until.0.saturating_sub(self.now().0) / 1000);
        if !left.is_zero() {
            std::thread::sleep(left);
            let too_long = self.now().since(until).0 / 1000 > early;
            let next = if too_long { early + EARLY_STEP } else { early.saturating_sub(EARLY_STEP) };
            // if two threads sleep at the same time, the value of one of them stays
            self.early.store(next.min(EARLY_MAX), Ordering::Relaxed);
        }
        while self.now() < at {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the clock is tried")]
    fn no_wait_ends_before_its_time_and_none_turns_for_long() {
        let wall = Wall::since(Instant::now());
        for _ in 0..300 {
            let at = Ps(wall.now().0 + 100_000_000);
            wall.sleep_until(at);
            assert!(wall.now() >= at);
            assert!(wall.early.load(Ordering::Relaxed) <= EARLY_MAX);
        }
        let passed = wall.now();
        wall.sleep_until(Ps::ZERO);
        wall.sleep_until(passed);
    }
}
