//! Independent reads of planes: reads of different planes of a die sense at the same time, and
//! share the die's bus.
//!
//! The first read of a die is its current operation. Other reads join it while it senses or
//! transfers. Programs and erases use the whole die, so they wait until all reads have left it. A
//! read joins only if it is next in the die's queue, so it passes no operation that waits. While a
//! program or an erase is suspended, reads go one at a time.

use crate::PlaneReads;
use crate::engine::Engine;
use crate::nodes::{NIL, NodeKind};
use crate::paths::State;
use crate::resources::Phase;
use flashatlas_types::Dur;

impl Engine {
    /// Starts further reads of other planes on a die that reads, within the limits. Without
    /// independent reads of planes, this function costs one comparison.
    #[inline]
    pub(crate) fn join_planes(&mut self, d: u32) {
        if let Some(limits) = self.times.plane_reads {
            self.join_within(d, limits);
        }
    }

    #[cold]
    #[inline(never)]
    fn join_within(&mut self, d: u32, limits: PlaneReads) {
        loop {
            let die = &self.dies[d as usize];
            let Some(n) = die.queue.first(self.now, self.times.passed_max) else { return };
            let node = self.nodes.at(n);
            let at_once = die.planes.len() as u32 + u32::from(die.current != NIL);
            if node.work != NodeKind::Read
                || at_once == 0
                || die.suspended != NIL
                || die.phase == Phase::Suspending
                || (limits.max > 0 && at_once >= limits.max)
            {
                return;
            }
            let beside =
                die.planes.iter().copied().chain((die.current != NIL).then_some(die.current));
            let fits = |other: u32| {
                let other = self.nodes.at(other);
                other.work == NodeKind::Read
                    && self.planes.of(other.block) != self.planes.of(node.block)
                    && (!limits.same_kind || other.level == node.level)
            };
            if !beside.into_iter().all(fits) {
                return;
            }
            let die = &mut self.dies[d as usize];
            die.queue.pop(&self.nodes, n, self.now);
            die.planes.push(n);
            if self.times.command > Dur::ZERO {
                self.use_channel(n);
            } else {
                self.sense_plane(n);
            }
        }
    }

    /// Returns `true` if a read works on a plane beside the current operation of its die.
    #[inline]
    pub(crate) fn is_beside(&self, d: u32, n: u32) -> bool {
        self.times.plane_reads.is_some() && self.dies[d as usize].planes.contains(&n)
    }

    /// Returns `true` if the timer of an operation is the time in which a plane senses a page.
    #[inline]
    pub(crate) fn is_of_a_plane(&self, n: u32) -> bool {
        self.times.plane_reads.is_some() && self.nodes.at(n).work == NodeKind::Read
    }

    pub(crate) fn sense_plane(&mut self, n: u32) {
        let end = self.now.after(self.times.read[self.nodes.at(n).level as usize]);
        self.state(n, State::Cells);
        self.agenda.set_timer(end, n);
    }

    /// Continues after a plane has sensed the page of a read: the data goes out.
    pub(crate) fn plane_sensed(&mut self, n: u32) {
        self.nodes.at_mut(n).halfway = true;
        self.use_channel(n);
    }
}
