//! The controller's DRAM as one resource, which all data and the tables in DRAM share.
//!
//! Data passes the DRAM twice. It is stored when it arrives, after the host link or the channel,
//! and it is loaded before it leaves, before the host link or the die. So data of a host read and
//! of a host write passes twice, and so does a page that collection copies through the controller.
//! A copyback moves no data to the controller. The DRAM carries one transfer at a time. Its queue
//! is served as the queue of a channel is: by class, then by order of arrival.

use crate::engine::Engine;
use crate::nodes::{NIL, NodeKind};
use crate::paths::State;
use flashatlas_types::Dur;

impl Engine {
    /// Puts the data of an operation into the queue of the DRAM. Returns `false` if it takes no
    /// time there.
    #[inline(never)]
    pub(crate) fn queue_on_dram(&mut self, n: u32) -> bool {
        let Some(dram) = &mut self.shared_dram else { return false };
        if dram.of_nodes[n as usize] == Dur::ZERO {
            return false;
        }
        if dram.bus.is_vacant() {
            self.start_on_dram(n);
        } else {
            dram.bus.queue.push(&mut self.nodes, n, self.now);
            self.next_on_dram();
        }
        // a wait for the DRAM counts as time of the controller or of the tables, as its work does
        self.state(n, State::Timer);
        true
    }

    fn next_on_dram(&mut self) {
        let Some(dram) = self.shared_dram.as_mut().filter(|dram| dram.bus.current == NIL) else {
            return;
        };
        let Some(n) = dram.bus.queue.first(self.now, self.times.passed_max) else { return };
        dram.bus.queue.pop(&self.nodes, n, self.now);
        self.start_on_dram(n);
    }

    fn start_on_dram(&mut self, n: u32) {
        let (Some(dram), Some(busy)) = (&mut self.shared_dram, &mut self.statistics.shared_dram)
        else {
            return;
        };
        let time = dram.of_nodes[n as usize];
        (dram.bus.current, dram.bus.until) = (n, self.now.after(time));
        *busy = *busy + time;
        self.agenda.set_dram(dram.bus.until);
    }

    pub(crate) fn dram_done(&mut self) {
        let Some(dram) = &mut self.shared_dram else { return };
        let n = std::mem::replace(&mut dram.bus.current, NIL);
        self.after_dram(n);
        self.next_on_dram();
    }

    /// Continues with an operation whose data has passed the DRAM.
    fn after_dram(&mut self, n: u32) {
        let node = self.nodes.at(n);
        match node.work {
            NodeKind::Program => self.queue_on_die(n),
            NodeKind::LinkOut if node.time > Dur::ZERO => self.queue_on_link(n),
            // the latency of the accesses
            NodeKind::Dram if node.time > Dur::ZERO => {
                self.agenda.set_timer(self.now.after(node.time), n);
                self.state(n, State::Timer);
            }
            _ => self.complete(n),
        }
    }

    /// Begins a transfer over the host link, or accesses to a table, on a drive with a shared DRAM.
    #[inline(never)]
    pub(crate) fn begin_with_dram(&mut self, n: u32) {
        let node = self.nodes.at(n);
        if node.work == NodeKind::LinkIn && node.time > Dur::ZERO {
            self.queue_on_link(n);
        } else if !self.queue_on_dram(n) {
            self.after_dram(n);
        }
    }

    /// Sends an operation on flash that has had its core to its die. The data of a program passes
    /// the DRAM first.
    pub(crate) fn send_to_die(&mut self, n: u32) {
        if self.nodes.at(n).work != NodeKind::Program || !self.queue_on_dram(n) {
            self.queue_on_die(n);
        }
    }

    /// Takes data that has arrived over the host link or from flash. It passes the DRAM, if the
    /// DRAM is shared, and then the operation is complete.
    #[inline]
    pub(crate) fn take_in(&mut self, n: u32) {
        if self.shared_dram.is_none() || !self.queue_on_dram(n) {
            self.complete(n);
        }
    }
}
