//! Copybacks: pages that a die senses into its page registers and programs into another page,
//! without a transfer of their data.
//!
//! A copyback holds its die from its first command to its end. Each sense has a command on the
//! channel and tR. After the last one, the command of the program and the changed bytes cross the
//! channel, and tPROG follows. The status is read on the channel after each sense and after the
//! program (ONFI: Copyback Read, 00h-35h, and Copyback Program, 85h-10h). Only the program is
//! suspended, and a copyback uses no cache register.

use crate::engine::Engine;
use crate::nodes::{Copyback, Node};
use flashatlas_types::{Dur, Op, Plan};

impl Engine {
    /// Makes a copyback that was just added wait for the programs of its sources. The erase of
    /// their block waits for the copyback, as for a read.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_copyback(&mut self, n: u32, plan: &Plan, op: &Op) {
        let sources = plan.sources(op.kind).into();
        let mut copyback = Copyback { sources, ..Copyback::default() };
        self.nodes.add_copyback(n, &mut copyback);
        let place = self.copybacks.put(copyback);
        self.nodes.at_mut(n).value = place.into();
    }

    /// Completes a copyback. The erase of its source may then be ready.
    #[cold]
    #[inline(never)]
    pub(crate) fn complete_copyback(&mut self, n: u32) {
        let place = self.nodes.at(n).value as u32;
        let Copyback { sources, epoch, .. } = std::mem::take(&mut self.copybacks[place]);
        self.copybacks.free(place);
        let (id, first) = (self.nodes.at(n).id, self.ready.len());
        self.complete(n);
        if let Some(erase) = self.nodes.reader_done(sources[0].block, epoch) {
            self.ready.push(erase);
            self.note_released(self.ready.len() - 1, id);
        }
        self.ready[first..].sort_unstable_by_key(|&n| self.nodes.at(n).id);
    }

    fn copyback(&self, node: &Node) -> &Copyback {
        &self.copybacks[node.value as u32]
    }

    /// Returns the time that the cells need next: tR of the next source, or tPROG.
    #[cold]
    #[inline(never)]
    pub(crate) fn copyback_cells(&self, node: &Node) -> Dur {
        match self.copyback(node).next_level() {
            Some(level) => self.times.read[level as usize],
            None => self.times.program[node.level as usize],
        }
    }

    /// Returns the time on the channel before the cells work: the status of the source that was
    /// sensed last, and the next command. Changed bytes go with the command of the program.
    #[cold]
    #[inline(never)]
    pub(crate) fn copyback_on_channel(&self, node: &Node) -> Dur {
        let copyback = self.copyback(node);
        let status = if copyback.sensed > 0 { self.times.status } else { Dur::ZERO };
        let next = copyback.next_level().map_or(node.time, |_| self.times.command);
        status + next
    }

    /// Returns `true` if the cells of a copyback have sensed a source, and notes it. Returns
    /// `false` if they have programmed the page.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_sensed(&mut self, n: u32) -> bool {
        let copyback = &mut self.copybacks[self.nodes.at(n).value as u32];
        let senses = copyback.next_level().is_some();
        copyback.sensed += usize::from(senses);
        senses
    }

    /// Returns `true` if the cells of a copyback program its page.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_programming(&self, n: u32) -> bool {
        self.copyback(self.nodes.at(n)).next_level().is_none()
    }
}
