//! The time that the controller takes for a command before any other work on the command, and the
//! time in which it wakes up for the command.

use super::Ssd;
use crate::Cmd;
use crate::params::{COMMAND_TIME, UNIT_TIME};
use crate::pieces::units;
use crate::power::{EnergyRates, PowerStates};
use flashatlas_timing::params::CORES;
use flashatlas_types::{Class, Dur, Layout, OpId, OpKind, Params, Ps};

/// The times of the controller, and whether its cores can be busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Firmware {
    command: Dur,
    unit: Dur,
    has_cores: bool,
}

impl Firmware {
    pub fn of(params: &Params) -> Firmware {
        Firmware {
            command: params.get(COMMAND_TIME),
            unit: params.get(UNIT_TIME),
            has_cores: params.get(CORES) > 0,
        }
    }

    /// Returns the controller's work on a command, or `None` if it takes no time.
    #[inline]
    pub fn work_on(&self, cmd: &Cmd<'_>, layout: &Layout) -> Option<OpKind> {
        let time = match self.unit {
            Dur::ZERO => self.command,
            unit => self.command + Dur(unit.0 * units_of(cmd, layout)),
        };
        match (time, self.has_cores) {
            (Dur::ZERO, _) => None,
            (_, false) => Some(OpKind::Delay(time)),
            (_, true) => Some(OpKind::Core(time)),
        }
    }
}

impl Ssd {
    /// Returns the states of low power, with the time in each, if the drive has any.
    pub fn power_states(&self) -> Option<&PowerStates> {
        self.power.as_deref()
    }

    /// Returns the energy of each operation and the power of each resource, if any is known.
    pub fn energy_rates(&self) -> Option<EnergyRates> {
        self.energy
    }

    /// Wakes the drive, if it rests in a state of low power. Returns the time for which a command
    /// that arrives now waits.
    #[inline]
    pub(super) fn wake(&mut self, now: Ps) -> Dur {
        match &mut self.power {
            Some(power) if !self.instant => match self.engine.rests_since() {
                Some(since) => power.wake(since, now),
                None => power.wakes_for(now),
            },
            _ => Dur::ZERO,
        }
    }

    /// Adds the time in which the drive wakes up for a command, which is sent after `sent_after`,
    /// to the plan. Returns the operation, or `None` if the drive is awake.
    #[inline]
    pub(super) fn wake_for_command(&mut self, now: Ps, sent_after: &[OpId]) -> Option<OpId> {
        match self.wake(now) {
            Dur::ZERO => None,
            time => Some(self.plan.push(OpKind::Delay(time), Class::HostRead, sent_after)),
        }
    }
}

/// Returns the number of mapping units that a command reads, writes or trims.
#[cold]
fn units_of(cmd: &Cmd<'_>, layout: &Layout) -> u64 {
    let of = |lba, sectors| {
        let range = units(lba, sectors, layout.unit_sectors());
        range.end - range.start
    };
    match *cmd {
        Cmd::Read { lba, sectors }
        | Cmd::HpbRead { lba, sectors, .. }
        | Cmd::Write { lba, sectors, .. }
        | Cmd::Trim { lba, sectors } => of(lba, sectors),
        Cmd::WriteUnits { stamps, .. } => stamps.len() as u64,
        Cmd::ReadBuffer { .. } | Cmd::WriteBuffer { .. } | Cmd::Flush => 0,
    }
}
