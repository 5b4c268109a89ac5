//! Jobs that wait for other jobs of their flow, and jobs that end together.

use super::scheduler::Scheduler;
use super::thread::ThreadState;
use flashatlas_fio::ExitWhat;
use flashatlas_types::Ps;

impl Scheduler<'_> {
    /// Removes a job that is over from its flow, and ends the jobs that must end with it.
    pub(super) fn leave(&mut self, number: usize) {
        if let Some(share) = self.threads[number].share.take() {
            self.flows[share.flow].leave(share);
            self.wake_flow(share.flow);
        }
        if !self.exits {
            return;
        }
        let job = self.threads[number].stream.job();
        let (group, what, now) = (job.group, job.options.exit_what, self.player.now);
        for (other, thread) in self.threads.iter_mut().enumerate() {
            let ends = match what {
                ExitWhat::Group => thread.stream.job().group == group,
                ExitWhat::Running => thread.state != ThreadState::Before,
                ExitWhat::All => true,
            };
            if ends && !thread.is_over() {
                thread.starts = now.min(thread.starts);
                thread.end_early(now, other, &mut self.sleeping, &mut self.ready);
            }
        }
    }

    /// Wakes the jobs of a flow that wait for other jobs, so that they check their shares.
    pub(super) fn wake_flow(&mut self, flow: usize) {
        for (number, thread) in self.threads.iter().enumerate() {
            let waits = matches!(thread.state, ThreadState::Flow(_));
            if waits && thread.share.is_some_and(|share| share.flow == flow) {
                self.ready.insert(number);
            }
        }
    }

    /// Lets a job that was ahead of its share at `since` check whether other jobs have caught up.
    ///
    /// Returns `true` if the job goes on now.
    pub(super) fn look_at_flow(&mut self, number: usize, since: Ps) -> bool {
        let now = self.player.now;
        let thread = &mut self.threads[number];
        let deadline = thread.deadline();
        let share = thread.share.expect("only a job of a flow waits for other jobs");
        if now < deadline && self.flows[share.flow].is_ahead(&share) {
            if deadline < Ps::MAX {
                self.sleeping.insert((deadline, number));
            }
            return false;
        }
        self.sleeping.remove(&(deadline, number));
        self.sleep(number, share.next_look(since, now))
    }
}
