//! Requests of a host, before a drive receives them.

use crate::{Lba, Ps};

/// Bytes in a sector. Host addresses count sectors, whatever the drive's mapping unit is.
pub const SECTOR_BYTES: u32 = 512;

/// The kind of a host request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HostOp {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Tell the drive that sectors are no longer needed (TRIM, discard, deallocate).
    Trim,
    /// Make every acknowledged write durable.
    Flush,
}

impl HostOp {
    /// All kinds, in the order of the run record.
    pub const ALL: [HostOp; 4] = [HostOp::Read, HostOp::Write, HostOp::Trim, HostOp::Flush];

    /// Returns the name in tables and records.
    pub const fn name(self) -> &'static str {
        ["read", "write", "trim", "flush"][self as usize]
    }
}

/// One request of a trace or a generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The time at which the host issues the request, counted from the first request of the trace.
    pub at: Ps,
    /// The kind of request.
    pub op: HostOp,
    /// First sector; zero for a flush.
    pub lba: Lba,
    /// Number of sectors; zero for a flush, at least one otherwise.
    pub sectors: u32,
    /// Force unit access: a write is durable when it completes.
    pub fua: bool,
}

impl Request {
    /// Returns the sector after the last sector, or `None` on overflow.
    pub fn end(&self) -> Option<u64> {
        self.lba.0.checked_add(u64::from(self.sectors))
    }
}
