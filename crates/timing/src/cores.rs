//! The cores of the controller. A core works on one thing at a time: on a command, or on the start
//! of an operation on flash.
//!
//! The cores share one queue, which is served as the queue of a channel is: by class, then by order
//! of arrival. An operation on flash first waits for a core and takes its time there, and then
//! arrives at its die, or at the shared DRAM if it is a program.

use crate::engine::Engine;
use crate::nodes::NodeKind;
use crate::paths::State;
use flashatlas_types::Dur;

impl Engine {
    /// Queues an operation for a core. Returns `false` if it takes no time there.
    #[inline(never)]
    pub(crate) fn queue_on_core(&mut self, n: u32) -> bool {
        let time = self.core_time(n);
        let Some(cores) = &mut self.cores else { return false };
        if time == Dur::ZERO {
            return false;
        }
        if cores.idle > 0 && cores.queue.is_empty() {
            self.start_on_core(n);
        } else {
            cores.queue.push(&mut self.nodes, n, self.now);
            self.next_on_core();
        }
        // a wait for a core counts as time of the controller, as its work does
        self.state(n, State::Timer);
        true
    }

    fn core_time(&self, n: u32) -> Dur {
        let node = self.nodes.at(n);
        match node.work {
            NodeKind::Core => node.time,
            _ => self.times.cores.map_or(Dur::ZERO, |cores| cores.flash),
        }
    }

    fn next_on_core(&mut self) {
        let Some(cores) = self.cores.as_mut().filter(|cores| cores.idle > 0) else { return };
        let Some(n) = cores.queue.first(self.now, self.times.passed_max) else { return };
        cores.queue.pop(&self.nodes, n, self.now);
        self.start_on_core(n);
    }

    fn start_on_core(&mut self, n: u32) {
        let time = self.core_time(n);
        let until = self.now.after(time);
        if let Some(cores) = &mut self.cores {
            cores.idle -= 1;
            cores.until.push(until);
        }
        self.statistics.core_busy = self.statistics.core_busy + time;
        self.agenda.set_core(until, n);
    }

    /// Ends the work of a core. A command is complete, and an operation on flash arrives at its
    /// die.
    pub(crate) fn core_done(&mut self, n: u32) {
        if let Some(cores) = &mut self.cores {
            cores.idle += 1;
            let ended = cores.until.iter().position(|&until| until == self.now);
            cores.until.swap_remove(ended.expect("a core ends now"));
        }
        match self.nodes.at(n).work {
            NodeKind::Core => self.complete(n),
            _ => self.send_to_die(n),
        }
        self.next_on_core();
    }
}
