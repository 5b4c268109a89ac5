//! Records, the sources that yield them, and the options of reading.

use crate::bad::{BadKind, BadKinds};
use crate::error::{Place, TraceError};
use flashatlas_types::{ConfigError, Dur, HostOp, Request};
use std::str::FromStr;

/// Maximum number of sectors of a read or write that a reader accepts (1 GiB). A longer record is
/// taken for damaged, because its simulation could walk over terabytes of pages. A trim may be as
/// long as a [`Request`] can be.
pub const MAX_TRANSFER_SECTORS: u32 = 1 << 21;

/// Maximum number of devices in one trace.
pub const MAX_DEVICES: u32 = 1 << 16;

/// One past the last sector whose bytes have 64-bit addresses.
pub(crate) const END_OF_SECTORS: u64 = 1 << 55;

/// Longest step of time, forward or backward, that is no jump: a day.
pub const JUMP: Dur = Dur(86_400 * 1_000_000_000_000);

/// One decoded record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Request of the host, with its time since the first record of the trace. A record with an
    /// earlier time than the first is at 0. Apart from that, records have the order and the times
    /// of the trace.
    pub request: Request,
    /// Address space (SPC ASU, MSR disk, iolog file), numbered from 0 in order of first appearance.
    pub device: u32,
}

/// A stream of records: a trace, or a generator.
pub trait RecordSource: Send {
    /// Returns the next record, or `Ok(None)` at the end. After an error the source is at its end.
    ///
    /// # Errors
    /// Returns an error for a record that cannot be read, unless [`ReadOptions::skip_bad`] or
    /// [`ReadOptions::skip_kinds`] allows the record. Returns an error for a damaged or truncated
    /// compressed stream, and at the end of a trace that holds no request. The error has the place.
    fn next(&mut self) -> Result<Option<Record>, TraceError>;

    /// Returns an account of the records that were left out or changed so far. The account copies
    /// the names of the devices, so do not call this for every record.
    fn account(&self) -> Account;

    /// Returns the number of bytes of input consumed so far, as stored (compressed); 0 for a
    /// generator.
    fn bytes_read(&self) -> u64;

    /// Returns the number of requests in all, or `None` if it is not known in advance. Generators
    /// return the number.
    fn expected(&self) -> Option<u64>;

    /// Continues after the end for the same number of requests. They have later times and other
    /// random numbers. Generators continue and return `true`; other sources return `false`.
    fn go_on(&mut self) -> bool {
        false
    }

    /// Returns the time at which the first record was submitted, in picoseconds since the instant
    /// that its format counts from. Returns `None` before that record, and if the trace has no such
    /// time.
    fn origin_ps(&self) -> Option<u128> {
        None
    }

    /// Returns the file of the record, or of the error, that was yielded last. Returns `None` for
    /// sources that read one file.
    fn file(&self) -> Option<&str> {
        None
    }
}

/// Account of the records that a source left out or changed so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Bad records skipped, as [`ReadOptions::skip_bad`] or [`ReadOptions::skip_kinds`] allows.
    pub skipped_bad: u64,
    /// Number of these records of each kind in [`BadKind::ALL`].
    pub skipped_kinds: [u64; BadKind::ALL.len()],
    /// Records that repeated the record before ([`ReadOptions::drop_duplicates`]).
    pub duplicates_dropped: u64,
    /// Number of records of devices that [`DeviceMap::Select`] leaves out.
    pub not_selected: u64,
    /// Number of forward steps of time that were cut to [`ReadOptions::time_gap_max`].
    pub gaps_cut: u64,
    /// Number of backward steps longer than [`ReadOptions::time_gap_max`], each taken for a clock
    /// that was set.
    pub backward_steps: u64,
    /// Number of records with an earlier time than the first. They were moved to its time.
    pub before_first: u64,
    /// Number of requests whose addresses lay beyond the range of their part of a merge, and were
    /// taken modulo its size.
    pub wrapped: u64,
    /// Place of the record that was yielded last, in its file.
    pub last_place: Option<Place>,
    /// The first step of time of more than a day ([`JUMP`]), with its length in the trace.
    pub first_jump: Option<Jump>,
    /// Names of the devices in the trace, in the order of the numbers that [`DeviceMap::Separate`]
    /// gives them. The list is empty in formats that name no device. A file in the atlas format has
    /// the names at its end.
    pub device_names: Vec<String>,
}

/// A step of time of more than a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jump {
    /// Place of the record at the end of the step.
    pub place: Place,
    /// Step in picoseconds; negative if it leads back. It may be far beyond the range of [`Dur`].
    pub step_ps: i128,
}

impl Jump {
    /// Returns the step in seconds.
    pub fn seconds(&self) -> f64 {
        self.step_ps as f64 / 1e12
    }
}

/// Treatment of the devices (address spaces) of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceMap {
    /// Each device keeps its number.
    #[default]
    Separate,
    /// All devices become device 0, so that writes to the same address of different devices
    /// overwrite each other.
    Collapse,
    /// Only records of the device with this number are delivered, as device 0.
    Select(u32),
}

impl FromStr for DeviceMap {
    type Err = ConfigError;

    /// Reads `separate`, `collapse` or `select:N`.
    fn from_str(text: &str) -> Result<DeviceMap, ConfigError> {
        const CHOICES: [&str; 3] = ["separate", "collapse", "select:N"];
        match text.split_once(':') {
            None if text == "separate" => Ok(DeviceMap::Separate),
            None if text == "collapse" => Ok(DeviceMap::Collapse),
            Some(("select", number)) => match number.parse() {
                Ok(device) if device < MAX_DEVICES => Ok(DeviceMap::Select(device)),
                _ => Err(ConfigError::allowing(
                    "device_map",
                    format!("`{number}` is not the number of a device"),
                    format!("select:0 to select:{}", MAX_DEVICES - 1),
                )),
            },
            _ => Err(ConfigError::unknown("device_map", "device map", text, &CHOICES)),
        }
    }
}

/// Options of reading a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// Number of bad records that are skipped and counted; the next bad record is an error.
    pub skip_bad: u64,
    /// Kinds of bad records that are skipped and counted, whatever their number.
    pub skip_kinds: BadKinds,
    /// Sectors added to every address. The CloudPhysics traces are 7 off alignment: −7 aligns them.
    pub shift_sectors: i64,
    /// Treatment of several devices.
    pub device_map: DeviceMap,
    /// Time within which repeated records are dropped. A record is repeated if the record before it
    /// on the same device has the same operation, address and length, and is at most this much
    /// earlier or later. A dropped record is the reference for the next record. `None` drops none.
    pub drop_duplicates: Option<Dur>,
    /// Longest step of time. A longer forward step is cut to this length, and all later times move
    /// along. A longer backward step is taken for a clock that was set, and counts as a step of
    /// length 0. `None` is no limit.
    pub time_gap_max: Option<Dur>,
    /// Operation of every record in a trace that names no operations; `None` stands for a read. An
    /// operation set here is an error for a trace that names operations.
    pub assume_op: Option<HostOp>,
}
