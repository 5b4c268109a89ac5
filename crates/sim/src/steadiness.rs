//! The project's criterion of a steady state for a measured part.
//!
//! The measured part is cut into [`ROUNDS`] rounds of equally many requests. A quantity is steady
//! if its rounds meet the definition of the SNIA Solid State Storage Performance Test Specification
//! (version 2.0.2, "steady state"). By this definition, the largest and the smallest round differ
//! by at most 20 % of the mean. The straight line that fits the rounds best rises or falls by at
//! most 10 % of the mean. The specification tracks a drive until five rounds in a row pass. Here
//! the five rounds are the whole measured part, because that is what a run record reports.
//!
//! Rounds alone would accept a drive that has not begun to collect, because all its rounds are
//! equally fast. So programmed and erased pages must balance as well ([`imbalance`]).

use crate::notes::{FREE_BLOCKS_CHANGE, IOPS_UNSTEADY, NOTHING_PROGRAMMED, WAF_UNSTEADY};
use flashatlas_nand::Counters;
use flashatlas_types::{Layout, Note, NoteDef};
use serde_json::{Map, Value, json};

/// Number of rounds of the measured part.
pub const ROUNDS: usize = 5;
/// Largest difference between two rounds, as a share of their mean.
pub const RANGE_MAX: f64 = 0.20;
/// Largest rise or fall of the fitted line from the first round to the last, as a share of the
/// mean.
pub const TREND_MAX: f64 = 0.10;
/// Largest difference between inflow and outflow, as a share of the inflow. The specification has
/// no such rule; the bound is the same as for a trend.
pub const IMBALANCE_MAX: f64 = 0.10;

/// Differences between rounds, as shares of their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Largest round less the smallest.
    pub range: f64,
    /// Rise (positive) or fall of the least-squares line from the first round to the last.
    pub trend: f64,
}

impl Spread {
    /// Returns the spread of five rounds; it is 0 if all rounds are 0.
    pub fn of(rounds: &[f64; ROUNDS]) -> Spread {
        let mean = rounds.iter().sum::<f64>() / ROUNDS as f64;
        if mean == 0.0 {
            return Spread { range: 0.0, trend: 0.0 };
        }
        let largest = rounds.iter().copied().fold(f64::MIN, f64::max);
        let smallest = rounds.iter().copied().fold(f64::MAX, f64::min);
        let rise = slope(rounds) * (ROUNDS - 1) as f64;
        Spread { range: (largest - smallest) / mean, trend: rise / mean }
    }

    /// Returns `true` if range and trend are within their bounds.
    pub fn is_steady(self) -> bool {
        self.range <= RANGE_MAX && self.trend.abs() <= TREND_MAX
    }
}

/// Returns the rise of the least-squares line from one value to the next, for at least two values.
pub fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let along = |i: usize| i as f64 - middle;
    values.iter().enumerate().map(|(i, y)| along(i) * y).sum::<f64>()
        / (0..values.len()).map(|i| along(i) * along(i)).sum::<f64>()
}

/// Returns the inflow `came` less the outflow `went`, as a share of `came`; `None` if `came` is 0.
///
/// For example, `came` counts pages programmed, and `went` pages erased. A drive that programs more
/// pages than it erases uses up its free blocks.
pub fn imbalance(came: u64, went: u64) -> Option<f64> {
    (came > 0).then(|| (came as f64 - went as f64) / came as f64)
}

/// Counts of a drive's work since some start.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Count {
    /// Picoseconds that have passed, or requests if no time passes.
    pub clock: u64,
    /// Number of requests of the host.
    pub requests: u64,
    /// Bytes that the host wrote.
    pub written: u64,
    /// Physical pages programmed.
    pub programmed: u64,
    /// Pages of the blocks that were erased.
    pub erased: u64,
}

