//! Specification of a server, and reasons why a drive or a command is refused.

use crate::error::ImageError;
use flashatlas_sim::{Precondition, RunError};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Time at which replies are sent.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// Replies are sent immediately. The drive has as many commands in flight as the clients have.
    #[default]
    None,
    /// Replies are sent at the time at which the simulated drive answers, multiplied by this
    /// factor.
    Real(f64),
}

/// State that a power failure leaves on the flash.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutMode {
    /// Everything before the operation in which the power fails is kept, and nothing of that
    /// operation.
    #[default]
    Prefix,
    /// Everything before that operation is kept. If it is a program, its page cannot be read
    /// afterwards. If it is an erase, no page of its block can be read afterwards.
    Torn,
    /// Each lane keeps the operations up to a random point after the last FLUSH, and loses the
    /// others. So a program on one die may be kept while an older program on another die is lost.
    /// If a layer sends its own FLUSH or FUA commands, the power may fail between any two of them.
    Subset,
}

/// Specification of a server. In JSON, unknown keys are errors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeSpec {
    /// Name of a preset, or name of the file whose text is in `drive_toml`.
    pub drive: String,
    /// Text of a drive file.
    #[serde(default)]
    pub drive_toml: Option<String>,
    /// `key=value` settings, applied in order.
    #[serde(default)]
    pub set: Vec<String>,
    /// The image file. Without an image, bytes are only in memory.
    #[serde(default)]
    pub image: Option<PathBuf>,
    /// The checkpoint from which the drive starts, if it has no image or a new image.
    #[serde(default)]
    pub checkpoint: Option<PathBuf>,
    /// The precondition with which the checkpoint was made, for the record.
    #[serde(default)]
    pub precondition: Precondition,
    /// The time at which replies are sent.
    #[serde(default)]
    pub time: Time,
    /// Number of flash operations, mount included, before the operation in which the power fails.
    #[serde(default)]
    pub cut_after: Option<u64>,
    /// Time on the server's clock, in seconds, after which the power fails in the next flash
    /// operation.
    #[serde(default)]
    pub cut_at: Option<f64>,
    /// The state that a power failure leaves.
    #[serde(default)]
    pub cut_mode: CutMode,
    /// `true` if FLUSH is answered but not carried out and FUA is ignored. For tests that must
    /// fail.
    #[serde(default)]
    pub ignore_flush: bool,
    /// `true` if FUA is ignored while FLUSH is carried out. For tests that must fail.
    #[serde(default)]
    pub ignore_fua: bool,
    /// File to which the requests of clients are written as a trace.
    #[serde(default)]
    pub trace: Option<PathBuf>,
    /// Shared libraries with additional parts (`flashatlas_plugin.h`), which the server's program
    /// loads.
    #[serde(default)]
    pub plugins: Vec<PathBuf>,
    /// File to which the state of the drive is written at intervals.
    #[serde(default)]
    pub live: Option<PathBuf>,
    /// Digest of the sources from which the program was built, for the record.
    #[serde(default)]
    pub build: Option<String>,
    /// File to which the record is written after serving.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// `true` if serving ends when the last client has gone. The program that serves the drive does
    /// this.
    #[serde(default)]
    pub once: bool,
    /// The NVMe controller, if the drive is served behind one.
    #[serde(default)]
    pub nvme: Option<NvmeSpec>,
    /// Seed of all random numbers.
    #[serde(default = "seed")]
    pub seed: u64,
}

/// Specification of the NVMe controller of a served drive, and of its door.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvmeSpec {
    /// IP address and TCP port; port 0 is any free port.
    pub address: SocketAddr,
    /// `true` if the address may be outside of this machine's loopback.
    #[serde(default)]
    pub network: bool,
    /// Name of the subsystem (NQN). Without it, the drive has a name of its own.
    #[serde(default)]
    pub nqn: Option<String>,
    /// Names of the hosts (NQN) that may connect; without a name, every host may connect.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Maximum number of commands that are carried out at the same time.
    pub threads: usize,
    /// Nanoseconds after each command and each answer in which the server does not sleep.
    #[serde(default)]
    pub poll_ns: u64,
    /// Identifier for a drive that has no identifier: 16 bytes that no other drive has.
    pub fresh: [u8; 16],
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
    /// The power failed while the drive was mounted, as the plan requested. The image has the state
    /// after the failure.
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
    /// The power failed during this command or earlier.
    PowerLost,
    /// The drive has no free space.
    NoSpace(String),
    /// The drive is worn out and takes no writes any more. Reads go on.
    ReadOnly(String),
    /// Data in the range cannot be read.
    Unreadable(String),
    /// The drive or its image cannot be used any more.
    Failed(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::PowerLost => f.write_str("the power has failed"),
            Refused::Range(why)
            | Refused::NoSpace(why)
            | Refused::ReadOnly(why)
            | Refused::Unreadable(why)
            | Refused::Failed(why) => f.write_str(why),
        }
    }
}
