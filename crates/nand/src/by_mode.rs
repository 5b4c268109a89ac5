//! Reads and programs of flash that is not plain: with errors, blocks in SLC mode, or word lines.

use crate::flash::{read_kind, touched};
use crate::{Flash, ReadPart};
use flashatlas_types::{BlockMode, Cause, FrameId, MediumError, OpId, OpKind, ProgramUnit};
use smallvec::SmallVec;

impl Flash<'_> {
    /// Reads slots of a frame of a medium that has errors, blocks in SLC mode, or word lines.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_otherwise(
        &mut self,
        frame: FrameId,
        slots: u64,
        part: ReadPart,
        cause: Cause,
        after: &[OpId],
        seen: Option<OpId>,
    ) -> Result<OpId, MediumError> {
        if seen.is_none() && self.medium.has_errors() {
            return self.read_with_errors(frame, slots, part, cause, after);
        }
        let layout = &*self.medium.layout;
        if layout.program_unit == ProgramUnit::WordLine && layout.pages_per_frame > 1 {
            return Ok(self.read_word_line(frame, slots, part, cause, after, seen));
        }
        let mode = self.medium.mode(layout.block_of_frame(frame));
        Ok(self.read_pages((frame, slots, part), mode, cause, after, seen))
    }

    /// Reads slots of a frame that is a whole word line. Each page is sensed on its own, because
    /// its kind decides how long that takes.
    fn read_word_line(
        &mut self,
        frame: FrameId,
        slots: u64,
        part: ReadPart,
        cause: Cause,
        after: &[OpId],
        seen: Option<OpId>,
    ) -> OpId {
        let layout = &*self.medium.layout;
        let block = layout.block_of_frame(frame);
        let mode = self.medium.mode(block);
        let mut ids: SmallVec<[OpId; 8]> = SmallVec::new();
        for page in 0..layout.pages_in(mode) / layout.planes_per_frame {
            for die in 0..layout.dies_per_frame {
                let (pages, bytes) = touched(layout, die, page, slots, part);
                if pages == 0 {
                    continue;
                }
                self.medium.counters.read(cause, mode, pages);
                let back = seen.map_or(0, |seen| (self.plan.next_id().0 - seen.0) as u32);
                let mut kind = read_kind(layout, mode, (block, frame), die, bytes, back);
                if let (OpKind::Read { level, .. }, BlockMode::Native) = (&mut kind, mode) {
                    *level = page as u8;
                }
                ids.push(self.plan.push_flash(kind, cause, after));
            }
        }
        self.plan.join(cause.class(true), &ids)
    }

    /// Adds the operations of a program, as [`Flash::push_program`] does.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_program_otherwise(
        &mut self,
        frame: FrameId,
        cause: Cause,
        after: &[OpId],
    ) -> OpId {
        let mode = self.medium.mode(self.medium.layout.block_of_frame(frame));
        self.push_program_in(mode, frame, cause, after)
    }
}
