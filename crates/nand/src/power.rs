//! Fault: the power fails.
//!
//! A cut falls after a number of programs, erases, and stores and fences of the byte-addressable memory, in the order in
//! which the scheme asked for them. The operation in
//! which the power fails is begun and not finished: a program leaves a torn page, an erase has not yet changed a cell, a store is
//! not fenced (see [`crate::nvm`]).
//! That one and every later operation end with [`flashatlas_types::MediumError::PowerLost`], which travels up through the
//! scheme; what the scheme still holds in memory is of no account, and the next thing to look at the medium is a mount.

use crate::Medium;

/// How many operations there is power for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Power(u64);

/// What happens to one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Draw {
    /// It is carried out.
    On,
    /// The power fails in it.
    Fails,
    /// There was no power when it was asked for.
    Off,
}

impl Power {
    /// Power that does not fail.
    pub const ON: Power = Power(u64::MAX);

    /// Whether the power has failed.
    pub fn is_off(self) -> bool {
        self.0 == 0
    }

    /// One operation.
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
    /// Fault: after `operations` more programs, erases, stores and fences the power fails, in the next one. [`Medium::restore_power`] ends
    /// it.
    pub fn cut_power_after(&mut self, operations: u64) {
        self.power = Power(operations + 1);
    }

    /// Whether the power has failed.
    pub fn has_lost_power(&self) -> bool {
        self.power.is_off()
    }

    /// Power is back, and does not fail again.
    pub fn restore_power(&mut self) {
        self.power = Power::ON;
    }
}
