//! Limits of a subsystem. Its server chooses them.

use crate::Nqn;

/// Limits of a subsystem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Maximum number of associations at the same time.
    pub controllers: u16,
    /// Maximum number of I/O queues of a controller.
    pub queues: u16,
    /// Maximum number of entries of an I/O queue.
    pub entries: u16,
    /// Maximum number of entries of an admin queue: at least 32 (Base 5.1.12.3.1).
    pub admin_entries: u16,
    /// Maximum number of bytes of data in a command capsule: a multiple of 16.
    pub capsule_data: u32,
    /// Largest transfer of a command (MDTS): 4 KiB times two to this power, 1 to 12.
    pub transfer_pages_log2: u8,
    /// Maximum number of commands of a controller that the media carry out at the same time.
    pub fetch_window: u16,
    /// Hosts that may connect; `None` admits every host.
    pub hosts: Option<Vec<Nqn>>,
}

impl Default for Settings {
    /// Returns limits for a server of few hosts.
    ///
    /// Linux asks for I/O queues of 128 entries and an admin queue of 32 entries. A capsule holds 8
    /// KiB, so that small writes need no second round trip; a transfer is at most 1 MiB. The fetch
    /// window is 32, the default of `host.queue_depth`. With a larger window, commands would only
    /// be decided earlier than a drive decides them.
    fn default() -> Settings {
        Settings {
            controllers: 16,
            queues: 16,
            entries: 128,
            admin_entries: 32,
            capsule_data: 8192,
            transfer_pages_log2: 8,
            fetch_window: 32,
            hosts: None,
        }
    }
}

impl Settings {
    /// Checks the ranges.
    ///
    /// # Panics
    /// Panics if a limit is out of the range that the specification gives it.
    pub(crate) fn check(&self) {
        assert!((1..=1024).contains(&self.controllers), "1 to 1024 controllers");
        assert!((1..=1024).contains(&self.queues), "1 to 1024 queues");
        assert!(self.entries >= 2, "at least 2 entries");
        assert!((32..=4096).contains(&self.admin_entries), "32 to 4096 entries");
        assert!(self.capsule_data % 16 == 0 && self.capsule_data <= 1 << 20, "capsules");
        assert!((1..=12).contains(&self.transfer_pages_log2), "transfers of 8 KiB to 16 MiB");
        assert!(self.fetch_window > 0, "at least one command");
    }

    /// Returns `true` if a host may connect.
    pub(crate) fn admits(&self, host: &Nqn) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.contains(host))
    }

    /// Returns the largest transfer in bytes.
    pub(crate) fn largest_transfer(&self) -> u64 {
        4096 << self.transfer_pages_log2
    }
}
