//! Commands of a host, their replies, and the reasons for which a command is refused.

use crate::hpb::Notice;
use flashatlas_types::{FtlError, Lba, Ps, Stamp, Tag};

/// Command of a host to a device.
#[derive(Clone, Copy, Debug)]
pub enum Cmd<'a> {
    /// Read sectors.
    Read {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
    },
    /// Read sectors with the map entries that the host caches (HPB READ; see [`crate::hpb`]). If a
    /// drive refuses an entry or exports no map, the command acts like [`Cmd::Read`]. Entries
    /// change times and counters, never data.
    HpbRead {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
        /// Entry of each mapping unit that the range touches, in order. If the list is shorter, the
        /// last units have no entry.
        entries: &'a [u64],
    },
    /// Fetch a subregion of the map (HPB READ BUFFER). Its entries are in the reply.
    ReadBuffer {
        /// Number of the subregion, counted over all regions.
        subregion: u32,
    },
    /// Return a region of the map, or all regions, to the drive (HPB WRITE BUFFER).
    WriteBuffer {
        /// Number of the region, or `None` for all regions.
        region: Option<u32>,
    },
    /// Write sectors.
    Write {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
        /// `true` if the data must be durable when the command is complete (FUA).
        fua: bool,
        /// Number that identifies the content. Stamps are computed from it (see [`Stamp::whole`]
        /// and [`Stamp::overwritten`]).
        content: u64,
        /// The bytes, if the drive keeps bytes.
        data: Option<&'a [u8]>,
    },
    /// Write whole mapping units that a layer moves or gathers. The layer provides the stamps.
    WriteUnits {
        /// First sector.
        lba: Lba,
        /// `true` if the data must be durable when the command is complete (FUA).
        fua: bool,
        /// The stamp of each unit.
        stamps: &'a [Stamp],
        /// The bytes, if the drive keeps bytes.
        data: Option<&'a [u8]>,
    },
    /// Unmap the mapping units that are completely inside the range. The drive ignores the rest of
    /// the range.
    Trim {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
    },
    /// Make every completed write durable.
    Flush,
}

impl Cmd<'_> {
    /// Returns the first sector of a command and its number of sectors, or `None` if it has no
    /// range. A mapping unit of the device has `unit_sectors` sectors.
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

    /// Returns `true` if the command changes data or makes changes durable.
    ///
    /// If such a command fails halfway, a layer cannot tell which changes were made.
    pub fn changes(&self) -> bool {
        matches!(self, Cmd::Write { .. } | Cmd::WriteUnits { .. } | Cmd::Trim { .. } | Cmd::Flush)
    }

    /// Returns `true` if the completion of the command guarantees that data is durable.
    pub fn promises(&self) -> bool {
        matches!(
            self,
            Cmd::Write { fua: true, .. } | Cmd::WriteUnits { fua: true, .. } | Cmd::Flush
        )
    }

    /// Returns an error if a command asks for a part of the map that does not exist.
    ///
    /// The device exports `subregions` subregions and `regions` regions. Both numbers are 0 if it
    /// exports no map.
    ///
    /// # Errors
    /// Returns [`SubmitError::NoMap`] if the device does not export the subregion or the region.
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
    /// The command.
    pub tag: Tag,
    /// Time of its completion.
    pub at: Ps,
}

/// Data and notice that a command returns, known at submission ("decide now, time later").
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The stamp of each mapping unit that the range touches, in order.
    pub stamps: Vec<Stamp>,
    /// The bytes of the range, if the drive keeps bytes.
    pub bytes: Vec<u8>,
    /// The entries of a subregion of the map, in the order of its pages.
    pub entries: Vec<u64>,
    /// Notice about the map in the response to the command. The notice reaches the host when the
    /// command is complete.
    pub notice: Option<Box<Notice>>,
}

impl Reply {
    /// Removes the data of the last command. The memory of the buffers is reused.
    pub fn clear(&mut self) {
        self.stamps.clear();
        self.bytes.clear();
        self.entries.clear();
        self.notice = None;
    }
}

/// Reason why a command was not accepted.
///
/// A refused command has changed nothing, unless an [`FtlError`] stopped the command halfway. After
/// such an error, every later command fails with the same error until the drive is switched off and
/// on again. A read of unreadable data is harmless: it changes nothing, and other commands may
/// follow.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// The range is empty or does not lie inside the drive.
    OutOfRange {
        /// Sectors that the drive has.
        sectors: u64,
    },
    /// The data cannot be read, or the drive has stopped.
    Ftl(FtlError),
    /// The drive is worn out and refuses every change (`ftl.worn_out = read-only`). Reads go on.
    ReadOnly,
    /// A layer cannot use the data or the shape of the lower device.
    Layer(LayerError),
    /// The exported map has no such subregion or region.
    NoMap {
        /// Kind of the requested part: a subregion or a region.
        what: &'static str,
        /// Number of the requested part.
        number: u32,
        /// Number of such parts, or 0 if no map is exported.
        count: u32,
    },
}

/// Reason why a layer cannot continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayerError {
    /// The lower device holds data that this layer did not write. Nothing was changed.
    Foreign {
        /// Name of the layer.
        layer: &'static str,
        /// Data that was found, and the place of the data.
        what: String,
    },
    /// The layer's own records belong to another configuration. Nothing was changed.
    Mismatch {
        /// Name of the layer.
        layer: &'static str,
        /// The parameter.
        key: &'static str,
        /// Value in the records.
        found: u64,
        /// Value in the configuration.
        expected: u64,
    },
    /// The layer cannot work over this device. Nothing was changed.
    Unfit {
        /// Name of the layer.
        layer: &'static str,
        /// Reason, in words.
        what: String,
    },
    /// Data that the layer wrote cannot be read any more.
    Damaged {
        /// Name of the layer.
        layer: &'static str,
        /// Data that cannot be read, and the place of the data.
        what: String,
    },
}

impl std::fmt::Display for LayerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LayerError::Foreign { layer, what } => {
                write!(
                    f,
                    "{layer}: the lower device was not written by this layer: {what}; nothing \
                     was overwritten"
                )
            }
            LayerError::Mismatch { layer, key, found, expected } => write!(
                f,
                "{layer}: the lower device was written with {key} = {found}, but {key} is \
                 {expected} here; nothing was overwritten"
            ),
            LayerError::Unfit { layer, what } => write!(f, "{layer}: {what}"),
            LayerError::Damaged { layer, what } => {
                write!(f, "{layer}: damage was found: {what}")
            }
        }
    }
}

impl std::error::Error for LayerError {}

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
            SubmitError::ReadOnly => f.write_str(
                "the drive is worn out and read-only: it accepts no writes and no trims",
            ),
            SubmitError::Layer(error) => error.fmt(f),
            SubmitError::NoMap { what, number, count: 0 } => {
                write!(f, "{what} {number} of the map cannot be read: this device exports no map")
            }
            SubmitError::NoMap { what, number, count } => {
                write!(
                    f,
                    "{what} {number} of the map does not exist: the map has {count} of them, \
                     counted from 0"
                )
            }
        }
    }
}

impl std::error::Error for SubmitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SubmitError::Ftl(error) => Some(error),
            SubmitError::Layer(error) => Some(error),
            SubmitError::OutOfRange { .. } | SubmitError::ReadOnly | SubmitError::NoMap { .. } => {
                None
            }
        }
    }
}
