//! The types and numbers of the C ABI. `flashatlas.h` is generated from this file and `calls.rs`.

use std::ffi::c_void;

/// The version of this interface; `fa_drive_abi` returns the library's own.
pub const FA_DRIVE_ABI: u32 = 1;

/// A time that never comes: the time of the next event of a drive that has none.
pub const FA_NEVER: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// Bytes of a sector.
pub const FA_SECTOR_BYTES: u32 = 512;

/// The latest time that is accepted, in picoseconds: 106 days.
pub const FA_LATEST: u64 = 0x7FFF_FFFF_FFFF_FFFF;

/// Result of a call.
///
/// `fa_drive_error` returns a text for every result but `FA_SUCCESS`. A refused call changed
/// nothing, unless its code says otherwise here.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaCode {
    /// Done.
    FA_SUCCESS = 0,
    /// A pointer is null, a value has no meaning, or a buffer is too small.
    FA_ERR_ARGUMENT = 1,
    /// The range is empty or ends beyond the drive.
    FA_ERR_RANGE = 2,
    /// This drive, or this version of the library, cannot carry out the call.
    FA_ERR_UNSUPPORTED = 3,
    /// The queue is full: `queue_depth` commands are in flight.
    FA_ERR_QUEUE_FULL = 4,
    /// The time lies before a time that the drive has reached, or after `FA_LATEST`.
    FA_ERR_TIME = 5,
    /// The power is off: call `fa_power_on`.
    FA_ERR_POWER_OFF = 6,
    /// The power failed in this call, as `fa_power_cut_after` asked for. The command may have been
    /// carried out in part, and is not complete.
    FA_ERR_POWER_LOST = 7,
    /// The data cannot be read. Other commands may follow.
    FA_ERR_UNREADABLE = 8,
    /// The drive cannot go on (no space, or an erase or a program that failed): every later command
    /// gets this code until the power is switched off and on.
    FA_ERR_FAILED = 9,
    /// Commands are in flight, or the drive still works on something.
    FA_ERR_BUSY = 10,
    /// A rule of the drive does not hold: this is a defect of the simulator.
    FA_ERR_CHECK = 11,
    /// The simulator failed. Every later call on the drive gets this code: free the drive.
    FA_ERR_PANIC = 12,
}

/// Operation of a command.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaOp {
    /// Read sectors.
    FA_OP_READ = 1,
    /// Write sectors.
    FA_OP_WRITE = 2,
    /// Make every completed write durable; `lba` and `sectors` are 0.
    FA_OP_FLUSH = 3,
    /// Trim the mapping units that lie whole inside the range.
    FA_OP_TRIM = 4,
}

/// A command. Set all of it to zero first: in a field that is not supported yet, every value but 0
/// is an error.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaCommand {
    /// A `fa_op`.
    pub op: u32,
    /// 1: the write is durable when it is complete. 0 for all other commands.
    pub fua: u32,
    /// The first sector of 512 bytes.
    pub lba: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// The namespace: 0, the only one.
    pub namespace_id: u32,
    /// The stream of a write. Not supported yet: 0.
    pub stream: u32,
    /// The placement handle of a write. Not supported yet: 0.
    pub placement: u32,
    /// The command to a zone. Not supported yet: 0.
    pub zone_command: u32,
    /// Always 0.
    pub reserved: u32,
    /// Number of a write's content, from which stamps are made. 0: the drive numbers its writes.
    pub content: u64,
    /// The bytes of a write if the drive keeps bytes (`nand.data=ram`), else null.
    pub data: *const c_void,
    /// Bytes at `data`: `sectors` times 512, or 0.
    pub data_bytes: usize,
    /// Always 0.
    pub more: [u64; 4],
}

/// Buffers for the result of a read. Other commands need none.
///
/// The result is there when `fa_submit` returns. A host that models time looks at it when the
/// command is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaReply {
    /// Room for the bytes of the range, if the drive keeps bytes; null: they are not wanted.
    pub data: *mut c_void,
    /// Bytes of room at `data`.
    pub data_room: usize,
    /// Bytes that were put into `data`.
    pub data_bytes: usize,
    /// Room for a stamp of each mapping unit that the range touches; null: they are not wanted. The
    /// stamp of a unit that was never written is 0.
    pub stamps: *mut u32,
    /// Number of stamps that `stamps` has room for.
    pub stamp_room: usize,
    /// Number of stamps that were put into `stamps`.
    pub stamp_count: usize,
}

/// A command that is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaDone {
    /// Tag of the command.
    pub tag: u64,
    /// The time at which it was complete, in picoseconds.
    pub at_ps: u64,
}

/// Shape of the drive that a host sees.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaGeometry {
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// Bytes of a mapping unit: writes of whole units need no read.
    pub unit_bytes: u32,
    /// Commands that may be in flight at once.
    pub queue_depth: u32,
    /// 1: the drive keeps the bytes of writes (`nand.data=ram`); 0: stamps stand for them.
    pub keeps_bytes: u32,
    /// Always 0.
    pub reserved: u32,
}
