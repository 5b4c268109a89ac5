//! First in, first out: the block that was closed first. The policy is also called LRU cleaning.

use super::{Candidates, LaneShape, Moment, VictimDef, VictimPolicy};
use crate::steady::Steady;
use flashatlas_types::{LocalBlock, TiVec};
use std::collections::BTreeMap;

pub const DEF: VictimDef = VictimDef {
    name: "fifo",
    summary: "the block that was closed first",
    paper: "Menon, A Performance Comparison of RAID-5 and Log-Structured Arrays (HPDC 1995)",
    params: &[],
    build: &|_, lane, _| Box::new(Fifo { candidates: ByAge::new(lane), slots: lane.slots }),
    steady: Some(Steady::ByAge),
};

/// First in, first out. Closed blocks without an invalid slot are not listed. Most blocks of cold
/// data have no invalid slot, and every pick would have to skip them.
struct Fifo {
    candidates: ByAge,
    slots: u32,
}

/// Closed blocks in the order in which they were closed.
#[derive(Debug)]
pub struct ByAge {
    order: BTreeMap<u64, LocalBlock>,
    /// The number of each block's closing, or 0 if the block is not closed.
    closed_at: TiVec<LocalBlock, u64>,
    closings: u64,
}

impl ByAge {
    pub fn new(lane: LaneShape) -> ByAge {
        ByAge { order: BTreeMap::new(), closed_at: lane.per_block(0), closings: 0 }
    }

    pub fn add(&mut self, block: LocalBlock) {
        self.close(block);
        self.list(block);
    }

    /// Notes that a block was closed, without adding it to the list.
    fn close(&mut self, block: LocalBlock) {
        self.closings += 1;
        self.closed_at[block] = self.closings;
    }

    /// Adds a block to the list at its place, if the block is closed.
    fn list(&mut self, block: LocalBlock) {
        let at = self.closed_at[block];
        if at > 0 {
            self.order.insert(at, block);
        }
    }

    pub fn remove(&mut self, block: LocalBlock) {
        self.order.remove(&std::mem::take(&mut self.closed_at[block]));
    }

    /// Returns the listed blocks, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = LocalBlock> + '_ {
        self.order.values().copied()
    }
}

impl VictimPolicy for Fifo {
    fn closed(&mut self, block: LocalBlock, valid: u32, _: Moment) {
        self.candidates.close(block);
        if valid < self.slots {
            self.candidates.list(block);
        }
    }

    fn invalidated(&mut self, block: LocalBlock, _: u32, _: Moment) {
        self.candidates.list(block);
    }

    fn removed(&mut self, block: LocalBlock) {
        self.candidates.remove(block);
    }

    fn pick(&mut self, _: &Candidates<'_>) -> Option<LocalBlock> {
        self.candidates.iter().next()
    }
}
