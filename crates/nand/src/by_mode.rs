//! Reads and programs of flash that is not plain: with errors, parity, blocks in SLC mode, or word
//! lines.

use crate::flash::{read_kind, touched};
use crate::{Flash, ReadPart};
use flashatlas_types::{BlockMode, Cause, FrameId, MediumError, OpId, OpKind, ProgramUnit};
use smallvec::SmallVec;

impl Flash<'_> {
    /// Reads slots of a frame of a medium that has errors, parity, blocks in SLC mode, or word
    /// lines.
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
        let has_lines = layout.program_unit == ProgramUnit::WordLine && layout.pages_per_frame > 1;
        if has_lines || layout.has_parity() {
            return Ok(self.read_by_page(frame, slots, part, cause, after, seen));
        }
        let mode = self.medium.mode(layout.block_of_frame(frame));
        Ok(self.read_pages((frame, slots, part), mode, cause, after, seen))
    }

    /// Reads slots of a frame that is a whole word line or has parity. Each page of a word line is
    /// sensed on its own, because its kind decides how long that takes.
    fn read_by_page(
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
        let index = layout.index_in(block, frame);
        for of_line in 0..layout.pages_at_once(mode) {
            for die in 0..layout.dies_per_frame {
                let Some(with_data) = layout.data_die(index, die) else { continue };
                let (pages, bytes) = touched(layout, with_data, of_line, slots, part);
                if pages == 0 {
                    continue;
                }
                self.medium.counters.read(cause, mode, pages);
                let back = seen.map_or(0, |seen| (self.plan.next_id().0 - seen.0) as u32);
                let mut kind = read_kind(layout, mode, (block, frame), die, bytes, back);
                if let (OpKind::Read { level, .. }, BlockMode::Native) = (&mut kind, mode) {
                    *level += of_line as u8;
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
        if self.medium.layout.has_parity() {
            return self.push_program_with_parity(mode, frame, cause, after);
        }
        self.push_program_in(mode, frame, cause, after)
    }
}