impl Count {
    /// Returns the counts of drives of this layout at `clock`.
    pub fn of(
        layout: &Layout,
        counters: &Counters,
        clock: u64,
        requests: u64,
        written: u64,
    ) -> Count {
        let block_pages = u64::from(layout.geometry.pages);
        Count {
            clock,
            requests,
            written,
            programmed: Counters::total(&counters.programs),
            erased: Counters::total(&counters.erases) * block_pages,
        }
    }
}

/// Work of a drive in five rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rounds {
    /// The name of the rounds, such as `fifths of the run`.
    pub of: &'static str,
    /// Requests a second in each round; `None` if time shows nothing about the drive.
    pub iops: Option<[f64; ROUNDS]>,
    /// Bytes written in each round.
    pub written: [f64; ROUNDS],
    /// Bytes of the pages programmed in each round.
    pub programmed: [f64; ROUNDS],
    /// Pages programmed in all rounds.
    pub programmed_pages: u64,
    /// Pages of the blocks erased in all rounds.
    pub erased_pages: u64,
}

/// Reasons against a steady state.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Verdict {
    /// The reasons as notes; empty for a steady state.
    pub reasons: Vec<Note>,
    /// The quantities that were judged, by their keys in the run record.
    pub judged: Vec<(&'static str, [f64; ROUNDS])>,
}

impl Rounds {
    /// Judges throughput, write amplification and the balance of programs and erases.
    pub fn judge(&self) -> Verdict {
        let mut verdict = Verdict::default();
        // rates are not finite if no time passed in a round
        if let Some(iops) = self.iops.filter(|iops| iops.iter().all(|x| x.is_finite())) {
            verdict.add("iops", &IOPS_UNSTEADY, self.of, iops);
        }
        if self.written.iter().all(|&bytes| bytes > 0.0) {
            let waf = std::array::from_fn(|i| self.programmed[i] / self.written[i]);
            verdict.add("waf", &WAF_UNSTEADY, self.of, waf);
        }
        // a read-only run may be steady, but not a run whose writes never reached the flash
        let written: f64 = self.written.iter().sum();
        if written > 0.0 && self.programmed_pages == 0 {
            verdict.reasons.push(NOTHING_PROGRAMMED.with([("written", (written as u64).into())]));
        }
        if let Some(share) = imbalance(self.programmed_pages, self.erased_pages)
            .filter(|share| share.abs() > IMBALANCE_MAX)
        {
            verdict.reasons.push(FREE_BLOCKS_CHANGE.with([
                ("programmed", self.programmed_pages.into()),
                ("erased", self.erased_pages.into()),
                ("share", (100.0 * share).into()),
                ("most", (100.0 * IMBALANCE_MAX).into()),
            ]));
        }
        verdict
    }
}

impl Verdict {
    /// Returns the judged quantities, for the run record.
    pub fn rounds(&self) -> Map<String, Value> {
        self.judged.iter().map(|(key, rounds)| ((*key).to_owned(), json!(rounds))).collect()
    }

    fn add(&mut self, key: &'static str, note: &NoteDef, of: &str, values: [f64; ROUNDS]) {
        let spread = Spread::of(&values);
        if !spread.is_steady() {
            self.reasons.push(note.with([
                ("of", of.into()),
                ("rounds", values.map(short).join(", ").into()),
                ("range", (100.0 * spread.range).into()),
                ("range_max", (100.0 * RANGE_MAX).into()),
                ("trend", (100.0 * spread.trend).into()),
                ("trend_max", (100.0 * TREND_MAX).into()),
            ]));
        }
        self.judged.push((key, values));
    }
}

