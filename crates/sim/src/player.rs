//! The player: hands requests to a drive, checks the results of reads, and shows all events to the
//! metrics.
//!
//! [`crate::stream`] decides which request comes next, and when, for traces and generators.

use crate::explain::{Completed, Explain};
use crate::metrics::{Event, Findings, Metric, MetricDef, Snapshot, Start};
use crate::notes::NOT_SWEPT;
use crate::oracle::Oracle;
use crate::precondition::failed;
use crate::settling::Passes;
use crate::steadiness::Count;
use crate::worn_out::WornOut;
use crate::{Progress, RunError};
use flashatlas_device::{Cmd, Done, Reply, Ssd, Stack};
use flashatlas_types::{
    Dur, Entries, HostOp, Lpn, Note, Ps, Request, SECTOR_BYTES, Stamp, Tag, Violation, beat,
};
use serde_json::Value;

/// Maximum number of mapping units that are swept one by one after the run.
const SWEEP_UNITS_MAX: u32 = 1 << 28;

/// Maximum number of blocks of an NVMe read or write (NVM Command Set 1.0, 3.2.4: NLB has 16 bits).
const NVME_BLOCKS: u32 = 1 << 16;

/// Number of units of each request that are prefetched before the request is submitted. The other
/// units of a long request lie beside them in memory.
const EXPECTED_UNITS: u32 = 4;

/// Number of units that a sweep reads together.
const SWEPT_TOGETHER: u32 = 1 << 22;

/// A command in flight.
#[derive(Clone, Copy)]
struct Flight {
    op: HostOp,
    bytes: u64,
    arrived: Ps,
    submitted: Ps,
    measured: bool,
    complete: bool,
}

/// Player of requests on a drive.
pub(crate) struct Player {
    pub drive: Stack,
    pub oracle: Oracle,
    /// Simulated time.
    pub now: Ps,
    /// Commands handed to the drive that are not complete.
    pub in_flight: usize,
    /// Completion time of the last command.
    pub last_done: Ps,
    /// The longest time of the measured part in which commands were in flight and none completed,
    /// and its beginning.
    pub stillest: (Dur, Ps),
    /// Time since which something is in flight and nothing has completed.
    still_since: Ps,
    /// Commands handed to the drive.
    pub submitted: u64,
    /// Reads and writes among them that NVMe would send as several.
    pub longer_than_nvme: u64,
    /// Commands that were complete.
    pub completed: u64,
    /// `true` if the measured part has begun.
    pub measuring: bool,
    /// End of a run whose drive wore out before the workload ended.
    pub worn_out: Option<WornOut>,
    /// Bytes of the writes handed to the drive.
    written: u64,
    /// Counts of the drive's work when measuring began; its counters began anew then.
    before: Count,
    start: Start,
    measured: Entries<MetricDef>,
    metrics: Vec<Box<dyn Metric>>,
    flights: Vec<Flight>,
    vacant: Vec<u32>,
    measured_from: Ps,
    submitted_before: u64,
    /// Commands in flight, summed over the picoseconds since measuring began, and the end of the
    /// time that was counted.
    level_time: u128,
    level_until: Ps,
    /// The reading of the sampling clock at which a metric wants to look next.
    next_sample: u64,
    /// Explanation of the latencies, if asked for.
    explain: Option<Explain>,
    done: Vec<Done>,
    reply: Reply,
    /// Units that are read and written next; empty between calls.
    expected: [Vec<Lpn>; 2],
}

