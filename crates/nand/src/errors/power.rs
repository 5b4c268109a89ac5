//! Powers of numbers, the same on every machine.
//!
//! The power function of the standard library may differ between machines in the last bit. The
//! functions here use only sums, products, quotients and the bits of a number. Their relative error
//! is below 1e-12 for results between 1e-300 and 1e300.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// Returns `x` to the power of `p`, for a number `x` that is not negative. Zero to any power is
/// zero, so that a term with the factor "no cycles" or "no reads" vanishes.
pub fn power(x: f64, p: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { exp2(p * log2(x)) }
}

/// Returns `x` to a whole power, by squaring.
pub fn whole_power(x: f64, n: u32) -> f64 {
    let (mut result, mut base, mut left) = (1.0, x, n);
    while left > 0 {
        if left & 1 == 1 {
            result *= base;
        }
        base *= base;
        left >>= 1;
    }
    result
}

/// Returns the base-2 logarithm of a positive, normal number.
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & !(0x7ff << 52) | 1023 << 52);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 (z + z^3 / 3 + z^5 / 5 + …) with z = (m - 1) / (m + 1), and |z| is below 0.172
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let (square, mut term, mut sum) = (z * z, z, 0.0);
    for odd in (1..=21).step_by(2) {
        sum += term / f64::from(odd);
        term *= square;
    }
    exponent as f64 + 2.0 * sum * LOG2_E
}

/// Returns 2 to the power of `y`; zero or the largest number if the result has no place in 64 bits.
fn exp2(y: f64) -> f64 {
    if y < -1022.0 {
        return 0.0;
    }
    if y >= 1023.0 {
        return f64::MAX;
    }
    let whole = y as i64 - i64::from(y < 0.0);
    // e^x = 1 + x + x^2 / 2! + …, and x is below 0.7
    let x = (y - whole as f64) * LN_2;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..=20 {
        term *= x / f64::from(n);
        sum += term;
    }
    sum * f64::from_bits(((whole + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_as_exact_as_they_say() {
        let (mut x, mut worst) = (1e-12, 0.0_f64);
        while x < 1e12 {
            for p in [0.14, 0.33, 0.54, 1.0, 1.71, 2.05, 7.5] {
                let (ours, theirs) = (power(x, p), x.powf(p));
                worst = worst.max((ours / theirs - 1.0).abs());
            }
            x *= 1.37;
        }
        assert!(worst < 1e-12, "{worst}");
        assert_eq!(
            (power(0.0, 0.5), power(1.0, 1.71), whole_power(0.5, 10)),
            (0.0, 1.0, 1.0 / 1024.0)
        );
        // 3^4 = 81, and the base-2 logarithm of 81 is no whole number
        assert!((power(3.0, 4.0) - 81.0).abs() < 1e-10);
    }

    #[test]
    fn powers_out_of_range_end_at_its_bounds() {
        assert_eq!((power(1e300, 2.0), power(1e-300, 2.0)), (f64::MAX, 0.0));
    }
}
