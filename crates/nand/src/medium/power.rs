//! Power failures.
//!
//! The power fails after a given number of operations. Programs, erases, and stores and fences of
//! the byte-addressable memory are counted, in the order in which the scheme requests them. The
//! operation in which the power fails begins but does not end. A program leaves a torn page, an
//! erase has not changed any cell, and a store is not fenced (see [`crate::nvm`]).
//!
//! This operation and every later operation return [`flashatlas_types::MediumError::PowerLost`],
//! which the scheme passes to its caller. The scheme's state in memory must not be used after that.
//! The medium is next read by a mount.

use crate::{FrameState, Medium, Nvm, OobRole};
use flashatlas_types::{BlockId, BlockMode, FrameId, MediumError};

const PROGRAMMED: u8 = FrameState::Programmed as u8;

/// State of a frame whose data wrong bits took, with its spare area left.
const LOST: u8 = FrameState::Lost as u8;

/// The number of operations until the power is off, including the operation in which it fails.
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
    /// The power had failed before the operation.
    Off,
}

impl Power {
    /// Power that does not fail.
    pub const ON: Power = Power(u64::MAX);

    /// Returns whether the power has failed.
    pub fn is_off(self) -> bool {
        self.0 == 0
    }

    /// Counts one operation. Returns its outcome.
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
    /// Makes the power fail in the operation that follows the next `operations` programs, erases,
    /// stores and fences. [`Medium::restore_power`] turns the power on again.
    pub fn cut_power_after(&mut self, operations: u64) {
        (self.power, self.cut) = (Power(operations + 1), None);
    }

    /// Returns the number of operations before the operation in which the power fails, or `None` if
    /// no cut was requested.
    pub fn operations_until_cut(&self) -> Option<u64> {
        (self.power.0 != u64::MAX).then(|| self.power.0.saturating_sub(1))
    }

    /// Returns the program or erase in which the power failed last, or `None` if it was another
    /// operation.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// Counts one flash operation. If the power fails in it, stores it as the cut, and NVM loses
    /// stores that were not fenced.
    #[inline]
    pub(crate) fn draw_power_for(&mut self, cut: Cut) -> Draw {
        let draw = self.draw_power();
        if draw == Draw::Fails {
            self.cut = Some(cut);
        }
        draw
    }

    /// Counts one flash operation. If the power fails in it, NVM loses stores that were not fenced.
    #[inline]
    pub(crate) fn draw_power(&mut self) -> Draw {
        let draw = self.power.draw();
        if draw == Draw::Fails {
            self.nvm.lose_power(0);
        }
        draw
    }

    /// Carries out one operation on the byte-addressable memory.
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

    /// Turns the power off. Bytes of the byte-addressable memory that were stored but not fenced
    /// may be lost or torn.
    ///
    /// The controller loses the roles and modes of blocks without a readable page. The number of
    /// the last program becomes the largest one of any readable page.
    pub fn power_off(&mut self) {
        self.power_off_drawing(0);
    }

    /// Turns the power off as [`Medium::power_off`] does. The value of `draw` selects which lines
    /// are lost or torn.
    pub fn power_off_drawing(&mut self, draw: u8) {
        self.nvm.lose_power(draw);
        self.end_steps();
        self.sequence = 0;
        for (id, block) in self.blocks.iter_mut_enumerated() {
            let mut readable = false;
            if self.cells.is_base(id) {
                let last = self.layout.frame_in(id, block.next - 1);
                self.sequence = self.sequence.max(self.cells.header(last).sequence);
                continue;
            }
            let written = (0..block.next).map(|index| self.layout.frame_in(id, index));
            let headers = written.map(|frame| self.cells.header(frame));
            for header in headers.filter(|header| matches!(header.state, PROGRAMMED | LOST)) {
                self.sequence = self.sequence.max(header.sequence);
                readable = true;
            }
            if !readable {
                (block.role, block.mode) = (OobRole::default(), BlockMode::default());
            }
        }
    }

    /// Returns whether the power has failed.
    pub fn has_lost_power(&self) -> bool {
        self.power.is_off()
    }

    /// Turns the power off and on again. After that, it does not fail.
    pub fn restore_power(&mut self) {
        self.power_off();
        self.power = Power::ON;
    }
}
