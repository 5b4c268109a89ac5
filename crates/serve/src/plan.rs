//! What is served, and why it may not be.

use crate::error::ImageError;
use flashatlas_sim::{Precondition, RunError};
use serde::Deserialize;
use std::path::PathBuf;

/// When replies go out.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// At once. Simulated time goes on with the commands: as many are in flight as clients have.
    #[default]
    None,
    /// When the simulated drive would have answered, that many times slower.
    Real(f64),
}

/// What a power failure leaves of what the flash was doing.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutMode {
    /// Everything before the operation in which it falls, and nothing of that.
    #[default]
    Prefix,
    /// Everything before it; of that, if it is a program, a page that cannot be read, of an erase a
    /// block of such pages.
    Torn,
    /// Of what no FLUSH has made durable yet, a beginning on each lane: programs on one die may be
    /// there while older ones on another are not. Where a layer sends FLUSHes or FUA of its own,
    /// the power fails between any two of them.
    Subset,
}

/// What is served. In JSON, unknown keys are errors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Preset name, or the name of the file whose text is in `drive_toml`.
    pub drive: String,
    /// Text of a drive file.
    #[serde(default)]
    pub drive_toml: Option<String>,
    /// `key=value` settings, applied in order.
    #[serde(default)]
    pub set: Vec<String>,
    /// The image; bytes are in memory only without one.
    #[serde(default)]
    pub image: Option<PathBuf>,
    /// What the drive begins as, where the image is a new one or there is none: a checkpoint.
    #[serde(default)]
    pub checkpoint: Option<PathBuf>,
    /// How that came to be, for the record.
    #[serde(default)]
    pub precondition: Precondition,
    /// When replies go out.
    #[serde(default)]
    pub time: Time,
    /// The power fails in the operation of the flash after so many, those of the mount among them.
    #[serde(default)]
    pub cut_after: Option<u64>,
    /// From so many seconds of the server's clock on, the power fails in the next operation of the
    /// flash.
    #[serde(default)]
    pub cut_at: Option<f64>,
    /// What that operation leaves.
    #[serde(default)]
    pub cut_mode: CutMode,
    /// A FLUSH is answered and not carried out, and FUA is not heard: for tests that must fail.
    #[serde(default)]
    pub ignore_flush: bool,
    /// FUA is not heard, FLUSH is: for tests that must fail.
    #[serde(default)]
    pub ignore_fua: bool,
    /// Where what clients send goes, as a trace.
    #[serde(default)]
    pub trace: Option<PathBuf>,
    /// Shared libraries whose parts are there (`flashatlas_plugin.h`); whoever serves loads them.
    #[serde(default)]
    pub plugins: Vec<PathBuf>,
    /// Where what can be seen of the drive is put now and then.
    #[serde(default)]
    pub live: Option<PathBuf>,
    /// Digest of the sources that the program was built from, for the record.
    #[serde(default)]
    pub build: Option<String>,
    /// Where the record goes in the end.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// Seed of everything random.
    #[serde(default = "seed")]
    pub seed: u64,
}

const fn seed() -> u64 {
    1
}

/// Why nothing can be served.
#[derive(Debug)]
pub enum ServeError {
    /// The drive.
    Run(RunError),
    /// The image, by its path.
    Image(PathBuf, ImageError),
    /// The power failed while the drive was mounted, as was asked for; the image is as that left
    /// it.
    PowerLost,
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServeError::Run(error) => error.fmt(f),
            ServeError::Image(path, error) => write!(f, "{}: {error}", path.display()),
            ServeError::PowerLost => f.write_str("the power failed while the drive was mounted"),
        }
    }
}

impl std::error::Error for ServeError {}

impl From<RunError> for ServeError {
    fn from(error: RunError) -> ServeError {
        ServeError::Run(error)
    }
}

/// Why a command is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The range is not one of whole sectors of the drive.
    Range(String),
    /// The power failed, now or earlier.
    PowerLost,
    /// The drive has no room.
    NoSpace(String),
    /// The drive or its image cannot go on, or a page cannot be read.
    Failed(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::PowerLost => f.write_str("the power has failed"),
            Refused::Range(why) | Refused::NoSpace(why) | Refused::Failed(why) => f.write_str(why),
        }
    }
}
