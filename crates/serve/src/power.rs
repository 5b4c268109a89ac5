//! Power failures, and the state in which they leave an image.

use crate::disk::Disk;
use crate::image::Image;
use crate::spec::CutMode;
use flashatlas_nand::{Change, Cut, Medium, OobRole};
use flashatlas_types::{FrameId, LaneId, Rng, TiVec};
use std::io;

impl<D: Disk + 'static> Image<D> {
    /// Handles a power failure of `medium`. Writes the operations that survive the failure in
    /// `mode`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
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
        if let (CutMode::Torn, Some(cut)) = (mode, medium.cut())
            && !(medium.rules().finishes_programs && matches!(cut, Cut::Program(_)))
        {
            self.tear(cut)?;
        }
        self.close()
    }

    /// Tears the pages of the operation in which the power failed: one page for a program, every
    /// page of the block for an erase.
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

    /// Writes all changes up to a random promise of the drive, and some of the changes up to the
    /// next promise.
    ///
    /// No change after the second promise is written, because a layer sent those commands only
    /// after the drive had answered with this promise.
    fn write_some(&mut self, changes: &[Change], rng: &mut Rng) -> io::Result<()> {
        let between: Vec<&[Change]> = changes.split_inclusive(|c| *c == Change::Promised).collect();
        let fails = rng.below(between.len().max(1) as u64) as usize;
        for (number, some) in between.into_iter().take(fails + 1).enumerate() {
            if number < fails { self.write(some)? } else { self.write_part(some, rng)? }
        }
        Ok(())
    }

    /// Writes a random part of the changes. Of each lane, it writes the operations up to a random
    /// point.
    ///
    /// Some operations wait for everything before them: an erase, a part of a map, a spare block
    /// that replaces another, NVM, a promise. Such an operation is written only if everything
    /// before it is written.
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
            Change::Program { frame, .. }
            | Change::Step { frame, .. }
            | Change::ProgramFailed(frame)
            | Change::Lost(frame)
            | Change::LostPart { frame, .. } => layout.block_of_frame(frame),
            Change::Erase(block)
            | Change::EraseFailed(block)
            | Change::Replaced { block, .. }
            | Change::Retired(block) => block,
            Change::Open(..)
            | Change::Number(_)
            | Change::Copied { .. }
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
