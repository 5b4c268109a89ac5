//! Counts of the requests that a player handed to its drive.

use flashatlas_types::{HostOp, Request, SECTOR_BYTES};

/// Maximum number of blocks of an NVMe read or write (NVM Command Set 1.0, 3.2.4: NLB has 16 bits).
const NVME_BLOCKS: u32 = 1 << 16;

/// Counts of a run's requests since its beginning.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Requests handed to the drive.
    pub submitted: u64,
    /// Requests that are complete.
    pub completed: u64,
    /// Reads whose data could not be read. They count as submitted and complete, too.
    pub unreadable: u64,
    /// Reads and writes handed to the drive that NVMe would send as several commands.
    pub longer_than_nvme: u64,
    /// Bytes of the writes handed to the drive.
    pub written: u64,
}

impl Tally {
    /// Counts a request that the drive has accepted.
    pub fn submitted(&mut self, r: &Request) {
        self.submitted += 1;
        self.longer_than_nvme += u64::from(r.sectors > NVME_BLOCKS && r.op != HostOp::Trim);
        self.written += if r.op == HostOp::Write { bytes(r) } else { 0 };
    }
}

/// Returns the bytes of a request.
pub(super) fn bytes(r: &Request) -> u64 {
    u64::from(r.sectors) * u64::from(SECTOR_BYTES)
}
