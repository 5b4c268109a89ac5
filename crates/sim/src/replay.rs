//! The replay loop: requests in, completions out, events to the metrics, one record at the end.

use crate::fit::{Extents, Mapper};
use crate::input::{Input, Inputs, Opener};
use crate::metrics::{Event, METRICS, Metric, Snapshot};
use crate::oracle::Oracle;
use crate::precondition::{failed, precondition};
use crate::{Fit, Mode, Precondition, RunError, RunSpec, record};
use flashatlas_device::{Cmd, Device, Done, DriveConfig, Reply, Ssd};
use flashatlas_types::{Dur, HostOp, Lpn, Ps, Request, SECTOR_BYTES, Seed, Stamp, Tag};
use flashatlas_workload::ReadOptions;
use serde_json::{Map, Value, json};

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// `precondition`, `scan`, `run` or `check`.
    pub phase: &'static str,
    /// Requests so far.
    pub requests: u64,
    /// Share done, 0 to 1, where it is known.
    pub share: Option<f64>,
}

/// Requests between two calls of the progress function.
const PROGRESS_EVERY: u64 = 8192;

/// Drives with more mapping units are not swept after the run.
const SWEEP_UNITS_MAX: u32 = 1 << 26;

/// The latest arrival: 200 of the 213 days that fit simulated time.
const LATEST_PS: f64 = 200.0 * 86_400e12;

/// A command in flight.
#[derive(Clone, Copy)]
struct Flight {
    op: HostOp,
    arrived: Ps,
    submitted: Ps,
    measured: bool,
}

struct Replay<'a> {
    spec: &'a RunSpec,
    drive: Ssd,
    oracle: Oracle,
    metrics: Vec<Box<dyn Metric>>,
    flights: Vec<Flight>,
    vacant: Vec<u32>,
    in_flight: usize,
    depth: usize,
    now: Ps,
    measured_from: Ps,
    last_done: Ps,
    submitted: u64,
    completed: u64,
    out_of_order: u64,
    done: Vec<Done>,
    reply: Reply,
    /// The warm-up is over.
    measuring: bool,
}

