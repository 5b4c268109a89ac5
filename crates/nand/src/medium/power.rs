//! Fault: the power fails.
//!
//! A cut comes after a number of programs, erases, and stores and fences of the byte-addressable
//! memory, in the order in which the scheme asked for them. The operation in which the power fails
//! begins but does not end. A program leaves a torn page, an erase has not yet changed a cell, and
//! a store is not fenced (see [`crate::nvm`]).
//!
//! This operation and every later one end with [`flashatlas_types::MediumError::PowerLost`], which
//! travels up through the scheme. The state of the scheme in memory is of no use then, and a mount
//! is the next to read the medium.

use crate::{FrameState, Medium, Nvm, OobRole};
use flashatlas_types::{BlockId, FrameId, MediumError};

const PROGRAMMED: u8 = FrameState::Programmed as u8;

/// The number of operations until the power is off, including the one in which it fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Power(u64);

/// The program or erase in which the power failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// A program of this frame.
    Program(FrameId),
    /// An erase of this block.
    Erase(BlockId),
}

/// The outcome of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Draw {
    /// The operation is carried out.
    On,
    /// The power fails in the operation.
    Fails,
    /// There was no power for the operation.
    Off,
}

impl Power {
    /// Power that does not fail.
    pub const ON: Power = Power(u64::MAX);

    /// Returns whether the power has failed.
    pub fn is_off(self) -> bool {
        self.0 == 0
    }

    /// Draws power for one operation.
    #[inline]
    pub fn draw(&mut self) -> Draw {
        match self.0 {
            u64::MAX => return Draw::On,
            0 => return Draw::Off,
            _ => self.0 -= 1,
        }
        if self.0 == 0 { Draw::Fails } else { Draw::On }
    }
}

impl Medium {
    /// Makes the power fail in the operation after `operations` more programs, erases, stores and
    /// fences. [`Medium::restore_power`] turns the power on again.
    pub fn cut_power_after(&mut self, operations: u64) {
        (self.power, self.cut) = (Power(operations + 1), None);
    }

    /// Returns the number of operations that there is power for, or `None` if no cut was asked for.
    pub fn operations_until_cut(&self) -> Option<u64> {
        (self.power.0 != u64::MAX).then(|| self.power.0.saturating_sub(1))
    }

    /// Returns the program or erase in which the power failed last, or `None` if it was neither.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// Draws power for one operation of the flash and notes it as `cut` if the power fails in it.
    /// NVM then loses stores that were not fenced.
    #[inline]
    pub(crate) fn draw_power_for(&mut self, cut: Cut) -> Draw {
        let draw = self.draw_power();
        if draw == Draw::Fails {
            self.cut = Some(cut);
        }
        draw
    }

    /// Draws power for one operation of the flash. If the power fails, NVM loses stores that were
    /// not fenced.
    #[inline]
    pub(crate) fn draw_power(&mut self) -> Draw {
        let draw = self.power.draw();
        if draw == Draw::Fails {
            self.nvm.lose_power(0);
        }
        draw
    }

    /// Does one operation on the byte-addressable memory.
    pub(crate) fn nvm_operation(&mut self, work: impl FnOnce(&mut Nvm)) -> Result<(), MediumError> {
        let draw = self.power.draw();
        if draw != Draw::Off {
            // the store in which the power fails has begun, but none of its lines is fenced
            work(&mut self.nvm);
        }
        match draw {
            Draw::On => Ok(()),
            Draw::Fails => {
                self.nvm.lose_power(0);
                Err(MediumError::PowerLost)
            }
            Draw::Off => Err(MediumError::PowerLost),
        }
    }

    /// Turns the power off. Bytes of the byte-addressable memory that were stored and not fenced
    /// are lost or torn.
    ///
    /// The controller loses its tables of the medium: the number of the last program, unless a
    /// readable page has it, and the roles of blocks without a readable page.
    pub fn power_off(&mut self) {
        self.power_off_drawing(0);
    }

    /// Turns the power off as [`Medium::power_off`] does. `draw` varies the lines that are lost or
    /// torn.
    pub fn power_off_drawing(&mut self, draw: u8) {
        self.nvm.lose_power(draw);
        self.sequence = 0;
        let per_block = self.layout.frames_per_block as usize;
        for (block, frames) in
            self.blocks.iter_mut().zip(self.state.chunks_exact(per_block).enumerate())
        {
            let (id, states) = frames;
            let mut readable = false;
            for (index, _) in
                states[..block.next as usize].iter().enumerate().filter(|&(_, &s)| s == PROGRAMMED)
            {
                let frame = id * per_block + index;
                let sequence = u64::from(self.sequence_low[frame])
                    | u64::from(self.sequence_high[frame]) << 32;
                self.sequence = self.sequence.max(sequence);
                readable = true;
            }
            if !readable {
                block.role = OobRole::default();
            }
        }
    }

    /// Returns whether the power has failed.
    pub fn has_lost_power(&self) -> bool {
        self.power.is_off()
    }

    /// Restores the power, which does not fail again.
    pub fn restore_power(&mut self) {
        self.power_off();
        self.power = Power::ON;
    }
}
