//! Priority inheritance. A read of the map becomes a host read as soon as a host read waits for it.
//! The read of the map then has the rank of a host read, and suspends other operations like a host
//! read.
//!
//! A host waits for the map entry of its page as well as for the page. Without inheritance, the
//! read of the map would have the rank of the map. It would wait for the end of a program that a
//! host read would suspend. So the lower of the two ranks would decide how long the host waits
//! ("Priority Inheritance Protocols", Sha, Rajkumar, Lehoczky, IEEE Transactions on Computers
//! 39(9), 1990). Programs and erases that the host read waits for keep their class.

use crate::engine::Engine;
use crate::map_waits::HostRead;
use crate::nodes::NIL;
use crate::resources::Phase;
use flashatlas_types::{Class, Op, OpId, OpKind};
use smallvec::SmallVec;

/// Returns `true` if this operation is a part of a host read: a read of flash, a transfer to the
/// host, or the completion.
fn is_of_a_host_read(op: &Op) -> bool {
    let kind = matches!(
        op.kind,
        OpKind::Read { .. } | OpKind::Link { inbound: false, .. } | OpKind::Complete(_)
    );
    kind && op.class == Class::HostRead
}

impl Engine {
    /// Handles inheritance for an operation that is about to be issued. If the operation belongs to
    /// a host read, the reads of the map that it waits for inherit its class.
    #[inline]
    pub(crate) fn inherit(&mut self, id: OpId, op: &Op, after: &[OpId]) {
        let reads_map = op.class == Class::Map && matches!(op.kind, OpKind::Read { .. });
        if reads_map || !self.map_waits.is_empty() {
            self.inherit_map(id, op, after, reads_map);
        }
    }

    /// Adds an operation that waits for `after` and, if it is a read, for the program of its page.
    #[inline(never)]
    fn inherit_map(&mut self, id: OpId, op: &Op, after: &[OpId], reads_map: bool) {
        self.map_waits.forget(self.oldest_unfinished());
        let (waits, nodes) = (&mut self.map_waits, &self.nodes);
        let mut on = SmallVec::new();
        let mut wait = |one| {
            if waits.find(one).is_some() && nodes.find(one).is_some() {
                on.push(one);
            }
        };
        after.iter().for_each(|&one| wait(one));
        if let OpKind::Read { block, page, back, .. } = op.kind {
            let seen = OpId(if back == 0 { u64::MAX } else { id.0 - u64::from(back) });
            nodes.program_of(block, page, seen).into_iter().for_each(|n| wait(nodes.at(n).id));
        }
        if !reads_map && on.is_empty() {
            return;
        }
        if is_of_a_host_read(op) {
            let reads = self.map_waits.raise(on);
            reads.into_iter().for_each(|read| self.become_host_read(read));
        } else if !matches!(op.kind, OpKind::Complete(_)) {
            // an operation that waits for the completion of a command belongs to a later command,
            // which the drive does not have yet
            self.map_waits.add(id, reads_map, on);
        }
    }

    /// Delays the suspended operation of a die, if a read of the map that became a host read has
    /// just left the die. Returns `true` if the suspended operation does not resume yet.
    ///
    /// If no other read waits, the suspended operation resumes only after the operations that the
    /// end of the read releases have arrived. One of these may be the read of the page for which
    /// the host waits.
    pub(crate) fn rests_on(&mut self, d: u32) -> bool {
        let die = &mut self.dies[d as usize];
        let rests = die.suspended != NIL
            && die.current == NIL
            && die.cached == NIL
            && die.planes.is_empty()
            && die.phase == Phase::Idle
            && die.queue.first_host_read(&self.nodes).is_none();
        if rests {
            die.phase = Phase::Suspending;
            self.agenda.set_die(self.now, d);
        }
        rests
    }

    /// Turns a read of the map into a host read. If the read waits in a queue, it moves behind the
    /// host reads in that queue.
    fn become_host_read(&mut self, read: OpId) {
        let Some(n) = self.nodes.find(read) else { return };
        let rank = self.times.rank[Class::HostRead as usize];
        let node = self.nodes.at_mut(n);
        node.host_read = HostRead::OfItsMap;
        let (before, waiting, d) = (node.rank, node.waiting, node.die);
        let of_cores = self.cores.as_mut().map(|cores| &mut cores.queue);
        let of_dram = self.shared_dram.as_mut().map(|dram| &mut dram.bus.queue);
        for queue in [of_cores, of_dram].into_iter().flatten() {
            if waiting == 0 && queue.take(&mut self.nodes, n, before, self.now) {
                self.nodes.at_mut(n).rank = rank;
                // the cores and the DRAM are at work while an operation waits for them
                return queue.push(&mut self.nodes, n, self.now);
            }
        }
        let die = &mut self.dies[d as usize];
        let has_die = die.current == n || die.cached == n || die.planes.contains(&n);
        let queue = if has_die {
            &mut self.channels[self.die_channel[d as usize] as usize].queue
        } else {
            &mut die.queue
        };
        let queued = waiting == 0 && queue.take(&mut self.nodes, n, before, self.now);
        self.nodes.at_mut(n).rank = rank;
        if !queued {
            return;
        }
        queue.push(&mut self.nodes, n, self.now);
        if has_die {
            return; // the channel is at work while an operation waits for it
        }
        let die = &self.dies[d as usize];
        if die.current == NIL && die.phase == Phase::Idle {
            self.next_on_die(d);
        } else {
            self.try_preload(d);
            self.try_suspend(d);
        }
        self.note_work(d);
        self.drain();
    }
}
