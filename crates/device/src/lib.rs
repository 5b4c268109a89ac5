//! The drive as a host sees it: commands in, completions out.
//!
//! [`Ssd`] is the controller: it splits requests into mapping units, keeps the write cache, merges partial units, and puts
//! the FTL, the medium and the timing engine together. [`config`] builds one from a preset, a file and single settings.

pub mod cache;
pub mod config;
mod controller;
mod pieces;
pub mod presets;
mod read;
mod state;
mod write;

pub use config::{DriveConfig, PARAMS};
pub use controller::{DeviceCounters, Ssd};
pub use presets::{PRESETS, Preset};

use flashatlas_types::{FtlError, Lba, Ps, Stamp, Tag, Violation};

/// What a host asks of a device.
#[derive(Clone, Copy, Debug)]
pub enum Cmd<'a> {
    /// Read sectors.
    Read {
        /// First sector.
        lba: Lba,
        /// How many.
        sectors: u32,
    },
    /// Write sectors.
    Write {
        /// First sector.
        lba: Lba,
        /// How many.
        sectors: u32,
        /// Durable when complete.
        fua: bool,
        /// Identifies what is written; stamps are made of it (see [`Stamp::whole`] and [`Stamp::overwritten`]).
        content: u64,
        /// The bytes, where the drive keeps bytes.
        data: Option<&'a [u8]>,
    },
    /// Forget the mapping units that lie whole inside the range; the drive ignores the rest of it.
    Trim {
        /// First sector.
        lba: Lba,
        /// How many.
        sectors: u32,
    },
    /// Make every completed write durable.
    Flush,
}

/// A command that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Which.
    pub tag: Tag,
    /// When.
    pub at: Ps,
}

/// What a read returned, known at submission ("decide now, time later").
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The stamp of each mapping unit that the range touches, in order.
    pub stamps: Vec<Stamp>,
    /// The bytes of the range, where the drive keeps bytes.
    pub bytes: Vec<u8>,
}

/// Why a command was not accepted. Nothing of it was carried out, unless an [`FtlError`] stopped it half-way: then every later
/// command gets the same error, until the drive is switched off and on again. A read of data that cannot be read changes nothing,
/// and others may follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// The range is empty or does not lie inside the drive.
    OutOfRange {
        /// Sectors that the drive has.
        sectors: u64,
    },
    /// The data cannot be read, or the drive cannot go on.
    Ftl(FtlError),
}

impl From<FtlError> for SubmitError {
    fn from(error: FtlError) -> SubmitError {
        SubmitError::Ftl(error)
    }
}

impl std::fmt::Display for SubmitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SubmitError::OutOfRange { sectors } => {
                write!(f, "the range is empty or ends beyond the drive's {sectors} sectors")
            }
            SubmitError::Ftl(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SubmitError {}

/// Something that takes host commands: a drive, or a layer that owns the next device.
pub trait Device {
    /// Take a command at `now`. Its effect is decided at once, in order of submission; its completion comes from
    /// [`Device::advance`]. What a read returns is in `reply`.
    ///
    /// # Errors
    /// [`SubmitError`]; a command that was refused completes never.
    fn submit(&mut self, now: Ps, tag: Tag, cmd: Cmd<'_>, reply: &mut Reply) -> Result<(), SubmitError>;

    /// When something happens next.
    fn next_event(&self) -> Option<Ps>;

    /// Run up to and including `until`; completions are appended in the order of time.
    fn advance(&mut self, until: Ps, out: &mut Vec<Done>);

    /// The host asks for nothing from `now` until `until`: background work may use the time.
    ///
    /// # Errors
    /// When background work finds a fault it has no answer to.
    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError>;

    /// Sectors in a mapping unit.
    fn unit_sectors(&self) -> u32;

    /// Sectors that the device exports.
    fn sectors(&self) -> u64;

    /// The O(n) rules of everything beneath.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self) -> Result<(), Violation>;
}
