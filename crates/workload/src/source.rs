//! Records, the sources that yield them, and how they are read.

use crate::bad::{BadKind, BadKinds};
use crate::error::{Place, TraceError};
use flashatlas_types::{ConfigError, Dur, HostOp, Request};
use std::str::FromStr;

/// The longest read or write that a reader believes, in sectors (1 GiB). A longer one is a damaged
/// record, and would make everything behind it walk the pages of terabytes. A trim may be as long
/// as a [`Request`] can say.
pub const MAX_TRANSFER_SECTORS: u32 = 1 << 21;

/// Devices in one trace at most.
pub const MAX_DEVICES: u32 = 1 << 16;

/// One past the last sector whose bytes have 64-bit addresses.
pub(crate) const END_OF_SECTORS: u64 = 1 << 55;

/// A step of time that counts as a jump: more than a day, either way.
pub const JUMP: Dur = Dur(86_400 * 1_000_000_000_000);

/// One decoded record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What the host asks, and when: time since the first record of the trace. A record that
    /// carries an earlier time than the first is at 0; apart from that, records come in the order
    /// and with the times of the trace.
    pub request: Request,
    /// The address space (SPC ASU, MSR disk, iolog file), numbered from 0 in order of first
    /// appearance.
    pub device: u32,
}

/// A stream of records: a trace, or a generator.
pub trait RecordSource: Send {
    /// The next record, or `None` at the end. After an error the source is at its end.
    ///
    /// # Errors
    /// The place of a record that cannot be read (beyond those that [`ReadOptions::skip_bad`]
    /// and [`ReadOptions::skip_kinds`] forgive), of a damaged or truncated compressed stream, or of
    /// the end of a trace that holds no request.
    fn next(&mut self) -> Result<Option<Record>, TraceError>;

    /// What was left out and changed so far. Not for every record: it copies the names of the
    /// devices.
    fn account(&self) -> Account;

    /// Bytes of input consumed so far, as stored (compressed); 0 for a generator.
    fn bytes_read(&self) -> u64;

    /// The number of requests in all, where it is known in advance (generators).
    fn expected(&self) -> Option<u64>;

    /// Go on behind the end for as many requests as before, with later times and other random
    /// numbers: generators do, and return `true`.
    fn go_on(&mut self) -> bool {
        false
    }

    /// When the first record was submitted, as the trace has it: picoseconds since whatever instant
    /// its format counts from. `None` before that record, and where the trace does not say.
    fn origin_ps(&self) -> Option<u128> {
        None
    }

    /// The file of the record, or of the error, that was yielded last: of sources that read
    /// several.
    fn file(&self) -> Option<&str> {
        None
    }
}

/// What a source left out of its input and changed in it, so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Bad records skipped, as [`ReadOptions::skip_bad`] or [`ReadOptions::skip_kinds`] allows.
    pub skipped_bad: u64,
    /// Of these, the records of each of [`BadKind::ALL`].
    pub skipped_kinds: [u64; BadKind::ALL.len()],
    /// Records that repeated the one before ([`ReadOptions::drop_duplicates`]).
    pub duplicates_dropped: u64,
    /// Records of devices that [`DeviceMap::Select`] leaves out.
    pub not_selected: u64,
    /// Forward steps of time that were cut to [`ReadOptions::time_gap_max`].
    pub gaps_cut: u64,
    /// Backward steps longer than [`ReadOptions::time_gap_max`], each taken for a clock that was
    /// set.
    pub backward_steps: u64,
    /// Records that carry an earlier time than the first, and were put at its time.
    pub before_first: u64,
    /// Requests whose addresses lay beyond the range of their part of a merge, and were taken
    /// modulo its size.
    pub wrapped: u64,
    /// Where the record is that was yielded last, in a file.
    pub last_place: Option<Place>,
    /// The first step of time of more than a day ([`JUMP`]), as the trace has it.
    pub first_jump: Option<Jump>,
    /// The names of the devices as the trace has them, in the order of the numbers that
    /// [`DeviceMap::Separate`] gives them; empty in formats that name none. The atlas format tells
    /// them at its end.
    pub device_names: Vec<String>,
}

/// A step of time of more than a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jump {
    /// The record that it leads to.
    pub place: Place,
    /// The step in picoseconds; negative when it leads back. It may be far beyond what [`Dur`]
    /// holds.
    pub step_ps: i128,
}

impl Jump {
    /// The step in seconds.
    pub fn seconds(&self) -> f64 {
        self.step_ps as f64 / 1e12
    }
}

/// What becomes of the devices (address spaces) of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceMap {
    /// Each keeps its number.
    #[default]
    Separate,
    /// All of them become device 0: their addresses meet, and overwrite each other.
    Collapse,
    /// Only records of the device with this number are delivered, as device 0.
    Select(u32),
}

impl FromStr for DeviceMap {
    type Err = ConfigError;

    /// `separate`, `collapse` or `select:N`.
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

/// How to read a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// Bad records to skip and count before the next one is an error.
    pub skip_bad: u64,
    /// Kinds of bad records of which all are skipped and counted.
    pub skip_kinds: BadKinds,
    /// Sectors added to every address. The CloudPhysics traces are 7 off alignment: −7 puts them
    /// right.
    pub shift_sectors: i64,
    /// What becomes of several devices.
    pub device_map: DeviceMap,
    /// Drop a record that repeats the one before of the same device (operation, address and length)
    /// at most this long after it, or before. A dropped record is the reference for the next.
    pub drop_duplicates: Option<Dur>,
    /// Cut a forward step of time that is longer to this length, and move all later times along;
    /// take a backward step that is longer for a clock that was set, as no step.
    pub time_gap_max: Option<Dur>,
    /// The operation of every record in a trace that says none; without it they count as reads.
    /// Only for such traces.
    pub assume_op: Option<HostOp>,
}
