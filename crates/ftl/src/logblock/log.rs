//! The metadata of a log block.

use flashatlas_nand::OobRole;
use flashatlas_types::LogicalBlock;
use rustc_hash::FxHashMap;

/// The metadata of one log block.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// The kind of log block. The spare areas name the kind with which the block was opened.
    pub role: OobRole,
    /// The associated logical blocks: each has valid pages here, and the value is their number.
    pub lbns: FxHashMap<LogicalBlock, u32>,
    /// The logical block of its first page.
    pub owner: LogicalBlock,
    /// `true` if every page so far belongs to `owner` and is at its offset.
    pub in_place: bool,
    /// The number of pages programmed.
    pub programmed: u32,
    /// The time of the host's last write to the block or to one of its pages, on the clock of
    /// [`Core::clock`](super::Core::clock).
    pub touched: u64,
    /// `true` if its reclamation has begun.
    pub leaving: bool,
}

impl Log {
    /// Returns a log block without a page.
    pub fn empty(role: OobRole, touched: u64) -> Log {
        let (lbns, owner) = (FxHashMap::default(), LogicalBlock::new(u32::MAX));
        Log { role, lbns, owner, in_place: true, programmed: 0, touched, leaving: false }
    }

    /// Counts one more page, of `lbn`; `at_its_offset` is `true` if the page is at its offset.
    pub fn program(&mut self, lbn: LogicalBlock, at_its_offset: bool) {
        if self.programmed == 0 {
            self.owner = lbn;
        }
        self.in_place &= self.owner == lbn && at_its_offset;
        self.programmed += 1;
    }

    /// Returns the group, of `size` neighbouring logical blocks, of the first page.
    pub fn group(&self, size: u32) -> u32 {
        self.owner.number() / size
    }

    /// Returns `true` if all associated logical blocks are in one group of `size` neighbours.
    pub fn holds_only(&self, group: u32, size: u32) -> bool {
        self.lbns.keys().all(|lbn| lbn.number() / size == group)
    }
}
