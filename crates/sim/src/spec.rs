//! Values of the options of a run: the words of choices, and the parsing of texts.

use crate::RunError;
use flashatlas_types::Dur;
use flashatlas_types::quantity::quantity;
use flashatlas_workload::BadKinds;
use serde::{Deserialize, Serialize};

/// Rule by which requests are issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Requests arrive at the times of the trace, divided by [`speed`](crate::RunSpec::speed). A
    /// request waits at the host if the drive's queue has no room.
    Open,
    /// A fixed number of commands in flight.
    Closed,
    /// The host keeps as many commands in flight as the drive accepts.
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
    /// No content: a blank drive.
    #[default]
    None,
    /// Every logical page written once, in ascending order.
    Fill,
    /// The steady state that uniform random writes of single units lead to, computed with the model
    /// of the victim policy.
    Steady,
    /// The writes and trims of a trace, in no simulated time.
    Trace(String),
    /// The content of a checkpoint.
    Checkpoint(String),
}

/// Form in which a drive that was filled or set into its steady state is held. Results do not
/// depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// Content that has not changed is computed, if the parts of the drive allow this.
    #[default]
    Computed,
    /// All of it is in tables.
    Dense,
}

/// Treatment of addresses that lie beyond the drive.
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
    /// The largest size with which the workload fits the drive.
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
        Ok(0) => Err(RunError::option(key, format!("`{text}` must be above 0"))),
        Ok(ps) => Ok(Dur(ps)),
        Err(why) => Err(RunError::option(key, format!("`{text}`: {why}"))),
    }
}

/// Bad records to skip: in JSON a number, or a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SkipBad {
    /// Maximum number of bad records to skip, of all kinds together.
    Count(u64),
    /// Names of kinds, separated by commas; all records of these kinds are skipped.
    Kinds(String),
}

impl SkipBad {
    pub(crate) fn count(&self) -> u64 {
        match self {
            SkipBad::Count(count) => *count,
            SkipBad::Kinds(_) => 0,
        }
    }

    pub(crate) fn kinds(&self) -> Result<BadKinds, RunError> {
        match self {
            SkipBad::Count(_) => Ok(BadKinds::NONE),
            SkipBad::Kinds(names) => Ok(names.parse::<BadKinds>()?),
        }
    }
}
