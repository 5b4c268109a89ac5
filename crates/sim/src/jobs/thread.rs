//! One running job: its state, its progress, and its counts.

use super::batch::Batch;
use super::flow::Share;
use super::pacer::Pacer;
use super::request::RequestKind;
use super::stats::{Completed, Stats};
use flashatlas_fio::{Direction, Job, JobStep, JobStream};
use flashatlas_types::{Dur, Ps, Rng, Seed};
use std::collections::BTreeSet;

/// State of a job. Most states name what the job waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ThreadState {
    /// The job has not started.
    Before,
    /// The job can take its next step, unless its depth is reached.
    Ready,
    /// The job waits for a request, as for a system call.
    Call,
    /// The job waits until nothing is in flight; then it pauses for this duration.
    DrainThenPause(Dur),
    /// The job waits until nothing is in flight, and then until this time, unless the time has
    /// passed.
    DrainThenUntil(Ps),
    /// The job waits until enough completed requests can be reaped. If its queue was full, the job
    /// waits until the queue is low.
    Reap {
        /// `true` if the queue was full.
        full: bool,
    },
    /// The job has waited since this time for other jobs of its flow to catch up.
    Flow(Ps),
    /// The job waits until nothing is in flight; then it waits for other jobs of its flow.
    DrainThenFlow,
    /// The job waits until this time.
    Until(Ps),
    /// The job waits until nothing is in flight; then it takes its next step.
    Drain,
    /// The job waits until nothing is in flight; then it sends an fsync.
    DrainThenSync,
    /// The job waits until nothing is in flight; then it is over.
    Ending,
    /// The job is over.
    Over,
}

pub(super) struct Thread {
    pub stream: JobStream,
    pub pacer: Pacer,
    pub stats: Stats,
    pub state: ThreadState,
    pub depth: u32,
    /// Requests that are queued or sent, and not complete.
    pub in_flight: u32,
    /// Batch of requests, if the job sends and reaps several at a time.
    pub batch: Option<Batch>,
    /// `true` while the job sleeps because of a pause.
    pub pausing: bool,
    /// Share of a flow, if the job belongs to a flow.
    pub share: Option<Share>,
    /// `true` if the flow has counted the job's next request.
    pub counted: bool,
    /// The step that follows when all queued requests are sent and reaped.
    pub held: Option<JobStep>,
    /// Earliest time at which the job may start.
    pub starts: Ps,
    pub started: Ps,
    /// Time from which `runtime` counts: the start, and later the end of the ramp.
    pub epoch: Ps,
    pub in_ramp: bool,
    /// Direction chosen by the rates.
    pub towards: Option<Direction>,
    /// Direction of the last request, until it is decided whether a pause follows the request.
    pub issued: Option<Direction>,
    pub last_written: bool,
    /// Time at which the last request, or line of a replayed log, was issued.
    pub last_issue: Ps,
    /// Files of the file system that the job wrote since its last sync.
    pub dirty: BTreeSet<u64>,
    /// `true` if the thread has noticed that its time is up, or that its rates have settled.
    pub expired: bool,
    /// Number of files that the thread still syncs before it ends.
    pub end_syncs: usize,
    /// `true` if the thread's rates have settled, or if another job's end has ended the thread.
    pub settled: bool,
    /// Requests that the thread has completed so far, including the requests of its ramp.
    pub completed: Completed,
}

impl Thread {
    pub fn new(job: &Job, share: Option<Share>, seed: Seed) -> Thread {
        let (low, high) = job.options.start_delay;
        let mut rng = Rng::stream(seed, &format!("fio.{}.startdelay", job.number));
        let starts = Ps(low.0 + rng.below((high.0 - low.0).saturating_add(1)));
        Thread {
            stream: JobStream::new(job, seed),
            pacer: Pacer::new(job, seed, Ps::ZERO),
            stats: Stats::new(Ps::ZERO),
            state: ThreadState::Before,
            depth: job.options.effective_depth(),
            in_flight: 0,
            batch: Batch::of(&job.options),
            pausing: false,
            share,
            counted: false,
            held: None,
            starts,
            started: Ps::ZERO,
            epoch: Ps::ZERO,
            in_ramp: job.options.ramp > Dur::ZERO,
            towards: None,
            issued: None,
            last_written: false,
            last_issue: Ps::ZERO,
            dirty: BTreeSet::new(),
            expired: false,
            end_syncs: 0,
            settled: false,
            completed: Completed::default(),
        }
    }

