//! Power failures: the state that they leave in an image.

use crate::disk::Disk;
use crate::image::Image;
use crate::spec::CutMode;
use flashatlas_nand::{Change, Cut, Medium, OobRole};
use flashatlas_types::{FrameId, LaneId, Rng, TiVec};
use std::io;

impl<D: Disk + 'static> Image<D> {
    /// Handles a power failure of `medium`: keeps what `mode` says of earlier operations and of the
    /// one in which the power failed.
    ///
    /// # Errors
    /// Returns an error if the file takes no more.
    pub fn lose_power(
        &mut self,
        medium: &mut Medium,
        mode: CutMode,
        rng: &mut Rng,
    ) -> io::Result<()> {
        let changes = medium.take_journal();
        match mode {
            CutMode::Subset => self.write_some(&changes, rng)?,
            CutMode::Prefix | CutMode::Torn => self.write(&changes)?,
        }
        if let (CutMode::Torn, Some(cut)) = (mode, medium.cut()) {
            self.tear(cut)?;
        }
        self.close()
    }

    /// Tears the page, or every page of the block, of the operation in which the power failed.
    ///
    /// Torn pages are neither erased nor readable.
    fn tear(&mut self, cut: Cut) -> io::Result<()> {
        let frames = match cut {
            Cut::Program(frame) => frame.0..frame.0 + 1,
            Cut::Erase(block) => {
                let first = self.layout().frame_in(block, 0).0;
                first..first + self.layout().frames_per_block
            }
        };
        frames.map(FrameId).try_for_each(|frame| self.write_torn(frame))
    }

    /// Writes the changes before a random point between two promises of the drive.
    ///
    /// Everything up to the first promise is written, and nothing from the second one on: a layer
    /// had sent the rest after its answer.
    fn write_some(&mut self, changes: &[Change], rng: &mut Rng) -> io::Result<()> {
        let between: Vec<&[Change]> = changes.split_inclusive(|c| *c == Change::Promised).collect();
        let fails = rng.below(between.len().max(1) as u64) as usize;
        for (number, some) in between.into_iter().take(fails + 1).enumerate() {
            if number < fails { self.write(some)? } else { self.write_part(some, rng)? }
        }
        Ok(())
    }

    /// Writes the changes of a subset: each lane carries out its operations in order, up to a
    /// random point.
    ///
    /// An operation that waits for everything before it (an erase, a part of a map, a spare block
    /// that takes over, NVM, a promise) is there only if everything before it is.
    fn write_part(&mut self, changes: &[Change], rng: &mut Rng) -> io::Result<()> {
        let mut given = self.layout().per_lane(0);
        for lane in changes.iter().filter_map(|change| self.lane(change)) {
            given[lane] += 1;
        }
        let mut left: TiVec<LaneId, u64> =
            given.iter().map(|&given| rng.below(given + 1)).collect();
        let mut lost = false;
        for change in changes {
            let lane = self.lane(change);
            let is_done = match lane {
                Some(lane) if self.waits_for_nothing(change) => left[lane] > 0,
                _ => !lost || !change.is_operation(),
            };
            if is_done {
                self.write_change(change)?;
                lane.inspect(|&lane| left[lane] = left[lane].saturating_sub(1));
            } else {
                lost = true;
                lane.inspect(|&lane| left[lane] = 0);
            }
        }
        Ok(())
    }

    /// Returns the lane of a change, if the change is on flash.
    fn lane(&self, change: &Change) -> Option<LaneId> {
        let layout = self.layout();
        let block = match *change {
            Change::Program { frame, .. } | Change::ProgramFailed(frame) => {
                layout.block_of_frame(frame)
            }
            Change::Erase(block)
            | Change::EraseFailed(block)
            | Change::Replaced { block, .. }
            | Change::Retired(block) => block,
            Change::Open(..)
            | Change::Number(_)
            | Change::Store { .. }
            | Change::Fence
            | Change::Promised => {
                return None;
            }
        };
        Some(layout.lane_of(block))
    }

    fn waits_for_nothing(&self, change: &Change) -> bool {
        let Change::Program { frame, .. } = *change else { return false };
        let role = self.role(self.layout().block_of_frame(frame));
        role != OobRole::MAP && role != OobRole::MIXED
    }
}
