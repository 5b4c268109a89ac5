//! All jobs of a file on one drive: their starts, their steps, and their waits.
//!
//! At each instant, the jobs that can act take turns in order of their numbers, with one step a
//! turn. If the drive's queue is full, requests wait at the host and are sent first come, first
//! served.

use super::Jobs;
use super::filesystem::FileSystem;
use super::flow::Flow;
use super::pacer::Pace;
use super::request::{RequestKind, Waiting};
use super::settling::Watch;
use super::stats::Stats;
use super::thread::{Thread, ThreadState};
use crate::player::Player;
use crate::progress::PROGRESS_EVERY;
use crate::{Progress, RunError};
use flashatlas_fio::{Direction, Job, JobRequest, JobStep, NextIssue};
use flashatlas_types::{Dur, HostOp, Lba, Ps, Request, SECTOR_BYTES, Seed};
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of requests of all jobs that are in flight or wait at the host.
pub(super) const MAX_IN_FLIGHT: u64 = 1 << 20;
/// Maximum number of requests at one instant. If a drive answers all requests immediately, time
/// does not pass, and a job that ends by time would never end.
const MAX_AT_ONCE: u64 = 1 << 21;
/// Latest time of an event: 200 days, of the 213 days that simulated time can represent.
const LATEST: Ps = Ps(200 * 86_400 * 1_000_000_000_000);

/// The jobs of a file on a drive.
pub(super) struct Scheduler<'a> {
    pub(super) player: &'a mut Player,
    pub(super) filesystem: &'a mut Option<FileSystem>,
    pub(super) queue_depth: usize,
    pub(super) threads: Vec<Thread>,
    watches: Vec<Watch>,
    pub(super) flows: Vec<Flow>,
    /// `true` if some job has `exitall`, so that the end of a job also ends other jobs.
    pub(super) exits: bool,
    /// Jobs that have not started, in order.
    unstarted: Vec<usize>,
    /// Jobs that can act now.
    pub(super) ready: BTreeSet<usize>,
    /// Jobs that wait until a time, with this time.
    pub(super) sleeping: BTreeSet<(Ps, usize)>,
    /// Requests that wait at the host for a place in the drive's queue.
    pub(super) host: VecDeque<Waiting>,
    /// Requests in flight, by the tag of the player.
    pub(super) flying: Vec<Option<Waiting>>,
    done: Vec<(Waiting, Ps)>,
    over: usize,
}

/// Plays all jobs to their ends.
///
/// Returns the statistics of each job, and the watches over the jobs with `steadystate`.
///
/// # Errors
/// Returns the errors of [`crate::run`].
pub(super) fn play(
    player: &mut Player,
    jobs: &Jobs,
    filesystem: &mut Option<FileSystem>,
    seed: Seed,
    queue_depth: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Vec<Stats>, Vec<Watch>), RunError> {
    let mut flows = Vec::new();
    let thread = |job: &Job| Thread::new(job, Flow::join(&mut flows, job.options.flow), seed);
    let threads: Vec<Thread> = jobs.layout.jobs.iter().map(thread).collect();
    let mut scheduler = Scheduler {
        player,
        filesystem,
        queue_depth,
        flows,
        exits: jobs.layout.jobs.iter().any(|job| job.options.exit_all),
        threads,
        watches: Watch::over(&jobs.layout.jobs),
        unstarted: (0..jobs.layout.jobs.len()).collect(),
        ready: BTreeSet::new(),
        sleeping: BTreeSet::new(),
        host: VecDeque::new(),
        flying: Vec::new(),
        done: Vec::new(),
        over: 0,
    };
    let played = scheduler.run(progress);
    scheduler.player.until_worn_out(played)?;
    Ok((scheduler.threads.into_iter().map(|t| t.stats).collect(), scheduler.watches))
}

