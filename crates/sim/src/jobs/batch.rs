//! `iodepth_batch*` and `iodepth_low`: requests that are sent and reaped several at a time.
//!
//! A job with fio's defaults for these options has no batch: it sends each request immediately, and
//! a completed request makes room immediately. In any other job, a request takes a place in the
//! queue until it is reaped (fio 3.33, `backend.c`: `wait_for_completions`; `ioengines.c`:
//! `td_io_queue`, `td_io_commit`, `td_io_getevents`).

use super::request::Waiting;
use flashatlas_fio::Options;

/// Requests that a job has queued and not reaped yet.
pub(super) struct Batch {
    /// Number of requests that are sent together.
    submit: u32,
    /// Number of completions that the job waits for.
    least: u32,
    /// Maximum number of completions that are reaped together, unless the job waited for more.
    most: u32,
    /// Number of taken places at which a full queue may be filled again.
    low: u32,
    /// `true` if the job waits for completions after each request.
    polls: bool,
    /// Requests that are queued and not sent.
    pub unsent: Vec<Waiting>,
    /// Number of requests that fio counts as queued, including requests that fio sent while it
    /// waited for completions.
    queued: u32,
    /// Number of requests that are complete and not reaped.
    pub unreaped: u32,
}

impl Batch {
    /// Returns the batch of a job; `None` if the job sends and reaps one request at a time.
    pub fn of(o: &Options) -> Option<Batch> {
        let depth = o.effective_depth();
        let or_depth = |n: u32| if n == 0 || n > depth { depth } else { n };
        let batch = Batch {
            submit: or_depth(o.batching.submit),
            least: o.batching.complete_min,
            most: o.batching.complete_max.max(o.batching.complete_min),
            low: or_depth(o.batching.low),
            polls: o.batching.complete_min == 0 && o.batching.complete_max == 0,
            unsent: Vec::new(),
            queued: 0,
            unreaped: 0,
        };
        let plain = batch.submit == 1 && batch.least == 1 && batch.most == 1 && batch.low == depth;
        (o.engine.queues() && !plain).then_some(batch)
    }

    /// Adds a request to the queue, and returns `true` if the queued requests must be sent.
    pub fn queue(&mut self, request: Waiting) -> bool {
        self.unsent.push(request);
        self.queued += 1;
        self.queued >= self.submit
    }

    /// Returns the number of requests that fio counts as sent now, and resets the count.
    pub fn counted(&mut self) -> u32 {
        std::mem::take(&mut self.queued)
    }

    /// Returns `true` if completions must be reaped before the next request.
    ///
    /// `taken` of the queue's `depth` places are taken.
    pub fn must_reap(&self, taken: u32, depth: u32) -> bool {
        taken >= depth || (self.polls && taken > 0)
    }

    /// Reaps completed requests and returns `true`; returns `false` if too few are complete.
    pub fn reap(&mut self, in_flight: u32) -> bool {
        let least = self.least.max(1).min(in_flight + self.unreaped);
        if self.unreaped < least {
            return false;
        }
        self.unreaped -= self.unreaped.min(self.most.max(least));
        true
    }

    /// Returns `true` if a queue that was full is empty enough to be filled again.
    pub fn is_low(&self, in_flight: u32) -> bool {
        in_flight + self.unreaped <= self.low
    }
}
