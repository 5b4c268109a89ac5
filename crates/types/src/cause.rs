//! Reasons for operations, and their priorities.

/// The reason for an operation. The run record counts flash operations by cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// A host request.
    Host,
    /// The write cache, which makes room or is flushed.
    CacheEvict,
    /// A read-modify-write, for the part of a mapping unit that a host write did not cover.
    Rmw,
    /// Garbage collection in the foreground.
    Gc,
    /// Map pages.
    Map,
    /// Merges of log-block schemes, and rewrites of block-mapped schemes.
    Merge,
    /// Static wear levelling.
    Wear,
    /// Work during idle time.
    Idle,
    /// Mounting after a power cut.
    Recovery,
    /// A spare block that replaces a block in which a program failed.
    Replace,
    /// Data that leaves an SLC cache for native blocks.
    Fold,
    /// Refresh and read reclaim of data before its bits can no longer be corrected.
    Refresh,
    /// Parity over the dies of a frame: its programs, and the reads that rebuild a page.
    Parity,
}

impl Cause {
    /// All causes, in the order of the run record.
    pub const ALL: [Cause; 13] = [
        Cause::Host,
        Cause::CacheEvict,
        Cause::Rmw,
        Cause::Gc,
        Cause::Map,
        Cause::Merge,
        Cause::Wear,
        Cause::Idle,
        Cause::Recovery,
        Cause::Replace,
        Cause::Fold,
        Cause::Refresh,
        Cause::Parity,
    ];

    /// Returns the name of the cause in the run record.
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; Cause::ALL.len()] = [
            "host",
            "cache_evict",
            "rmw",
            "gc",
            "map",
            "merge",
            "wear",
            "idle",
            "recovery",
            "replace",
            "fold",
            "refresh",
            "parity",
        ];
        NAMES[self as usize]
    }

    /// Returns the priority class of an operation with this cause. The operation is a read if
    /// `read` is `true`, otherwise a program or an erase. An operation on parity has the class of
    /// another cause instead ([`crate::Plan::push_flash_in`]).
    #[inline]
    pub const fn class(self, read: bool) -> Class {
        match self {
            Cause::Host | Cause::Rmw if read => Class::HostRead,
            Cause::Host | Cause::CacheEvict | Cause::Rmw => Class::HostWrite,
            Cause::Map => Class::Map,
            Cause::Gc
            | Cause::Merge
            | Cause::Wear
            | Cause::Recovery
            | Cause::Replace
            | Cause::Fold
            | Cause::Refresh
            | Cause::Parity => Class::Gc,
            Cause::Idle => Class::Idle,
        }
    }
}

/// Priority class of an operation on a die or a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Reads that a host waits for.
    HostRead,
    /// Map pages.
    Map,
    /// Host data on its way to flash.
    HostWrite,
    /// Collection, merges, wear levelling.
    Gc,
    /// Work during idle time.
    Idle,
}

impl Class {
    /// All classes, in the default order of priority.
    pub const ALL: [Class; 5] =
        [Class::HostRead, Class::Map, Class::HostWrite, Class::Gc, Class::Idle];

    /// Returns the name of the class in configuration.
    pub const fn name(self) -> &'static str {
        ["host_read", "map", "host_write", "gc", "idle"][self as usize]
    }
}
