//! The steady state of collection under uniform random writes, computed without a simulation.
//!
//! A lane has `n` closed blocks of `b` slots, and `valid` of these slots are valid. Under writes
//! that hit every logical page equally often, every valid slot is equally likely to be overwritten
//! next. For a policy that picks by valid counts, let `s_i` be the share of blocks with at most `i`
//! valid slots. Let `c(s)` be the chance that the victim is among the share `s` of blocks with the
//! fewest valid slots. In the steady state, blocks fall from `i + 1` to `i` valid slots as often as
//! victims with at most `i` valid slots are collected:
//!
//! `(E n / valid) (i + 1) (s_{i+1} - s_i) = c(s_i)`,
//!
//! where `E` is the mean number of invalid slots of a victim (B. Van Houdt, "A Mean Field Model for
//! a Class of Garbage Collection Algorithms in Flash-based Solid State Drives", SIGMETRICS 2013,
//! section 5). `E` has the value with which the mean of the distribution is `valid / n`. Under
//! first in, first out, the ages of the blocks are evenly spaced. The probability that a slot is
//! still valid falls exponentially with the age of its block (P. Desnoyers, "Analytic Modeling of
//! SSD Write Performance", SYSTOR 2012, section 3).

use crate::binomial::{binomial, power};
use flashatlas_types::{Params, Rng};

/// A victim policy's steady state.
#[derive(Clone, Copy)]
pub enum Steady {
    /// The policy uses only valid counts. The function returns the chance that the victim is among
    /// the given share of blocks with the fewest valid slots. It receives that share and the number
    /// of blocks.
    ByValid(fn(share: f64, params: &Params, blocks: u32) -> Chance),
    /// The policy takes the block that was closed first.
    ByAge,
}

/// The chance that a victim is in a share of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    /// The chance, from 0 to 1. It rises with the share, from 0 at 0 to 1 at 1.
    pub value: f64,
    /// The derivative of the chance with respect to the share. The equations are solved with it.
    pub slope: f64,
}

/// Returns the chance that the best of `draws` random blocks is in the share `share` of blocks with
/// the fewest valid slots. Blocks are drawn with replacement.
///
/// # Panics
/// Panics if `draws` is zero.
pub fn best_of(draws: u32, share: f64) -> Chance {
    assert!(draws > 0, "the best of no blocks");
    let outside = power(1.0 - share, draws - 1);
    Chance { value: 1.0 - outside * (1.0 - share), slope: f64::from(draws) * outside }
}

/// Returns the root between `low` and `high` of an increasing function, by Newton's method.
///
/// `f` returns the value of the function and its slope. The first value is the value at `start`. A
/// step that leaves the bounds of the root is replaced by a bisection, so a wrong slope costs only
/// time.
fn root(mut low: f64, start: f64, mut high: f64, mut f: impl FnMut(f64) -> (f64, f64)) -> f64 {
    let mut at = start;
    for _ in 0..100 {
        let (value, slope) = f(at);
        if value < 0.0 {
            low = at
        } else {
            high = at
        }
        let next = at - value / slope;
        if (next - at).abs() <= 1e-13 * at {
            return next; // the error of the next step would be the square of the error of this step
        }
        at = if low < next && next < high { next } else { (low + high) / 2.0 };
    }
    at
}

/// The steady state of all lanes with the same shape.
pub struct Lane {
    blocks: u32,
    slots: u32,
    valid: u64,
    model: Model,
}

enum Model {
    /// The number of valid slots of each block, oldest first.
    Counts(Vec<u32>),
    /// The rate `r`. Each time a block is closed, the share of slots that survive is multiplied by
    /// `e^-r`.
    Decay(f64),
}

impl Lane {
    /// Solves the model for `blocks` closed blocks of `slots` slots each, with `valid` valid slots
    /// in all.
    ///
    /// # Panics
    /// Panics if the blocks have fewer slots than `valid`.
    pub fn new(steady: Steady, params: &Params, blocks: u32, slots: u32, valid: u64) -> Lane {
        assert!(
            valid <= u64::from(blocks) * u64::from(slots),
            "{valid} valid slots in {blocks} blocks of {slots}"
        );
        let model = match steady {
            Steady::ByValid(chance) => {
                Model::Counts(by_valid(|s| chance(s, params, blocks), blocks, slots, valid))
            }
            Steady::ByAge => Model::Decay(decay(blocks, slots, valid)),
        };
        Lane { blocks, slots, valid, model }
    }

