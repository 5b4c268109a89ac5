//! Reads of the map for which host reads wait.

use super::{AT_WORK, End, Naive, Stage, Where, place};
use flashatlas_types::{Class, OpKind};

impl Naive<'_> {
    /// Raises the reads of the map for which an operation waits, if the operation belongs to a host
    /// read.
    pub(super) fn raise_for(&mut self, op: usize) {
        let kind = self.steps[op].kind;
        let to_host = matches!(kind, OpKind::Link { inbound: false, .. } | OpKind::Complete(_));
        if self.steps[op].class != Class::HostRead || !(self.is_read(op) || to_host) {
            return;
        }
        // finds all earlier operations for which it waits, from the newest on
        let mut waits = vec![false; op + 1];
        waits[op] = true;
        for later in (0..=op).rev() {
            let is_end = later < op && matches!(self.steps[later].kind, OpKind::Complete(_));
            if waits[later] && !is_end && (later == op || self.ops[later].stage != Stage::Done) {
                self.steps[later].after.iter().for_each(|&i| waits[i] = true);
                self.program_of(later).into_iter().for_each(|i| waits[i] = true);
            }
        }
        for read in (0..op).filter(|&i| waits[i]) {
            let of_map = self.is_read(read) && self.ops[read].class == Class::Map;
            if of_map && self.ops[read].stage != Stage::Done {
                self.become_host_read(read);
            }
        }
    }

    /// Returns the newest program of a read's page for which the read waits.
    fn program_of(&self, read: usize) -> Option<usize> {
        let OpKind::Read { back, .. } = self.steps[read].kind else { return None };
        let page = place(self.steps[read].kind);
        let seen = if back == 0 { read } else { read - back as usize };
        (0..seen).rev().find(|&i| self.programs(i) && place(self.steps[i].kind) == page)
    }

    /// Handles a read that has left its die. Returns `true` if the suspended operation on the die
    /// resumes in a later event of this instant.
    pub(super) fn waits_to_resume(&mut self, read: usize) -> bool {
        let die = self.die(read);
        let alone = self.on_die(die, AT_WORK);
        let [resting] = alone[..] else { return false };
        let resumes_later = self.ops[read].raised
            && self.ops[resting].stage == Stage::Resting
            && self.host_reads(die).is_empty();
        if resumes_later {
            self.ops[resting].stage = Stage::Stopping;
            self.pending.push((self.now, End::Stop, resting));
        }
        resumes_later
    }

    fn become_host_read(&mut self, read: usize) {
        let die = self.die(read);
        self.raised.0 += 1;
        self.ops[read].raised = true;
        let in_bus_queue = self.ops[read].bus.is_some() && !self.ops[read].on_bus;
        let in_die_queue = self.ops[read].stage == Stage::Queued;
        let queue = match self.ops[read].bus {
            Some(bus) if in_bus_queue => Where::Bus(bus),
            _ if in_die_queue => Where::Die(die),
            _ => {
                self.ops[read].class = Class::HostRead;
                return;
            }
        };
        self.raised.1 += 1;
        self.step_out(read, queue);
        self.ops[read].class = Class::HostRead;
        self.line_up(read);
        if in_die_queue {
            match self.in_cells(die) {
                None => self.hand_over(die),
                Some(other) => {
                    self.load_ahead(other);
                    self.suspend(other);
                }
            }
            self.arrive();
        }
    }
}
