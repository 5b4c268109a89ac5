//! Binomial draws, the same on every machine.
//!
//! The distributions of public crates use logarithms of the platform's library, which may differ
//! between machines in the last bit. Here all results come from `+ - * /` and square roots.

use flashatlas_types::Rng;
use std::ops::RangeInclusive;

/// The smallest mean for which a candidate is drawn and tested. The constants of the method are
/// fitted to means of 10 and more.
const SMALL: f64 = 10.0;

/// Draws the number of successes in `trials` trials that each succeed with probability `p`.
///
/// The time does not depend on the number of trials. If the mean of the rarer outcome is at least
/// 10, candidates are drawn by transformed rejection (W. Hörmann, "The generation of binomial
/// random variates", Journal of Statistical Computation and Simulation 46, 1993, algorithm BTRS).
/// Otherwise the distribution function is inverted from 0 upwards.
///
/// # Panics
/// Panics unless `p` is between 0 and 1.
pub(crate) fn binomial(trials: u32, p: f64, rng: &mut Rng) -> u32 {
    assert!((0.0..=1.0).contains(&p), "a probability of {p}");
    if p > 0.5 {
        return trials - rare(trials, 1.0 - p, rng);
    }
    rare(trials, p, rng)
}

/// Returns `base^exponent`, computed by squaring. The power function of the standard library may
/// differ between machines in the last bit.
pub(crate) fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        result *= if exponent & 1 == 1 { base } else { 1.0 };
        base *= base;
        exponent >>= 1;
    }
    result
}

/// Draws as [`binomial`] does, with `p` of at most one half.
fn rare(trials: u32, p: f64, rng: &mut Rng) -> u32 {
    if f64::from(trials) * p < SMALL { inverted(trials, p, rng) } else { rejected(trials, p, rng) }
}

/// Returns the quotient of the probabilities of `k` and `k - 1` successes.
fn step(trials: u32, odds: f64, k: u32) -> f64 {
    odds * f64::from(trials - k + 1) / f64::from(k)
}

/// Draws by inversion of the distribution function.
fn inverted(trials: u32, p: f64, rng: &mut Rng) -> u32 {
    let (odds, mut left) = (p / (1.0 - p), rng.unit());
    let mut probability = power(1.0 - p, trials);
    let mut k = 0;
    while left >= probability && k < trials {
        left -= probability;
        k += 1;
        probability *= step(trials, odds, k);
    }
    k
}

/// Draws by transformed rejection.
fn rejected(trials: u32, p: f64, rng: &mut Rng) -> u32 {
    let n = f64::from(trials);
    let odds = p / (1.0 - p);
    let deviation = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let alpha = (2.83 + 5.1 / b) * deviation;
    let surely = 0.92 - 4.2 / b;
    let mode = ((n + 1.0) * p) as u32;
    loop {
        let (u, v) = (rng.unit() - 0.5, rng.unit());
        let side = 0.5 - u.abs();
        if side == 0.0 {
            continue; // the candidate would be infinite
        }
        let candidate = (2.0 * a / side + b) * u + n * p + 0.5;
        if candidate < 0.0 || candidate >= n + 1.0 {
            continue;
        }
        let k = candidate as u32;
        if side >= 0.07 && v <= surely {
            return k;
        }
        // the quotient of the probabilities of the candidate and of the mode
        let between = |numbers: RangeInclusive<u32>| -> f64 {
            numbers.map(|k| step(trials, odds, k)).product()
        };
        let quotient = if k < mode { 1.0 / between(k + 1..=mode) } else { between(mode + 1..=k) };
        if v * alpha / (a / (side * side) + b) <= quotient {
            return k;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::Seed;

    /// Returns the probability of each number of successes. The products begin at the mode, where
    /// nothing underflows, and are divided by their sum.
    fn probabilities(trials: u32, p: f64) -> Vec<f64> {
        let ratio = |k: usize| p / (1.0 - p) * (trials as usize - k + 1) as f64 / k as f64;
        let mode = (f64::from(trials) * p) as usize;
        let mut shares = vec![1.0; trials as usize + 1];
        for k in mode + 1..shares.len() {
            shares[k] = shares[k - 1] * ratio(k);
        }
        for k in (0..mode).rev() {
            shares[k] = shares[k + 1] / ratio(k + 1);
        }
        let sum: f64 = shares.iter().sum();
        shares.iter().map(|share| share / sum).collect()
    }

    /// Compares the frequencies of 200,000 draws with the probabilities. Numbers that are expected
    /// less than 20 times are taken together with their neighbours. The sum of squares may lie 5
    /// standard deviations above its mean.
    #[test]
    fn draws_follow_the_distribution() {
        let mut rng = Rng::stream(Seed(1), "binomial");
        let draws = 200_000;
        for (trials, p) in [
            (1, 0.5),
            (64, 0.05),
            (64, 0.9),
            (300, 0.0334),
            (40, 0.5),
            (256, 0.3),
            (18_432, 0.001),
            (18_432, 0.42),
            (18_432, 0.97),
            (18_432, 0.9999),
        ] {
            let mut found = vec![0u32; trials as usize + 1];
            (0..draws).for_each(|_| found[binomial(trials, p, &mut rng) as usize] += 1);
            let (mut square, mut classes, mut mean, mut count) = (0.0, -1.0, 0.0, 0.0);
            let add = |mean: f64, count: f64| (count - mean) * (count - mean) / mean;
            for (&found, probability) in found.iter().zip(probabilities(trials, p)) {
                mean += probability * f64::from(draws);
                count += f64::from(found);
                if mean >= 20.0 {
                    square += add(mean, count);
                    classes += 1.0;
                    (mean, count) = (0.0, 0.0);
                }
            }
            let bound = classes + 5.0 * f64::sqrt(2.0 * classes);
            assert!(classes > 0.5 && square < bound, "{trials} {p}: {square} of {classes}");
        }
    }

    #[test]
    fn certain_outcomes_are_certain() {
        let mut rng = Rng::stream(Seed(1), "binomial");
        for trials in [0, 1, 7, 18_432] {
            assert_eq!(binomial(trials, 0.0, &mut rng), 0);
            assert_eq!(binomial(trials, 1.0, &mut rng), trials);
        }
    }
}
