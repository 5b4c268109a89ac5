//! The records of blocks and lanes that an image writes.

use crate::ages::{PROGRAMMED_AT, READS, SLC_ERASES, lane_record};
use crate::disk::Disk;
use crate::image::Image;
use crate::places::BLOCK_BYTES;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, LaneId};
use std::io;

impl<D: Disk + 'static> Image<D> {
    pub(crate) fn write_block(&mut self, block: BlockId) -> io::Result<()> {
        let mut record = [0; BLOCK_BYTES];
        record[4..12].copy_from_slice(&u64::from(block.number()).to_le_bytes());
        record[12..16].copy_from_slice(&self.erases[block].to_le_bytes());
        (record[16], record[17]) = (self.health[block], u8::from(self.unreadable[block]));
        record[18] = 1; // no record is all zeros
        record[PROGRAMMED_AT..READS].copy_from_slice(&self.ages.programmed[block].to_le_bytes());
        record[READS..READS + 4].copy_from_slice(&self.ages.reads[block].to_le_bytes());
        record[SLC_ERASES..].copy_from_slice(&self.slc_erases[block].to_le_bytes());
        let sum = crc32c::crc32c(&record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        self.unsynced = true;
        self.disk.write_at(&record, self.places.block(block))
    }

    pub(crate) fn write_lane(&mut self, lane: LaneId) -> io::Result<()> {
        let clock = if lane == LaneId::new(0) { self.ages.clock_s } else { 0 };
        self.unsynced = true;
        self.disk.write_at(&lane_record(self.spares[lane], clock), self.places.lane(lane))
    }

    /// Takes the clock of the medium.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep_clock(&mut self, medium: &Medium) -> io::Result<()> {
        if !medium.has_errors() || medium.clock_s() == self.ages.clock_s {
            return Ok(());
        }
        self.ages.clock_s = medium.clock_s();
        self.write_lane(LaneId::new(0))
    }

    /// Takes the reads of every block.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep_reads(&mut self, medium: &Medium) -> io::Result<()> {
        let Some(aged) = medium.aged() else { return Ok(()) };
        for (at, reads) in (0..).zip(aged.reads) {
            let block = BlockId::new(at);
            if self.ages.reads[block] != reads {
                self.ages.reads[block] = reads;
                self.write_block(block)?;
            }
        }
        Ok(())
    }
}
