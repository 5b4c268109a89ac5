//! Frames between the steps of a program.

use super::power::Draw;
use super::{Cut, FrameState};
use crate::{Change, Medium, Unit};
use flashatlas_types::{FrameId, MediumError, Ppn, ProgramStep};

impl Medium {
    /// Returns the number of steps that a frame has had, if its program needs further ones.
    /// Otherwise returns 0.
    pub fn steps_of(&self, frame: FrameId) -> u8 {
        self.cells.steps(frame)
    }

    /// Makes a step of the program of a frame with units. The frame can be read after the last one.
    /// `sequence` is the number of the program, and `None` for a new program.
    ///
    /// Returns the frame's first slot and the number of the program.
    ///
    /// # Errors
    /// Returns the errors of [`Medium::program`].
    ///
    /// # Panics
    /// Panics if the step is not the next one of the frame, or if its first step breaks a rule of
    /// programs.
    pub(crate) fn program_step<'a>(
        &mut self,
        frame: FrameId,
        units: impl ExactSizeIterator<Item = &'a Unit> + Clone,
        step: ProgramStep,
        sequence: Option<u64>,
    ) -> Result<(Ppn, u64), MediumError> {
        match self.draw_power_for(Cut::Program(frame)) {
            Draw::On => {}
            Draw::Fails => {
                self.tear(frame);
                return Err(MediumError::PowerLost);
            }
            Draw::Off => return Err(MediumError::PowerLost),
        }
        // a frame that is programmed anew in a spare block is not the next one
        if sequence.is_none()
            && let Some(why) = self.refuses_program(frame)
        {
            panic!("{why}");
        }
        let block = self.layout.block_of_frame(frame);
        let done = self.steps_of(frame);
        assert!(
            done + 1 == step.number && (done > 0 || self.state(frame) == FrameState::Erased),
            "frame {frame} has had {done} steps, so step {} is not its next one",
            step.number
        );
        if self.program_fails(block) {
            self.change(Change::ProgramFailed(frame));
            return Err(MediumError::ProgramFailed(frame));
        }
        let sequence = sequence.unwrap_or_else(|| {
            self.sequence += 1;
            assert!(self.sequence < 1 << 40, "the 40-bit program sequence is used up");
            self.counters.padded_slots +=
                u64::from(self.layout.slots_in(self.mode(block))) - units.len() as u64;
            self.sequence
        });
        let first = self.fill(frame, sequence, units.clone());
        if !step.is_last() {
            self.leave_unfinished(frame, step.number);
        }
        if self.elsewhere.is_some() {
            self.not_elsewhere.insert(frame);
        }
        self.note(|| {
            let units = units.cloned().collect();
            if step.is_last() {
                Change::Program { frame, sequence, units }
            } else {
                Change::Step { frame, sequence, units, done: step.number }
            }
        });
        Ok((first, sequence))
    }

    /// Notes that the program of a frame, which was filled, needs further steps.
    pub(crate) fn leave_unfinished(&mut self, frame: FrameId, done: u8) {
        self.cells.set_steps(frame, done);
        self.stepped = true;
    }

    /// Ends the programs that need further steps, because the power is off: capacitors finish them
    /// if there are any, and otherwise the frames are torn.
    pub(crate) fn end_steps(&mut self) {
        if !std::mem::take(&mut self.stepped) {
            return;
        }
        let finished = self.rules.finishes_programs;
        let end = if finished { FrameState::Programmed } else { FrameState::Torn };
        for block in self.layout.block_ids() {
            let written = 0..self.write_pointer(block);
            for frame in written.map(|index| self.layout.frame_in(block, index)) {
                if self.cells.steps(frame) > 0 {
                    self.cells.set_state(frame, end);
                }
            }
        }
    }
}
