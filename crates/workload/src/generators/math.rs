//! Logarithm and exponential from additions, multiplications and divisions alone.
//!
//! The functions of the standard library come from the platform, and may differ in the last bit
//! from one platform to the next. A load must be the same everywhere. IEEE 754 fixes the basic
//! operations, and so the results of this module. The relative error is below `1e-14`.

/// ln 2 in two parts: the first part has few bits, so its product with a small integer is exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Returns the natural logarithm of a positive, normal number.
pub fn ln(x: f64) -> f64 {
    // x = m · 2^k with m between √½ and √2
    let bits = x.to_bits();
    let mut k = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        (m, k) = (m / 2.0, k + 1);
    }
    let log = 2.0 * atanh((m - 1.0) / (m + 1.0));
    k as f64 * LN2_HIGH + (k as f64 * LN2_LOW + log)
}

/// Returns `e^x`, with `x` limited to the range from -708 to 709, in which results are normal
/// numbers.
pub fn exp(x: f64) -> f64 {
    let x = x.clamp(-708.0, 709.0);
    let k = (x / std::f64::consts::LN_2).round();
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let power = f64::from_bits(((k as i64 + 1023).clamp(1, 2046) as u64) << 52);
    (1.0 + r * series_of_exp(r)) * power
}

/// Returns `(e^t - 1) / t`, and 1 at 0.
pub(super) fn exp_minus_1_over(t: f64) -> f64 {
    if t.abs() < 0.5 { series_of_exp(t) } else { (exp(t) - 1.0) / t }
}

/// Returns `ln(1 + t) / t` for `t` above -1, and 1 at 0.
pub(super) fn ln_plus_1_over(t: f64) -> f64 {
    if t == 0.0 {
        1.0
    } else if t.abs() < 0.4 {
        2.0 * atanh(t / (2.0 + t)) / t
    } else {
        ln(1.0 + t) / t
    }
}

/// Returns `(e^t - 1) / t` for `|t|` up to ½: 1 + t/2 + t²/6 + …
fn series_of_exp(t: f64) -> f64 {
    (2..=16).rev().fold(1.0, |sum, n| 1.0 + sum * t / f64::from(n))
}

/// Returns the inverse hyperbolic tangent for `|z|` up to ¼: z + z³/3 + z⁵/5 + …
fn atanh(z: f64) -> f64 {
    let square = z * z;
    (0..13).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1)) * z
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) -> bool {
        (got - want).abs() <= 1e-14 * want.abs()
    }

    #[test]
    fn close_to_the_standard_library() {
        for i in 1..4000 {
            let x = f64::from(i) * 0.37;
            assert!(near(ln(x), x.ln()), "ln {x}: {} {}", ln(x), x.ln());
            let big = x * 2f64.powi(50);
            assert!(near(ln(big), big.ln()), "ln {big}");
            let t = (f64::from(i) - 2000.0) * 0.01;
            assert!(near(exp(t), t.exp()), "exp {t}: {} {}", exp(t), t.exp());
            if i != 2000 {
                assert!(near(exp_minus_1_over(t), t.exp_m1() / t), "expm1 {t}");
                let above = t * 0.049; // -0.98 to 0.98
                assert!(near(ln_plus_1_over(above), above.ln_1p() / above), "ln1p {above}");
            }
        }
        assert_eq!(
            (exp_minus_1_over(0.0), ln_plus_1_over(0.0), exp(0.0), ln(1.0)),
            (1.0, 1.0, 1.0, 0.0)
        );
        assert!(exp(-1000.0) < 1e-300 && exp(1000.0) > 1e300);
    }
}
