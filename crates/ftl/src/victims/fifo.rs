//! First in, first out: the block that was closed first. Also called LRU cleaning.

use super::{Candidates, VictimDef, VictimPolicy};
use crate::steady::Steady;
use std::collections::BTreeMap;

pub const DEF: VictimDef = VictimDef {
    name: "fifo",
    summary: "the block that was closed first",
    paper: "Menon, A Performance Comparison of RAID-5 and Log-Structured Arrays (HPDC 1995)",
    params: &[],
    build: |_, lane, _| Box::new(Fifo(ByAge::new(lane.blocks))),
    steady: Some(Steady::ByAge),
};

struct Fifo(ByAge);

/// Closed blocks in the order in which they closed.
#[derive(Debug)]
pub struct ByAge {
    order: BTreeMap<u64, u32>,
    closed_at: Vec<u64>,
    closings: u64,
}

impl ByAge {
    pub fn new(blocks: u32) -> ByAge {
        ByAge { order: BTreeMap::new(), closed_at: vec![0; blocks as usize], closings: 0 }
    }

    pub fn add(&mut self, block: u32) {
        self.closings += 1;
        self.closed_at[block as usize] = self.closings;
        self.order.insert(self.closings, block);
    }

    pub fn remove(&mut self, block: u32) {
        self.order.remove(&self.closed_at[block as usize]);
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.values().copied()
    }
}

impl VictimPolicy for Fifo {
    fn closed(&mut self, block: u32, _: u32, _: u64) {
        self.0.add(block);
    }

    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        self.0.remove(block);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<u32> {
        self.0.iter().find(|&b| lane.valid[b as usize] < lane.slots)
    }
}
