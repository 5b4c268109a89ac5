//! Sending of requests from their jobs to the drive.
//!
//! A request may be queued, be sent together with other requests, and wait at the host. A sync may
//! cause the file system to send requests, too.

use super::filesystem::Member;
use super::request::{RequestKind, Waiting};
use super::scheduler::Scheduler;
use super::thread::ThreadState;
use crate::RunError;
use flashatlas_types::{HostOp, Lba, Ps, Request};

impl Scheduler<'_> {
    /// Sends a request, or queues it if the job sends several requests at a time.
    pub(super) fn queue(&mut self, waiting: Waiting) -> Result<(), RunError> {
        let number = waiting.job;
        let thread = &mut self.threads[number];
        match &mut thread.batch {
            Some(batch) if !waiting.call => {
                if batch.queue(waiting) {
                    self.send(number, true)?;
                }
                return Ok(());
            }
            _ => {}
        }
        if let RequestKind::Data(_) = waiting.kind {
            thread.stats.send(1, thread.in_flight);
        }
        self.host.push_back(waiting);
        self.submit_waiting()
    }

    /// Sends the requests that a job has queued; `counted` is `true` if fio counts them as sent.
    pub(super) fn send(&mut self, number: usize, counted: bool) -> Result<(), RunError> {
        let thread = &mut self.threads[number];
        let Some(batch) = &mut thread.batch else { return Ok(()) };
        if counted {
            thread.stats.send(batch.counted(), thread.in_flight + batch.unreaped);
        }
        let now = self.player.now;
        thread.last_issue = now;
        for mut waiting in batch.unsent.drain(..) {
            waiting.request.at = now;
            self.host.push_back(waiting);
        }
        self.submit_waiting()
    }

    pub(super) fn sync(
        &mut self,
        number: usize,
        kind: RequestKind,
        waits: bool,
    ) -> Result<(), RunError> {
        let thread = &mut self.threads[number];
        thread.in_flight += 1;
        thread.last_issue = self.player.now;
        if waits && thread.state == ThreadState::Ready {
            thread.state = ThreadState::Call;
        }
        if let Some(filesystem) = &mut self.filesystem {
            let files = std::mem::take(&mut thread.dirty).into_iter().collect();
            let member = Member { job: number, kind, since: self.player.now, files };
            if filesystem.must_commit(&member) {
                let first = filesystem.commit(member);
                return self.journal(first);
            }
        }
        let request =
            Request { at: self.player.now, op: HostOp::Flush, lba: Lba(0), sectors: 0, fua: false };
        self.queue(Waiting { job: number, kind, request, bytes: 0, place: (0, 0), call: waits })
    }

    /// Sends a request of the file system's transaction.
    pub(super) fn journal(&mut self, request: Option<Request>) -> Result<(), RunError> {
        let Some(request) = request else { return Ok(()) };
        let request = Request { at: self.player.now, ..request };
        // a request is measured only if its job has left the ramp, so the request names such a job
        // if possible
        let job = (0..self.threads.len()).find(|&j| !self.threads[j].in_ramp).unwrap_or(0);
        self.host.push_back(Waiting {
            job,
            kind: RequestKind::Journal,
            request,
            bytes: 0,
            place: (0, 0),
            call: false,
        });
        self.submit_waiting()
    }

    /// Completes a request of the transaction, and sends the next request.
    pub(super) fn journal_done(&mut self, at: Ps) -> Result<(), RunError> {
        let filesystem = self.filesystem.as_mut().expect("transactions belong to a file system");
        let (next, done) = filesystem.proceed();
        for Member { job, kind, since, .. } in done {
            let thread = &mut self.threads[job];
            thread.in_flight -= 1;
            thread.leave_ramp(at);
            thread.complete_sync(kind, since, at);
            if thread.state == ThreadState::Call {
                thread.state = ThreadState::Ready;
            }
            self.ready.insert(job);
        }
        self.journal(next)
    }

    /// Hands requests to the drive while its queue has room.
    pub(super) fn submit_waiting(&mut self) -> Result<(), RunError> {
        while self.player.in_flight() < self.queue_depth
            && let Some(waiting) = self.host.pop_front()
        {
            if !self.player.is_measuring() && !self.threads[waiting.job].in_ramp {
                self.player.start_measuring();
            }
            let number = self.player.tally.submitted + 1;
            let tag =
                self.player.submit(&waiting.request, waiting.request.at, number, None)? as usize;
            if tag >= self.flying.len() {
                self.flying.resize(tag + 1, None);
            }
            self.flying[tag] = Some(waiting);
        }
        Ok(())
    }
}
