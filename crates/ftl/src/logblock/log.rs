//! The metadata of a log block.

use flashatlas_nand::OobRole;
use flashatlas_types::LogicalBlock;
use rustc_hash::FxHashMap;

/// The metadata of one log block.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// The kind of log block. The spare areas name the kind that the block had when it was opened.
    pub role: OobRole,
    /// The associated logical blocks, each with the number of its valid pages in this log block.
    pub lbns: FxHashMap<LogicalBlock, u32>,
    /// The logical block of the first page.
    pub owner: LogicalBlock,
    /// `true` if every page so far belongs to `owner` and is at its offset in the logical block.
    pub in_place: bool,
    /// The number of pages programmed.
    pub programmed: u32,
    /// The time of the last host write to the block, or of the last host update of one of its
    /// pages, on the clock [`Core::clock`](super::Core::clock).
    pub touched: u64,
    /// `true` if the reclamation of the block has begun.
    pub leaving: bool,
}

impl Log {
    /// Returns a log block without a page.
    pub fn empty(role: OobRole, touched: u64) -> Log {
        let (lbns, owner) = (FxHashMap::default(), LogicalBlock::new(u32::MAX));
        Log { role, lbns, owner, in_place: true, programmed: 0, touched, leaving: false }
    }

    /// Counts a new page of `lbn`. `at_its_offset` is `true` if the page is at its offset.
    pub fn program(&mut self, lbn: LogicalBlock, at_its_offset: bool) {
        if self.programmed == 0 {
            self.owner = lbn;
        }
        self.in_place &= self.owner == lbn && at_its_offset;
        self.programmed += 1;
    }

    /// Returns the group of the first page. A group has `size` neighbouring logical blocks.
    pub fn group(&self, size: u32) -> u32 {
        self.owner.number() / size
    }

    /// Returns `true` if all associated logical blocks are in group `group` of `size` blocks.
    pub fn holds_only(&self, group: u32, size: u32) -> bool {
        self.lbns.keys().all(|lbn| lbn.number() / size == group)
    }
}
