//! Reads with wrong bits: which codewords are read, and the further reads that correct them.

use super::{Correction, Ending};
use crate::flash::{read_kind, touched};
use crate::{Flash, ReadPart, parts};
use flashatlas_types::{Cause, Dur, FrameId, Layout, MediumError, OpId, OpKind, Plan};
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
        let (mut ids, mut dies, mut lost) = ([OpId::NONE; 64], 0, false);
        for die in 0..layout.dies_per_frame {
            let (pages, bytes) = match layout.pages_per_frame {
                1 => (1, slots.count_ones() * layout.unit_bytes),
                _ => touched(&layout, die, 0, slots, part),
            };
            if pages == 0 {
                continue;
            }
            self.medium.counters.read(cause, mode, pages);
            let codewords = codewords(&layout, die, slots, part, codeword);
            let ending = self.medium.read_codewords(frame, pages, codewords).ending;
            lost |= ending == Ending::Uncorrectable;
            let kind = read_kind(&layout, mode, (block, frame), die, bytes, 0);
            ids[dies] = match &correction {
                Some(correction) => self.push_retries(kind, cause, after, correction, ending),
                None => self.plan.push_flash(kind, cause, after),
            };
            dies += 1;
        }
        if lost {
            self.medium.lose(frame);
            return Err(MediumError::Unreadable(frame));
        }
        Ok(self.plan.join(cause.class(true), &ids[..dies]))
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

/// Returns the codewords of `codeword` bytes on the frame's `die`-th die that hold parts of
/// `slots`, numbered over the frame. If a unit is larger than a page, they are the codewords of the
/// pages that are sensed.
fn codewords(
    layout: &Layout,
    die: u32,
    slots: u64,
    part: ReadPart,
    codeword: u32,
) -> SmallVec<[u32; 32]> {
    let (unit, page) = (u64::from(layout.unit_bytes), u64::from(layout.geometry.page_bytes));
    let codeword = u64::from(codeword);
    let mut found: SmallVec<[u32; 32]> = SmallVec::new();
    for plane in 0..layout.span.planes {
        let start = parts::page_start(layout, die, 0, plane);
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
