//! Verdict on the steady state of a run: would a longer run have other numbers?

use super::{Event, Findings, Metric, MetricDef, Pace, Snapshot, Start, thin_out};
use crate::notes::BACKLOG;
use crate::steadiness::{Count, IMBALANCE_MAX, ROUNDS, Rounds};
use flashatlas_types::{HostOp, Ps};
use serde_json::json;

pub const DEF: MetricDef = MetricDef {
    name: "steady",
    summary: "verdict on the measured part (steady state or not), and the reasons against a steady \
              state",
    build: |start| Box::new(Steady::new(start)),
};

/// Maximum number of readings; above it, every second reading is dropped.
const READINGS_MAX: usize = 256;
/// Number of readings within the first width of a row of a time series.
const FINER: u64 = 64;

struct Steady {
    start: Start,
    width: u64,
    /// Counts since measuring began.
    readings: Vec<Count>,
    requests: u64,
    written: u64,
    /// Arrival and completion of the request that arrived last among the completed requests.
    last: (Ps, Ps),
}

impl Steady {
    fn new(start: Start) -> Steady {
        Steady {
            start,
            width: (start.first_width() / FINER).max(1),
            readings: Vec::new(),
            requests: 0,
            written: 0,
            last: (Ps::ZERO, Ps::ZERO),
        }
    }

    fn read(&mut self, clock: u64, now: &Snapshot<'_>) {
        self.readings.push(Count::of(
            now.medium.layout(),
            &now.counters,
            clock,
            self.requests,
            self.written,
        ));
    }

    /// Returns the growth of a counter in each round.
    ///
    /// A round ends when another fifth of the requests is complete. Between two readings, counters
    /// are assumed to grow evenly.
    fn rounds(&self, counter: impl Fn(&Count) -> u64) -> [f64; ROUNDS] {
        let all = self.requests as f64;
        let ends: [f64; ROUNDS + 1] = std::array::from_fn(|i| {
            let wanted = all * i as f64 / ROUNDS as f64;
            let next = self.readings.partition_point(|r| (r.requests as f64) < wanted);
            let (before, after) = (self.readings[next.saturating_sub(1)], self.readings[next]);
            let between = (after.requests - before.requests) as f64;
            let share =
                if between > 0.0 { (wanted - before.requests as f64) / between } else { 1.0 };
            let (from, to) = (counter(&before) as f64, counter(&after) as f64);
            from + (to - from) * share
        });
        std::array::from_fn(|i| ends[i + 1] - ends[i])
    }
}

impl Metric for Steady {
    fn on(&mut self, event: &Event) {
        match *event {
            Event::Submitted { op, bytes, .. } => {
                self.requests += u64::from(!self.start.timed);
                self.written += if op == HostOp::Write { bytes } else { 0 };
            }
            Event::Done { arrived, at, .. } => {
                self.requests += 1;
                self.last = self.last.max((arrived, at));
            }
            Event::Unreadable { .. } => {}
        }
    }

    fn next_sample(&self) -> u64 {
        self.readings.last().map_or(0, |r| r.clock.saturating_add(self.width))
    }

    fn sample(&mut self, clock: u64, now: &Snapshot<'_>) {
        if clock == 0 || clock == self.next_sample() {
            self.read(clock, now);
            if self.readings.len() > READINGS_MAX {
                self.width *= 2;
                thin_out(&mut self.readings);
            }
        }
    }

    fn finish(&mut self, end: &Snapshot<'_>, found: &mut Findings) {
        if self.start.pace == Pace::Stages || self.requests == 0 {
            return;
        }
        // rounds consist of requests: the drive's work after the last request belongs to no round
        let clock = if self.start.timed { end.elapsed.0 } else { end.submitted };
        self.read(clock, end);
        let last = self.readings[self.readings.len() - 1];
        let each = self.requests as f64 / ROUNDS as f64;
        let page = f64::from(end.medium.layout().geometry.page_bytes);
        let verdict = Rounds {
            of: "fifths of the run",
            iops: (self.start.timed && self.start.pace == Pace::Drive)
                .then(|| self.rounds(|r| r.clock).map(|ps| each / (ps / 1e12))),
            written: self.rounds(|r| r.written),
            programmed: self.rounds(|r| r.programmed).map(|pages| pages * page),
            programmed_pages: last.programmed,
            erased_pages: last.erased,
        }
        .judge();
        let rounds = verdict.rounds();
        let mut reasons = verdict.reasons;
        let (arrived, done) = self.last;
        let waited = done.since(arrived).0 as f64 / end.elapsed.0.max(1) as f64;
        if self.start.pace == Pace::Times && waited > IMBALANCE_MAX {
            reasons.push(BACKLOG.with([
                ("waited", (100.0 * waited).into()),
                ("most", (100.0 * IMBALANCE_MAX).into()),
            ]));
        }
        found.record.insert("steady".into(), reasons.is_empty().into());
        found.record.insert(
            "steadiness".into(),
            json!({
                "reasons": reasons, "rounds": rounds, "programmed_pages": last.programmed,
                "erased_pages": last.erased,
            }),
        );
    }
}