impl Scheduler<'_> {
    fn run(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<(), RunError> {
        let mut reported = 0;
        let mut instant = (Ps::ZERO, 0);
        loop {
            self.start();
            self.act()?;
            if self.over == self.threads.len() {
                return Ok(());
            }
            if self.player.tally.submitted - reported >= PROGRESS_EVERY {
                reported = self.player.tally.submitted;
                if !progress(Progress { phase: "run", requests: reported, share: self.share() }) {
                    return Err(RunError::Interrupted);
                }
            }
            if instant.0 != self.player.now {
                instant = (self.player.now, self.player.tally.submitted);
            } else if self.player.tally.submitted - instant.1 > MAX_AT_ONCE {
                return Err(RunError::Unusable(format!(
                    "{MAX_AT_ONCE} requests of the jobs took no time at all: reads of units that \
                     are trimmed or were never written complete immediately; precondition the drive"
                )));
            }
            self.advance()?;
        }
    }

    /// Returns the share of the jobs that are over.
    ///
    /// It is unknown how much of the other jobs is left.
    fn share(&self) -> Option<f64> {
        Some(self.over as f64 / self.threads.len() as f64)
    }

    /// Starts the jobs whose time has come, in order.
    ///
    /// A job with `stonewall` that still waits also holds back the jobs behind it.
    fn start(&mut self) {
        let now = self.player.now;
        let mut walled = false;
        let mut running = self.threads.len() - self.unstarted.len() - self.over;
        let mut unstarted = std::mem::take(&mut self.unstarted);
        unstarted.retain(|&number| {
            if walled || self.threads[number].starts > now {
                return true;
            }
            walled = self.threads[number].stream.job().stonewall && running > 0;
            if !walled && self.waits_for_a_job(number) {
                return true;
            }
            if !walled {
                let thread = &mut self.threads[number];
                thread.start(now);
                let ramp = thread.stream.job().options.ramp;
                let own = self.watches.iter_mut().filter(|w| w.is_of(number));
                own.for_each(|w| w.start(now, ramp));
                self.ready.insert(number);
                running += 1;
            }
            walled
        });
        self.unstarted = unstarted;
    }

    /// Returns `true` if job `number` waits for a job by name, and that job or a clone of it is not
    /// over.
    fn waits_for_a_job(&self, number: usize) -> bool {
        let wait_for = &self.threads[number].stream.job().options.wait_for;
        wait_for.as_ref().is_some_and(|name| {
            self.threads[..number]
                .iter()
                .any(|thread| thread.stream.job().name == *name && !thread.is_over())
        })
    }

    /// Lets jobs act in turns until all of them wait for the drive or for time to pass.
    fn act(&mut self) -> Result<(), RunError> {
        loop {
            let turn: Vec<usize> = self.ready.iter().copied().collect();
            for number in turn {
                if !self.step(number)? {
                    self.ready.remove(&number);
                }
            }
            self.submit_waiting()?;
            if self.ready.is_empty() {
                self.start();
                if self.ready.is_empty() {
                    return Ok(());
                }
            }
        }
    }

    /// Does one step of one job. Returns `true` if the job may be able to act again immediately.
    fn step(&mut self, number: usize) -> Result<bool, RunError> {
        let now = self.player.now;
        let thread = &mut self.threads[number];
        thread.leave_ramp(now);
        if thread.state == ThreadState::Ready && !thread.expired && now >= thread.deadline() {
            thread.expired = true;
            thread.end_syncs = thread.stream.job().files.len();
            let o = &thread.stream.job().options;
            thread.state = if o.end_fsync && thread.last_written {
                ThreadState::DrainThenSync
            } else {
                ThreadState::Ending
            };
        }
        thread.reap_all();
        match thread.state {
            ThreadState::Ready => self.ready_step(number),
            ThreadState::Before | ThreadState::Over | ThreadState::Call => Ok(false),
            ThreadState::Until(at) => {
                if at <= now {
                    if std::mem::take(&mut thread.pausing) {
                        thread.pacer.paused(now);
                    }
                    thread.state = ThreadState::Ready;
                }
                Ok(at <= now)
            }
            ThreadState::Flow(since) => Ok(self.look_at_flow(number, since)),
            ThreadState::Reap { full } => {
                let (in_flight, batch) = (thread.in_flight, thread.batch.as_mut());
                let batch = batch.expect("only batches are reaped");
                let reaped = batch.reap(in_flight);
                if reaped && (!full || batch.is_low(in_flight)) {
                    thread.state = ThreadState::Ready;
                }
                Ok(reaped)
            }
            _ if thread.has_unsent() => {
                use ThreadState::{DrainThenFlow, DrainThenPause, DrainThenUntil};
                let state = thread.state;
                let counted =
                    matches!(state, DrainThenFlow | DrainThenPause(_) | DrainThenUntil(_));
                self.send(number, counted)?;
                Ok(true)
            }
            _ if thread.in_flight > 0 => Ok(false),
            ThreadState::DrainThenPause(pause) => {
                thread.pausing = true;
                let until = Ps(now.0.saturating_add(pause.0));
                Ok(self.sleep(number, until))
            }
            ThreadState::DrainThenUntil(until) => Ok(self.sleep(number, until)),
            ThreadState::DrainThenFlow => {
                thread.state = ThreadState::Flow(now);
                Ok(true)
            }
            ThreadState::Drain => {
                thread.state = ThreadState::Ready;
                Ok(true)
            }
            ThreadState::DrainThenSync => {
                thread.end_syncs = thread.end_syncs.saturating_sub(1);
                thread.state = match thread.expired {
                    true if thread.end_syncs > 0 => ThreadState::DrainThenSync,
                    true => ThreadState::Ending,
                    false => ThreadState::Ready,
                };
                thread.last_written = false;
                self.sync(number, RequestKind::EndSync, true)?;
                Ok(false)
            }
            ThreadState::Ending => {
                thread.stats.finish(now);
                thread.state = ThreadState::Over;
                self.over += 1;
                self.leave(number);
                Ok(false)
            }
        }
    }

    /// Lets a job sleep until `until` or until its time is up. Returns `true` if the job need not
    /// sleep, because that instant has passed.
    pub(super) fn sleep(&mut self, number: usize, until: Ps) -> bool {
        let until = until.min(self.threads[number].deadline());
        self.threads[number].state = ThreadState::Until(until);
        if until <= self.player.now {
            return true;
        }
        self.sleeping.insert((until, number));
        false
    }

    fn ready_step(&mut self, number: usize) -> Result<bool, RunError> {
        let now = self.player.now;
        let thread = &mut self.threads[number];
        match &thread.batch {
            None if thread.in_flight >= thread.depth => return Ok(false),
            Some(batch) => {
                let taken = thread.in_flight + batch.unreaped;
                if batch.must_reap(taken, thread.depth) {
                    thread.state = ThreadState::Reap { full: taken >= thread.depth };
                    self.send(number, false)?;
                    return Ok(true);
                }
            }
            None => {}
        }
        if let Some(step) = thread.held.take() {
            return self.take(number, Some(step));
        }
        if let Some(direction) = thread.issued.take() {
            let o = &thread.stream.job().options;
            if thread.pacer.pause_due(o, direction, now) {
                thread.state = ThreadState::DrainThenPause(o.think.max(o.think_spin));
                return Ok(true);
            }
        }
        if let Some(share) = &mut thread.share
            && !thread.counted
            && thread.stream.goes_on()
        {
            let flow = &mut self.flows[share.flow];
            if flow.is_ahead(share) {
                let sleeps = share.sleep > Dur::ZERO;
                thread.state =
                    if sleeps { ThreadState::DrainThenFlow } else { ThreadState::Flow(now) };
                return Ok(true);
            }
            flow.count(share);
            thread.counted = true;
            let flow = share.flow;
            self.wake_flow(flow);
        }
        let thread = &mut self.threads[number];
        let wish = match thread.towards.take() {
            Some(direction) => Some(direction),
            None => match thread.stream.wish() {
                NextIssue::Other => None,
                wish @ (NextIssue::After(_) | NextIssue::NotBefore(_)) => {
                    let at = match wish {
                        NextIssue::After(gap) => thread.last_issue.0.saturating_add(gap.0),
                        NextIssue::NotBefore(time) => time.0,
                        _ => 0,
                    };
                    if Ps(at) > now {
                        return Ok(self.sleep(number, Ps(at)));
                    }
                    None
                }
                NextIssue::Direction(wish) => {
                    match thread.pacer.pace(&thread.stream.job().options, wish, now) {
                        Pace::Go(direction) => Some(direction),
                        Pace::Wait(direction, at) => {
                            thread.towards = Some(direction);
                            thread.state = ThreadState::DrainThenUntil(at);
                            return Ok(true);
                        }
                    }
                }
            },
        };
        let step = match wish {
            Some(direction) => thread.stream.next_towards(direction),
            None => thread.stream.next_step(),
        };
        self.take(number, step)
    }

    fn take(&mut self, number: usize, step: Option<JobStep>) -> Result<bool, RunError> {
        let thread = &mut self.threads[number];
        if step.is_some_and(|step| self.filesystem.is_some() || thread.calls(step))
            && thread.has_unsent()
        {
            // fio's engines send queued requests before a call
            (thread.held, thread.state) = (step, ThreadState::Reap { full: true });
            self.send(number, true)?;
            return Ok(true);
        }
        self.threads[number].counted = false;
        match step {
            Some(JobStep::Request(request)) => self.data(number, request),
            Some(JobStep::Check(request)) => {
                let goes_on = self.data(number, request)?;
                self.threads[number].issued = None; // no pause follows a check
                Ok(goes_on)
            }
            Some(JobStep::Sync { data_only }) => {
                // with every engine, a call into a file system returns only when it is done
                let waits = self.filesystem.is_some()
                    || self.threads[number].stream.job().options.engine.waits_for_sync();
                self.threads[number].last_written = false;
                self.sync(
                    number,
                    if data_only { RequestKind::Fdatasync } else { RequestKind::Fsync },
                    waits,
                )?;
                Ok(!waits)
            }
            Some(JobStep::Pass) => {
                self.threads[number].last_issue = self.player.now;
                Ok(true)
            }
            Some(JobStep::EndSync) => {
                self.threads[number].state = ThreadState::DrainThenSync;
                Ok(true)
            }
            Some(JobStep::PassEnd) => {
                self.threads[number].state = ThreadState::Drain;
                Ok(true)
            }
            None => {
                self.threads[number].state = ThreadState::Ending;
                Ok(true)
            }
        }
    }

    fn data(&mut self, number: usize, r: JobRequest) -> Result<bool, RunError> {
        let thread = &mut self.threads[number];
        let job = thread.stream.job();
        let first = job.files[r.file as usize].start + r.offset;
        let sector = u64::from(SECTOR_BYTES);
        let (lba, end) = (first / sector, (first + r.bytes).div_ceil(sector));
        let write = r.direction == Direction::Write;
        let request = Request {
            at: self.player.now,
            op: [HostOp::Read, HostOp::Write, HostOp::Trim][r.direction as usize],
            lba: Lba(lba),
            sectors: (end - lba) as u32, // the layout bounds sizes
            fua: write && job.options.durable,
        };
        if let (Some(filesystem), true) = (&mut self.filesystem, write) {
            let start = job.files[r.file as usize].start;
            thread.dirty.insert(filesystem.wrote(
                start,
                request.lba,
                request.sectors,
                self.player.now,
            ));
        }
        let job = thread.stream.job();
        let waits = r.direction == Direction::Trim && job.options.engine.waits_for_trim();
        thread.pacer.issue(&job.options, r.direction, r.bytes);
        thread.in_flight += 1;
        thread.stats.issue(r.direction);
        thread.issued = Some(r.direction);
        thread.last_issue = self.player.now;
        thread.last_written |= write;
        if waits {
            thread.state = ThreadState::Call;
        }
        let kind = RequestKind::Data(r.direction);
        self.queue(Waiting {
            job: number,
            kind,
            request,
            bytes: r.bytes,
            place: (r.file, r.offset),
            call: waits,
        })?;
        Ok(!waits)
    }

    /// Goes to the next instant at which a command completes or a job has something to do.
    fn advance(&mut self) -> Result<(), RunError> {
        let wake = self.sleeping.first().map(|s| s.0);
        let start = self.next_start();
        let event = if self.player.in_flight() > 0 { self.player.drive.next_event() } else { None };
        let Some(next) = [wake, start, event].into_iter().flatten().min() else {
            if self.threads.iter().any(|thread| matches!(thread.state, ThreadState::Flow(_))) {
                return Err(RunError::Unusable(
                    "flow: each running job is ahead of its share, and the other jobs have not \
                     started, so the running jobs would wait for ever (with fio, too); give a \
                     `flow_id` to jobs that run together"
                        .into(),
                ));
            }
            return Err(self.player.stalled());
        };
        let look = self.watches.iter().filter_map(Watch::due).min();
        let next = look.map_or(next, |look| look.min(next));
        if next > LATEST {
            return Err(RunError::Unusable(
                "the jobs run for more than 200 days: simulated time ends there".into(),
            ));
        }
        let until = match self.player.in_flight() {
            0 => next,
            _ => [wake, start, look].into_iter().flatten().fold(LATEST, Ps::min),
        };
        let until = until.max(self.player.now);
        let mut done = std::mem::take(&mut self.done);
        // collect all completions before handling them: a handled completion may send a request
        // that reuses a free tag
        let flying = &mut self.flying;
        self.player.advance_to_completion(until, |tag, at| {
            done.push((flying[tag as usize].take().expect("a tag belongs to a request"), at));
        })?;
        for (waiting, at) in done.drain(..) {
            self.complete(waiting, at)?;
        }
        self.done = done;
        while let Some(&(at, number)) = self.sleeping.first()
            && at <= self.player.now
        {
            self.sleeping.remove(&(at, number));
            self.ready.insert(number);
        }
        self.look();
        Ok(())
    }

    /// Measures the rates that are due, and ends the jobs whose rates have settled.
    fn look(&mut self) {
        let now = self.player.now;
        for watch in &mut self.watches {
            if watch.due().is_some_and(|due| due <= now) && watch.look(now, &self.threads) {
                for number in watch.members() {
                    let thread = &mut self.threads[number];
                    if thread.is_over() {
                        continue;
                    }
                    thread.end_early(now, number, &mut self.sleeping, &mut self.ready);
                }
            }
        }
    }

    /// Returns the next start time of a job that has not started.
    fn next_start(&self) -> Option<Ps> {
        self.unstarted
            .iter()
            .map(|&number| self.threads[number].starts)
            .filter(|&at| at > self.player.now)
            .min()
    }

    fn complete(&mut self, waiting: Waiting, at: Ps) -> Result<(), RunError> {
        if waiting.kind == RequestKind::Journal {
            return self.journal_done(at);
        }
        let thread = &mut self.threads[waiting.job];
        thread.in_flight -= 1;
        thread.leave_ramp(at);
        match waiting.kind {
            RequestKind::Data(direction) => {
                let (file, offset) = waiting.place;
                thread.stream.complete(direction, file, offset);
                thread.complete_data(direction, waiting.bytes, waiting.request.at, at);
            }
            kind => thread.complete_sync(kind, waiting.request.at, at),
        }
        if let Some(batch) = thread.batch.as_mut().filter(|_| !waiting.call) {
            batch.unreaped += 1;
        }
        if waiting.call && thread.state == ThreadState::Call {
            thread.state = ThreadState::Ready;
        }
        self.ready.insert(waiting.job);
        Ok(())
    }
}
