//! Division by a number that is known in advance.

/// A divisor that is known in advance. The division is done by a multiplication, and its result is
/// exact for every 32-bit number.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    /// `2^64 / d`, rounded up; 0 for `d = 1`.
    inverse: u64,
}

impl Divisor {
    /// Prepares the division by `d`.
    ///
    ///  # Panics
    /// If `d` is zero.
    pub fn new(d: u32) -> Divisor {
        assert!(d > 0, "division by zero");
        Divisor { inverse: (u64::MAX / u64::from(d)).wrapping_add(1) }
    }

    /// Returns `n / d`, rounded down (Granlund and Montgomery 1994; the error of the inverse stays
    /// below `1 / 2^32`).
    #[inline]
    pub fn divide(self, n: u32) -> u32 {
        if self.inverse == 0 {
            n
        } else {
            ((u128::from(self.inverse) * u128::from(n)) >> 64) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_divisor_divides_exactly() {
        for d in
            [1, 2, 3, 5, 7, 64, 641, 1152, 18432, 65_535, 65_537, 1 << 31, u32::MAX - 1, u32::MAX]
        {
            let by = Divisor::new(d);
            let near = |n: u32| [n.saturating_sub(1), n, n.saturating_add(1)];
            let multiples = (0..200u32).filter_map(|k| d.checked_mul(k)).flat_map(near);
            let large =
                (0..200u32).flat_map(|k| near((u32::MAX / d).saturating_sub(k).saturating_mul(d)));
            for n in multiples.chain(large).chain([0, 1, u32::MAX - 1, u32::MAX]) {
                assert_eq!(by.divide(n), n / d, "{n} / {d}");
            }
        }
    }
}
