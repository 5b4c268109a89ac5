//! Independent references for log-block schemes, written from the schemes' rules, page by page.
//! They share no code with the schemes. They have no time, no geometry and no free list. The number
//! of a block is used only once.

mod area;
mod faster;
mod last;
mod mast;
mod sast;
mod store;
mod superblock;

pub use faster::{Faster, FasterRules};
pub use last::{Last, LastRules};
pub use mast::{ColdVictim, Mast, MastRules};
pub use sast::{Sast, SastRules};
use store::Store;
pub use store::{BlockId, Shape};
pub use superblock::{SuperblockRules, Superblocks};

/// Counts of a reference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub data_switch: u64,
    pub data_partial: u64,
    pub data_full: u64,
    pub log_switch: u64,
    pub log_partial: u64,
    pub log_full: u64,
    pub log_dead: u64,
    pub log_moved: u64,
    pub sequential_full: u64,
    pub copies: u64,
    pub moved_pages: u64,
    pub migrated: u64,
    pub in_place: u64,
    pub order_detours: u64,
    pub erases: u64,
    pub programs: u64,
}

impl Counts {
    /// Returns all counts, by name.
    pub fn list(&self) -> [(&'static str, u64); 16] {
        [
            ("data_switch", self.data_switch),
            ("data_partial", self.data_partial),
            ("data_full", self.data_full),
            ("log_switch", self.log_switch),
            ("log_partial", self.log_partial),
            ("log_full", self.log_full),
            ("log_dead", self.log_dead),
            ("log_moved", self.log_moved),
            ("sequential_full", self.sequential_full),
            ("copies", self.copies),
            ("moved_pages", self.moved_pages),
            ("migrated", self.migrated),
            ("in_place", self.in_place),
            ("order_detours", self.order_detours),
            ("erases", self.erases),
            ("programs", self.programs),
        ]
    }
}

/// One area of the log: its name, the number of blocks that it may have, and the number of blocks
/// that it has.
pub type AreaSize = (&'static str, usize, usize);

/// The operations of a reference.
pub trait Reference {
    /// Executes one request for `pages` pages from `first` on.
    fn write(&mut self, first: u32, pages: u32);
    /// Does all work for idle time.
    fn idle(&mut self);
    fn areas(&self) -> Vec<AreaSize>;
    fn store(&self) -> &Store;
    fn store_mut(&mut self) -> &mut Store;

    fn trim(&mut self, page: u32) {
        self.store_mut().trim(page);
    }

    /// Returns the block of the valid version of a page, and the index of the page in that block.
    fn place(&self, page: u32) -> Option<(BlockId, u32)> {
        self.store().place(page)
    }

    fn counts(&self) -> Counts {
        self.store().counts
    }

    fn reset_counts(&mut self) {
        self.store_mut().counts = Counts::default();
    }
}
