//! Reads with wrong bits: which codewords are read, and the further reads that correct them.

use super::{Correction, Ending};
use crate::flash::{read_kind, touched};
use crate::{Flash, ReadPart, parts};
use flashatlas_types::{BlockMode, Cause, Dur, FrameId, Layout, MediumError, OpId, OpKind, Plan};
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
        let (mut ids, mut lost) = (SmallVec::<[OpId; 8]>::new(), false);
        // each page of a word line is read on its own, because its kind decides how long that takes
        // and how many bits are wrong
        for of_line in 0..layout.pages_at_once(mode) {
            for die in 0..layout.dies_per_frame {
                let (pages, bytes) = match layout.pages_per_frame {
                    1 => (1, slots.count_ones() * layout.unit_bytes),
                    _ => touched(&layout, die, of_line, slots, part),
                };
                if pages == 0 {
                    continue;
                }
                self.medium.counters.read(cause, mode, pages);
                let codewords = codewords(&layout, (die, of_line), slots, part, codeword);
                let read = self.medium.read_codewords(frame, (pages, of_line), codewords);
                lost |= read.ending == Ending::Uncorrectable;
                let mut kind = read_kind(&layout, mode, (block, frame), die, bytes, 0);
                if let (OpKind::Read { level, .. }, BlockMode::Native) = (&mut kind, mode) {
                    *level += of_line as u8;
                }
                ids.push(match &correction {
                    Some(correction) => {
                        self.push_retries(kind, cause, after, correction, read.ending)
                    }
                    None => self.plan.push_flash(kind, cause, after),
                });
            }
        }
        if lost {
            self.medium.lose(frame);
            return Err(MediumError::Unreadable(frame));
        }
        Ok(self.plan.join(cause.class(true), &ids))
    }

    /// Adds a read and its further reads, each with the time to decode it. Returns the operation
    /// after which the data is there, or is known to be lost.
    fn push_retries(
        &mut self,
        kind: OpKind,
        cause: Cause,
        after: &[OpId],
        correction: &Correction,
        ending: Ending,
    ) -> OpId {
        let class = cause.class(true);
        let plan = &mut *self.plan;
        let decoded = |plan: &mut Plan, time, sensed| match time {
            Dur::ZERO => sensed,
            time => plan.push(OpKind::Delay(time), class, &[sensed]),
        };
        let first = plan.push_flash(kind, cause, after);
        let mut last = decoded(plan, correction.decode, first);
        let retries = match ending {
            Ending::Corrected(retries) => retries,
            Ending::Soft | Ending::Uncorrectable => correction.steps,
        };
        for _ in 0..retries {
            // the die serves reads of one class in their order, so a retry that waits for nothing
            // begins when the cells of the read before it are free
            let sensed = if correction.overlap {
                plan.push_flash(kind, cause, after)
            } else {
                plan.push_flash(kind, cause, &[last])
            };
            last = decoded(plan, correction.decode, sensed);
        }
        if let (Ending::Soft | Ending::Uncorrectable, Some((_, reads, time))) =
            (ending, correction.soft)
        {
            for _ in 0..reads {
                last = plan.push_flash(kind, cause, &[last]);
            }
            last = decoded(plan, time, last);
        }
        last
    }
}

/// Returns the codewords of `codeword` bytes, numbered over the frame, that hold parts of `slots`.
/// They are on the frame's `die`-th die, in pages with number `of_line` on their word line. If a
/// unit is larger than a page, they are the codewords of the pages that are sensed.
fn codewords(
    layout: &Layout,
    (die, of_line): (u32, u32),
    slots: u64,
    part: ReadPart,
    codeword: u32,
) -> SmallVec<[u32; 32]> {
    let (unit, page) = (u64::from(layout.unit_bytes), u64::from(layout.geometry.page_bytes));
    let codeword = u64::from(codeword);
    let mut found: SmallVec<[u32; 32]> = SmallVec::new();
    for plane in 0..layout.span.planes {
        let start = parts::page_start(layout, die, of_line, plane);
        for of_unit in parts::of_page(layout, start, slots, part.sectors()) {
            let (from, to) = if unit > page { (start, start + page) } else { of_unit };
            for number in from / codeword..to.div_ceil(codeword) {
                if found.last() != Some(&(number as u32)) {
                    found.push(number as u32);
                }
            }
        }
    }
    found
}
