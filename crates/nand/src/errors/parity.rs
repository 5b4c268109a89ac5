//! Frames with parity over their dies: parts that are lost, and the pages that are rebuilt.
//!
//! A *part* of a frame is what it has on one of its dies. A codeword that nothing corrects is
//! rebuilt from the codewords with its number on all other dies, if each of them can be corrected.
//! A part that failed at random is lost as a whole, and a frame is lost with its second part.

use super::params::{PARITY, PARITY_TIME};
use super::{Ending, ErrorRules};
use crate::flash::read_kind;
use crate::medium::cell::PADDING;
use crate::{Change, Flash, FrameState, Medium};
use flashatlas_types::{
    BlockId, BlockMode, Cause, Class, ConfigError, Dur, FrameId, Layout, OpId, OpKind, Params,
    SeededBug,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// The pages of a frame on one of its dies that a read senses together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The number of the die in the frame.
    pub die: u32,
    /// The number of the pages on their word line.
    pub of_line: u32,
    /// The number of the pages, at most one on each plane.
    pub pages: u32,
}

/// Returns the number, among all pages of a frame, of the first page of a part.
pub(super) fn first_page(layout: &Layout, die: u32, of_line: u32) -> u32 {
    of_line * layout.planes_per_frame + die * layout.span.planes
}

/// Checks that a drive with parity may lose a page, and that the time of a rebuild has a use.
pub(super) fn check(params: &Params) -> Result<(), ConfigError> {
    if params.get(PARITY) == "none" {
        return match params.get(PARITY_TIME) {
            Dur::ZERO => Ok(()),
            _ => {
                let why = "has no use with ecc.parity = none: set ecc.parity, or leave this out";
                Err(ConfigError::new(PARITY_TIME.key(), why))
            }
        };
    }
    if ErrorRules::from_params(params).is_some_and(|errors| errors.lose_pages()) {
        return Ok(());
    }
    let why = "nothing makes a page unreadable: needs errors.model or errors.unreadable";
    Err(ConfigError::new(PARITY.key(), why))
}

impl Medium {
    fn lost_map(&self) -> Option<&FxHashMap<FrameId, u64>> {
        self.errors.as_ref().map(|errors| &errors.lost_parts).filter(|lost| !lost.is_empty())
    }

    /// Returns `true` if the part of a frame on this die is lost.
    #[inline]
    pub(super) fn is_part_lost(&self, frame: FrameId, die: u32) -> bool {
        let of_frame = self.lost_map().and_then(|lost| lost.get(&frame));
        of_frame.is_some_and(|dies| dies >> die & 1 == 1)
    }

    /// Makes the part of a programmed frame on one of its dies permanently unreadable, and records
    /// this. The frame can be read until it loses a second part.
    ///
    /// # Panics
    /// Panics if frames have no parity, if the frame is not programmed, or if it has no die with
    /// this number.
    pub fn lose_part(&mut self, frame: FrameId, die: u32) {
        assert!(
            self.layout.has_parity() && die < self.layout.dies_per_frame,
            "frame {frame} has no part {die} beside its parity"
        );
        assert!(self.state(frame) == FrameState::Programmed, "frame {frame} holds nothing");
        self.change(Change::LostPart { frame, die });
    }

    pub(crate) fn set_lost_part(&mut self, frame: FrameId, die: u32) {
        let errors = self.errors.as_mut().expect("frames with parity may lose pages");
        let dies = errors.lost_parts.entry(frame).or_default();
        *dies |= 1 << die;
        if dies.count_ones() > 1
            && self.state(frame) == FrameState::Programmed
            && !SeededBug::RebuildOfLost.is_active()
        {
            self.lose_data(frame);
        }
    }

    /// Returns the frames that can be read although a part is lost, with the die of this part, in
    /// ascending order.
    pub(super) fn lost_parts(&self) -> Vec<(FrameId, u32)> {
        let all = self.lost_map().into_iter().flatten();
        let mut parts: Vec<(FrameId, u32)> = all
            .filter(|&(&frame, _)| self.state(frame) == FrameState::Programmed)
            .map(|(&frame, dies)| (frame, dies.trailing_zeros()))
            .collect();
        parts.sort_unstable();
        parts
    }

    /// Notes the lost parts of frames of a saved state.
    ///
    /// # Errors
    /// Returns an error if a frame does not exist, is not programmed, or has no such part.
    pub(crate) fn lay_lost_parts(&mut self, parts: &[(FrameId, u32)]) -> Result<(), String> {
        for (at, &(frame, die)) in parts.iter().enumerate() {
            let is_known = frame.0 < self.layout.frames()
                && self.layout.has_parity()
                && die < self.layout.dies_per_frame
                && self.state(frame) == FrameState::Programmed;
            let is_next = at == 0 || parts[at - 1].0 < frame;
            if !is_known || !is_next || self.errors.is_none() {
                return Err(format!(
                    "the saved state has lost the part of frame {frame} on die {die}, which is no \
                     single part of a programmed frame with parity (ecc.parity)"
                ));
            }
            self.set_lost_part(frame, die);
        }
        Ok(())
    }

