//! Reads with wrong bits: which codewords are read, and the further reads that correct them.

use super::parity::{Part, first_page};
use super::{Correction, Ending};
use crate::flash::{read_kind, touched};
use crate::{Flash, FrameState, ReadPart, parts};
use flashatlas_types::{
    BlockMode, Cause, Class, Dur, FrameId, Layout, MediumError, OpId, OpKind, Plan,
};
use smallvec::SmallVec;

impl Flash<'_> {
    /// Reads slots of one frame as [`Flash::read`] does. Each part of the frame is read until its
    /// bits can be corrected, or until every way to read it has failed.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_with_errors(
        &mut self,
        frame: FrameId,
        slots: u64,
        part: ReadPart,
        cause: Cause,
        after: &[OpId],
    ) -> Result<OpId, MediumError> {
        let layout = self.medium.shared_layout();
        let block = layout.block_of_frame(frame);
        let mode = self.medium.mode(block);
        let correction = self.medium.correction();
        let codeword = correction.map_or(layout.geometry.page_bytes, |c| c.codeword);
        let (index, class) = (layout.index_in(block, frame), cause.class(true));
        let (mut ids, mut lost) = (SmallVec::<[OpId; 8]>::new(), false);
        // each page of a word line is read on its own, because its kind decides how long that takes
        // and how many bits are wrong
        for of_line in 0..layout.pages_at_once(mode) {
            for die in 0..layout.dies_per_frame {
                let Some(with_data) = layout.data_die(index, die) else { continue };
                let (pages, bytes) = match layout.pages_per_frame {
                    1 => (1, slots.count_ones() * layout.unit_bytes),
                    _ => touched(&layout, with_data, of_line, slots, part),
                };
                if pages == 0 {
                    continue;
                }
                self.medium.counters.read(cause, mode, pages);
                let sensed = Part { die, of_line, pages };
                let at = (sensed, with_data);
                let codewords = codewords(&layout, at, slots, part, codeword);
                let read = self.medium.read_codewords(frame, sensed, codewords.iter().copied());
                let mut kind = read_kind(&layout, mode, (block, frame), die, bytes, 0);
                if let (OpKind::Read { level, .. }, BlockMode::Native) = (&mut kind, mode) {
                    *level += of_line as u8;
                }
                let mut last =
                    self.push_retries(kind, (cause, class), after, &correction, read.ending);
                if read.ending == Ending::Uncorrectable {
                    match self.rebuild(frame, sensed, &codewords, class, last) {
                        Some(rebuilt) => last = rebuilt,
                        None => lost = true,
                    }
                }
                ids.push(last);
            }
        }
        if lost {
            // a second part that is lost may have taken the frame before
            if self.medium.state(frame) == FrameState::Programmed {
                self.medium.lose(frame);
            }
            return Err(MediumError::Unreadable(frame));
        }
        Ok(self.plan.join(class, &ids))
    }

    /// Adds a read and its further reads, each with the time to decode it. Returns the operation
    /// after which the data is there, or is known to be lost.
    pub(super) fn push_retries(
        &mut self,
        kind: OpKind,
        (cause, class): (Cause, Class),
        after: &[OpId],
        correction: &Option<Correction>,
        ending: Ending,
    ) -> OpId {
        let plan = &mut *self.plan;
        let Some(correction) = correction else {
            return plan.push_flash_in(class, kind, cause, after);
        };
        let decoded = |plan: &mut Plan, time, sensed| match time {
            Dur::ZERO => sensed,
            time => plan.push(OpKind::Delay(time), class, &[sensed]),
        };
        let first = plan.push_flash_in(class, kind, cause, after);
        let mut last = decoded(plan, correction.decode, first);
        let retries = match ending {
            Ending::Corrected(retries) => retries,
            Ending::Soft | Ending::Uncorrectable => correction.steps,
        };
        for _ in 0..retries {
            // the die serves reads of one class in their order, so a retry that waits for nothing
            // begins when the cells of the read before it are free
            let sensed = if correction.overlap {
                plan.push_flash_in(class, kind, cause, after)
            } else {
                plan.push_flash_in(class, kind, cause, &[last])
            };
            last = decoded(plan, correction.decode, sensed);
        }
        if let (Ending::Soft | Ending::Uncorrectable, Some((_, reads, time))) =
            (ending, correction.soft)
        {
            for _ in 0..reads {
                last = plan.push_flash_in(class, kind, cause, &[last]);
            }
            last = decoded(plan, time, last);
        }
        last
    }
}

/// Returns the codewords of `codeword` bytes, numbered over all pages of the frame, that hold parts
/// of `slots`. They are in one part of the frame, whose die is its `with_data`-th die with data. If
/// a unit is larger than a page, they are the codewords of the pages that are sensed.
fn codewords(
    layout: &Layout,
    (Part { die, of_line, .. }, with_data): (Part, u32),
    slots: u64,
    part: ReadPart,
    codeword: u32,
) -> SmallVec<[u32; 32]> {
    let (unit, page) = (u64::from(layout.unit_bytes), u64::from(layout.geometry.page_bytes));
    let codeword = u64::from(codeword);
    let mut found: SmallVec<[u32; 32]> = SmallVec::new();
    for plane in 0..layout.span.planes {
        let start = parts::page_start(layout, with_data, of_line, plane);
        let of_all = u64::from(first_page(layout, die, of_line) + plane) * page;
        for of_unit in parts::of_page(layout, start, slots, part.sectors()) {
            let (from, to) = if unit > page { (start, start + page) } else { of_unit };
            let (from, to) = (from - start + of_all, to - start + of_all);
            for number in from / codeword..to.div_ceil(codeword) {
                if found.last() != Some(&(number as u32)) {
                    found.push(number as u32);
                }
            }
        }
    }
    found
}
