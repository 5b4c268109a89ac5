//! Values that the options of a run take: the words of choices, and what texts stand for.

use crate::{Input, Inputs, Reading, RunError, RunSpec};
use flashatlas_types::quantity::quantity;
use flashatlas_types::{Dur, HostOp, Seed};
use flashatlas_workload::{BadKinds, ReadOptions};
use serde::{Deserialize, Serialize};

/// Rule by which requests are issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Requests arrive at the times of the trace, divided by [`RunSpec::speed`]. A request waits at
    /// the host if the drive's queue has no room.
    Open,
    /// A fixed number of commands in flight.
    Closed,
    /// The drive has as many commands in flight as it accepts.
    Asap,
    /// No time passes at all: operations are counted, latencies are not known.
    Untimed,
}

/// End of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// The run ends with the workload.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// An error that names the other two treatments.
    Error,
    /// Addresses modulo the capacity.
    Wrap,
    /// The touched extents of every address space, packed in order of address; alignment within an
    /// extent is kept.
    Compact,
}

/// Size of the extents that [`Fit::Compact`] packs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Extent {
    /// The largest with which the workload fits the drive.
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
}

impl RunSpec {
    /// Returns the format of the preconditioning trace, if the user named one.
    ///
    /// If there is a trace to replay, the named format is that trace's.
    pub(crate) fn before_format(&self) -> Option<&str> {
        self.reading.format.as_deref().filter(|_| self.trace.is_none())
    }

    /// Opens the trace or the generator of the run, for a drive of `capacity` sectors.
    ///
    /// With `hashed`, [`Input::digest`] can return the SHA-256 of the file at the end.
    ///
    /// # Errors
    /// Returns an error if there is neither, if both are given, and if the trace cannot be opened.
    pub(crate) fn open<'a>(
        &self,
        inputs: &Inputs<'a>,
        capacity: u64,
        hashed: bool,
    ) -> Result<Input<'a>, RunError> {
        match (&self.trace, &self.workload) {
            (Some(path), None) => inputs.trace(path, self.reading.format.as_deref(), hashed),
            (None, Some(text)) => inputs.generated(text, capacity, Seed(self.seed)),
            (Some(_), Some(_)) => Err(RunError::option(
                "workload",
                "a trace was given, too: a run takes one of the two",
            )),
            (None, None) => Err(RunError::option(
                "workload",
                "a run needs one: ‹trace=FILE›, ‹workload=GENERATOR› or ‹job=FILE›",
            )),
        }
    }

    /// Returns the length of a row in time series, if it was given.
    ///
    /// # Errors
    /// Returns an error if the text is no time, or zero.
    pub(crate) fn interval(&self) -> Result<Option<Dur>, RunError> {
        self.interval.as_deref().map(|text| duration("interval", text)).transpose()
    }
}
