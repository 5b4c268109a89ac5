//! Spare blocks. Flash parts have more blocks than their stated capacity needs, and the lowest
//! layer of the controller replaces failed blocks with these. Higher layers see only the time that
//! a replacement takes, because the block number does not change.
//!
//! - If a *program* fails, all readable pages of the block are copied to a spare block, with their
//!   spare areas. The spare block takes the number of the failed block, and the program is repeated
//!   there. Pages that could not be read cannot be read in the copy.
//! - If an *erase* fails, an erased spare block takes the number of the failed block.
//! - If no spare block is left, a failed erase makes the block bad, and the scheme gets an error. A
//!   failed program is an error, too.
//!
//! The copy becomes valid when it is entered in the table of replaced blocks. If the power fails
//! before that, the failed block is still in use. Its next program fails, and the replacement
//! begins again. Neither the table nor the firmware of this layer is simulated, and they take no
//! time.

use crate::Change;
use crate::medium::Block;
use crate::medium::power::Draw;
use crate::{Flash, FrameState, Medium, ReadPart};
use flashatlas_types::{BlockId, Cause, FrameId, LaneId, MediumError, OpId, SeededBug};

impl Medium {
    /// Returns the number of spare blocks left in a lane.
    pub fn spares(&self, lane: LaneId) -> u32 {
        self.spares[lane]
    }

    /// Replaces a block with a spare block, after the program of frame `failed` or an erase has
    /// failed.
    ///
    /// # Errors
    /// Returns [`MediumError::EraseFailed`] or [`MediumError::ProgramFailed`] if no spare block is
    /// left, and [`MediumError::PowerLost`] if the power fails.
    pub(crate) fn replace(
        &mut self,
        block: BlockId,
        failed: Option<FrameId>,
    ) -> Result<(), MediumError> {
        if self.draw_power() != Draw::On {
            return Err(MediumError::PowerLost);
        }
        if self.spares(self.layout.lane_of(block)) > 0 {
            self.counters.replaced_blocks += 1;
            self.change(Change::Replaced { block, failed });
            return Ok(());
        }
        match failed {
            Some(frame) => Err(MediumError::ProgramFailed(frame)),
            None => {
                self.change(Change::Retired(block));
                Err(MediumError::EraseFailed(block))
            }
        }
    }

    /// Changes the arrays of `block` to the content of the spare block that takes its number.
    pub(crate) fn put_spare(&mut self, block: BlockId, failed: Option<FrameId>) {
        self.spares[self.layout.lane_of(block)] -= 1;
        let Some(failed) = failed else {
            self.wipe(block);
            self.blocks[block] = Block::default();
            return;
        };
        let first = self.layout.frame_in(block, 0);
        if SeededBug::SpareWithoutCopy.is_active() {
            for frame in (first.0..failed.0).map(FrameId) {
                self.cells.set_state(frame, FrameState::Torn);
            }
        }
        self.cells.set_state(failed, FrameState::Erased);
        let is_used = |index: &u32| self.state(FrameId(first.0 + index)) != FrameState::Erased;
        let last = (0..self.layout.frames_per_block).rev().find(is_used);
        let next = last.map_or(0, |last| last + 1);
        let Block { role, mode, .. } = self.blocks[block];
        self.blocks[block] = Block { next, role, mode, ..Block::default() };
        // the controller has corrected what it copied
        for frame in (first.0..first.0 + next).map(FrameId) {
            if self.copybacks_of(frame) > 0 {
                self.cells.set_copied(frame, 0);
            }
        }
        self.note_erase(block);
        self.begin_age(block);
    }
}

