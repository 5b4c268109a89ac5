//! The drive as a host sees it: commands in, completions out.
//!
//! [`Ssd`] is the controller: it splits requests into mapping units, keeps the write cache, merges
//! partial units, and puts the FTL, the medium and the timing engine together. [`layers`] are what
//! a host puts over a drive; [`Stack`] is a drive with its layers. [`config`] builds them from a
//! preset, a file and single settings, which [`params`] declares.

pub mod cache;
pub mod config;
pub mod contents;
mod controller;
pub mod hpb;
mod joins;
pub mod layers;
pub mod params;
mod pieces;
pub mod presets;
mod read;
pub mod stack;
mod state;
pub mod wire;
mod write;

pub use config::DriveConfig;
pub use contents::Contents;
pub use controller::{DeviceCounters, Ssd};
pub use hpb::HpbCounters;
pub use layers::{LAYERS, LayerDef, LayerError, LayerLimit, LayerReport, Shape};
pub use params::PARAMS;
pub use presets::{PRESETS, Preset};
pub use stack::Stack;

use flashatlas_types::{FtlError, Lba, Lpn, Ps, Seed, Stamp, Tag, Violation};

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
    /// Read sectors, with what the host knows of the map (HPB READ; see [`hpb`]). A drive that does
    /// not believe an entry, or hands out no map, reads as for [`Cmd::Read`]: entries change times
    /// and counters, never data.
    HpbRead {
        /// First sector.
        lba: Lba,
        /// How many.
        sectors: u32,
        /// The entry of each mapping unit that the range touches, in order; of those that lack one,
        /// none is known.
        entries: &'a [u64],
    },
    /// Fetch a subregion of the map (HPB READ BUFFER). Its entries are in the reply.
    ReadBuffer {
        /// Which, numbered over all regions.
        subregion: u32,
    },
    /// Give a region of the map back, or all of them (HPB WRITE BUFFER).
    WriteBuffer {
        /// Which.
        region: Option<u32>,
    },
    /// Write sectors.
    Write {
        /// First sector.
        lba: Lba,
        /// How many.
        sectors: u32,
        /// Durable when complete.
        fua: bool,
        /// Identifies what is written; stamps are made of it (see [`Stamp::whole`] and
        /// [`Stamp::overwritten`]).
        content: u64,
        /// The bytes, where the drive keeps bytes.
        data: Option<&'a [u8]>,
    },
    /// Write whole mapping units of which a layer says itself what their stamps are: it moves them,
    /// or gathered them.
    WriteUnits {
        /// First sector.
        lba: Lba,
        /// Durable when complete.
        fua: bool,
        /// The stamp of each unit.
        stamps: &'a [Stamp],
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

impl Cmd<'_> {
    /// The sectors that a command is about, on a device whose mapping units have `unit_sectors`.
    pub fn range(&self, unit_sectors: u32) -> Option<(Lba, u32)> {
        match *self {
            Cmd::Read { lba, sectors }
            | Cmd::HpbRead { lba, sectors, .. }
            | Cmd::Write { lba, sectors, .. }
            | Cmd::Trim { lba, sectors } => Some((lba, sectors)),
            Cmd::WriteUnits { lba, stamps, .. } => Some((lba, stamps.len() as u32 * unit_sectors)),
            Cmd::ReadBuffer { .. } | Cmd::WriteBuffer { .. } | Cmd::Flush => None,
        }
    }

    /// `Ok` unless a command asks for a part of the map that there is not, on a device that hands
    /// out so many of each; none, where it hands nothing out.
    ///
    /// # Errors
    /// [`SubmitError::NoMap`].
    pub(crate) fn asks_within(&self, subregions: u32, regions: u32) -> Result<(), SubmitError> {
        let (what, number, count) = match *self {
            Cmd::ReadBuffer { subregion } => ("subregion", subregion, subregions),
            Cmd::WriteBuffer { region } => ("region", region.unwrap_or(0), regions),
            _ => return Ok(()),
        };
        if number < count { Ok(()) } else { Err(SubmitError::NoMap { what, number, count }) }
    }
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
    /// The entries of a subregion of the map, in the order of its pages.
    pub entries: Vec<u64>,
    /// What the response to any command says of the map; it reaches the host when the command is
    /// complete.
    pub notice: Option<Box<hpb::Notice>>,
}

impl Reply {
    pub(crate) fn clear(&mut self) {
        self.stamps.clear();
        self.bytes.clear();
        self.entries.clear();
        self.notice = None;
    }
}