    /// Forgets the lost parts of a block that is erased, and that it was due for reclaim.
    pub(super) fn forget_lost_parts(&mut self, block: BlockId) {
        if self.layout.has_parity()
            && let Some(errors) = &mut self.errors
        {
            errors.reclaim.retain(|&due| due != block);
            if !errors.lost_parts.is_empty() {
                let frames = self.layout.frames_of(block);
                errors.lost_parts.retain(|frame, _| !frames.contains(frame));
            }
        }
    }

    /// Begins to note blocks with a rebuilt page as due for reclaim.
    pub fn note_rebuilt(&mut self) {
        if let Some(errors) = &mut self.errors {
            errors.reclaims_rebuilt = true;
        }
    }

    /// Returns whether nothing corrects a codeword of a frame, in a part on this die.
    fn is_uncorrectable(
        &mut self,
        frame: FrameId,
        (die, of_line): (u32, u32),
        number: u32,
    ) -> bool {
        self.is_part_lost(frame, die)
            || self.ending(frame, of_line, [number]).ending == Ending::Uncorrectable
    }

    /// Returns whether no two dies of a frame have a codeword at the same place that nothing
    /// corrects. `codewords` belong to the pages with number `of_line` on the word line.
    pub(super) fn can_rebuild(
        &mut self,
        frame: FrameId,
        of_line: u32,
        codewords: Range<u32>,
    ) -> bool {
        if !self.layout.has_parity() {
            return false;
        }
        let dies = self.layout.dies_per_frame;
        let of_die = codewords.len() as u32 / dies;
        (0..of_die).all(|place| {
            let is_lost = |&die: &u32| {
                let number = codewords.start + die * of_die + place;
                self.is_uncorrectable(frame, (die, of_line), number)
            };
            (0..dies).filter(is_lost).count() < 2
        })
    }
}

impl Flash<'_> {
    /// Rebuilds the codewords of a part that nothing corrects, among those that a read wants. Adds
    /// a read of the same pages on each of the other dies, after the operation `failed`. Returns
    /// the operation after which the data is there, or `None` if the frame is lost.
    pub(super) fn rebuild(
        &mut self,
        frame: FrameId,
        part: Part,
        wanted: &[u32],
        class: Class,
        failed: OpId,
    ) -> Option<OpId> {
        let layout = self.medium.shared_layout();
        if !layout.has_parity() {
            self.medium.counters.errors.lost += 1;
            return None;
        }
        let block = layout.block_of_frame(frame);
        let mode = self.medium.mode(block);
        let correction = self.medium.correction();
        let codeword = correction.map_or(layout.geometry.page_bytes, |c| c.codeword);
        let of_a_page = layout.geometry.page_bytes / codeword;
        let first = |die| first_page(&layout, die, part.of_line) * of_a_page;
        let at = (part.die, part.of_line);
        let is_needed = |number: &u32| self.medium.is_uncorrectable(frame, at, *number);
        let needed: Vec<u32> = wanted.iter().copied().filter(is_needed).collect();
        let (mut read, mut is_sound) = (SmallVec::<[OpId; 8]>::new(), true);
        for die in (0..layout.dies_per_frame).filter(|&die| die != part.die) {
            self.medium.counters.read(Cause::Parity, mode, part.pages);
            let those = needed.iter().map(|number| number - first(part.die) + first(die));
            let ending = self.medium.read_codewords(frame, Part { die, ..part }, those).ending;
            let bytes = part.pages * layout.geometry.page_bytes;
            let mut kind = read_kind(&layout, mode, (block, frame), die, bytes, 0);
            if let (OpKind::Read { level, .. }, BlockMode::Native) = (&mut kind, mode) {
                *level += part.of_line as u8;
            }
            let of_part = (Cause::Parity, class);
            read.push(self.push_retries(kind, of_part, &[failed], &correction, ending));
            if ending == Ending::Uncorrectable {
                (is_sound, self.medium.counters.errors.lost) =
                    (false, self.medium.counters.errors.lost + 1);
            }
        }
        let garbage = !is_sound && SeededBug::RebuildOfLost.is_active()
            || SeededBug::ParityOfOldData.is_active() && self.medium.is_padded(frame);
        if garbage {
            self.medium.scramble(frame);
        } else if !is_sound {
            self.medium.counters.errors.lost += 1;
            return None;
        }
        self.medium.counters.errors.rebuilt += 1;
        let errors = self.medium.errors.as_mut().expect("a read has failed");
        if errors.reclaims_rebuilt && !errors.reclaim.contains(&block) {
            errors.reclaim.push(block);
        }
        let all = self.plan.join(class, &read);
        match errors.rules.rebuild {
            Dur::ZERO => Some(all),
            time => Some(self.plan.push(OpKind::Delay(time), class, &[all])),
        }
    }
}

/// The effects of seeded bugs.
impl Medium {
    fn is_padded(&self, frame: FrameId) -> bool {
        self.cells.of_frame(frame).contains(&PADDING)
    }

    /// Replaces the content of a frame, as a rebuild from wrong pages does.
    fn scramble(&mut self, frame: FrameId) {
        let (_, cells) = self.cells.change(frame);
        cells.iter_mut().zip(frame.0..).for_each(|(cell, n)| cell[1] = !n);
    }
}