impl Player {
    /// Returns a player before its first request; its metrics begin with `start`.
    pub fn new(drive: Stack, oracle: Oracle, measured: Entries<MetricDef>, start: Start) -> Player {
        let mut player = Player {
            drive,
            oracle,
            now: Ps::ZERO,
            in_flight: 0,
            last_done: Ps::ZERO,
            stillest: (Dur::ZERO, Ps::ZERO),
            still_since: Ps::ZERO,
            submitted: 0,
            longer_than_nvme: 0,
            completed: 0,
            measuring: false,
            worn_out: None,
            written: 0,
            before: Count::default(),
            start,
            measured,
            metrics: Vec::new(),
            flights: Vec::new(),
            vacant: Vec::new(),
            measured_from: Ps::ZERO,
            submitted_before: 0,
            level_time: 0,
            level_until: Ps::ZERO,
            next_sample: u64::MAX,
            explain: None,
            done: Vec::new(),
            reply: Reply::default(),
            expected: Default::default(),
        };
        player.drive.set_instant(!start.timed);
        player
    }

    /// Keeps the reasons for the latencies of what is measured.
    pub fn explain(&mut self, explain: Explain) {
        self.drive.drives_mut().into_iter().for_each(Ssd::keep_paths);
        self.explain = Some(explain);
    }

    /// Returns the reasons for latencies, if they were asked for.
    pub fn explained(&self) -> Option<Value> {
        self.explain.as_ref().map(Explain::to_json)
    }

    /// Drops all measurements so far: the next request is the first that counts.
    pub fn start_measuring(&mut self) {
        self.measuring = true;
        self.metrics = self.measured.iter().map(|m| (m.build)(self.start)).collect();
        self.flights.iter_mut().for_each(|f| f.measured = false);
        self.explain.iter_mut().for_each(Explain::reset);
        self.measured_from = self.now;
        self.stillest = (Dur::ZERO, self.now);
        self.submitted_before = self.submitted;
        (self.level_time, self.level_until) = (0, self.now);
        self.before = self.count();
        self.drive.top_mut().reset_counters();
        self.sample(0);
    }

    /// Hands a request to the drive now, and returns its tag.
    ///
    /// The request reached the host at `arrived`; `number` (from 1) is the content of a write.
    pub fn submit(&mut self, r: &Request, arrived: Ps, number: u64) -> Result<u32, RunError> {
        self.submit_with(r, arrived, number, None)
    }

    /// Returns the bytes that the last read returned, if the drive keeps bytes.
    pub fn bytes_read(&self) -> &[u8] {
        &self.reply.bytes
    }

    /// Submits a request as [`Player::submit`], with the bytes of a write.
    pub fn submit_with(
        &mut self,
        r: &Request,
        arrived: Ps,
        number: u64,
        data: Option<&[u8]>,
    ) -> Result<u32, RunError> {
        if !self.start.timed
            && self.measuring
            && self.submitted - self.submitted_before >= self.next_sample
        {
            self.sample(self.submitted - self.submitted_before);
        }
        let bytes = u64::from(r.sectors) * u64::from(SECTOR_BYTES);
        let flight = Flight {
            op: r.op,
            bytes,
            arrived,
            submitted: self.now,
            measured: self.measuring,
            complete: false,
        };
        let tag = match self.vacant.pop() {
            Some(tag) => tag,
            None => {
                self.flights.push(flight);
                (self.flights.len() - 1) as u32
            }
        };
        self.flights[tag as usize] = flight;
        let cmd = match r.op {
            HostOp::Read => Cmd::Read { lba: r.lba, sectors: r.sectors },
            HostOp::Write => {
                Cmd::Write { lba: r.lba, sectors: r.sectors, fua: r.fua, content: number, data }
            }
            HostOp::Trim => Cmd::Trim { lba: r.lba, sectors: r.sectors },
            HostOp::Flush => Cmd::Flush,
        };
        let mut reply = std::mem::take(&mut self.reply);
        if let Err(error) = self.drive.submit(self.now, Tag(u64::from(tag)), cmd, &mut reply) {
            return Err(self.refused(r, number, error));
        }
        self.submitted += 1;
        beat(1);
        self.longer_than_nvme += u64::from(r.sectors > NVME_BLOCKS && r.op != HostOp::Trim);
        self.written += if r.op == HostOp::Write { bytes } else { 0 };
        if r.op == HostOp::Read {
            self.oracle.compare(r, &reply.stamps, number);
        } else {
            self.oracle.apply(r, number);
        }
        self.reply = reply;
        self.tell(&Event::Submitted { op: r.op, bytes, at: self.now });
        if self.start.timed {
            self.count_level(self.now);
            if self.in_flight == 0 {
                self.still_since = self.now;
            }
            self.in_flight += 1;
        } else {
            self.completed += 1;
            self.vacant.push(tag);
        }
        Ok(tag)
    }

