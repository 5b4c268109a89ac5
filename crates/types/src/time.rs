//! Simulated time in whole picoseconds, with checked arithmetic and no floating point.

/// An instant of simulated time, in picoseconds since the start of the run. `2^64` ps are 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ps(pub u64);

/// A length of simulated time, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Dur(pub u64);

impl Ps {
    /// The start of the run.
    pub const ZERO: Ps = Ps(0);
    /// The end of time, later than every event.
    pub const MAX: Ps = Ps(u64::MAX);

    /// Returns the instant `d` after this one.
    ///
    /// # Panics
    /// Panics if simulated time passes 213 days. The replay limits the times that it accepts, so
    /// this would be a bug.
    #[track_caller]
    #[inline]
    pub fn after(self, d: Dur) -> Ps {
        Ps(self.0.checked_add(d.0).expect("simulated time passed 2^64 ps (213 days)"))
    }

    /// Returns the time from `earlier` to this instant, or zero if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Ps) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }
}

impl Dur {
    /// No time.
    pub const ZERO: Dur = Dur(0);

    /// Returns a duration of `n` nanoseconds.
    pub const fn from_ns(n: u64) -> Dur {
        Dur(n * 1_000)
    }

    /// Returns a duration of `n` microseconds.
    pub const fn from_us(n: u64) -> Dur {
        Dur(n * 1_000_000)
    }

    /// Returns the time to transfer `bytes` at `bytes_per_s`, rounded up to a picosecond. A rate of
    /// zero means no limit, and the time is zero.
    #[inline]
    pub fn transfer(bytes: u64, bytes_per_s: u64) -> Dur {
        if bytes_per_s == 0 {
            return Dur::ZERO;
        }
        const SECOND: u64 = 1_000_000_000_000;
        if let Some(scaled) = bytes.checked_mul(SECOND) {
            return Dur(scaled.div_ceil(bytes_per_s));
        }
        let ps = (u128::from(bytes) * u128::from(SECOND)).div_ceil(u128::from(bytes_per_s));
        Dur(u64::try_from(ps).expect("the transfer takes longer than 2^64 ps"))
    }

    /// Returns the number of whole nanoseconds, rounded down.
    pub const fn ns(self) -> u64 {
        self.0 / 1_000
    }
}

impl std::ops::Add for Dur {
    type Output = Dur;
    #[inline]
    fn add(self, other: Dur) -> Dur {
        Dur(self.0.checked_add(other.0).expect("duration passed 2^64 ps"))
    }
}

impl std::fmt::Display for Dur {
    /// Writes the time in the largest unit that leaves a whole number: `1300us`, `25us`, `1500ps`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (unit, ps) in
            [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000)]
        {
            if self.0 != 0 && self.0 % ps == 0 {
                return write!(f, "{}{unit}", self.0 / ps);
            }
        }
        write!(f, "{}ps", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_rounds_up_and_zero_rate_is_no_limit() {
        assert_eq!(Dur::transfer(1, 3_000_000_000_000), Dur(1));
        assert_eq!(Dur::transfer(4096, 4_096_000_000), Dur::from_us(1));
        assert_eq!(Dur::transfer(4096, 0), Dur::ZERO);
        assert_eq!(Dur::transfer(u64::MAX >> 24, 1_000_000_000_000), Dur(u64::MAX >> 24));
        // the numbers of bytes just below and just above the limit where their product with 10^12
        // fits 64 bits
        assert_eq!(Dur::transfer(18_446_744, 7), Dur(2_635_249_142_857_142_858));
        assert_eq!(Dur::transfer(18_446_745, 7), Dur(2_635_249_285_714_285_715));
    }

    #[test]
    fn durations_print_in_the_largest_whole_unit() {
        assert_eq!(Dur::from_us(1300).to_string(), "1300us");
        assert_eq!(Dur::from_us(2000).to_string(), "2ms");
        assert_eq!(Dur(1500).to_string(), "1500ps");
        assert_eq!(Dur(0).to_string(), "0ps");
    }
}
