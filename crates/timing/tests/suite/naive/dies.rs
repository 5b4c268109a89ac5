//! The dies of the naive simulator, with their cells, cache register and suspension.

use super::{AT_WORK, End, Naive, Stage, Where};
use flashatlas_types::OpKind;

impl Naive<'_> {
    /// Returns the operation that holds the cells. An operation holds the cells from its command on
    /// until its data has left, or until it moves to the register.
    pub(super) fn in_cells(&self, die: u32) -> Option<usize> {
        use Stage::{Cells, Command, Load, Out, Sensed};
        self.on_die(die, &[Command, Load, Cells, Sensed, Out])
            .into_iter()
            .find(|&i| !self.ops[i].in_register)
    }

    fn in_register(&self, die: u32) -> Option<usize> {
        self.on_die(die, AT_WORK).into_iter().find(|&i| self.ops[i].in_register)
    }

    fn suspended(&self, die: u32) -> Option<usize> {
        self.on_die(die, &[Stage::Stopping, Stage::Resting]).pop()
    }

    pub(super) fn queued(&self, die: u32) -> Vec<usize> {
        self.on_die(die, &[Stage::Queued])
    }

    fn next_here(&mut self, die: u32) -> Option<usize> {
        self.next(self.queued(die), Where::Die(die))
    }

    pub(super) fn host_reads(&self, die: u32) -> Vec<usize> {
        self.queued(die).into_iter().filter(|&i| self.is_host_read(i)).collect()
    }

    pub(super) fn arrive_at_die(&mut self, op: usize) {
        self.ops[op].stage = Stage::Queued;
        self.line_up(op);
        let die = self.die(op);
        match self.in_cells(die) {
            None => self.hand_over(die),
            Some(other) if self.is_host_read(op) => self.suspend(other),
            Some(other) => self.load_ahead(other),
        }
    }

    /// Gives the die its next operation, if the die is free.
    pub(super) fn hand_over(&mut self, die: u32) {
        if self.in_cells(die).is_some() {
            return;
        }
        let next = match (self.suspended(die), self.in_register(die)) {
            (Some(op), _) if self.ops[op].stage == Stage::Stopping => None,
            (Some(op), register) => {
                let rested = self.now - self.ops[op].stopped_at;
                let bounds = [self.t.suspend.longest.0, self.t.passed_max.0];
                let too_long = bounds.iter().any(|&bound| bound > 0 && rested >= bound);
                match self.first(&self.host_reads(die)) {
                    Some(read) if !too_long => Some(read),
                    _ if register.is_some() => None,
                    _ => {
                        if too_long {
                            self.ops[op].suspended = u32::MAX;
                        }
                        self.ops[op].left += self.t.suspend.resume.0;
                        return self.run_cells(op);
                    }
                }
            }
            (None, Some(held)) => {
                self.next_here(die).filter(|&op| self.is_read(op) && self.is_read(held))
            }
            (None, None) => self.next_here(die),
        };
        let Some(op) = next else { return };
        self.step_out(op, Where::Die(die));
        self.ops[op].stage = if self.is_program(op) { Stage::Load } else { Stage::Command };
        self.release();
        self.ask_bus(op);
    }

    pub(super) fn begin_cells(&mut self, op: usize) {
        self.ops[op].in_register = false;
        self.ops[op].left = match self.steps[op].kind {
            OpKind::Read { level, .. } => self.t.read[level as usize].0,
            OpKind::Copyback { level, .. } => match self.next_source(op) {
                Some(source) => self.t.read[source.level as usize].0,
                None => self.t.program[level as usize].0,
            },
            OpKind::Program { level, .. } => self.t.program[level as usize].0,
            _ => self.t.erase.0,
        };
        self.run_cells(op);
    }

    fn run_cells(&mut self, op: usize) {
        (self.ops[op].stage, self.ops[op].cells_from) = (Stage::Cells, self.now);
        self.pending.push((self.now + self.ops[op].left, End::Cells, op));
        self.load_ahead(op);
        if !self.host_reads(self.die(op)).is_empty() {
            self.suspend(op);
        }
    }

    pub(super) fn cells_end(&mut self, op: usize) {
        let die = self.die(op);
        self.totals.die_busy[die as usize] += self.now - self.ops[op].cells_from;
        if self.next_source(op).is_some() {
            self.ops[op].sensed += 1;
            self.ops[op].stage = Stage::Command;
            self.ask_bus(op);
        } else if !self.is_read(op) {
            self.complete(op);
            match self.on_die(die, &[Stage::Loaded])[..] {
                [loaded] => self.begin_cells(loaded),
                _ => self.hand_over(die),
            }
        } else if !self.t.cache_read {
            self.ops[op].stage = Stage::Out;
            self.ask_bus(op);
        } else if self.in_register(die).is_some() {
            self.ops[op].stage = Stage::Sensed;
        } else {
            self.leave(op);
        }
    }

    /// Moves a sensed page to the register. The die takes its next operation, and the page then
    /// waits for the channel.
    pub(super) fn leave(&mut self, op: usize) {
        (self.ops[op].stage, self.ops[op].in_register) = (Stage::Out, true);
        self.hand_over(self.die(op));
        self.ask_bus(op);
    }

    /// Loads the next page into the register while `current` is programmed, if cache program is on.
    pub(super) fn load_ahead(&mut self, current: usize) {
        let die = self.die(current);
        let programming = self.is_program(current) && self.ops[current].stage == Stage::Cells;
        let free = self.in_register(die).is_none() && self.suspended(die).is_none();
        if !self.t.cache_program || !programming || !free {
            return;
        }
        let Some(op) = self.next_here(die).filter(|&op| self.is_program(op)) else { return };
        self.step_out(op, Where::Die(die));
        (self.ops[op].stage, self.ops[op].in_register) = (Stage::Load, true);
        self.release();
        self.ask_bus(op);
    }

    pub(super) fn suspend(&mut self, op: usize) {
        let (die, s) = (self.die(op), self.t.suspend);
        let may = if self.programs(op) {
            s.program && self.next_source(op).is_none()
        } else {
            s.erase && !self.is_read(op)
        };
        let elapsed = self.now - self.ops[op].cells_from;
        if !may
            || self.ops[op].stage != Stage::Cells
            || self.ops[op].suspended >= s.max.into()
            || self.in_register(die).is_some()
            || self.suspended(die).is_some()
            || self.ops[op].left - elapsed <= s.latency.0
        {
            return;
        }
        self.pending.retain(|&(_, end, i)| (end, i) != (End::Cells, op));
        self.totals.die_busy[die as usize] += elapsed;
        self.totals.suspends += 1;
        self.ops[op].suspended += 1;
        self.ops[op].stopped_at = self.now;
        self.ops[op].left -= elapsed;
        self.ops[op].stage = Stage::Stopping;
        self.pending.push((self.now + s.latency.0, End::Stop, op));
    }
}