    /// Prefetches table entries for the first units of each coming request, all at once.
    ///
    /// This has no other effect.
    pub fn prefetch<'a>(&mut self, requests: impl Iterator<Item = &'a Request>) {
        let (unit_sectors, end) = (u64::from(self.drive.unit_sectors()), self.oracle.units());
        let mut units = std::mem::take(&mut self.expected);
        for r in requests.filter(|r| matches!(r.op, HostOp::Read | HostOp::Write)) {
            let first = (r.lba.0 / unit_sectors) as u32;
            let last = ((r.lba.0 + u64::from(r.sectors)).div_ceil(unit_sectors) as u32).min(end);
            let first_units = (first..last.min(first + EXPECTED_UNITS)).map(Lpn);
            units[usize::from(r.op == HostOp::Write)].extend(first_units);
        }
        // a write changes the map much later, when it leaves the write cache
        self.drive.prefetch(&units[0]);
        for of_op in &mut units {
            self.oracle.prefetch(of_op);
            of_op.clear();
        }
        self.expected = units;
    }

    fn tell(&mut self, event: &Event) {
        self.metrics.iter_mut().for_each(|m| m.on(event));
    }

    /// Runs until at most `in_flight` commands are in flight; `finished` is called as by
    /// [`Player::advance`].
    pub fn wait_for(
        &mut self,
        in_flight: usize,
        mut finished: impl FnMut(u32, Ps),
    ) -> Result<(), RunError> {
        while self.in_flight > in_flight {
            if self.drive.next_event().is_none() {
                return Err(self.stalled());
            }
            let at = self.advance_to_completion(Ps::MAX, &mut finished);
            self.now = self.now.max(at);
        }
        Ok(())
    }

    /// Returns the error for commands in flight while nothing will happen any more.
    pub fn stalled(&self) -> RunError {
        if let Some(error) = self.drive.top().failure() {
            return self.ended(self.submitted, error);
        }
        RunError::Stalled {
            submitted: self.submitted,
            completed: self.completed,
            waiting: self.drive.ssd().explain(),
        }
    }

    /// Handles everything up to `until`; `finished` gets each completed command's tag and time.
    pub fn advance(&mut self, until: Ps, mut finished: impl FnMut(u32, Ps)) {
        while let Some(at) = self.sample_before(until) {
            self.step(at, &mut finished);
            self.sample(at.since(self.measured_from).0);
        }
        self.step(until, &mut finished);
    }

    /// Advances as [`Player::advance`], but no further than the first completion.
    ///
    /// Returns the time that was reached.
    pub fn advance_to_completion(&mut self, until: Ps, mut finished: impl FnMut(u32, Ps)) -> Ps {
        let before = self.completed;
        loop {
            let sample = self.sample_before(until);
            let at = self.step_to_completion(sample.unwrap_or(until), &mut finished);
            if self.completed > before {
                // a metric sees what has happened at the instant at which it looks
                while let Some(due) = self.sample_before(at) {
                    self.sample(due.since(self.measured_from).0);
                }
                return at;
            }
            let Some(due) = sample.filter(|_| self.drive.next_event().is_some()) else { return at };
            self.sample(due.since(self.measured_from).0);
        }
    }

    /// Lets everything happen up to `until`, which is not before now.
    ///
    /// If nothing is in flight, the drive may use the time.
    pub fn pass_time(
        &mut self,
        until: Ps,
        mut finished: impl FnMut(u32, Ps),
    ) -> Result<(), RunError> {
        while self.in_flight > 0 && self.drive.next_event().is_some_and(|at| at <= until) {
            self.advance_to_completion(until, &mut finished);
        }
        if self.in_flight == 0 && until > self.now {
            self.idle(until)?;
        }
        self.now = until;
        self.advance(until, finished);
        Ok(())
    }

    /// Lets time pass without requests until `until`: the drive may use the time.
    ///
    /// No command may be in flight.
    pub fn idle(&mut self, until: Ps) -> Result<(), RunError> {
        let from = self.last_done.max(self.now);
        while let Some(at) = self.sample_before(until) {
            self.drive.idle(from, at).map_err(|e| self.ended(self.submitted, e))?;
            self.step(at, &mut |_, _| ());
            self.sample(at.since(self.measured_from).0);
        }
        self.drive.idle(from, until).map_err(|e| self.ended(self.submitted, e))
    }

    /// Returns the time at which a metric wants to look next, unless it is after `until`.
    fn sample_before(&self, until: Ps) -> Option<Ps> {
        let wanted = self.start.timed
            && self.measuring
            && until.since(self.measured_from).0 >= self.next_sample;
        wanted.then(|| self.measured_from.after(Dur(self.next_sample)))
    }

    fn step(&mut self, until: Ps, finished: &mut impl FnMut(u32, Ps)) {
        let mut done = std::mem::take(&mut self.done);
        self.drive.advance(until, &mut done);
        self.complete(done, finished);
    }

    fn step_to_completion(&mut self, until: Ps, finished: &mut impl FnMut(u32, Ps)) -> Ps {
        let mut done = std::mem::take(&mut self.done);
        let at = self.drive.advance_to_completion(until, &mut done);
        self.complete(done, finished);
        at
    }

    /// Completes commands.
    fn complete(&mut self, mut done: Vec<Done>, finished: &mut impl FnMut(u32, Ps)) {
        for d in done.drain(..) {
            let tag = d.tag.0 as u32;
            let Flight { op, bytes, arrived, submitted, measured, .. } = self.flights[tag as usize];
            self.flights[tag as usize].complete = true;
            self.vacant.push(tag);
            self.count_level(d.at);
            self.in_flight -= 1;
            self.completed += 1;
            self.last_done = d.at;
            if self.measuring {
                let since = self.still_since.max(self.measured_from);
                self.stillest = self.stillest.max((d.at.since(since), since));
            }
            self.still_since = d.at;
            if measured {
                self.tell(&Event::Done { op, bytes, arrived, submitted, at: d.at });
            }
            if let Some(explain) = &mut self.explain {
                if measured {
                    let request = Completed { op, tag, arrived, submitted, at: d.at };
                    explain.note(&self.drive, request);
                }
                let flights = self.flights.iter().filter(|flight| !flight.complete);
                let oldest = || flights.map(|flight| flight.submitted).min().unwrap_or(d.at);
                explain.forget(&mut self.drive, oldest);
            }
            finished(tag, d.at);
        }
        self.done = done;
    }

    /// Counts the commands in flight up to `at`, before their number changes or is read.
    fn count_level(&mut self, at: Ps) {
        self.level_time += u128::from(at.since(self.level_until).0) * self.in_flight as u128;
        self.level_until = self.level_until.max(at);
    }

    /// Lets the metrics look at `clock`: picoseconds since measuring began, or requests in untimed
    /// runs.
    fn sample(&mut self, clock: u64) {
        let mut metrics = std::mem::take(&mut self.metrics);
        if self.start.timed {
            self.count_level(self.measured_from.after(Dur(clock)));
        }
        self.with_snapshot(Dur::ZERO, |now| metrics.iter_mut().for_each(|m| m.sample(clock, now)));
        self.next_sample = metrics.iter().map(|m| m.next_sample()).min().unwrap_or(u64::MAX);
        assert!(self.next_sample > clock, "a metric wants to look at {clock} again");
        self.metrics = metrics;
    }

    fn with_snapshot(&mut self, active: Dur, look: impl FnOnce(&Snapshot<'_>)) {
        let statistics = self.start.timed.then(|| self.drive.ssd_mut().statistics());
        let (drives, layers) = (self.drive.drives(), self.drive.top().reports());
        let drive = drives[0];
        let ftl = drive.ftl_report();
        look(&Snapshot {
            drive,
            drives: &drives,
            counters: self.drive.flash_counters(),
            layers: &layers,
            medium: drive.medium(),
            ftl: &ftl,
            device: drive.counters(),
            statistics: statistics.as_ref(),
            elapsed: if self.start.timed {
                self.last_done.since(self.measured_from)
            } else {
                Dur::ZERO
            },
            active,
            submitted: self.submitted - self.submitted_before,
            in_flight_time: self.level_time,
        });
    }

    /// Returns the counts of the drive's work so far.
    pub fn count(&self) -> Count {
        let clock = if self.start.timed { self.now.0 } else { self.submitted };
        let (layout, counters) = (self.drive.ssd().layout(), self.drive.flash_counters());
        let count = Count::of(layout, &counters, clock, self.submitted, self.written);
        let Count { programmed, erased, .. } = self.before;
        Count { programmed: programmed + count.programmed, erased: erased + count.erased, ..count }
    }

    /// Returns the passes of a workload that begins now.
    pub fn passes(&self) -> Passes {
        let page_bytes = self.drive.ssd().medium().layout().geometry.page_bytes;
        Passes::new(self.start, page_bytes, self.count())
    }

    /// Returns the findings of the metrics so far.
    pub fn look(&mut self) -> Findings {
        let mut metrics = std::mem::take(&mut self.metrics);
        let mut found = Findings::default();
        self.with_snapshot(Dur::ZERO, |now| {
            metrics.iter_mut().for_each(|m| m.look(now, &mut found));
        });
        self.metrics = metrics;
        found
    }

    /// Returns the findings of every metric at the end.
    pub fn measure(&mut self) -> Findings {
        let active =
            if self.start.timed { self.drive.drain().since(self.measured_from) } else { Dur::ZERO };
        let mut metrics = std::mem::take(&mut self.metrics);
        let mut found = Findings::default();
        self.with_snapshot(active, |end| {
            metrics.iter_mut().for_each(|m| m.finish(end, &mut found))
        });
        found
    }

    /// Checks every page once more, without commands to the drive.
    ///
    /// If the drive can sum up its stamps and the sum is as expected, all pages are checked at
    /// once. Returns a note if there is no sum and the drive is too large to check it page by page.
    pub fn sweep(
        &mut self,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Note>, RunError> {
        let units = self.oracle.units();
        let sum = self.drive.top().sum_of_stamps();
        if sum.is_some_and(|sum| self.oracle.sweep_at_once(sum)) {
            return Ok(None);
        }
        if sum.is_none() && units > SWEEP_UNITS_MAX {
            return Ok(Some(NOT_SWEPT.with([("pages", units.into())])));
        }
        let mut found = vec![Stamp::ZERO; units.min(SWEPT_TOGETHER) as usize];
        for first in (0..units).step_by(SWEPT_TOGETHER as usize) {
            let found = &mut found[..(units - first).min(SWEPT_TOGETHER) as usize];
            let peeked = self.drive.top().peek_stamps(Lpn(first), found);
            peeked.map_err(|error| failed(self.submitted, error))?;
            found.iter().zip(first..).for_each(|(&stamp, lpn)| self.oracle.sweep(lpn, stamp));
            let share = Some(f64::from(first) / f64::from(units));
            if !progress(Progress { phase: "check", requests: self.submitted, share }) {
                return Err(RunError::Interrupted);
            }
        }
        let explained = sum.is_none() || self.oracle.violations > 0;
        Violation::unless(explained, "the sum of stamps is that of all pages", || {
            format!("{units} pages hold what they must, and their sum differs")
        })
        .map_err(RunError::Broken)?;
        Ok(None)
    }
}