    /// Draws the number of valid slots of each block of a lane, in the order in which the blocks
    /// were closed. The sum of the numbers is exactly `valid`.
    pub fn draw(&self, rng: &mut Rng) -> Vec<u32> {
        let mut counts = match &self.model {
            Model::Counts(counts) => counts.clone(),
            Model::Decay(rate) => survivors(*rate, self.blocks, self.slots, rng),
        };
        let (places, slots, valid) = (counts.len(), self.slots, self.valid);
        // rounding and chance make the sum slightly wrong: random blocks are changed by one each
        let mut sum: u64 = counts.iter().map(|&c| u64::from(c)).sum();
        while sum != valid {
            let count = &mut counts[rng.place(places)];
            if sum < valid && *count < slots {
                (*count, sum) = (*count + 1, sum + 1);
            } else if sum > valid && *count > 0 {
                (*count, sum) = (*count - 1, sum - 1);
            }
        }
        counts
    }
}

/// Returns quantiles of the mean-field distribution, the fewest valid slots first, because a block
/// with few valid slots was closed long ago.
fn by_valid(chance: impl Fn(f64) -> Chance, blocks: u32, slots: u32, valid: u64) -> Vec<u32> {
    if valid == 0 {
        return vec![0; blocks as usize];
    }
    let (n, b) = (f64::from(blocks), slots as usize);
    let mean = valid as f64 / n;
    let mut s = vec![1.0; b + 1];
    // solves the equations for this `E`, and returns the mean minus the mean of the distribution,
    // with its slope; the distribution's mean is the sum over i < b of 1 - s_i
    let mut solve = |e: f64| {
        let (mut held, mut rise, mut sum) = (0.0, 0.0, 0.0);
        for i in (0..b).rev() {
            let (per_e, upper) = ((i + 1) as f64 / mean, s[i + 1]);
            let rate = e * per_e;
            let excess = |x: f64| {
                let chance = chance(x);
                (chance.value - rate * (upper - x), chance.slope + rate)
            };
            // no chance is above 1
            let low = (upper - 1.0 / rate).max(0.0);
            s[i] = root(low, low, upper, excess);
            // the derivative of s_i with respect to E
            rise = (per_e * (upper - s[i]) + rate * rise) / (chance(s[i]).slope + rate);
            (held, sum) = (held + (1.0 - s[i]), sum + rise);
        }
        (mean - held, sum)
    };
    // the mean victim of a random policy has `b - mean` invalid slots
    let (low, high) = (1e-9, f64::from(slots));
    let e = root(low, (high - mean).max(low), high, &mut solve);
    solve(e);
    let quantile = |k: u32| s.partition_point(|&share| share < (f64::from(k) + 0.5) / n) as u32;
    (0..blocks).map(|k| quantile(k).min(slots)).collect()
}

/// Returns the age of block `k`, counted from the oldest, in blocks that were closed since.
fn age(blocks: u32, k: u32) -> f64 {
    f64::from(blocks - k) - 0.5
}

/// Returns the share of slots that are still valid in block `k`, counted from the oldest. Each
/// closed block multiplies the share by `e^-rate`.
fn survival(rate: f64, blocks: u32, k: u32) -> f64 {
    exp(-rate * age(blocks, k))
}

/// Returns the rate of decay with which all blocks together have `valid` valid slots.
fn decay(blocks: u32, slots: u32, valid: u64) -> f64 {
    let excess = |rate: f64| {
        let (mut held, mut fall) = (0.0, 0.0);
        for k in 0..blocks {
            let share = survival(rate, blocks, k);
            (held, fall) = (held + share, fall + age(blocks, k) * share);
        }
        let slots = f64::from(slots);
        (valid as f64 - held * slots, fall * slots)
    };
    root(0.0, 0.0, 1.0, excess)
}

/// Draws the survivors of each block.
fn survivors(rate: f64, blocks: u32, slots: u32, rng: &mut Rng) -> Vec<u32> {
    (0..blocks).map(|k| binomial(slots, survival(rate, blocks, k), rng)).collect()
}

