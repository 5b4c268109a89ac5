//! Measurement of a run: its metrics, and the instants at which they look at the drive.

use super::flights::{Flight, Flights};
use super::queue::{Level, Stillness};
use crate::explain::{Completed, Explain};
use crate::metrics::{Event, Findings, Metric, MetricDef, Snapshot, Start};
use crate::steadiness::Count;
use flashatlas_device::Stack;
use flashatlas_types::{Dur, Entries, Ps};

/// Metrics of a run, and the measured part that they see.
pub(super) struct Measurement {
    pub start: Start,
    defined: Entries<MetricDef>,
    /// The metrics; empty before measuring has begun.
    metrics: Vec<Box<dyn Metric>>,
    /// `true` if the measured part has begun.
    pub begun: bool,
    /// Beginning of the measured part.
    from: Ps,
    /// Number of requests submitted before the measured part.
    submitted_before: u64,
    /// Counts of the drive's work before the measured part; the drive's counters were reset then.
    pub before: Count,
    /// The reading of the sampling clock at which the next sample is taken.
    next_sample: u64,
    level: Level,
    pub stillness: Stillness,
    /// Explanation of the latencies, if asked for.
    pub explain: Option<Explain>,
}

/// The drive and the requests, as metrics see them.
pub(super) struct View<'a> {
    pub drive: &'a mut Stack,
    pub flights: &'a Flights,
    /// Number of requests submitted since the run began.
    pub submitted: u64,
}

impl Measurement {
    /// Returns the measurement of a run before its measured part; its metrics begin with `start`.
    pub fn new(defined: Entries<MetricDef>, start: Start) -> Measurement {
        Measurement {
            start,
            defined,
            metrics: Vec::new(),
            begun: false,
            from: Ps::ZERO,
            submitted_before: 0,
            before: Count::default(),
            next_sample: u64::MAX,
            level: Level::default(),
            stillness: Stillness::default(),
            explain: None,
        }
    }

    /// Begins the measured part at `now`; `before` contains the counts of the drive's work so far.
    pub fn begin(&mut self, now: Ps, before: Count, view: View<'_>) {
        self.begun = true;
        self.metrics = self.defined.iter().map(|m| (m.build)(self.start)).collect();
        self.explain.iter_mut().for_each(Explain::reset);
        self.from = now;
        self.stillness.restart(now);
        self.submitted_before = view.submitted;
        self.level = Level::from(now);
        self.before = before;
        view.drive.top_mut().reset_counters();
        self.sample(0, view);
    }

    /// Shows an event of the measured part to the metrics.
    pub fn tell(&mut self, event: &Event) {
        self.metrics.iter_mut().for_each(|m| m.on(event));
    }

    /// Notes that the drive has accepted a command; `in_flight` does not include the command yet.
    pub fn submitted(&mut self, now: Ps, in_flight: usize) {
        self.level.count(now, in_flight);
        if in_flight == 0 {
            self.stillness.submitted_first(now);
        }
    }

    /// Notes that a command is complete; `in_flight` still includes the command.
    pub fn completed(&mut self, at: Ps, in_flight: usize) {
        self.level.count(at, in_flight);
        self.stillness.completed(at, self.begun.then_some(self.from));
    }

    /// Shows a complete command to the metrics and to the explanation of the latencies.
    pub fn show(&mut self, tag: u32, flight: Flight, at: Ps, drive: &mut Stack, left: &Flights) {
        let Flight { op, bytes, arrived, submitted, measured, .. } = flight;
        if measured {
            self.tell(&Event::Done { op, bytes, arrived, submitted, at });
        }
        if let Some(explain) = &mut self.explain {
            if measured {
                explain.note(drive, Completed { op, tag, arrived, submitted, at });
            }
            explain.forget(drive, || left.oldest().unwrap_or(at));
        }
    }

    /// Returns the time of the next sample, unless the time is after `until`.
    pub fn due(&self, until: Ps) -> Option<Ps> {
        let wanted = self.start.timed && self.begun && until.since(self.from).0 >= self.next_sample;
        wanted.then(|| self.from.after(Dur(self.next_sample)))
    }

    /// Returns the number of measured requests if a sample is due at this number.
    ///
    /// Returns `None` in a run in which time passes.
    pub fn due_in_requests(&self, submitted: u64) -> Option<u64> {
        if self.start.timed || !self.begun {
            return None;
        }
        let measured = submitted - self.submitted_before;
        (measured >= self.next_sample).then_some(measured)
    }

    /// Takes a sample at `at`.
    pub fn sample_at(&mut self, at: Ps, view: View<'_>) {
        self.sample(at.since(self.from).0, view);
    }

    /// Takes a sample at `clock`.
    ///
    /// The clock counts picoseconds since measuring began, or requests in untimed runs.
    pub fn sample(&mut self, clock: u64, view: View<'_>) {
        if self.start.timed {
            self.level.count(self.from.after(Dur(clock)), view.flights.count);
        }
        self.with_snapshot(Dur::ZERO, view, |metrics, now| {
            metrics.iter_mut().for_each(|m| m.sample(clock, now));
        });
        self.next_sample = self.metrics.iter().map(|m| m.next_sample()).min().unwrap_or(u64::MAX);
        assert!(self.next_sample > clock, "a metric wants to look at {clock} again");
    }

    /// Returns the findings of the metrics so far.
    pub fn look(&mut self, view: View<'_>) -> Findings {
        let mut found = Findings::default();
        self.with_snapshot(Dur::ZERO, view, |metrics, now| {
            metrics.iter_mut().for_each(|m| m.look(now, &mut found));
        });
        found
    }

    /// Returns the findings of every metric at the end, after all work under way has ended.
    pub fn finish(&mut self, view: View<'_>) -> Findings {
        let active = if self.start.timed { view.drive.drain().since(self.from) } else { Dur::ZERO };
        let mut found = Findings::default();
        self.with_snapshot(active, view, |metrics, end| {
            metrics.iter_mut().for_each(|m| m.finish(end, &mut found));
        });
        found
    }

    fn with_snapshot(
        &mut self,
        active: Dur,
        view: View<'_>,
        look: impl FnOnce(&mut [Box<dyn Metric>], &Snapshot<'_>),
    ) {
        let View { drive: stack, flights, submitted } = view;
        let statistics = self.start.timed.then(|| stack.ssd_mut().statistics());
        let (drives, layers) = (stack.drives(), stack.top().reports());
        let drive = drives[0];
        let ftl = drive.ftl_report();
        let now = Snapshot {
            drive,
            drives: &drives,
            counters: stack.flash_counters(),
            layers: &layers,
            medium: drive.medium(),
            ftl: &ftl,
            device: drive.counters(),
            statistics: statistics.as_ref(),
            elapsed: if self.start.timed { flights.last_done.since(self.from) } else { Dur::ZERO },
            active,
            submitted: submitted - self.submitted_before,
            in_flight_time: self.level.time,
        };
        look(&mut self.metrics, &now);
    }
}
