//! Evenness of the arrivals of requests.

use flashatlas_types::Ps;

/// A window: one second.
const WINDOW_PS: u64 = 1_000_000_000_000;

/// Numbers of arrivals in windows of a second, from the first record to the window of the latest.
///
/// Windows without requests count too, and the last window counts as a whole window. A record with
/// an earlier time than one before it counts in the latest window.
#[derive(Clone, Default, Debug)]
pub(super) struct Bursts {
    /// Window that is being counted.
    window: u64,
    /// Number of requests in this window.
    count: u64,
    /// Sum of the squares of the counts of the windows before.
    squares: f64,
    /// Largest count of the windows before.
    peak: u64,
    requests: u64,
}

impl Bursts {
    pub fn add(&mut self, at: Ps) {
        let window = at.0 / WINDOW_PS;
        if window > self.window {
            self.close();
            self.window = window;
        }
        self.count += 1;
        self.requests += 1;
    }

    fn close(&mut self) {
        self.squares += (self.count as f64).powi(2);
        self.peak = self.peak.max(self.count);
        self.count = 0;
    }

    fn windows(&self) -> f64 {
        self.window as f64 + 1.0
    }

    fn mean(&self) -> f64 {
        self.requests as f64 / self.windows()
    }

    /// Returns the index of dispersion of counts: the variance of the counts over their mean. It is
    /// 0 if every second has the same number of requests, 1 for a Poisson process, and more for
    /// bursts. It is 0 if there are no requests.
    pub fn dispersion(&self) -> f64 {
        let (mean, last) = (self.mean(), (self.count as f64).powi(2));
        if mean == 0.0 {
            return 0.0;
        }
        let variance = (self.squares + last) / self.windows() - mean * mean;
        variance.max(0.0) / mean
    }

    /// Returns the largest count over the mean; 0 if there are no requests.
    pub fn peak_to_mean(&self) -> f64 {
        let peak = self.peak.max(self.count) as f64;
        if peak == 0.0 { 0.0 } else { peak / self.mean() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(times_ms: &[u64]) -> (f64, f64) {
        let mut bursts = Bursts::default();
        times_ms.iter().for_each(|&ms| bursts.add(Ps(ms * 1_000_000_000)));
        (bursts.dispersion(), bursts.peak_to_mean())
    }

    #[test]
    fn windows_by_hand() {
        // counts 3, 0, 1: mean 4/3, variance (9 + 0 + 1) / 3 - 16/9 = 14/9
        let (dispersion, peak) = bursts(&[0, 1, 999, 2500]);
        assert!((dispersion - 14.0 / 12.0).abs() < 1e-12, "{dispersion}");
        assert_eq!(peak, 2.25);
        assert_eq!(bursts(&[0, 1000, 2000, 3000]), (0.0, 1.0), "one in each second");
        // the early record counts in the second window: 1, 2
        assert_eq!(bursts(&[0, 1500, 200]).1, 2.0 / 1.5);
        assert_eq!(bursts(&[]), (0.0, 0.0));
    }
}
