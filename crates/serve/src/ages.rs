//! The clock of an image and the age of its blocks, and the records that hold them.
//!
//! The record of a block has the time of its first program since its last erase, and the reads of
//! its pages since then. The record of the first lane has the clock, in seconds. In images that
//! were made without these records, both are 0. Reads since the image was last closed are lost when
//! a server is killed.

use crate::disk::{Disk, locked};
use crate::error::ImageError;
use crate::frame::word;
use crate::header::{Header, read_text};
use crate::image::Image;
use crate::look::settings;
use crate::parts::{STANDARD_PARTS, environment};
use crate::places::{BLOCK_BYTES, LANE_BYTES, Places};
use crate::spec::{ServeError, ServeSpec};
use flashatlas_nand::Medium;
use flashatlas_nand::errors::Aged;
use flashatlas_nand::params::NVM_BYTES;
use flashatlas_sim::RunError;
use flashatlas_types::{BlockId, LaneId, Layout, TiVec};
use std::io;

/// Places in the record of a block, and of the first lane.
const PROGRAMMED_AT: usize = 20;
const READS: usize = 24;
pub(crate) const SLC_ERASES: usize = 28;
const CLOCK: usize = 8;

/// The clock of an image, and the age of its blocks.
pub(crate) struct Ages {
    clock_s: u32,
    /// Seconds of the clock at the first program of each block, plus one; 0 if the block holds
    /// nothing.
    programmed: TiVec<BlockId, u32>,
    reads: TiVec<BlockId, u32>,
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

fn lane_record(spares: u32, clock_s: u32) -> [u8; LANE_BYTES] {
    let mut record = [0; LANE_BYTES];
    record[4..8].copy_from_slice(&spares.to_le_bytes());
    record[CLOCK..CLOCK + 4].copy_from_slice(&clock_s.to_le_bytes());
    let sum = crc32c::crc32c(&record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
    record
}

/// Lets an image rest for some seconds: its clock goes on, and the next mount finds the effects of
/// this time. Returns the clock, in seconds.
///
/// `plan` names the image. Without `plan.drive`, the drive comes from the header of the image.
///
/// # Errors
/// Returns a [`ServeError`] if the file is not an image of this drive, if a server has it open, or
/// if the record of the clock is damaged.
pub fn age(plan: &ServeSpec, seconds: u32) -> Result<u32, ServeError> {
    let path = plan.image.as_deref().expect("the plan names an image");
    let failed = |error: ImageError| ServeError::Image(path.to_path_buf(), error);
    if !path.exists() {
        return Err(failed(io::Error::from(io::ErrorKind::NotFound).into()));
    }
    let file = locked(path).map_err(failed)?;
    let header = Header::read(&file).map_err(failed)?;
    let (text, version) = read_text(&file).map_err(failed)?;
    let mut plan = plan.clone();
    if plan.drive.is_empty() {
        plan.set.splice(0..0, settings(&header));
        plan.drive = header.drive;
    }
    let env = environment(&STANDARD_PARTS, &plan);
    let config = env.registry.load(&plan.drive, plan.drive_toml.as_deref(), &plan.set);
    let config = config.map_err(RunError::from)?;
    let layout = config.layout().map_err(RunError::from)?;
    let places = Places::of(&layout, config.params.get(NVM_BYTES), text.len());
    let io = |error: io::Error| failed(error.into());
    places.must_be_whole(file.length().map_err(io)?, version).map_err(failed)?;
    let place = places.lane(LaneId::new(0));
    let mut record = [0; LANE_BYTES];
    file.read_at(&mut record, place).map_err(io)?;
    if word(&record, 0) != crc32c::crc32c(&record[4..]) {
        let why = "the record of its clock does not match its checksum".to_owned();
        return Err(failed(ImageError::Foreign(why)));
    }
    let clock = word(&record, CLOCK).saturating_add(seconds);
    file.write_at(&lane_record(word(&record, 4), clock), place).map_err(io)?;
    file.sync().map_err(io)?;
    Ok(clock)
}