/// Formats a number with three significant digits and no exponent.
fn short(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    format!("{value:.*}", digits.max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Rng, Seed};

    #[test]
    fn the_spread_of_rounds_by_hand() {
        // the mean is 10, and the range is 12 - 9 = 3; the line rises by sum (i - 2) y / 10 = (-18
        // - 10 + 10 + 24) / 10 = 0.6 a round
        let spread = Spread::of(&[9.0, 10.0, 9.0, 10.0, 12.0]);
        assert!((spread.range - 0.3).abs() < 1e-12);
        assert!((spread.trend - 0.24).abs() < 1e-12);
        assert!(!spread.is_steady());
        let falling = Spread::of(&[12.0, 10.0, 9.0, 10.0, 9.0]);
        assert!((falling.trend + 0.24).abs() < 1e-12);
        assert!(Spread::of(&[10.0, 11.0, 9.0, 11.0, 10.0]).is_steady());
        // a range within the bound and a trend beyond it: 9.1 to 10.9 in equal steps
        let drift = Spread::of(&[9.1, 9.55, 10.0, 10.45, 10.9]);
        assert!(drift.range < RANGE_MAX && !drift.is_steady());
        // a range beyond the bound without a trend
        let peak = Spread::of(&[9.5, 9.5, 12.0, 9.5, 9.5]);
        assert!(peak.trend.abs() < 1e-12 && !peak.is_steady());
        assert_eq!(Spread::of(&[0.0; 5]), Spread { range: 0.0, trend: 0.0 });
    }

    fn reasons(written: f64, programmed: u64, erased: u64) -> Vec<String> {
        let rounds = Rounds {
            of: "fifths of the run",
            iops: Some([10.0; ROUNDS]),
            written: [written; ROUNDS],
            programmed: [programmed as f64 * 4096.0 / 5.0; ROUNDS],
            programmed_pages: programmed,
            erased_pages: erased,
        };
        rounds.judge().reasons.iter().map(|note| note.code.to_string()).collect()
    }

    #[test]
    fn writes_that_never_reach_the_flash_are_no_steady_state() {
        // five equal rounds of no work: range and trend are 0
        assert_eq!(reasons(4096.0, 0, 0), ["nothing-programmed"]);
        // erases alone (of blocks that were written before) are no steady state, either
        assert_eq!(reasons(4096.0, 0, 50), ["nothing-programmed"]);
        assert_eq!(reasons(0.0, 0, 0), [""; 0], "reads alone");
        assert_eq!(reasons(4096.0, 50, 50), [""; 0]);
        assert_eq!(reasons(4096.0, 50, 0), ["free-blocks-change"]);
    }

    #[test]
    fn flows_that_do_not_balance() {
        assert_eq!(imbalance(0, 7), None);
        assert_eq!(imbalance(200, 100), Some(0.5));
        assert_eq!(imbalance(100, 120), Some(-0.2));
    }

    /// Returns the share of false alarms among independent rounds of equal mean.
    ///
    /// The standard deviation of the rounds is `noise` of the mean; each round is a sum of twelve
    /// uniform numbers, which is nearly normal.
    fn false_alarms(noise: f64) -> f64 {
        const SERIES: u32 = 20_000;
        let mut rng = Rng::stream(Seed(1), "steadiness");
        let mut round = || 1.0 + noise * ((0..12).map(|_| rng.unit()).sum::<f64>() - 6.0);
        let alarm = |_: &u32| !Spread::of(&std::array::from_fn(|_| round())).is_steady();
        (0..SERIES).filter(alarm).count() as f64 / f64::from(SERIES)
    }

    /// The probabilities follow from normally distributed rounds.
    ///
    /// Let s be the standard deviation of a round. The trend has a standard deviation of 4 s /
    /// sqrt(10), and the range of five rounds exceeds 4 s with a probability of 0.039. So an alarm
    /// is mostly a trend beyond its bound: 3.95 standard deviations of the trend with 2 % of noise
    /// (1 in 10,000), 2.64 with 3 % (0.8 %), and 1.58 with 5 % (11 %).
    #[test]
    fn false_alarms_on_stationary_series() {
        assert!(false_alarms(0.02) <= 0.001);
        let three = false_alarms(0.03);
        assert!((0.004..0.013).contains(&three), "{three}");
        let five = false_alarms(0.05);
        assert!((0.10..0.15).contains(&five), "{five}");
    }
}
