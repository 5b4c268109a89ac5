//! Specification of a run: a drive, a workload, and how the workload is played on the drive.

use crate::RunError;
use flashatlas_types::quantity::quantity;
use flashatlas_types::{Dur, HostOp};
use flashatlas_workload::{BadKinds, ReadOptions};
use serde::{Deserialize, Serialize};

/// Rule by which requests are issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Requests arrive at the times of the trace, divided by [`RunSpec::speed`]. A request waits at
    /// the host if the drive's queue has no room.
    Open,
    /// A fixed number of commands in flight.
    Closed,
    /// The drive has as many commands in flight as it accepts.
    #[default]
    Asap,
    /// No time passes at all: operations are counted, latencies are not known.
    Untimed,
}

/// End of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// The run ends with the workload.
    #[default]
    End,
    /// The workload is played until five passes in a row are steady. The next pass is measured.
    Steady,
}

/// Content of the drive before the first request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precondition {
    /// Nothing: a blank drive.
    #[default]
    None,
    /// Every logical page written once, in ascending order.
    Fill,
    /// The steady state that uniform random writes of single units lead to, by the model of the
    /// victim policy.
    Steady,
    /// The writes and trims of a trace, in no simulated time.
    Trace(String),
    /// The content of a checkpoint.
    Checkpoint(String),
}

/// Treatment of a trace whose addresses lie beyond the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// An error that names the other two treatments.
    #[default]
    Error,
    /// Addresses modulo the capacity.
    Wrap,
    /// The touched extents of every address space, packed in order of address; alignment within an
    /// extent is kept.
    Compact,
}

/// Size of the extents that [`Fit::Compact`] packs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Extent {
    /// The largest with which the workload fits the drive.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// 2048 sectors.
    #[serde(rename = "1MiB")]
    Mib1,
    /// 512 sectors.
    #[serde(rename = "256KiB")]
    Kib256,
    /// 128 sectors.
    #[serde(rename = "64KiB")]
    Kib64,
    /// 32 sectors.
    #[serde(rename = "16KiB")]
    Kib16,
    /// 8 sectors.
    #[serde(rename = "4KiB")]
    Kib4,
}

impl Extent {
    /// Returns the sizes to try, in sectors, the largest first.
    pub(crate) fn sizes(self) -> &'static [u64] {
        match self {
            Extent::Auto => &[2048, 512, 128, 32, 8],
            Extent::Mib1 => &[2048],
            Extent::Kib256 => &[512],
            Extent::Kib64 => &[128],
            Extent::Kib16 => &[32],
            Extent::Kib4 => &[8],
        }
    }
}

/// Parses a time with its unit, the value of the option `key`.
///
/// # Errors
/// Returns an error if `text` is no time, or zero.
pub fn duration(key: &'static str, text: &str) -> Result<Dur, RunError> {
    match quantity(text, true) {
        Ok(0) => Err(RunError::option(key, format!("`{text}` must be longer than nothing"))),
        Ok(ps) => Ok(Dur(ps)),
        Err(why) => Err(RunError::option(key, format!("`{text}`: {why}"))),
    }
}

/// Bad records to skip: in JSON a number, or a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SkipBad {
    /// At most this many of any kind.
    Count(u64),
    /// All of these kinds, by their names, separated by commas.
    Kinds(String),
}

impl Default for SkipBad {
    fn default() -> SkipBad {
        SkipBad::Count(0)
    }
}

impl SkipBad {
    fn count(&self) -> u64 {
        match self {
            SkipBad::Count(count) => *count,
            SkipBad::Kinds(_) => 0,
        }
    }

    fn kinds(&self) -> Result<BadKinds, RunError> {
        match self {
            SkipBad::Count(_) => Ok(BadKinds::NONE),
            SkipBad::Kinds(names) => Ok(names.parse::<BadKinds>()?),
        }
    }
}

/// Options for reading a trace, as texts. In JSON, unknown keys are errors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reading {
    /// Format; recognised by content if not given.
    pub format: Option<String>,
    /// Treatment of several devices: `separate` (the default), `collapse` or `select:N`.
    pub device_map: Option<String>,
    /// Time within which a record that repeats the previous one of its device is dropped.
    pub drop_duplicates: Option<String>,
    /// Longest pause: longer ones are cut to it, and longer backward steps of the clock are
    /// ignored.
    pub time_gap_max: Option<String>,
    /// Operation of all requests of a trace that names none: `read`, `write` or `trim`.
    pub assume_op: Option<String>,
    /// Bad records that are skipped and counted.
    pub skip_bad: SkipBad,
    /// Number of sectors added to every address.
    pub shift: i64,
}