/// Why a command was not accepted. Nothing of it was carried out, unless an [`FtlError`] stopped it
/// half-way: then every later command gets the same error, until the drive is switched off and on
/// again. A read of data that cannot be read changes nothing, and others may follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// The range is empty or does not lie inside the drive.
    OutOfRange {
        /// Sectors that the drive has.
        sectors: u64,
    },
    /// The data cannot be read, or the drive cannot go on.
    Ftl(FtlError),
    /// What a layer keeps on the device beneath is not what it must be.
    Layer(LayerError),
    /// There is no such subregion, or region, of the map to hand out.
    NoMap {
        /// What was asked for.
        what: &'static str,
        /// Its number.
        number: u32,
        /// How many there are: none, where nothing is handed out.
        count: u32,
    },
}

impl From<LayerError> for SubmitError {
    fn from(error: LayerError) -> SubmitError {
        SubmitError::Layer(error)
    }
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
            SubmitError::Layer(error) => error.fmt(f),
            SubmitError::NoMap { what, number, count: 0 } => {
                write!(f, "{what} {number} of the map: this device hands out no map")
            }
            SubmitError::NoMap { what, number, count } => {
                write!(f, "{what} {number} of the map: there are {count}")
            }
        }
    }
}

impl std::error::Error for SubmitError {}

/// Something that takes host commands: a drive, or a layer that owns the next device.
pub trait Device: Send {
    /// Take a command at `now`. Its effect is decided at once, in order of submission; its
    /// completion comes from [`Device::advance`]. What a read returns is in `reply`.
    ///
    /// # Errors
    /// [`SubmitError`]; a command that was refused completes never.
    fn submit(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        self.submit_after(now, tag, cmd, &[], reply)
    }

    /// As [`Device::submit`], of a host that sends the command when those of `after` are complete:
    /// it decides now what it sends, and the device says when. Tags that are not in flight are
    /// complete.
    ///
    /// # Errors
    /// As [`Device::submit`].
    fn submit_after(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        after: &[Tag],
        reply: &mut Reply,
    ) -> Result<(), SubmitError>;

    /// When something happens next.
    fn next_event(&self) -> Option<Ps>;

    /// Run up to and including `until`; completions are appended in the order of time.
    fn advance(&mut self, until: Ps, out: &mut Vec<Done>);

    /// The host asks for nothing from `now` until `until`: background work may use the time.
    ///
    /// # Errors
    /// When background work finds a fault it has no answer to.
    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError>;

    /// What the device exports.
    fn shape(&self) -> Shape;

    /// Sectors in a mapping unit.
    fn unit_sectors(&self) -> u32 {
        self.shape().unit_sectors
    }

    /// Sectors that the device exports.
    fn sectors(&self) -> u64 {
        self.shape().sectors
    }

    /// What a mapping unit holds, looked up behind the device's back: no operation, no time.
    ///
    /// # Errors
    /// When a map points to something that cannot be read, or to another unit.
    fn held(&self, unit: Lpn) -> Result<Stamp, SubmitError>;

    /// Whether trims do not outlive a power failure.
    fn forgets_trims(&self) -> bool;

    /// The O(n) rules of everything beneath.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self) -> Result<(), Violation>;

    /// Commands take effect without any time passing and without completions: how a device is
    /// brought into a state.
    fn set_instant(&mut self, on: bool);

    /// The power is back: everything in memory is gone, and what stands on the medium is mounted.
    /// `config` is that of the device.
    ///
    /// # Errors
    /// When it cannot be mounted. The device is of no use then.
    ///
    /// # Panics
    /// When commands are in flight.
    fn switch_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError>;

    /// What stopped the device, if anything did: commands in flight may never complete.
    fn failure(&self) -> Option<SubmitError>;

    /// Set every counter to zero; what the device holds stays.
    fn reset_counters(&mut self);

    /// What each layer counted and keeps in the host's memory, from the top down.
    fn reports(&self) -> Vec<LayerReport>;

    /// What the digests of layers stand for, where a layer composes what it writes (see
    /// [`Contents`]).
    fn contents(&mut self) -> Option<&mut Contents>;

    /// The drive at the bottom.
    fn ssd(&self) -> &Ssd;

    /// The drive at the bottom, to change.
    fn ssd_mut(&mut self) -> &mut Ssd;

    /// The drive at the bottom, without its layers.
    fn into_ssd(self: Box<Self>) -> Ssd;
}
