//! The books of a log block.

use flashatlas_nand::OobRole;
use rustc_hash::FxHashMap;

/// The books of one log block.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// The kind of log block. The spare areas have the kind that it was opened as.
    pub role: OobRole,
    /// Associated logical blocks: those with a valid page here, and how many.
    pub lbns: FxHashMap<u32, u32>,
    /// The logical block of its first page.
    pub owner: u32,
    /// Every page so far is one of `owner` and is at its offset.
    pub in_place: bool,
    /// Pages programmed.
    pub programmed: u32,
    /// When a page of it was last written or superseded by the host, on the clock of
    /// [`Core::clock`](super::Core::clock).
    pub touched: u64,
    /// Its reclamation has begun.
    pub leaving: bool,
}

impl Log {
    /// A log block without a page.
    pub fn empty(role: OobRole, touched: u64) -> Log {
        let (lbns, owner) = (FxHashMap::default(), u32::MAX);
        Log { role, lbns, owner, in_place: true, programmed: 0, touched, leaving: false }
    }

    /// One more page, of `lbn`; whether it is at its offset.
    pub fn program(&mut self, lbn: u32, at_its_offset: bool) {
        if self.programmed == 0 {
            self.owner = lbn;
        }
        self.in_place &= self.owner == lbn && at_its_offset;
        self.programmed += 1;
    }

    /// The group of `size` neighbouring logical blocks that the first page is of.
    pub fn group(&self, size: u32) -> u32 {
        self.owner / size
    }

    /// Whether all associated logical blocks are of one group of `size` neighbours.
    pub fn holds_only(&self, group: u32, size: u32) -> bool {
        self.lbns.keys().all(|lbn| lbn / size == group)
    }
}
