//! `steadystate`: the rule by which fio ends a job whose rates have settled.

use super::value::{Arg, one_of};
use flashatlas_types::Dur;

/// Quantity that fio measures in each interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measured {
    /// Completed requests a second.
    Iops,
    /// Completed bytes a second.
    Bandwidth,
    /// Mean completion latency, in nanoseconds.
    Latency,
}

/// The criterion of `steadystate`, such as `iops_slope:0.3%`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Criterion {
    /// Quantity that is measured.
    pub measured: Measured,
    /// `true` if the slope of the fitted line is judged, in change per interval. Otherwise the
    /// largest distance of a measurement from the mean is judged.
    pub slope: bool,
    /// Limit below which the job has settled.
    pub limit: f64,
    /// `true` if the limit is a percentage of the mean.
    pub percent: bool,
}

/// Rule that decides when a job has settled: `steadystate` and its related options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settling {
    /// `steadystate`.
    pub criterion: Criterion,
    /// `steadystate_duration`: length of the window that is judged; with zero, no window is judged.
    pub window: Dur,
    /// `steadystate_ramp_time`: time before the first measurement.
    pub ramp: Dur,
    /// `steadystate_check_interval`.
    pub interval: Dur,
}

/// Maximum number of measurements in a window, because each check reads the whole window.
const MAX_INTERVALS: usize = 65_536;

const CRITERIA: &[(&str, (Measured, bool))] = &[
    ("iops", (Measured::Iops, false)),
    ("iops_slope", (Measured::Iops, true)),
    ("bw", (Measured::Bandwidth, false)),
    ("bw_slope", (Measured::Bandwidth, true)),
    ("lat", (Measured::Latency, false)),
    ("lat_slope", (Measured::Latency, true)),
];

impl Default for Settling {
    /// Returns fio's default: the criterion `iops_slope:0.01%`, which is not judged.
    fn default() -> Settling {
        let criterion =
            Criterion { measured: Measured::Iops, slope: true, limit: 0.01, percent: true };
        Settling {
            criterion,
            window: Dur::ZERO,
            ramp: Dur::ZERO,
            interval: Dur::from_us(1_000_000),
        }
    }
}

impl Settling {
    /// Returns the number of measurements that are judged together.
    pub fn intervals(&self) -> usize {
        (self.window.0 / self.interval.0.max(1)) as usize
    }

    /// Parses and stores the criterion `NAME:LIMIT` or `NAME:LIMIT%`.
    ///
    /// The limit of a latency may have a unit of time; without a unit it is in nanoseconds. The
    /// limit of a bandwidth may have the suffixes of sizes.
    pub(super) fn set_criterion(&mut self, arg: &Arg<'_>) -> Result<(), String> {
        let text = arg.text()?;
        let (name, limit) = text
            .split_once(':')
            .ok_or_else(|| format!("`{text}` has no limit; write a limit such as {text}:0.3%"))?;
        let (measured, slope) = one_of(name.trim(), "criterion", CRITERIA)?;
        let limit = limit.trim();
        let decimal = |text: &str| {
            let value = text.trim().parse::<f64>().ok();
            value.filter(|v| v.is_finite() && *v > 0.0).ok_or_else(|| {
                format!("`{text}` is not a limit; give a number above 0, such as 0.3%")
            })
        };
        let (limit, percent) = match (limit.strip_suffix('%'), measured) {
            (Some(percent), _) => (decimal(percent)?, true),
            (None, Measured::Iops) => (decimal(limit)?, false),
            (None, Measured::Bandwidth) => {
                (Arg { text: Some(limit), ..*arg }.size()? as f64, false)
            }
            (None, Measured::Latency) => {
                let plain = limit.chars().all(|c| c.is_ascii_digit());
                let time = || Arg { text: Some(limit), ..*arg }.time(1).map(|t| t.ns() as f64);
                (if plain { decimal(limit)? } else { time()? }, false)
            }
        };
        self.criterion = Criterion { measured, slope, limit, percent };
        Ok(())
    }

    /// Checks the options against each other. The error contains the option at fault and the
    /// reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.interval == Dur::ZERO {
            return Err((
                "steadystate_check_interval",
                "an interval of no time cannot measure anything".into(),
            ));
        }
        if self.window > Dur::ZERO && self.intervals() < 2 {
            return Err((
                "steadystate_duration",
                format!(
                    "{} us hold {} measurements of {} us, but at least two are needed (see \
                     steadystate_check_interval)",
                    self.window.ns() / 1000,
                    self.intervals(),
                    self.interval.ns() / 1000
                ),
            ));
        }
        if self.intervals() > MAX_INTERVALS {
            return Err((
                "steadystate_duration",
                format!(
                    "the window holds {} measurements, but at most {MAX_INTERVALS} are possible \
                     (see steadystate_check_interval)",
                    self.intervals()
                ),
            ));
        }
        Ok(())
    }
}
