//! Programs in several steps.

use crate::flash::DiePlace;
use crate::gang::gang;
use crate::{Flash, Unit};
use flashatlas_types::{Cause, FrameId, MediumError, OpId, OpKind, Ppn, ProgramStep};

/// A step of a program that was made.
#[derive(Clone, Copy, Debug)]
pub struct SteppedProgram {
    /// The first slot of the frame.
    pub first: Ppn,
    /// The number of the program. The next step of the program needs this number.
    pub sequence: u64,
    /// The operation that completes the step.
    pub op: OpId,
}

impl Flash<'_> {
    /// Makes a step of the program of `frame` with `units`, with one operation on each die of the
    /// frame. All pages of the frame are transferred at each step, and it can be read after the
    /// last one. `sequence` is the number of the program, and `None` for its first step.
    ///
    /// # Errors
    /// Returns the errors of [`Flash::program`].
    ///
    /// # Panics
    /// Panics if the step is not the next one of the frame, or if its first step breaks a rule of
    /// programs.
    pub fn program_step<'u>(
        &mut self,
        frame: FrameId,
        units: impl ExactSizeIterator<Item = &'u Unit> + Clone,
        (step, sequence): (ProgramStep, Option<u64>),
        cause: Cause,
        after: &[OpId],
    ) -> Result<SteppedProgram, MediumError> {
        match self.medium.program_step(frame, units.clone(), step, sequence) {
            Ok((first, sequence)) => {
                let op = self.push_step(frame, step, cause, after);
                Ok(SteppedProgram { first, sequence, op })
            }
            Err(MediumError::ProgramFailed(_)) => {
                let mut last = self.copy_to_spare(frame, after)?;
                for number in 1..step.number {
                    let earlier = (ProgramStep { number, ..step }, sequence);
                    let units = units.clone();
                    last = self.program_step(frame, units, earlier, Cause::Replace, &[last])?.op;
                }
                self.program_step(frame, units, (step, sequence), cause, &[last])
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the operations of a step. Returns the operation that joins them.
    fn push_step(
        &mut self,
        frame: FrameId,
        step: ProgramStep,
        cause: Cause,
        after: &[OpId],
    ) -> OpId {
        let layout = &*self.medium.layout;
        let block = layout.block_of_frame(frame);
        let mode = self.medium.mode(block);
        let pages = layout.pages_in(mode);
        if step.number == 1 {
            self.medium.counters.program(cause, mode, pages);
        }
        self.medium.counters.steps[usize::from(step.number - 1)] += u64::from(pages);
        let bytes = layout.span.planes * layout.geometry.page_bytes * layout.pages_at_once(mode);
        gang(layout, self.plan, cause.class(false), after, |die, plan, after| {
            let DiePlace { die, block, page, .. } = DiePlace::of(layout, mode, (block, frame), die);
            let level = step.level();
            plan.push_flash(OpKind::Program { die, block, page, level, bytes }, cause, after)
        })
    }

    /// Repeats the steps that a frame has had in a spare block, if its program needs further ones.
    /// Returns the last operation, or `last` if there is none.
    pub(crate) fn repeat_steps(&mut self, frame: FrameId, mut last: OpId) -> OpId {
        for number in 1..=self.medium.steps_of(frame) {
            // the times of steps that have been made do not depend on the number of all steps
            let step = ProgramStep { number, of: u8::MAX };
            last = self.push_step(frame, step, Cause::Replace, &[last]);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, FrameState, Medium, ReadPart, Rules, Torn};
    use flashatlas_types::{
        AllocationOrder, Cell, Geometry, LaneId, Layout, Lpn, Plan, ProgramUnit, Seed, Span, Stamp,
    };
    use std::sync::Arc;

    const TWO: u8 = 2;

    /// Returns a medium whose blocks have four word lines of three units.
    fn medium(rules: Rules) -> Medium {
        let geometry = Geometry {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 3,
            pages: 12,
            page_bytes: 4096,
            spare_bytes: 128,
            cell: Cell::Tlc,
        };
        let order = AllocationOrder::parse("CWDP").unwrap();
        let (span, unit) = (Span::ONE, ProgramUnit::WordLine);
        let layout = Layout::of_frames(geometry, span, 4096, order, 24, unit).unwrap();
        let mut medium = Medium::new(Arc::new(layout), rules, 0, Seed(1)).unwrap();
        medium.keep_journal();
        medium
    }

    fn units(line: u32) -> [Unit; 3] {
        [0, 1, 2].map(|i| Unit { lpn: Lpn(3 * line + i), stamp: Stamp(line + 7), bytes: None })
    }

    fn step(
        (medium, plan): (&mut Medium, &mut Plan),
        line: u32,
        number: u8,
        sequence: Option<u64>,
    ) -> SteppedProgram {
        let program = (ProgramStep { number, of: TWO }, sequence);
        let mut flash = Flash { medium, plan };
        flash.program_step(FrameId(line), units(line).iter(), program, Cause::Host, &[]).unwrap()
    }

    #[test]
    fn a_frame_is_readable_after_its_last_step_and_keeps_its_number() {
        let (mut m, mut plan) = (medium(Rules::PLAIN), Plan::default());
        let first = step((&mut m, &mut plan), 0, 1, None);
        assert_eq!((m.state(FrameId(0)), m.steps_of(FrameId(0))), (FrameState::Unfinished, 1));
        let mut flash = Flash { medium: &mut m, plan: &mut plan };
        let read = flash.read(FrameId(0), 1, ReadPart::Whole, Cause::Host, &[]);
        assert_eq!(read, Err(MediumError::Unreadable(FrameId(0))));
        step((&mut m, &mut plan), 1, 1, None);
        step((&mut m, &mut plan), 0, 2, Some(first.sequence));
        assert_eq!(
            (m.state(FrameId(0)), m.frame_sequence(FrameId(0))),
            (FrameState::Programmed, Ok(1))
        );
        assert_eq!(m.unit(Ppn(2)).unwrap().stamp, Stamp(7));
        // two first steps and one second step, of three pages each
        assert_eq!((m.counters.steps, m.counters.programs[Cause::Host as usize]), ([6, 3, 0], 6));
        m.check().unwrap();
    }

    #[test]
    fn capacitors_finish_what_a_power_failure_would_tear() {
        for finishes_programs in [false, true] {
            let rules = Rules { finishes_programs, ..Rules::PLAIN };
            let (mut m, mut plan) = (medium(rules), Plan::default());
            step((&mut m, &mut plan), 0, 1, None);
            let mut redone = medium(rules);
            let journal = m.take_journal();
            journal.iter().for_each(|change| redone.redo(change));
            for mut left in [m, redone] {
                left.power_off();
                assert_eq!(left.unit(Ppn(1)).is_ok(), finishes_programs);
                assert_eq!(left.write_pointer(left.layout().block_of_frame(FrameId(0))), 1);
                left.check().unwrap();
            }
        }
    }

    #[test]
    fn a_torn_step_leaves_nothing() {
        let (mut m, mut plan) = (medium(Rules::PLAIN), Plan::default());
        step((&mut m, &mut plan), 0, 1, None);
        let change = m.take_journal().pop().unwrap();
        assert!(matches!(change, Change::Step { done: 1, sequence: 1, .. }));
        let ways = [Torn::Garbage, Torn::Part, Torn::Once, Torn::Paired];
        assert_eq!(ways.map(|torn| torn.applies_to(&change)), [true, false, false, false]);
        let mut left = medium(Rules::PLAIN);
        left.begin(&change, Torn::Garbage);
        assert_eq!(left.state(FrameId(0)), FrameState::Torn);
    }

    #[test]
    fn a_step_that_fails_is_made_again_in_a_spare_block() {
        let rules = Rules { spare_blocks: 1, ..Rules::PLAIN };
        let (mut m, mut plan) = (medium(rules), Plan::default());
        let first = step((&mut m, &mut plan), 0, 1, None);
        step((&mut m, &mut plan), 1, 1, None);
        m.fail_program_after(0);
        plan.clear();
        step((&mut m, &mut plan), 0, 2, Some(first.sequence));
        let made: Vec<(u32, u8)> = plan
            .iter()
            .map(|(_, op, _)| match op.kind {
                OpKind::Program { page, level, .. } => (page, level),
                other => panic!("{other:?}"),
            })
            .collect();
        // the failed program, then the first step of the other frame, from the controller, and both
        // steps of the failed one
        assert_eq!(made, [(0, 0), (1, 5), (0, 5), (0, 6)]);
        assert_eq!((m.spares(LaneId::new(0)), m.frame_sequence(FrameId(0))), (0, Ok(1)));
        assert_eq!((m.steps_of(FrameId(1)), m.unit(Ppn(0)).unwrap().stamp), (1, Stamp(7)));
        step((&mut m, &mut plan), 1, 2, Some(2));
        assert_eq!(m.unit(Ppn(3)).unwrap().stamp, Stamp(8));
        m.check().unwrap();
    }

    #[test]
    #[should_panic(expected = "has had 0 steps, so step 2 is not its next one")]
    fn steps_are_made_in_order() {
        let (mut m, mut plan) = (medium(Rules::PLAIN), Plan::default());
        step((&mut m, &mut plan), 0, 2, Some(1));
    }
}