impl Flash<'_> {
    /// Copies the block of a failed program to a spare block, which replaces the failed block.
    /// Returns the operation for which the next program must wait.
    pub(crate) fn copy_to_spare(
        &mut self,
        failed: FrameId,
        after: &[OpId],
    ) -> Result<OpId, MediumError> {
        let block = self.medium.layout.block_of_frame(failed);
        let mut last = self.push_program(failed, Cause::Replace, after);
        if self.medium.spares(self.medium.layout.lane_of(block)) > 0 {
            let slots = u64::MAX >> (64 - self.medium.layout.slots_per_frame);
            for index in 0..self.medium.write_pointer(block) {
                let frame = self.medium.layout.frame_in(block, index);
                if self.medium.state(frame) == FrameState::Programmed {
                    let read = self.read(frame, slots, ReadPart::Whole, Cause::Replace, &[last]);
                    // what cannot be corrected is lost in the copy, too
                    let Ok(sensed) = read else { continue };
                    last = self.push_program(frame, Cause::Replace, &[sensed]);
                }
                last = self.repeat_steps(frame, last);
            }
        }
        self.medium.replace(block, Some(failed))?;
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Rules, Unit};
    use flashatlas_fixtures::layouts::{lanes, letters};
    use flashatlas_types::{Lpn, Plan, Ppn, Seed, Stamp};

    fn medium(spare_blocks: u32) -> Medium {
        let layout = lanes(1, [3, 4, 1], 5);
        let mut medium =
            Medium::new(layout.into(), Rules { spare_blocks, ..Rules::PLAIN }, 0, Seed(1)).unwrap();
        medium.keep_journal();
        medium
    }

    fn program(
        medium: &mut Medium,
        plan: &mut Plan,
        frame: u32,
    ) -> Result<(Ppn, OpId), MediumError> {
        let unit = Unit { lpn: Lpn(frame), stamp: Stamp(frame + 100), bytes: None };
        Flash { medium, plan }.program(FrameId(frame), std::iter::once(&unit), Cause::Host, &[])
    }

    /// Programs two pages, and then a third whose program fails.
    fn failed(spare_blocks: u32) -> (Medium, Plan, Result<(Ppn, OpId), MediumError>) {
        let (mut m, mut plan) = (medium(spare_blocks), Plan::default());
        m.fail_program_after(2);
        assert!((0..2).all(|f| program(&mut m, &mut plan, f).is_ok()));
        plan.clear();
        let third = program(&mut m, &mut plan, 2);
        (m, plan, third)
    }

    #[test]
    fn a_block_in_which_a_program_fails_moves_to_a_spare_one() {
        let (mut m, mut plan, third) = failed(1);
        let (at, last) = third.unwrap();
        // the operations are the failed program, two pages that are read and programmed, and the
        // repeated program
        assert_eq!(letters(&plan), ['p', 'r', 'p', 'r', 'p', 'p']);
        assert_eq!(plan.iter().last().unwrap().0, last);
        assert_eq!([0, 1, 2].map(|p| m.unit(Ppn(p)).unwrap().stamp), [100, 101, 102].map(Stamp));
        assert_eq!((at, m.spares(LaneId::new(0)), m.counters.replaced_blocks), (Ppn(2), 0, 1));
        assert_eq!(
            (
                m.counters.programs[Cause::Host as usize],
                m.counters.programs[Cause::Replace as usize]
            ),
            (3, 3)
        );
        program(&mut m, &mut plan, 3).unwrap();
        assert!(
            Flash { medium: &mut m, plan: &mut plan }
                .erase(BlockId::new(0), Cause::Gc, &[])
                .is_ok(),
            "a new block"
        );
        m.check().unwrap();
    }

    #[test]
    fn without_a_spare_block_a_failed_program_is_an_error_and_stays_one() {
        let (mut m, mut plan, third) = failed(0);
        assert_eq!(third, Err(MediumError::ProgramFailed(FrameId(2))));
        assert_eq!(
            m.unit(Ppn(1)).unwrap().stamp,
            Stamp(101),
            "the spare block has the old content"
        );
        assert!(m.unit(Ppn(2)).is_err());
        assert_eq!(program(&mut m, &mut plan, 3), Err(MediumError::ProgramFailed(FrameId(3))));
        let erased =
            Flash { medium: &mut m, plan: &mut plan }.erase(BlockId::new(0), Cause::Gc, &[]);
        assert_eq!(erased, Err(MediumError::EraseFailed(BlockId::new(0))));
        assert!(m.is_bad(BlockId::new(0)));
        m.check().unwrap();
    }

    #[test]
    fn a_replacement_that_the_power_interrupts_begins_anew() {
        let (m, _, third) = failed(1);
        third.unwrap();
        let mut journal = m.clone().end_journal();
        let mut before = medium(1);
        let replaced = journal.iter().position(|c| matches!(c, Change::Replaced { .. })).unwrap();
        journal.drain(..replaced).for_each(|change| before.redo(&change));
        before.power_off();
        assert!(before.unit(Ppn(2)).is_err() && before.unit(Ppn(1)).is_ok());
        assert_eq!(before.spares(LaneId::new(0)), 1);
        // the next program of the block, which is of the page after the torn page, fails and causes
        // the replacement
        program(&mut before, &mut Plan::default(), 3).unwrap();
        assert_eq!(
            (before.spares(LaneId::new(0)), before.unit(Ppn(3)).unwrap().stamp),
            (0, Stamp(103))
        );
        assert!(before.unit(Ppn(2)).is_err(), "an unreadable page is unreadable in the copy");
        before.check().unwrap();
    }

    #[test]
    fn a_block_that_cannot_be_erased_is_replaced_or_bad() {
        for (spares, bad) in [(1, false), (0, true)] {
            let (mut m, mut plan) = (medium(spares), Plan::default());
            program(&mut m, &mut plan, 0).unwrap();
            m.fail_erase_after(0);
            let erased =
                Flash { medium: &mut m, plan: &mut plan }.erase(BlockId::new(0), Cause::Gc, &[]);
            assert_eq!((erased.is_err(), m.is_bad(BlockId::new(0))), (bad, bad));
            assert_eq!(m.write_pointer(BlockId::new(0)) > 0, bad, "the spare block is erased");
            let journal = m.take_journal();
            assert_eq!(journal[1], Change::EraseFailed(BlockId::new(0)));
            let end = if bad {
                Change::Retired(BlockId::new(0))
            } else {
                Change::Replaced { block: BlockId::new(0), failed: None }
            };
            assert_eq!(journal[2..], [end]);
            m.check().unwrap();
        }
    }
}
