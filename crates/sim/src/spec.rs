//! What to run: a drive, a workload, and how the one meets the other.

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
    /// Nanoseconds of simulated time in a row of the `series` table; if not given, as few as give up to 512 rows.
    #[serde(default)]
    pub interval_ns: Option<u64>,
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
