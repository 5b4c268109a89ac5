//! The content of frames, and whether it can be read.
//!
//! On a drive with a base, content that was never changed is computed when it is read. Most reads
//! are on a drive without a base. Each function tries this case first, and then makes no call.

use super::cell::{believed, has_name};
use super::{FrameState, Medium, Spare};
use crate::OobRole;
use flashatlas_types::{BlockId, FrameId, Lpn, MediumError, Ppn};

impl Medium {
    /// Returns the spare areas of a frame.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] unless they can be read.
    #[inline]
    pub fn spare(&self, frame: FrameId) -> Result<Spare<'_>, MediumError> {
        let sequence = self.frame_sequence(frame)?;
        Ok(Spare { sequence, cells: self.cells.of_frame(frame) })
    }

    /// Returns the sequence number of the program that wrote a frame.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] unless the frame's spare area can be read.
    #[inline]
    pub fn frame_sequence(&self, frame: FrameId) -> Result<u64, MediumError> {
        let header = self.cells.header(frame);
        if header.state != FrameState::Programmed as u8 && !has_name(self.state(frame)) {
            return Err(MediumError::Unreadable(frame));
        }
        Ok(header.sequence)
    }

    /// Returns the smallest and the largest sequence number in a block. Frames count if their spare
    /// areas can be read. If a block has no such frame, the first value is larger than the second.
    #[inline]
    pub fn sequences(&self, block: BlockId) -> (u64, u64) {
        let widen =
            |(least, greatest): (u64, u64), number: u64| (least.min(number), greatest.max(number));
        let frames = self.write_pointer(block);
        let first = self.layout.frame_in(block, 0).0;
        let mut range = (u64::MAX, 0);
        if let Some(headers) = self.cells.plain_headers(first..first + frames) {
            let programmed = FrameState::Programmed as u8;
            let mut all = true;
            for header in headers {
                all &= header.state == programmed;
                range = widen(range, header.sequence);
            }
            if all {
                return range;
            }
        }
        let numbers = (first..first + frames).flat_map(|f| self.frame_sequence(FrameId(f)));
        numbers.fold((u64::MAX, 0), widen)
    }

    /// Checks that the data of a frame can be read.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] unless the frame is programmed.
    #[inline]
    pub(crate) fn must_be_readable(&self, frame: FrameId) -> Result<(), MediumError> {
        if self.cells.is_plainly(frame, FrameState::Programmed) {
            return Ok(());
        }
        self.must_be_readable_otherwise(frame)
    }

    #[inline(never)]
    fn must_be_readable_otherwise(&self, frame: FrameId) -> Result<(), MediumError> {
        let state = self.state(frame);
        if state != FrameState::Programmed && !believed(state) {
            return Err(MediumError::Unreadable(frame));
        }
        Ok(())
    }

    /// Returns the logical page of a slot from the spare area, or [`Lpn::NONE`] for padding.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] unless the frame's spare area can be read.
    #[inline]
    pub fn lpn(&self, ppn: Ppn) -> Result<Lpn, MediumError> {
        let frame = self.layout.frame_of(ppn);
        if let Some([lpn, _]) = self.cells.plain_cell(frame, ppn) {
            return Ok(Lpn(lpn));
        }
        self.lpn_otherwise(frame, ppn)
    }

    #[inline(never)]
    fn lpn_otherwise(&self, frame: FrameId, ppn: Ppn) -> Result<Lpn, MediumError> {
        let state = self.state(frame);
        if state != FrameState::Programmed && !has_name(state) {
            return Err(MediumError::Unreadable(frame));
        }
        Ok(Lpn(self.cells.cell(ppn)[0]))
    }

    /// Returns the logical page and the stamp in a slot, unless the slot's frame is unreadable.
    #[inline]
    pub(super) fn slot(&self, ppn: Ppn) -> Result<[u32; 2], MediumError> {
        self.must_be_readable(self.layout.frame_of(ppn))?;
        Ok(self.cells.cell(ppn))
    }

    /// Returns `true` if a frame is for a map page, and `false` if it is for data. The role of the
    /// block decides, even if the frame is erased. In a block that has both data and map pages, the
    /// spare area of the frame decides, and the result for an erased frame is `false`.
    pub fn holds_map(&self, frame: FrameId) -> bool {
        let slot = self.layout.first_slot(frame);
        match self.oob_role(self.layout.block_of_frame(frame)) {
            OobRole::MAP => true,
            OobRole::MIXED => self.cells.cell(slot)[0] == Lpn::NONE.0,
            _ => false,
        }
    }
}
