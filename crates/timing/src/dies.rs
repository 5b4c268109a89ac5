//! Work on a die. This file chooses the die's next operation, and handles its cells and registers,
//! cache operations and suspension.

use crate::engine::Engine;
use crate::map_waits::HostRead;
use crate::nodes::{NIL, Node, NodeKind};
use crate::paths::State;
use crate::resources::Phase;
use flashatlas_types::Dur;

impl Engine {
    pub(crate) fn queue_on_die(&mut self, n: u32) {
        let d = self.nodes.at(n).die;
        self.state(n, State::DieQueue);
        let die = &mut self.dies[d as usize];
        if die.is_vacant() {
            self.start(d, n);
            return self.note_work(d);
        }
        die.queue.push(&mut self.nodes, n, self.now);
        if die.current == NIL && die.phase == Phase::Idle {
            self.next_on_die(d);
        } else if self.nodes.at(n).host_read != HostRead::No {
            self.try_suspend(d);
        } else {
            self.try_preload(d);
        }
        self.join_planes(d);
        self.note_work(d);
    }

    /// Gives an idle die its next operation.
    pub(crate) fn next_on_die(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        if die.current != NIL || die.phase != Phase::Idle || !die.planes.is_empty() {
            return self.join_planes(d);
        }
        let next = if die.suspended != NIL {
            let longest = self.times.suspend.longest;
            let bound = [longest, self.times.passed_max].into_iter().filter(|&b| b > Dur::ZERO);
            let overdue = bound.min().is_some_and(|b| self.now.since(die.suspended_since) >= b);
            match die.queue.first_host_read(&self.nodes).filter(|_| !overdue) {
                Some(read) => Some(read),
                None if die.cached == NIL => {
                    if overdue {
                        // the suspended operation has waited for the longest allowed time, so the
                        // next read waits for it
                        self.nodes.at_mut(die.suspended).suspends = u8::MAX;
                    }
                    return self.resume(d);
                }
                None => None,
            }
        } else {
            let is_read = |n| self.nodes.at(n).work == NodeKind::Read;
            match die.queue.first(self.now, self.times.passed_max) {
                // while the cache register holds a page that is still to be transferred out, the
                // cells can only sense another page
                Some(n) if die.cached != NIL && !(is_read(n) && is_read(die.cached)) => None,
                first => first,
            }
        };
        if let Some(n) = next {
            die.queue.pop(&self.nodes, n, self.now);
            self.start(d, n);
            self.join_planes(d);
        }
    }

    /// Updates the count of dies at work after a change on die `d`.
    ///
    /// Every event of a die asks, and few change anything. So the question is asked in place.
    #[inline]
    pub(crate) fn note_work(&mut self, d: u32) {
        let die = &self.dies[d as usize];
        if die.at_work() != die.counted {
            self.count_work(d);
        }
        self.note_occupant(d);
    }

    #[inline(never)]
    fn count_work(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        die.counted = !die.counted;
        self.statistics.dies_change(self.now, if die.counted { 1 } else { -1 });
    }

    pub(crate) fn start(&mut self, d: u32, n: u32) {
        let work = self.nodes.at(n).work;
        self.release_successor(n);
        let die = &mut self.dies[d as usize];
        die.current = n;
        if work == NodeKind::Program || self.times.command > Dur::ZERO {
            die.phase = Phase::Channel;
            self.use_channel(n);
        } else {
            self.start_cells(d);
        }
    }

    /// Releases the next operation of a block after a program or erase of the block has started.
    pub(crate) fn release_successor(&mut self, n: u32) {
        if self.nodes.at(n).work != NodeKind::Read
            && let Some(next) = self.nodes.started(n)
        {
            self.ready.push(next);
            self.note_released(self.ready.len() - 1, self.nodes.at(n).id);
        }
    }

    #[inline]
    pub(crate) fn start_cells(&mut self, d: u32) {
        let n = self.dies[d as usize].current;
        let Node { work, level, .. } = *self.nodes.at(n);
        let time = match work {
            NodeKind::Copyback => self.copyback_cells(self.nodes.at(n)),
            NodeKind::Read => self.times.read[level as usize],
            NodeKind::Program => self.times.program[level as usize],
            NodeKind::Erase => self.times.erase,
            other => unreachable!("{other:?} has no cells"),
        };
        self.run_cells(d, time);
    }

    pub(crate) fn run_cells(&mut self, d: u32, time: Dur) {
        let until = self.now.after(time);
        let die = &mut self.dies[d as usize];
        let n = die.current;
        die.phase = Phase::Cells { until };
        let busy = &mut self.statistics.die_busy[d as usize];
        *busy = *busy + time;
        self.state(n, State::Cells);
        self.agenda.set_die(until, d);
        self.nodes.prefetch_end(n);
        self.try_preload(d);
        if self.times.suspend.is_on()
            && self.dies[d as usize].queue.first_host_read(&self.nodes).is_some()
        {
            self.try_suspend(d);
        }
    }

    /// Continues after the cells of a die have finished, or have stopped for a read.
    pub(crate) fn die_done(&mut self, d: u32) {
        if self.dies[d as usize].phase == Phase::Suspending {
            self.dies[d as usize].phase = Phase::Idle;
            self.next_on_die(d);
            self.note_occupant(d);
        } else if self.times.suspend.gap > Dur::ZERO && self.cells_go_on(d) {
            // the operation may be suspended from now on
            self.until_end(d);
            self.try_suspend(d);
            self.note_work(d);
        } else {
            self.cells_done(d);
            self.note_work(d);
        }
    }

