//! The buses of the naive simulator: the channels, the two ways of the link, the cores, and the
//! shared DRAM.

use super::{End, Naive, Stage, State, Where, ps};
use flashatlas_types::OpKind;

impl Naive<'_> {
    pub(super) fn send_to_die(&mut self, op: usize) {
        if self.is_program(op) { self.pass_dram(op) } else { self.arrive_at_die(op) }
    }

    pub(super) fn pass_dram(&mut self, op: usize) {
        if self.t.shared_dram.is_none() {
            return self.after_dram(op);
        }
        self.ops[op].stage = Stage::Dram;
        self.ask_bus(op);
    }

    fn after_dram(&mut self, op: usize) {
        self.ops[op].stage = Stage::Elsewhere;
        match self.steps[op].kind {
            OpKind::Program { .. } => self.arrive_at_die(op),
            OpKind::Link { inbound: false, .. } => self.ask_bus(op),
            OpKind::Memory { .. } => self.access(op),
            _ => self.complete(op),
        }
    }

    fn dram_time(&self, op: usize) -> u64 {
        let dram = self.t.shared_dram.unwrap();
        let bytes = match self.steps[op].kind {
            OpKind::Read { bytes, .. } | OpKind::Program { bytes, .. } => u64::from(bytes),
            OpKind::Link { bytes, .. } => bytes,
            OpKind::Memory { accesses, bytes, .. } => {
                u64::from(bytes.max(dram.burst)) * u64::from(accesses)
            }
            other => unreachable!("{other:?} has no data in DRAM"),
        };
        ps(bytes, dram.rate)
    }

    pub(super) fn bus_of(&self, op: usize) -> usize {
        match self.steps[op].kind {
            _ if self.ops[op].stage == Stage::Dram => self.channels + 3,
            OpKind::Core(_) => self.channels + 2,
            _ if self.ops[op].stage == Stage::Core => self.channels + 2,
            OpKind::Link { inbound, .. } => {
                self.channels + usize::from(self.t.full_duplex && !inbound)
            }
            _ => (self.die(op) / self.dies_per_channel) as usize,
        }
    }

    fn bus_time(&self, op: usize) -> u64 {
        match (self.steps[op].kind, self.ops[op].stage) {
            (_, Stage::Dram) => self.dram_time(op),
            (OpKind::Core(time), _) => time.0,
            (_, Stage::Core) => self.t.cores.unwrap().flash.0,
            (OpKind::Link { bytes, .. }, _) => ps(bytes, self.t.link_rate),
            (OpKind::Copyback { bytes, .. }, _) if self.next_source(op).is_none() => {
                self.t.command.0 + ps(bytes, self.t.channel_rate)
            }
            (_, Stage::Command) => self.t.command.0,
            (OpKind::Read { bytes, .. }, _) => ps(bytes, self.t.channel_rate),
            (OpKind::Program { bytes, .. }, _) => self.t.command.0 + ps(bytes, self.t.channel_rate),
            other => unreachable!("{other:?} uses no bus"),
        }
    }

    pub(super) fn ask_bus(&mut self, op: usize) {
        if self.bus_time(op) == 0 {
            return self.off_bus(op);
        }
        let bus = self.bus_of(op);
        self.ops[op].bus = Some(bus);
        self.line_up(op);
        self.grant(bus);
    }

    /// Puts an operation at the end of a queue.
    pub(super) fn line_up(&mut self, op: usize) {
        self.arrivals += 1;
        (self.ops[op].arrival, self.ops[op].arrived_at) = (self.arrivals, self.now);
    }

    /// Notes that an operation leaves its queue.
    pub(super) fn step_out(&mut self, op: usize, queue: Where) {
        let State { class, arrival, .. } = self.ops[op];
        self.left.push((queue, class, arrival, self.now));
    }

    pub(super) fn grant(&mut self, bus: usize) {
        let here: Vec<usize> =
            (0..self.ops.len()).filter(|&i| self.ops[i].bus == Some(bus)).collect();
        let places = if bus == self.channels + 2 { self.t.cores.unwrap().count } else { 1 };
        if here.iter().filter(|&&i| self.ops[i].on_bus).count() >= places as usize {
            return;
        }
        let here = here.into_iter().filter(|&i| !self.ops[i].on_bus).collect();
        let Some(op) = self.next(here, Where::Bus(bus)) else { return };
        self.step_out(op, Where::Bus(bus));
        let time = self.bus_time(op);
        self.ops[op].on_bus = true;
        self.totals.bus_busy[match self.steps[op].kind {
            OpKind::Link { inbound, .. } if bus < self.channels + 2 => {
                self.channels + usize::from(!inbound)
            }
            _ => bus,
        }] += time;
        self.pending.push((self.now + time, End::Bus, op));
    }

    pub(super) fn off_bus(&mut self, op: usize) {
        let stage = self.ops[op].stage;
        match stage {
            Stage::Elsewhere => match self.steps[op].kind {
                OpKind::Link { inbound: true, .. } => self.pass_dram(op),
                _ => self.complete(op),
            },
            Stage::Core => self.send_to_die(op),
            Stage::Dram => self.after_dram(op),
            Stage::Command => self.begin_cells(op),
            Stage::Load if !self.ops[op].in_register => self.begin_cells(op),
            Stage::Load => {
                self.ops[op].stage = Stage::Loaded;
                if self.in_cells(self.die(op)).is_none() {
                    self.begin_cells(op);
                }
            }
            _ => {
                let die = self.die(op);
                self.ops[op].in_register = false;
                self.ops[op].stage = Stage::Elsewhere;
                self.on_die(die, &[Stage::Sensed]).into_iter().for_each(|next| self.leave(next));
                self.pass_dram(op);
                if !self.waits_to_resume(op) {
                    self.hand_over(die);
                }
            }
        }
    }
}