impl Reading {
    /// Returns the options in the form that a reader takes.
    ///
    /// # Errors
    /// Returns an error for texts that have no meaning.
    pub fn options(&self) -> Result<ReadOptions, RunError> {
        let time = |key, text: &Option<String>| {
            text.as_deref().map(|text| duration(key, text)).transpose()
        };
        let op = |text: &str| {
            let allowed = [HostOp::Read, HostOp::Write, HostOp::Trim];
            allowed.into_iter().find(|op| op.name() == text).ok_or_else(|| {
                let why = format!("`{text}` is not known (allowed: read, write, trim)");
                RunError::option("assume_op", why)
            })
        };
        Ok(ReadOptions {
            skip_bad: self.skip_bad.count(),
            skip_kinds: self.skip_bad.kinds()?,
            shift_sectors: self.shift,
            device_map: self.device_map.as_deref().unwrap_or("separate").parse()?,
            drop_duplicates: time("drop_duplicates", &self.drop_duplicates)?,
            time_gap_max: time("time_gap_max", &self.time_gap_max)?,
            assume_op: self.assume_op.as_deref().map(op).transpose()?,
        })
    }

    /// Returns the name of the first option that was given, or `None` if none was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            ("format", self.format.is_some()),
            ("device_map", self.device_map.is_some()),
            ("drop_duplicates", self.drop_duplicates.is_some()),
            ("time_gap_max", self.time_gap_max.is_some()),
            ("assume_op", self.assume_op.is_some()),
            ("skip_bad", self.skip_bad != SkipBad::default()),
            ("shift", self.shift != 0),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }
}

impl RunSpec {
    /// Returns the format of the preconditioning trace, if the user named one.
    ///
    /// If there is a trace to replay, the named format is that trace's.
    pub(crate) fn before_format(&self) -> Option<&str> {
        self.reading.format.as_deref().filter(|_| self.trace.is_none())
    }

    /// Returns the length of a row in time series, if it was given.
    ///
    /// # Errors
    /// Returns an error if the text is no time, or zero.
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
    /// Path of a trace; a run has one of `trace`, `workload` and `job`.
    #[serde(default)]
    pub trace: Option<String>,
    /// Options for reading the trace, and the trace of a precondition.
    #[serde(default)]
    pub reading: Reading,
    /// A generator with its parameters: `uniform:requests=100000,size=4KiB`.
    #[serde(default)]
    pub workload: Option<String>,
    /// Path of an fio job file instead of a trace or a generator; its jobs decide how requests are
    /// issued.
    #[serde(default)]
    pub job: Option<String>,
    /// A file system between the jobs and the drive: `ext4`, or `ext4:key=value,…`.
    #[serde(default)]
    pub filesystem: Option<String>,
    /// The rule by which requests are issued.
    #[serde(default)]
    pub mode: Mode,
    /// Commands in flight in closed mode.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Factor by which trace times are divided in open mode.
    #[serde(default = "one")]
    pub speed: f64,
    /// The content of the drive before the first request.
    #[serde(default)]
    pub precondition: Precondition,
    /// The treatment of addresses beyond the drive.
    #[serde(default)]
    pub fit: Fit,
    /// Size of the extents that `compact` packs.
    #[serde(default)]
    pub extent: Extent,
    /// Requests at the start that are not measured.
    #[serde(default)]
    pub warmup: u64,
    /// The end of the run.
    #[serde(default)]
    pub until: Until,
    /// Requests after which the run ends, including warm-up; with [`Until::Steady`], each pass.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Number of writes after which a FLUSH is added; 0: no FLUSH is added.
    #[serde(default)]
    pub flush_every: u64,
    /// Length of simulated time that each row of the `series` table covers, such as `100ms`; by
    /// default 1 ms, doubled until the run has at most 512 rows.
    #[serde(default)]
    pub interval: Option<String>,
    /// `true` to add a `fingerprint` to the record: the number of flash operations, and a hash of
    /// all of them and their times.
    #[serde(default)]
    pub fingerprint: bool,
    /// A percentile such as `p99.9`: the record gets `explain`, which splits the latencies from
    /// there on by reason.
    #[serde(default)]
    pub explain: Option<String>,
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
