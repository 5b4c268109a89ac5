//! Zipf's law: the slot of rank `k` is chosen with a probability proportional to `k^-theta`.
//!
//! Ranks are drawn by rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to
//! generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996): exact, in
//! constant time and memory, for any number of slots and any `theta` from 0 (uniform) on. The
//! integral of the law over `k ± ½` bounds its value at `k`; a point under the integral is drawn by
//! inversion, and rejected when it lies above the law, which is rare.
//!
//! Ranks are then scattered over the range by a bijection that depends on the number of slots only,
//! so that the neighbours of a hot slot are no hotter than other slots. With `scatter=false` rank 1
//! is the first slot, rank 2 the second, and so on.

use super::GeneratorDef;
use super::common::{Pattern, SIZE, Slots, source, with_common};
use super::math::{exp, exp_minus_1_over, ln, ln_plus_1_over};
use flashatlas_types::{Param, Rng};

const THETA: Param<f64> = Param::ratio(
    "theta",
    0.0,
    10.0,
    "exponent of the law: 0 is uniform, 0.99 the customary skew of key-value loads",
)
.or("0.99");

const SCATTER: Param<bool> = Param::flag(
    "scatter",
    "true: the ranks are spread over the range; false: the most frequent addresses are at the \
     start of the range, in order",
)
.or("true");

pub(super) const GENERATOR: GeneratorDef = GeneratorDef {
    name: "zipf",
    summary: "random requests, skewed by Zipf's law",
    params: &with_common::<3, 9>([SIZE.def, THETA.def, SCATTER.def]),
    serial: false,
    build: |params, capacity, seed| {
        let slots = Slots::of(params, capacity)?;
        let scatter = params.get(SCATTER).then(|| Scatter::over(slots.count));
        let law = ZipfSampler::new(slots.count, params.get(THETA));
        source(Zipf { slots, law, scatter }, params, seed)
    },
};

/// Maximum number of turns of the sampler in a draw. A turn is accepted with a probability above
/// one half, so all turns of a draw fail with a probability below `2^-64`. Such a draw returns the
/// most frequent rank.
const MAX_TURNS: u32 = 64;

struct Zipf {
    slots: Slots,
    law: ZipfSampler,
    scatter: Option<Scatter>,
}

impl Pattern for Zipf {
    fn next(&mut self, rng: &mut Rng) -> (u64, u32) {
        let rank = self.law.draw(rng) - 1;
        self.slots.place(self.scatter.as_ref().map_or(rank, |s| s.place(rank)))
    }
}

/// Sampler of the law on `1..=n`.
struct ZipfSampler {
    n: u64,
    theta: f64,
    /// Integral from 1 to 1½, less the law at 1. The area of rank 1 begins here, so that this area
    /// equals the law at 1.
    low: f64,
    /// Integral from 1 to `n + ½`.
    high: f64,
    /// Distance below a rank within which every point is accepted. This saves most evaluations of
    /// the law.
    sure: f64,
}

impl ZipfSampler {
    fn new(n: u64, theta: f64) -> ZipfSampler {
        let mut law = ZipfSampler { n, theta, low: 0.0, high: 0.0, sure: 0.0 };
        law.low = law.integral(1.5) - 1.0;
        law.high = law.integral(n as f64 + 0.5);
        law.sure = 2.0 - law.inverse(law.integral(2.5) - law.at(2.0));
        law
    }

    /// Returns `x^-theta`.
    fn at(&self, x: f64) -> f64 {
        exp(-self.theta * ln(x))
    }

    /// Returns the integral of the law from 1 to `x`: `(x^(1-theta) - 1) / (1 - theta)`, or `ln x`
    /// if `theta` is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = ln(x);
        exp_minus_1_over((1.0 - self.theta) * log) * log
    }

    /// Returns the `x` whose integral is `y`.
    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0 + f64::EPSILON);
        exp(ln_plus_1_over(t) * y)
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        for _ in 0..MAX_TURNS {
            let y = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(y);
            let k = ((x + 0.5) as u64).clamp(1, self.n);
            let rank = k as f64;
            if rank - x <= self.sure || y >= self.integral(rank + 0.5) - self.at(rank) {
                return k;
            }
        }
        1
    }
}

/// Bijection of `0..count`. Rounds of multiplication and xor-shift permute the next power of two; a
/// number that falls outside is permuted again until it is inside.
struct Scatter {
    count: u64,
    mask: u64,
    shift: u32,
}

impl Scatter {
    fn over(count: u64) -> Scatter {
        let bits = (64 - (count - 1).leading_zeros()).max(1);
        Scatter { count, mask: u64::MAX >> (64 - bits), shift: bits.div_ceil(2) }
    }

    fn place(&self, rank: u64) -> u64 {
        let mut x = rank;
        // the loop ends, because an orbit of a permutation returns to `rank`, which is inside; the
        // loop takes fewer than two turns on average
        loop {
            for odd in [0x9e37_79b9_7f4a_7c15_u64, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
                x = x.wrapping_add(odd >> 32).wrapping_mul(odd) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.count {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::Seed;

    #[test]
    fn scatter_is_a_bijection_and_scatters() {
        for count in [1, 2, 3, 7, 8, 9, 1000, 4097] {
            let scatter = Scatter::over(count);
            let mut places: Vec<u64> = (0..count).map(|rank| scatter.place(rank)).collect();
            let neighbours = places.windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count();
            assert!(
                count < 1000 || neighbours < 10,
                "{neighbours} of {count} ranks have neighbours side by side"
            );
            places.sort_unstable();
            assert!(places.iter().copied().eq(0..count), "{count}");
        }
        assert!(Scatter::over(u64::MAX).place(12345) < u64::MAX);
    }

    #[test]
    fn the_inverse_inverts() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.01, 2.0, 10.0] {
            let law = ZipfSampler::new(1 << 40, theta);
            for x in [1.0, 1.7, 3.0, 12.5] {
                let back = law.inverse(law.integral(x));
                assert!((back - x).abs() < 1e-4 * x, "theta {theta}: {x} came back as {back}");
            }
        }
    }

    #[test]
    fn frequencies_follow_the_law() {
        const DRAWS: u32 = 200_000;
        for (n, theta) in [
            (100, 0.0),
            (100, 0.5),
            (100, 0.99),
            (100, 1.0),
            (1000, 1.5),
            (10, 4.0),
            (1, 0.99),
            (2, 0.99),
        ] {
            let law = ZipfSampler::new(n, theta);
            let mut rng = Rng::stream(Seed(3), "zipf");
            let mut counts = vec![0u32; n as usize];
            for _ in 0..DRAWS {
                counts[law.draw(&mut rng) as usize - 1] += 1;
            }
            let total: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for (k, &count) in (1..=n).zip(&counts) {
                let p = (k as f64).powf(-theta) / total;
                let (mean, sigma) =
                    (p * f64::from(DRAWS), (p * (1.0 - p) * f64::from(DRAWS)).sqrt());
                let off = (f64::from(count) - mean).abs();
                assert!(
                    off <= 5.0 * sigma + 1.0,
                    "n {n} theta {theta} rank {k}: {count} drawn, {mean:.1} expected"
                );
            }
        }
    }
}
