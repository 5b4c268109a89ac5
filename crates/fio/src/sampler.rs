//! Skewed random blocks as fio draws them.
//!
//! Ranks follow a Zipf, Pareto or normal law, and a hash scatters them over the file.
//!
//! The approximations are fio's own (`lib/zipf.c`, `lib/gauss.c` of fio 3.33), so that frequencies
//! agree. Zipf ranks follow the formula of Gray et al., "Quickly Generating Billion-Record
//! Synthetic Databases", SIGMOD 1994. A Pareto rank is a power of a uniform number, and a normal
//! rank is the mean of twelve uniform numbers.
//!
//! A rank is multiplied by an odd constant modulo `2^64`. The product plus a shift is taken modulo
//! the number of blocks. If the number of blocks is not a power of two, several ranks may share a
//! block, as in fio.

use super::distribution::Distribution;
use flashatlas_types::Rng;
use flashatlas_workload::generators::math::{exp, ln};

/// Maximum number of terms of the harmonic sum, which is fio's own limit.
const MAX_TERMS: u64 = 10_000_000;
/// Number of terms that are added one by one. The rest of the sum comes from the Euler-Maclaurin
/// formula, with an error below `1e-12`.
const SINGLE_TERMS: u64 = 1000;
/// `2^64` divided by the square of the golden ratio: fio's `GOLDEN_RATIO_64`.
const HASH: u64 = 0x61c8_8646_80b5_83eb;
/// Number of uniform numbers whose mean approximates a normal number.
const NORMAL_TERMS: u64 = 12;

/// Sampler of blocks by a skewed law.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    blocks: u64,
    /// Block of rank 0.
    shift: u64,
    kind: SamplerKind,
    rng: Rng,
}

#[derive(Clone, Debug)]
enum SamplerKind {
    Zipf { alpha: f64, eta: f64, sum: f64, half: f64 },
    Pareto { power: f64 },
    Normal { spread: u64 },
}

/// Returns `base^exponent` for a base of at least 0.
fn pow(base: f64, exponent: f64) -> f64 {
    if base < f64::MIN_POSITIVE { 0.0 } else { exp(exponent * ln(base)) }
}

impl Sampler {
    /// Returns a sampler, or `None` for a uniform or zoned distribution.
    pub fn new(distribution: &Distribution, blocks: u64, mut rng: Rng) -> Option<Sampler> {
        let drawn = rng.below(blocks);
        let at = |centre: f64| (blocks as f64 * centre) as u64;
        let (kind, shift) = match *distribution {
            Distribution::Random | Distribution::Zoned { .. } => return None,
            Distribution::Zipf { theta, centre } => (zipf(blocks, theta), centre.map_or(drawn, at)),
            Distribution::Pareto { h, centre } => {
                (SamplerKind::Pareto { power: ln(h) / ln(1.0 - h) }, centre.map_or(drawn, at))
            }
            Distribution::Normal { deviation, centre } => {
                let spread = (blocks as f64 * deviation / 100.0).ceil() as u64;
                let shift = blocks + at(centre.unwrap_or(0.5)) - at(0.5);
                (SamplerKind::Normal { spread: spread.min(blocks / 2) }, shift % blocks)
            }
        };
        Some(Sampler { blocks, shift, kind, rng })
    }

    pub fn draw(&mut self) -> u64 {
        let rank = self.rank();
        (rank.wrapping_mul(HASH).wrapping_add(self.shift)) % self.blocks
    }

    fn rank(&mut self) -> u64 {
        let n = self.blocks as f64;
        match self.kind {
            SamplerKind::Zipf { alpha, eta, sum, half } => {
                let u = self.rng.unit();
                match u * sum {
                    z if z < 1.0 => 0,
                    z if z < 1.0 + half => 1,
                    _ => (n * pow(eta * u - eta + 1.0, alpha)) as u64,
                }
            }
            SamplerKind::Pareto { power } => ((n - 1.0) * pow(self.rng.unit(), power)) as u64,
            SamplerKind::Normal { spread } => {
                let sum: u128 =
                    (0..NORMAL_TERMS).map(|_| u128::from(self.rng.below(self.blocks + 1))).sum();
                let mean = sum.div_ceil(u128::from(NORMAL_TERMS)) as u64;
                if spread == 0 {
                    return mean;
                }
                let mut off = self.rng.below(spread) as i64 - (spread / 2) as i64;
                // the loop ends at an offset of 0 at the latest. The mean itself may be one past
                // the last block; the modulo in `draw` then maps it to a block of the file
                while off > 0 && mean.saturating_add_signed(off) >= self.blocks {
                    off /= 2;
                }
                mean.saturating_add_signed(off)
            }
        }
    }
}

fn zipf(blocks: u64, theta: f64) -> SamplerKind {
    let sum = harmonic(blocks.min(MAX_TERMS), theta);
    let half = pow(0.5, theta);
    let eta = (1.0 - pow(2.0 / blocks as f64, 1.0 - theta)) / (1.0 - (1.0 + half) / sum);
    SamplerKind::Zipf { alpha: 1.0 / (1.0 - theta), eta, sum, half }
}

/// Returns the sum of `i^-theta` for `i` from 1 to `n`.
fn harmonic(n: u64, theta: f64) -> f64 {
    let single: f64 = (1..=n.min(SINGLE_TERMS)).map(|i| pow(i as f64, -theta)).sum();
    if n <= SINGLE_TERMS {
        return single;
    }
    // add the terms after m, up to n; `single` contains the terms up to m
    let (m, n) = (SINGLE_TERMS as f64, n as f64);
    let (at_m, at_n) = (pow(m, -theta), pow(n, -theta));
    let integral = (n * at_n - m * at_m) / (1.0 - theta);
    let slopes = theta * (at_m / m - at_n / n) / 12.0;
    single + integral + (at_n - at_m) / 2.0 + slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harmonic_sum_is_that_of_single_terms() {
        for theta in [0.2, 0.99, 1.2, 2.5] {
            for n in [1, 999, 1000, 1001, 100_000] {
                let exact: f64 = (1..=n).rev().map(|i| (i as f64).powf(-theta)).sum();
                let got = harmonic(n, theta);
                assert!((got / exact - 1.0).abs() < 1e-11, "{n} {theta}: {got} {exact}");
            }
        }
    }
}
