//! The C ABI. `flashatlas.h` is generated from this file.
//!
//! The same safety rules hold for all functions. A pointer is null or points to its type. Strings
//! end with a zero. A buffer has the size that the argument beside it gives. A drive was made by
//! `fa_drive_create`, was not freed, and is used by one thread at a time.

use std::ffi::c_void;

/// The version of this interface. `fa_drive_abi` returns the version of the library.
pub const FA_DRIVE_ABI: u32 = 1;

/// A time that never comes. It is the time of the next event if there is none.
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
    /// The call succeeded.
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
    /// The power failed during this call, as requested by `fa_power_cut_after`. The command may
    /// have been carried out in part, and is not complete.
    FA_ERR_POWER_LOST = 7,
    /// The data cannot be read. Other commands may follow.
    FA_ERR_UNREADABLE = 8,
    /// The drive stopped, because it has no space or because an erase or a program failed. Every
    /// later command gets this code until the power is switched off and on.
    FA_ERR_FAILED = 9,
    /// Commands are in flight, or the drive still works on something.
    FA_ERR_BUSY = 10,
    /// A rule of the drive does not hold. This is a defect of the simulator.
    FA_ERR_CHECK = 11,
    /// The simulator failed. Every later call on the drive gets this code; only `fa_drive_free` is
    /// of use.
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

/// A command. Set the whole structure to zero first. A value other than 0 in a field that is not
/// supported yet is an error.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaCommand {
    /// A `fa_op`.
    pub op: u32,
    /// 1 if a write must be durable when it is complete; 0 for all other commands.
    pub fua: u32,
    /// The first sector of 512 bytes.
    pub lba: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// The namespace. It is 0, because a drive has only one.
    pub namespace_id: u32,
    /// The stream of a write. Not supported yet, so it is 0.
    pub stream: u32,
    /// The placement handle of a write. Not supported yet, so it is 0.
    pub placement: u32,
    /// The command to a zone. Not supported yet, so it is 0.
    pub zone_command: u32,
    /// Always 0.
    pub reserved: u32,
    /// Number of a write's content. The stamps of the write are made from it. If it is 0, the drive
    /// numbers the write.
    pub content: u64,
    /// The bytes of a write if the drive stores bytes (`nand.data=ram`), otherwise null.
    pub data: *const c_void,
    /// Number of bytes at `data`: `sectors` times 512, or 0 if `data` is null.
    pub data_bytes: usize,
    /// Always 0.
    pub more: [u64; 4],
}

/// Buffers for the result of a read. Other commands need no buffers.
///
/// The result is in the buffers when `fa_submit` returns. A host that models time must not use it
/// before the command is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaReply {
    /// Buffer for the bytes of the range, if the drive stores bytes. Null if the host does not need
    /// them.
    pub data: *mut c_void,
    /// Size of the buffer `data` in bytes.
    pub data_room: usize,
    /// Number of bytes that were written to `data`.
    pub data_bytes: usize,
    /// Buffer for the stamp of each mapping unit that the range touches. Null if the host does not
    /// need them. The stamp of a unit that was never written is 0.
    pub stamps: *mut u32,
    /// Size of the buffer `stamps`, in stamps.
    pub stamp_room: usize,
    /// Number of stamps that were written to `stamps`.
    pub stamp_count: usize,
}

/// A command that is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaDone {
    /// Tag of the command.
    pub tag: u64,
    /// The time at which the command was complete, in picoseconds.
    pub at_ps: u64,
}

/// Shape of the drive as its host sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaGeometry {
    /// Number of sectors of 512 bytes.
    pub sectors: u64,
    /// Bytes of a mapping unit. A write of whole units needs no read.
    pub unit_bytes: u32,
    /// Largest number of commands that may be in flight at the same time.
    pub queue_depth: u32,
    /// 1 if the drive stores the bytes of writes (`nand.data=ram`); 0 if it stores stamps instead.
    pub keeps_bytes: u32,
    /// Always 0.
    pub reserved: u32,
}
