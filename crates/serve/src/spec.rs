//! Specification of a server, and reasons why a drive or a command is refused.

use crate::error::ImageError;
use flashatlas_sim::{Precondition, RunError};
use serde::Deserialize;
use std::path::PathBuf;

/// Time at which replies go out.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// Replies go out at once. The drive has as many commands in flight as the clients.
    #[default]
    None,
    /// Replies go out when the simulated drive would have answered, slower by this factor.
    Real(f64),
}

/// State that a power failure leaves on the flash.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutMode {
    /// Everything before the operation in which the power fails, and nothing of that operation.
    #[default]
    Prefix,
    /// Everything before that operation. A cut program leaves a page that cannot be read, and a cut
    /// erase leaves a block of such pages.
    Torn,
    /// A first part of the operations that no FLUSH has made durable yet, on each lane: programs on
    /// one die may be there while older ones on another are not. If a layer sends FLUSHes or FUA of
    /// its own, the power fails between any two of them.
    Subset,
}

/// Specification of a server. In JSON, unknown keys are errors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeSpec {
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
    /// The checkpoint that the drive starts from, if it has no image or a new one.
    #[serde(default)]
    pub checkpoint: Option<PathBuf>,
    /// The origin of the checkpoint, for the record.
    #[serde(default)]
    pub precondition: Precondition,
    /// The time at which replies go out.
    #[serde(default)]
    pub time: Time,
    /// Number of flash operations, the mount's included, before the one in which the power fails.
    #[serde(default)]
    pub cut_after: Option<u64>,
    /// Seconds of the server's clock after which the power fails in the next operation of the
    /// flash.
    #[serde(default)]
    pub cut_at: Option<f64>,
    /// The state that a power failure leaves.
    #[serde(default)]
    pub cut_mode: CutMode,
    /// `true`: FLUSH is answered and not carried out, FUA is ignored. For tests that must fail.
    #[serde(default)]
    pub ignore_flush: bool,
    /// `true`: FUA is ignored, and FLUSH is carried out. For tests that must fail.
    #[serde(default)]
    pub ignore_fua: bool,
    /// File for the requests of clients, as a trace.
    #[serde(default)]
    pub trace: Option<PathBuf>,
    /// Shared libraries with added parts (`flashatlas_plugin.h`); the server's program loads them.
    #[serde(default)]
    pub plugins: Vec<PathBuf>,
    /// File for the state of the drive, written now and then.
    #[serde(default)]
    pub live: Option<PathBuf>,
    /// Digest of the sources that the program was built from, for the record.
    #[serde(default)]
    pub build: Option<String>,
    /// File for the record, written in the end.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// Seed of everything random.
    #[serde(default = "seed")]
    pub seed: u64,
}

const fn seed() -> u64 {
    1
}

/// Reason why nothing can be served.
#[derive(Debug)]
pub enum ServeError {
    /// Error of the drive or of the plan.
    Run(RunError),
    /// Error of the image at this path.
    Image(PathBuf, ImageError),
    /// The power failed while the drive was mounted, as the plan asked for. The image has what the
    /// failure left.
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

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ServeError::Run(error) => Some(error),
            ServeError::Image(_, error) => Some(error),
            ServeError::PowerLost => None,
        }
    }
}

impl From<RunError> for ServeError {
    fn from(error: RunError) -> ServeError {
        ServeError::Run(error)
    }
}

/// Reason why a command is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The range does not consist of whole sectors of the drive.
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