/// Returns `e^x` for `x <= 0`, the same on every machine. The function of the standard library may
/// differ in the last bit.
fn exp(x: f64) -> f64 {
    // e^x = (e^(x / 2^k))^(2^k); the series converges fast for the small exponent
    let halvings = 20;
    let small = x / f64::from(1u32 << halvings);
    let mut result = 1.0 + small + small * small / 2.0 + small * small * small / 6.0;
    for _ in 0..halvings {
        result *= result;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::victims::VICTIMS;
    use flashatlas_types::{Entries, ParamDef, RawConfig, Seed};

    fn counts(policy: &str, d: u32, blocks: u32, slots: u32, rho: f64) -> Vec<u32> {
        let victim = Entries::of(VICTIMS).named(policy).unwrap();
        let mut raw = RawConfig::default();
        if policy == "d-choices" {
            raw.set("ftl.d", &d.to_string(), "test");
        }
        let defs: Vec<&'static ParamDef> = victim.params.iter().collect();
        let params = raw.resolve(&defs, |_| None).unwrap();
        let valid = (rho * f64::from(blocks) * f64::from(slots)) as u64;
        Lane::new(victim.steady.unwrap(), &params, blocks, slots, valid)
            .draw(&mut Rng::stream(Seed(7), "steady"))
    }

    /// Solves the equations by bisection alone, without a slope and without a guess.
    fn by_bisection(chance: impl Fn(f64) -> f64, blocks: u32, slots: u32, valid: u64) -> Vec<u32> {
        let bisect = |mut low: f64, mut high: f64, f: &dyn Fn(f64) -> f64| {
            for _ in 0..100 {
                let middle = (low + high) / 2.0;
                if middle == low || middle == high {
                    break; // no number lies between the bounds
                }
                if f(middle) < 0.0 { low = middle } else { high = middle }
            }
            (low + high) / 2.0
        };
        let (n, b) = (f64::from(blocks), slots as usize);
        let mean = valid as f64 / n;
        let shares = |e: f64| {
            let mut s = vec![1.0; b + 1];
            for i in (0..b).rev() {
                let (rate, upper) = (e / mean * (i + 1) as f64, s[i + 1]);
                s[i] = bisect(0.0, upper, &|x| chance(x) - rate * (upper - x));
            }
            s
        };
        // the distribution's mean is the sum over i < b of 1 - s_i, and it falls as E grows
        let excess = |e: f64| mean - shares(e)[..b].iter().map(|s| 1.0 - s).sum::<f64>();
        let s = shares(bisect(1e-9, slots.into(), &excess));
        let quantile = |k: u32| s.partition_point(|&share| share < (f64::from(k) + 0.5) / n);
        (0..blocks).map(|k| (quantile(k) as u32).min(slots)).collect()
    }

    #[test]
    fn newton_finds_the_counts_that_bisection_finds() {
        let mut rng = Rng::stream(Seed(1), "shapes");
        for _ in 0..60 {
            let (blocks, slots) = (2 + rng.below(1500) as u32, 1 + rng.below(150) as u32);
            let all = u64::from(blocks) * u64::from(slots);
            let valid = all / 3 + rng.below(all * 2 / 3 + 1);
            let draws = [1, 2, 10, blocks][rng.place(4)];
            let newton = by_valid(|s| best_of(draws, s), blocks, slots, valid);
            let bisection = by_bisection(|s| 1.0 - power(1.0 - s, draws), blocks, slots, valid);
            assert_eq!(newton, bisection, "{valid} in {blocks} of {slots}, best of {draws}");
        }
    }

    #[test]
    fn a_chance_has_its_slope() {
        for (draws, share) in [(1, 0.3), (2, 0.5), (10, 0.0), (900, 0.001)] {
            let (low, high) = (best_of(draws, share - 1e-7), best_of(draws, share + 1e-7));
            let Chance { value, slope } = best_of(draws, share);
            assert!(low.value < value && value < high.value);
            let found = (high.value - low.value) / 2e-7;
            assert!((found / slope - 1.0).abs() < 1e-4, "{draws} {share}: {found} {slope}");
        }
    }

    #[test]
    fn the_sum_is_exact_and_no_block_overflows() {
        for policy in ["greedy", "fifo", "random", "d-choices"] {
            for (blocks, slots, rho) in
                [(3, 4, 0.5), (100, 64, 0.9), (2000, 128, 0.7), (10, 8, 1.0)]
            {
                let counts = counts(policy, 5, blocks, slots, rho);
                let valid = (rho * f64::from(blocks) * f64::from(slots)) as u64;
                assert_eq!(counts.iter().map(|&c| u64::from(c)).sum::<u64>(), valid, "{policy}");
                assert!(
                    counts.len() as u32 == blocks && counts.iter().all(|&c| c <= slots),
                    "{policy}"
                );
            }
        }
    }

    /// Random victims are mean blocks: `A = b / (b - mean) = 1 / (1 - rho)`. For fifo the victim is
    /// the oldest block: `A = a / (a + W0(-a e^-a))` with `a = 1 / rho` is 2.6926 at 0.8
    /// (Desnoyers).
    #[test]
    fn the_oldest_blocks_are_those_that_the_models_collect() {
        let fifo = counts("fifo", 0, 4000, 64, 0.8);
        let victim = fifo[..400].iter().sum::<u32>() as f64 / 400.0;
        // in the oldest tenth of the blocks, the survival rises from x = 1 - 1/A to x^0.9
        let x: f64 = 1.0 - 1.0 / 2.6926;
        let expected = 64.0 * (x.powf(0.9) - x) / (0.1 * -x.ln());
        assert!((victim - expected).abs() < 0.5, "{victim} {expected}");
        // greedy at rho 0.8 and b 64: A = 2.5982, so the victim has 64 (1 - 1/A) = 39.37 valid
        // slots, and no block has fewer
        let greedy = counts("greedy", 0, 4000, 64, 0.8);
        assert!((38..=40).contains(&greedy[0]), "{}", greedy[0]);
        assert!(
            greedy.windows(2).filter(|w| w[0] > w[1]).count() < 40,
            "the counts ascend, except for a few that were changed by one"
        );
    }
}