    /// Returns `true` if the cells of a die work beyond this moment.
    fn cells_go_on(&self, d: u32) -> bool {
        matches!(self.dies[d as usize].phase, Phase::Cells { until } if until > self.now)
    }

    fn cells_done(&mut self, d: u32) {
        let n = self.dies[d as usize].current;
        if self.nodes.at(n).work == NodeKind::Read {
            self.nodes.at_mut(n).halfway = true;
            if !self.times.cache_read {
                self.dies[d as usize].phase = Phase::Channel;
                return self.use_channel(n);
            }
            if self.dies[d as usize].cached == NIL {
                self.read_to_cache(d);
            } else {
                self.dies[d as usize].phase = Phase::WaitCache;
                self.state(n, State::Register);
            }
            return;
        }
        if self.nodes.at(n).work == NodeKind::Copyback && self.has_sensed(n) {
            self.dies[d as usize].phase = Phase::Channel;
            return self.use_channel(n);
        }
        if self.times.status > Dur::ZERO {
            self.dies[d as usize].phase = Phase::Status;
            return self.use_channel(n);
        }
        self.operation_done(d);
    }

    /// Sets the end of the cells of a die as its next event.
    fn until_end(&mut self, d: u32) {
        if let Phase::Cells { until } = self.dies[d as usize].phase {
            self.agenda.set_die(until, d);
        }
    }

    /// Ends the program or the erase of a die, and starts the die's next operation.
    pub(crate) fn operation_done(&mut self, d: u32) {
        let n = self.dies[d as usize].current;
        self.dies[d as usize].current = NIL;
        self.dies[d as usize].phase = Phase::Idle;
        if self.nodes.at(n).work == NodeKind::Copyback {
            self.complete_copyback(n);
        } else {
            self.complete(n);
        }
        if self.dies[d as usize].loaded {
            self.promote(d);
        } else {
            self.next_on_die(d);
        }
    }

    /// Moves the sensed page to the cache register and from there to the channel. The cells are
    /// then free.
    pub(crate) fn read_to_cache(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        let n = std::mem::replace(&mut die.current, NIL);
        die.cached = n;
        die.phase = Phase::Idle;
        // the command of the next read goes before the data, because otherwise the cells would be
        // idle until the data has left
        self.next_on_die(d);
        self.use_channel(n);
    }

    /// Transfers the next page to the die while the cells program a page, if cache program is on.
    pub(crate) fn try_preload(&mut self, d: u32) {
        if !self.times.cache_program {
            return;
        }
        let die = &mut self.dies[d as usize];
        let programming = matches!(die.phase, Phase::Cells { .. })
            && self.nodes.at(die.current).work == NodeKind::Program;
        if !programming || die.cached != NIL || die.suspended != NIL {
            return;
        }
        let Some(n) = die
            .queue
            .first(self.now, self.times.passed_max)
            .filter(|&n| self.nodes.at(n).work == NodeKind::Program)
        else {
            return;
        };
        die.queue.pop(&self.nodes, n, self.now);
        die.cached = n;
        self.release_successor(n);
        self.use_channel(n);
    }

    /// Moves the program from the cache register to the cells.
    pub(crate) fn promote(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        die.current = std::mem::replace(&mut die.cached, NIL);
        die.loaded = false;
        self.start_cells(d);
    }

    /// Suspends a program or an erase for a waiting host read, if the settings allow it and the
    /// operation still needs more time than the suspension takes.
    #[inline]
    pub(crate) fn try_suspend(&mut self, d: u32) {
        if self.times.suspend.is_on() {
            self.suspend_for_read(d);
        }
    }

    #[inline(never)]
    fn suspend_for_read(&mut self, d: u32) {
        let s = self.times.suspend;
        let Phase::Cells { until } = self.dies[d as usize].phase else { return };
        let n = self.dies[d as usize].current;
        let (allowed, most) = match self.nodes.at(n).work {
            NodeKind::Program => (s.program, s.max),
            NodeKind::Copyback => (s.program && self.is_programming(n), s.max),
            NodeKind::Erase => (s.erase, if s.erase_max > 0 { s.erase_max } else { s.max }),
            _ => (false, 0),
        };
        let (die, node) = (&mut self.dies[d as usize], self.nodes.at_mut(n));
        let remaining = until.since(self.now);
        if !allowed
            || node.suspends >= most
            || die.cached != NIL
            || die.suspended != NIL
            || remaining <= s.latency
        {
            return;
        }
        if node.suspends > 0 && self.now < die.not_before {
            // the waiting reads are considered again when the operation may be suspended
            if die.not_before < until {
                self.agenda.set_die(die.not_before, d);
            }
            return;
        }
        node.suspends += 1;
        die.suspended = std::mem::replace(&mut die.current, NIL);
        die.suspended_since = self.now;
        die.remaining = remaining;
        die.phase = Phase::Suspending;
        let busy = &mut self.statistics.die_busy[d as usize];
        *busy = Dur(busy.0 - remaining.0.min(busy.0));
        self.statistics.suspends += 1;
        let stopped = die.suspended;
        self.state(stopped, State::Suspended);
        self.agenda.set_die(self.now.after(s.latency), d);
    }

    pub(crate) fn resume(&mut self, d: u32) {
        let die = &mut self.dies[d as usize];
        die.current = std::mem::replace(&mut die.suspended, NIL);
        die.not_before = self.now.after(self.times.suspend.gap);
        let time = die.remaining + self.times.suspend.resume;
        self.run_cells(d, time);
    }
}
