//! Properties of a controller (Base 3.1.4).

use crate::errors::{Refused, invalid};

/// Version of the specification that the controllers follow: 2.1.
pub(crate) const VERSION: u32 = 0x0002_0100;
/// Longest time until a controller is ready, in units of 500 ms: 30 s. For this time, Linux waits
/// for commands that the media still carry out.
const READY_TIMEOUT: u64 = 60;

/// Offsets of the properties.
pub mod offset {
    #![allow(missing_docs)]
    pub const CAPABILITIES: u32 = 0x00;
    pub const VERSION: u32 = 0x08;
    pub const CONFIGURATION: u32 = 0x14;
    pub const STATUS: u32 = 0x1C;
    pub const READY_TIMEOUTS: u32 = 0x68;
}

/// State of a shutdown (CSTS.SHST).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shutdown {
    None = 0,
    Running = 1,
    Done = 2,
}

/// Requests in a write of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Asked {
    pub reset: bool,
    pub enable: bool,
    pub shutdown: Option<ShutdownKind>,
}

/// Kind of a shutdown (CC.SHN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShutdownKind {
    Normal,
    Abrupt,
}

/// Properties of a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    discovery: bool,
    /// Entries of the largest I/O queue.
    entries: u16,
    /// Controller Configuration (CC).
    configuration: u32,
    ready: bool,
    pub shutdown: Shutdown,
    /// Controller Fatal Status (CSTS.CFS).
    pub fatal: bool,
}

/// Field CC.EN.
const ENABLE: u32 = 1;

impl Properties {
    pub const fn new(discovery: bool, entries: u16) -> Properties {
        Properties {
            discovery,
            entries,
            configuration: 0,
            ready: false,
            shutdown: Shutdown::None,
            fatal: false,
        }
    }

    /// Returns Controller Capabilities (CAP).
    pub const fn capabilities(&self) -> u64 {
        let command_sets: u64 = if self.discovery { 1 } else { 1 | 1 << 6 };
        let with_media = 1 << 59;
        (self.entries as u64 - 1) | 1 << 16 | READY_TIMEOUT << 24 | command_sets << 37 | with_media
    }

    /// Returns the value of the property at an offset.
    pub fn get(&self, offset: u32, eight_bytes: bool) -> Result<u64, Refused> {
        let value = match offset {
            offset::CAPABILITIES => self.capabilities(),
            offset::VERSION => VERSION.into(),
            offset::CONFIGURATION => self.configuration.into(),
            offset::STATUS => self.status().into(),
            offset::READY_TIMEOUTS => READY_TIMEOUT,
            _ => return Err(invalid(11, 0)),
        };
        if eight_bytes == (offset == offset::CAPABILITIES) {
            Ok(value)
        } else {
            Err(invalid(10, 0))
        }
    }

    /// Returns Controller Status (CSTS).
    const fn status(&self) -> u32 {
        self.ready as u32 | (self.fatal as u32) << 1 | (self.shutdown as u32) << 2
    }

    /// Returns `true` if commands are processed.
    pub const fn is_ready(&self) -> bool {
        self.ready && self.is_enabled()
    }

    /// Returns `true` if the host has enabled the controller.
    pub const fn is_enabled(&self) -> bool {
        self.configuration & ENABLE != 0
    }

    /// Returns `true` if the entries of I/O queues have the sizes of the NVM Command Set.
    pub const fn queue_entries_fit(&self) -> bool {
        (self.configuration >> 16) & 0xFF == 0x46
    }

    /// Writes the configuration, and returns the requests in this write. A refused write changes
    /// nothing.
    pub fn configure(&mut self, value: u32) -> Result<Asked, Refused> {
        let old = self.configuration;
        let enable = value & ENABLE != 0;
        let command_set = value >> 4 & 7;
        if enable && old & ENABLE == 0 {
            // a page size, arbitration or command set that CAP does not list
            let known = command_set == 0 || command_set == 6 && !self.discovery;
            if value >> 7 & 0x7F != 0 || !known {
                return Err(invalid(12, 0));
            }
        }
        let shutdown = match value >> 14 & 3 {
            _ if value >> 14 & 3 == old >> 14 & 3 => None,
            1 => Some(ShutdownKind::Normal),
            2 => Some(ShutdownKind::Abrupt),
            3 => return Err(invalid(12, 14)),
            _ => None,
        };
        let asked = Asked {
            reset: !enable && old & ENABLE != 0,
            enable: enable && old & ENABLE == 0,
            shutdown,
        };
        // bits 31 to 24 and 3 to 1 are read-only
        self.configuration = value & 0x00FF_FFF1;
        if asked.reset {
            // a reset clears everything that the write does not ask for (Base 3.7.2)
            self.configuration &= 3 << 14;
            // a shutdown that still runs is aborted, as Figure 42 allows
            self.shutdown = Shutdown::None;
            self.fatal = false;
        }
        if asked.enable && value >> 14 & 3 == 0 && self.shutdown == Shutdown::Done {
            self.shutdown = Shutdown::None; // Base 3.6.2
        }
        Ok(asked)
    }

    /// Sets CSTS.RDY as the configuration asks, if the controller is `idle`. A controller is idle
    /// if the media carry out no command from before a reset.
    pub fn settle(&mut self, idle: bool) {
        if idle && (!self.is_enabled() || self.shutdown == Shutdown::None) {
            self.ready = self.is_enabled();
        }
    }
}