/// Carry out `spec` and return its record. `opener` opens the files that it names; `progress` is called now and then
/// and stops the run by returning `false`.
///
/// # Errors
/// [`RunError`]: bad input, a drive that cannot go on, or a broken invariant. There is no partial record.
pub fn run(
    spec: &RunSpec,
    opener: &dyn Opener,
    version: &str,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, RunError> {
    let config = DriveConfig::load(&spec.drive, spec.drive_toml.as_deref(), &spec.set)?;
    let queue_depth = config.params.u32("host.queue_depth");
    check(spec, queue_depth)?;
    let drive = config.build(Seed(spec.seed))?;
    let capacity = drive.sectors();
    let inputs = Inputs {
        opener,
        options: ReadOptions { skip_bad: spec.skip_bad, shift_sectors: spec.shift, ..ReadOptions::default() },
    };
    let mut input = inputs.workload(spec, capacity, true)?;
    if spec.mode == Mode::Open && !input.timed {
        return Err(RunError::Fit(format!(
            "{}: format {} carries no times; open loop needs them: use --mode closed --depth N, or asap",
            input.name, input.format
        )));
    }
    let mut mapper = mapper(spec, &inputs, capacity, progress)?;
    let mut oracle = Oracle::new(drive.layout().logical_units, drive.unit_sectors());
    let mut drive = drive;
    let before = match &spec.precondition {
        Precondition::Trace(path) => Some(inputs.trace(path, None, false)?),
        _ => None,
    };
    let mut go_on = |requests| progress(Progress { phase: "precondition", requests, share: None });
    if !go_on(0) {
        return Err(RunError::Interrupted);
    }
    precondition(&mut drive, &mut oracle, &spec.precondition, before, &mut mapper, go_on)?;

    let mut replay = Replay {
        spec,
        depth: if spec.mode == Mode::Closed { spec.depth.unwrap_or(1) as usize } else { queue_depth as usize },
        oracle,
        metrics: METRICS.iter().map(|m| (m.build)()).collect(),
        flights: Vec::new(),
        vacant: Vec::new(),
        in_flight: 0,
        now: Ps::ZERO,
        measured_from: Ps::ZERO,
        last_done: Ps::ZERO,
        submitted: 0,
        completed: 0,
        out_of_order: 0,
        done: Vec::new(),
        reply: Reply::default(),
        measuring: false,
        drive,
    };
    replay.drive.set_instant(spec.mode == Mode::Untimed);
    replay.requests(&mut input, &mut mapper, progress)?;
    let mut body = Map::new();
    replay.measure(&mut body);
    let sweep = replay.sweep(progress)?;
    replay.drive.check().map_err(RunError::Broken)?;

    let mut record = record::head(spec, &config, version);
    let mut trace = Map::new();
    trace.insert("path".into(), input.name.as_str().into());
    trace.insert("format".into(), input.format.into());
    if let Some(digest) = input.digest()? {
        trace.insert("digest".into(), format!("sha256:{digest}").into());
    }
    trace.insert("requests".into(), replay.submitted.into());
    trace.insert("skipped_bad".into(), input.source.account().skipped_bad.into());
    record.insert("trace".into(), Value::Object(trace));
    let mut extra: Vec<String> = replay.drive.ftl_report().approximations.iter().map(|&s| s.to_owned()).collect();
    if replay.out_of_order > 0 {
        let n = replay.out_of_order;
        extra.push(format!("{n} requests carried an earlier time than the one before; they arrive together with it"));
    }
    if mapper.crossed_end > 0 {
        extra
            .push(format!("{} requests were moved so that they do not cross the end of the drive", mapper.crossed_end));
    }
    if replay.drive.dirty_units() > 0 {
        let n = replay.drive.dirty_units();
        extra.push(format!("{n} units were still in the write cache at the end: their programs are not counted"));
    }
    let unmapped = replay.drive.counters().unmapped_units;
    if unmapped > 0 {
        extra.push(format!(
            "{unmapped} of the units read had never been written: they cost no flash operation and look fast (precondition the drive)"
        ));
    }
    extra.extend(sweep);
    record.insert("approximations".into(), record::approximations(spec, extra));
    record.append(&mut body);
    record.insert("oracle".into(), record::oracle(&replay.oracle));
    record.insert(
        "conservation".into(),
        json!({ "submitted": replay.submitted, "completed": replay.completed, "failed": 0 }),
    );
    Ok(Value::Object(record))
}

fn check(spec: &RunSpec, queue_depth: u32) -> Result<(), RunError> {
    if spec.depth.is_some() && spec.mode != Mode::Closed {
        return Err(RunError::Fit("a depth was given, but only closed mode (--mode closed) uses one".into()));
    }
    if let Some(depth) = spec.depth
        && !(1..=queue_depth).contains(&depth)
    {
        return Err(RunError::Fit(format!(
            "depth {depth}: the drive accepts 1 to {queue_depth} commands at once (host.queue_depth)"
        )));
    }
    if spec.speed != 1.0 && spec.mode != Mode::Open {
        return Err(RunError::Fit(
            "a speed was given, but only open mode (--mode open) keeps the times of the trace".into(),
        ));
    }
    if spec.workload.is_some() && spec.trace.is_none() {
        let ignored = [("format", spec.format.is_some()), ("skip-bad", spec.skip_bad > 0), ("shift", spec.shift != 0)];
        if let Some((name, _)) = ignored.iter().find(|(_, given)| *given) {
            return Err(RunError::Fit(format!("--{name} is about reading a trace; the workload here is generated")));
        }
    }
    if !(spec.speed.is_finite() && spec.speed > 0.0) {
        return Err(RunError::Fit(format!("speed {}: must be a number above 0", spec.speed)));
    }
    Ok(())
}

/// The mapper, for which `compact` must read the workload (and the preconditioning trace) once before.
fn mapper(
    spec: &RunSpec,
    inputs: &Inputs<'_>,
    capacity: u64,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Mapper, RunError> {
    let mut extents = Extents::default();
    if spec.fit == Fit::Compact {
        let mut scan = |mut input: Input, limit: u64| -> Result<(), RunError> {
            let mut requests = 0;
            while requests < limit
                && let Some(record) = input.next_record()?
            {
                if !extents.add(&record, capacity) {
                    break;
                }
                requests += 1;
                let share = input.length.map(|l| input.source.bytes_read() as f64 / l.max(1) as f64);
                if requests % PROGRESS_EVERY == 0 && !progress(Progress { phase: "scan", requests, share }) {
                    return Err(RunError::Interrupted);
                }
            }
            Ok(())
        };
        if let Precondition::Trace(path) = &spec.precondition {
            scan(inputs.trace(path, None, false)?, u64::MAX)?;
        }
        scan(inputs.workload(spec, capacity, false)?, spec.limit.unwrap_or(u64::MAX))?;
    }
    Mapper::new(spec.fit, capacity, extents)
}

impl Replay<'_> {
    fn requests(
        &mut self,
        input: &mut Input,
        mapper: &mut Mapper,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), RunError> {
        let limit = self.spec.limit.unwrap_or(u64::MAX);
        let (mut number, mut latest) = (0, Ps::ZERO);
        while number < limit
            && let Some(record) = input.next_record()?
        {
            number += 1;
            let Some(request) = mapper.map(&record, number)? else { continue };
            if request.at < latest {
                self.out_of_order += 1;
            }
            latest = latest.max(request.at);
            self.issue(&request, latest, number)?;
            if number % PROGRESS_EVERY == 0 {
                let total = input.source.expected().map(|n| n.min(limit));
                let share = match (total, input.length) {
                    (Some(total), _) => Some(number as f64 / total.max(1) as f64),
                    (None, Some(length)) => Some(input.source.bytes_read() as f64 / length.max(1) as f64),
                    (None, None) => None,
                };
                if !progress(Progress { phase: "run", requests: number, share }) {
                    return Err(RunError::Interrupted);
                }
            }
        }
        if self.spec.warmup > 0 && number <= self.spec.warmup {
            return Err(RunError::Fit(format!(
                "the warm-up of {} requests leaves nothing to measure: the workload has {number}",
                self.spec.warmup
            )));
        }
        self.wait_for(0)?;
        if self.submitted != self.completed {
            return Err(self.stalled());
        }
        Ok(())
    }

    /// Forget what was measured so far: the next request is the first that counts.
    fn start_measuring(&mut self) {
        self.measuring = true;
        self.metrics = METRICS.iter().map(|m| (m.build)()).collect();
        self.flights.iter_mut().for_each(|f| f.measured = false);
        self.measured_from = self.now;
        self.drive.reset_counters();
    }

    /// Hand one request to the drive, when its time has come and the queue has room.
    fn issue(&mut self, request: &Request, at: Ps, number: u64) -> Result<(), RunError> {
        if self.spec.mode == Mode::Untimed {
            return self.submit(request, Ps::ZERO, number);
        }
        self.wait_for(self.depth - 1)?;
        let mut arrived = self.now;
        if self.spec.mode == Mode::Open {
            arrived = self.scaled(at, number)?;
            if arrived > self.now {
                while self.in_flight > 0
                    && let Some(at) = self.drive.next_event().filter(|&at| at <= arrived)
                {
                    self.advance(at);
                }
                if self.in_flight == 0 {
                    self.drive.idle(self.last_done.max(self.now), arrived).map_err(|e| failed(number, e))?;
                }
                self.now = arrived;
                self.advance(arrived);
            }
        }
        self.submit(request, arrived, number)
    }

    /// A time of the trace at the speed of the run; at speed 1 to the picosecond.
    fn scaled(&self, at: Ps, number: u64) -> Result<Ps, RunError> {
        let scaled = at.0 as f64 / self.spec.speed;
        match self.spec.speed == 1.0 {
            true => Ok(at),
            false if scaled < LATEST_PS => Ok(Ps(scaled as u64)),
            false => Err(RunError::Fit(format!(
                "request {number} would arrive {:.0} days after the first: simulated time ends after 200 days; use a larger --speed",
                scaled / 86_400e12
            ))),
        }
    }

    fn submit(&mut self, r: &Request, arrived: Ps, number: u64) -> Result<(), RunError> {
        if number > self.spec.warmup && !self.measuring {
            self.start_measuring();
        }
        let untimed = self.spec.mode == Mode::Untimed;
        let flight = Flight { op: r.op, arrived, submitted: self.now, measured: true };
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
            HostOp::Write => Cmd::Write { lba: r.lba, sectors: r.sectors, fua: r.fua, content: number, data: None },
            HostOp::Trim => Cmd::Trim { lba: r.lba, sectors: r.sectors },
            HostOp::Flush => Cmd::Flush,
        };
        let mut reply = std::mem::take(&mut self.reply);
        self.drive.submit(self.now, Tag(u64::from(tag)), cmd, &mut reply).map_err(|e| failed(number, e))?;
        self.submitted += 1;
        if r.op == HostOp::Read {
            self.oracle.compare(r, &reply.stamps, number);
        } else {
            self.oracle.apply(r, number);
        }
        self.reply = reply;
        let event = Event::Submitted { op: r.op, bytes: u64::from(r.sectors) * u64::from(SECTOR_BYTES) };
        self.metrics.iter_mut().for_each(|m| m.on(&event));
        if untimed {
            self.completed += 1;
            self.vacant.push(tag);
        } else {
            self.in_flight += 1;
        }
        Ok(())
    }

    /// Run until at most `in_flight` commands are in flight.
    fn wait_for(&mut self, in_flight: usize) -> Result<(), RunError> {
        while self.in_flight > in_flight {
            let Some(at) = self.drive.next_event() else { return Err(self.stalled()) };
            self.now = self.now.max(at);
            self.advance(at);
        }
        Ok(())
    }

    fn stalled(&self) -> RunError {
        RunError::Stalled { submitted: self.submitted, completed: self.completed, waiting: self.drive.explain() }
    }

    /// Handle everything up to `until`.
    fn advance(&mut self, until: Ps) {
        let mut done = std::mem::take(&mut self.done);
        self.drive.advance(until, &mut done);
        for d in done.drain(..) {
            let Flight { op, arrived, submitted, measured } = self.flights[d.tag.0 as usize];
            self.vacant.push(d.tag.0 as u32);
            self.in_flight -= 1;
            self.completed += 1;
            self.last_done = d.at;
            if measured {
                let event = Event::Done { op, arrived, submitted, at: d.at };
                self.metrics.iter_mut().for_each(|m| m.on(&event));
            }
        }
        self.done = done;
    }

    /// Let every metric add its keys.
    fn measure(&mut self, record: &mut Map<String, Value>) {
        let ftl = self.drive.ftl_report();
        let timed = self.spec.mode != Mode::Untimed;
        let active = if timed { self.drive.settle_down().since(self.measured_from) } else { Dur::ZERO };
        let statistics = timed.then(|| self.drive.statistics().clone());
        let snapshot = Snapshot {
            medium: self.drive.medium(),
            ftl: &ftl,
            device: self.drive.counters(),
            statistics: statistics.as_ref(),
            elapsed: if timed { self.last_done.since(self.measured_from) } else { Dur::ZERO },
            active,
            cache_bytes: self.drive.cache_bytes(),
            dirty_units: self.drive.dirty_units(),
        };
        self.metrics.iter_mut().for_each(|m| m.finish(&snapshot, record));
    }

    /// Look at every page once more, behind the drive's back. Says so when the drive is too large for that.
    fn sweep(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Option<String>, RunError> {
        let units = self.oracle.units();
        if units > SWEEP_UNITS_MAX {
            return Ok(Some(format!(
                "the drive has {units} pages: they were not all looked at again after the run; reads were checked"
            )));
        }
        for lpn in 0..units {
            let found =
                self.drive.peek(Lpn(lpn)).map_err(|error| RunError::Drive { request: self.submitted, error })?;
            self.oracle.sweep(lpn, found.map_or(Stamp::ZERO, |u| u.stamp));
            let share = Some(f64::from(lpn) / f64::from(units));
            if lpn % (1 << 20) == 0 && !progress(Progress { phase: "check", requests: self.submitted, share }) {
                return Err(RunError::Interrupted);
            }
        }
        Ok(None)
    }
}
