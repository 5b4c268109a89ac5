//! Commands of a host, what comes back of them, and why one is refused.

use crate::hpb::Notice;
use crate::layer::LayerError;
use flashatlas_types::{FtlError, Lba, Ps, Stamp, Tag};

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
    /// Read sectors, with what the host knows of the map (HPB READ; see [`crate::hpb`]). A drive
    /// that does not believe an entry, or hands out no map, reads as for [`Cmd::Read`]: entries
    /// change times and counters, never data.
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

    /// Whether it changes data, or makes changes durable: one that fails half-way leaves a layer
    /// not knowing what was done.
    pub fn changes(&self) -> bool {
        matches!(self, Cmd::Write { .. } | Cmd::WriteUnits { .. } | Cmd::Trim { .. } | Cmd::Flush)
    }

    /// Whether its answer says that data is durable.
    pub fn promises(&self) -> bool {
        matches!(
            self,
            Cmd::Write { fua: true, .. } | Cmd::WriteUnits { fua: true, .. } | Cmd::Flush
        )
    }

    /// `Ok` unless a command asks for a part of the map that there is not, on a device that hands
    /// out so many of each; none, where it hands nothing out.
    ///
    /// # Errors
    /// [`SubmitError::NoMap`].
    pub fn asks_within(&self, subregions: u32, regions: u32) -> Result<(), SubmitError> {
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
    pub notice: Option<Box<Notice>>,
}

impl Reply {
    /// Forget what the last command returned; buffers stay.
    pub fn clear(&mut self) {
        self.stamps.clear();
        self.bytes.clear();
        self.entries.clear();
        self.notice = None;
    }
}

/// Why a command was not accepted. Nothing of it was carried out, unless an [`FtlError`] stopped it
/// half-way: then every later command gets the same error, until the drive is switched off and on
/// again. A read of data that cannot be read changes nothing, and others may follow.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// The range is empty or does not lie inside the drive.
    OutOfRange {
        /// Sectors that the drive has.
        sectors: u64,
    },
    /// The data cannot be read, or the drive cannot go on.
    Ftl(FtlError),
    /// What a layer keeps on the lower device is not what it must be.
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
