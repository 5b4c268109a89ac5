//! What to run: a drive, a workload, and how the one meets the other.

use crate::RunError;
use flashatlas_types::Dur;
use flashatlas_types::params::quantity;
use serde::{Deserialize, Serialize};

/// How requests are issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// At the times of the trace, divided by [`RunSpec::speed`]. What the drive's queue has no room for waits at the host.
    Open,
    /// A fixed number of commands in flight.
    Closed,
    /// As many commands in flight as the drive accepts.
    #[default]
    Asap,
    /// No time passes at all: operations are counted, latencies are not known.
    Untimed,
}

/// What is on the drive before the first request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precondition {
    /// Nothing: a blank drive.
    #[default]
    None,
    /// Every logical page written once, in ascending order.
    Fill,
    /// The steady state that uniform random writes of single units lead to, by the model of the victim policy.
    Steady,
    /// The writes and trims of a trace, in no simulated time.
    Trace(String),
    /// What a checkpoint holds.
    Checkpoint(String),
}

/// What to do with a trace whose addresses lie beyond the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Stop, and name the other two.
    #[default]
    Error,
    /// Addresses modulo the capacity.
    Wrap,
    /// The touched 1 MiB extents of every address space, packed in order of address; alignment is kept.
    Compact,
}

/// A time with its unit, as a setting called `key` gives it.
///
/// # Errors
/// What is no time, and zero.
pub(crate) fn duration(key: &str, text: &str) -> Result<Dur, RunError> {
    match quantity(text, true) {
        Ok(0) => Err(RunError::Fit(format!("{key} `{text}`: must be longer than nothing"))),
        Ok(ps) => Ok(Dur(ps)),
        Err(why) => Err(RunError::Fit(format!("{key} `{text}`: {why}"))),
    }
}

impl RunSpec {
    /// The length of a row in time series, where one is given.
    ///
    /// # Errors
    /// What is no time, and zero.
    pub(crate) fn interval(&self) -> Result<Option<Dur>, RunError> {
        self.interval.as_deref().map(|text| duration("interval", text)).transpose()
    }
}

/// One run. In JSON, unknown keys are errors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Preset name, or the name of the file whose text is in `drive_toml`.
    pub drive: String,
    /// Text of a drive file.
    #[serde(default)]
    pub drive_toml: Option<String>,
    /// `key=value` settings, applied in order.
    #[serde(default)]
    pub set: Vec<String>,
    /// Path of a trace; one of `trace` and `workload` is given.
    #[serde(default)]
    pub trace: Option<String>,
    /// Format of the trace; recognised by content if not given.
    #[serde(default)]
    pub format: Option<String>,
    /// Address spaces of the trace: `separate`, `collapse` or `select:N`.
    #[serde(default)]
    pub device_map: Option<String>,
    /// Drop a record that repeats the one before within this time.
    #[serde(default)]
    pub drop_duplicates: Option<String>,
    /// Cut pauses of the trace to this time.
    #[serde(default)]
    pub time_gap_max: Option<String>,
    /// `read` or `write`, for traces that do not say.
    #[serde(default)]
    pub assume_op: Option<String>,
    /// A generator with its parameters: `uniform:requests=100000,size=4KiB`.
    #[serde(default)]
    pub workload: Option<String>,
    /// Path of an fio job file instead of a trace or a generator; its jobs decide how requests are issued.
    #[serde(default)]
    pub job: Option<String>,
    /// How requests are issued.
    #[serde(default)]
    pub mode: Mode,
    /// Commands in flight in closed mode.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Factor by which trace times are divided in open mode.
    #[serde(default = "one")]
    pub speed: f64,
    /// What is on the drive before.
    #[serde(default)]
    pub precondition: Precondition,
    /// What happens to addresses beyond the drive.
    #[serde(default)]
    pub fit: Fit,
    /// Requests at the start that are not measured.
    #[serde(default)]
    pub warmup: u64,
    /// Requests after which the run ends, warm-up included.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Bad records of the trace to skip before one is an error.
    #[serde(default)]
    pub skip_bad: u64,
    /// Sectors added to every address of the trace.
    #[serde(default)]
    pub shift: i64,
    /// Simulated time in a row of the `series` table, such as `100ms`; if not given, as little as gives up to 512 rows.
    #[serde(default)]
    pub interval: Option<String>,
    /// Seed of everything random.
    #[serde(default = "seed")]
    pub seed: u64,
}

const fn one() -> f64 {
    1.0
}

const fn seed() -> u64 {
    1
}
