//! Weights by value: every value up to 64 has a bin, and each doubling above has 16.

const EXACT: u64 = 64;
const PER_DOUBLING: u64 = 16;

/// Weights by value.
#[derive(Clone, Default, Debug)]
pub struct LogBins {
    weights: Vec<f64>,
}

impl LogBins {
    /// Adds a weight to the bin of a value.
    pub fn add(&mut self, value: u64, weight: f64) {
        let bin = bin(value);
        if self.weights.len() <= bin {
            self.weights.resize(bin + 1, 0.0);
        }
        self.weights[bin] += weight;
    }

    /// Multiplies every weight by `by`.
    pub fn scale(&mut self, by: f64) {
        self.weights.iter_mut().for_each(|weight| *weight *= by);
    }

    /// Returns the sum of all weights.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Returns the largest value of each bin that is not empty, with the weight of the bin, in
    /// ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let bins = self.weights.iter().enumerate();
        bins.filter(|(_, weight)| **weight > 0.0).map(|(bin, &weight)| (largest(bin), weight))
    }
}

fn bin(value: u64) -> usize {
    if value <= EXACT {
        return value as usize;
    }
    // a bin includes its largest value: 65 to 68 share the first bin above 64
    let below = value - 1;
    let doubling = u64::from(below.ilog2() - EXACT.ilog2());
    let within = (below >> (below.ilog2() - PER_DOUBLING.ilog2())) - PER_DOUBLING;
    (EXACT + 1 + doubling * PER_DOUBLING + within) as usize
}

fn largest(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin <= EXACT {
        return bin;
    }
    let (doubling, within) = ((bin - EXACT - 1) / PER_DOUBLING, (bin - EXACT - 1) % PER_DOUBLING);
    let width = (EXACT << doubling) / PER_DOUBLING;
    (EXACT << doubling) + (within + 1) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_ends_at_its_largest_value() {
        for value in (0..2_000).chain([1 << 20, (1 << 20) + 1, 1 << 40, (1 << 40) + 1]) {
            let (here, end) = (bin(value), largest(bin(value)));
            assert!(end >= value && (value == 0 || end as f64 <= value as f64 * 1.07), "{value}");
            assert_eq!((bin(end), bin(end + 1)), (here, here + 1), "{value}");
        }
    }
}