    pub fn start(&mut self, now: Ps) {
        self.state = ThreadState::Ready;
        (self.started, self.epoch) = (now, now);
        self.restart(now);
    }

    /// Restarts the statistics and the rates at `now`.
    pub fn restart(&mut self, now: Ps) {
        self.stats = Stats::new(now);
        self.pacer.restart(self.stream.job(), now);
    }

    /// Returns the time at which the job's time is up.
    pub fn deadline(&self) -> Ps {
        let runtime = self.stream.job().options.runtime;
        if self.settled {
            Ps::ZERO
        } else if runtime == Dur::ZERO || self.in_ramp {
            Ps::MAX
        } else {
            Ps(self.epoch.0.saturating_add(runtime.0))
        }
    }

    /// Returns `true` if the job has queued requests that were not sent.
    pub fn has_unsent(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| !batch.unsent.is_empty())
    }

    /// Reaps all requests if the job has waited until none was in flight.
    pub fn reap_all(&mut self) {
        use ThreadState::{
            Drain, DrainThenFlow, DrainThenPause, DrainThenSync, DrainThenUntil, Ending,
        };
        if let Some(batch) = &mut self.batch
            && let Drain | DrainThenFlow | DrainThenPause(_) | DrainThenSync | DrainThenUntil(_)
            | Ending = self.state
            && self.in_flight == 0
        {
            batch.unreaped = 0;
        }
    }

    /// Returns `true` if the job waits for a step as for a system call.
    pub fn calls(&self, step: JobStep) -> bool {
        let engine = self.stream.job().options.engine;
        match step {
            JobStep::Sync { .. } => engine.waits_for_sync(),
            JobStep::Request(r) => r.direction == Direction::Trim && engine.waits_for_trim(),
            _ => false,
        }
    }

    /// Ends the job at `now`, as when its time is up; a job that has not started ends when it
    /// starts.
    pub fn end_early(
        &mut self,
        now: Ps,
        number: usize,
        sleeping: &mut BTreeSet<(Ps, usize)>,
        ready: &mut BTreeSet<usize>,
    ) {
        self.settled = true;
        if self.state == ThreadState::Before {
            return;
        }
        if let ThreadState::Until(at) = self.state {
            sleeping.remove(&(at, number));
            self.state = ThreadState::Until(now);
        }
        ready.insert(number);
    }

    /// Returns `true` if the job is over.
    pub fn is_over(&self) -> bool {
        self.state == ThreadState::Over
    }

    /// Adds a completed data request that was issued at `since`.
    pub fn complete_data(&mut self, direction: Direction, bytes: u64, since: Ps, now: Ps) {
        self.completed.requests += 1;
        self.completed.bytes += bytes;
        self.completed.latency_ns += now.since(since).ns();
        self.pacer.complete();
        self.stats.complete(direction, bytes, since, now);
    }

    /// Adds a completed fsync or fdatasync.
    pub fn complete_sync(&mut self, kind: RequestKind, since: Ps, now: Ps) {
        if kind != RequestKind::EndSync {
            self.stats.complete_sync(kind == RequestKind::Fsync, since, now);
        }
    }

    /// Leaves the ramp if it is over.
    pub fn leave_ramp(&mut self, now: Ps) {
        if self.in_ramp && now.since(self.started) >= self.stream.job().options.ramp {
            self.in_ramp = false;
            self.epoch = now;
            self.restart(now);
            self.stream.restart_counts();
        }
    }
}
