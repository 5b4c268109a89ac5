//! The clock of an image and the age of its blocks, and the records that hold them.
//!
//! The record of a block has the time of its first program since its last erase, and the reads of
//! its pages since then. The record of the first lane has the clock, in seconds. In images that
//! were made without these records, both are 0. Reads since the image was last closed are lost when
//! a server is killed.

use crate::frame::word;
use crate::places::LANE_BYTES;
use flashatlas_nand::Medium;
use flashatlas_nand::errors::Aged;
use flashatlas_types::{BlockId, LaneId, Layout, TiVec};

/// Places in the record of a block, and of the first lane.
pub(crate) const PROGRAMMED_AT: usize = 20;
pub(crate) const READS: usize = 24;
pub(crate) const SLC_ERASES: usize = 28;
pub(crate) const CLOCK: usize = 8;

/// The clock of an image, and the age of its blocks.
pub(crate) struct Ages {
    pub clock_s: u32,
    /// Seconds of the clock at the first program of each block, plus one; 0 if the block holds
    /// nothing.
    pub programmed: TiVec<BlockId, u32>,
    /// Reads of each block since its last erase.
    pub reads: TiVec<BlockId, u32>,
}

impl Ages {
    pub fn new(layout: &Layout) -> Ages {
        Ages { clock_s: 0, programmed: layout.per_block(0), reads: layout.per_block(0) }
    }

    pub fn read_block(&mut self, block: BlockId, record: &[u8]) {
        self.programmed[block] = word(record, PROGRAMMED_AT);
        self.reads[block] = word(record, READS);
    }

    pub fn read_lane(&mut self, lane: LaneId, record: &[u8]) {
        if lane == LaneId::new(0) {
            self.clock_s = word(record, CLOCK);
        }
    }

    /// Takes the clock and the ages of a checkpoint.
    pub fn take(&mut self, aged: Option<&Aged>) {
        let Some(aged) = aged else { return };
        self.clock_s = aged.clock_s;
        let known = aged.programmed_at.iter().zip(&aged.reads);
        for ((programmed, reads), (&at, &read)) in
            self.programmed.iter_mut().zip(&mut self.reads).zip(known)
        {
            (*programmed, *reads) = (at.saturating_add(1), read);
        }
    }

    /// Puts the clock and the ages on a medium.
    pub fn lay(&self, medium: &mut Medium) {
        medium.lay_ages(&Aged {
            seed: 0,
            clock_s: self.clock_s,
            programmed_at: self.programmed.iter().map(|at| at.saturating_sub(1)).collect(),
            reads: self.reads.iter().copied().collect(),
            carried: Vec::new(), // drives with images make no copybacks and have no parity
            lost_parts: Vec::new(),
        });
    }

    /// Notes a program of a block. Returns `true` if it is the first program since an erase.
    pub fn begins(&mut self, block: BlockId) -> bool {
        let first = self.programmed[block] == 0;
        if first {
            self.programmed[block] = self.clock_s.saturating_add(1);
        }
        first && self.clock_s > 0
    }

    pub fn erased(&mut self, block: BlockId) {
        (self.programmed[block], self.reads[block]) = (0, 0);
    }
}

/// Returns the record of a lane. Only the first lane has a clock.
pub(crate) fn lane_record(spares: u32, clock_s: u32) -> [u8; LANE_BYTES] {
    let mut record = [0; LANE_BYTES];
    record[4..8].copy_from_slice(&spares.to_le_bytes());
    record[CLOCK..CLOCK + 4].copy_from_slice(&clock_s.to_le_bytes());
    let sum = crc32c::crc32c(&record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
    record
}
