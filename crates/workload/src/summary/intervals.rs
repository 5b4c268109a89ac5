//! Course of a trace, in at most [`MAX_INTERVALS`] equal intervals.

use cardinality_estimator::CardinalityEstimator;
use flashatlas_types::{HostOp, Ps};

/// Maximum number of intervals. If a record lies beyond them, each pair of neighbours is joined.
pub const MAX_INTERVALS: usize = 128;

/// The first width of intervals of time: 1 ms.
const FIRST_WIDTH_PS: u64 = 1_000_000_000;

/// Distinct pages, estimated by HyperLogLog++ with 2^12 registers: a standard error of 1.6 %.
type Sketch = CardinalityEstimator<(u32, u64)>;

/// One interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Requests of every kind.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Distinct pages read or written from the start of the trace to the end of the interval.
    pub footprint_pages: u64,
    pages: Sketch,
}

impl Interval {
    /// Returns the number of distinct pages read or written in the interval; the standard error is
    /// 1.6 %.
    pub fn working_set_pages(&self) -> u64 {
        self.pages.estimate() as u64
    }

    fn join(&mut self, later: &Interval) {
        self.requests += later.requests;
        self.read_bytes += later.read_bytes;
        self.written_bytes += later.written_bytes;
        // an interval without requests has a footprint of 0 here
        self.footprint_pages = self.footprint_pages.max(later.footprint_pages);
        self.pages.merge(&later.pages);
    }
}

/// Unit in which the width of intervals is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalUnit {
    /// Requests, as long as all of them are at time 0.
    Requests,
    /// Picoseconds.
    Time,
}

/// The intervals of a trace so far.
#[derive(Clone, Debug)]
pub struct Intervals {
    by: IntervalUnit,
    width: u64,
    /// Number of requests so far.
    requests: u64,
    intervals: Vec<Interval>,
}

impl Default for Intervals {
    fn default() -> Intervals {
        Intervals { by: IntervalUnit::Requests, width: 1, requests: 0, intervals: Vec::new() }
    }
}

impl Intervals {
    /// Returns the unit of the width of the intervals.
    pub fn by(&self) -> IntervalUnit {
        self.by
    }

    /// Returns the width of each interval, in requests or in picoseconds.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Returns the intervals from the start of the trace on. `footprint_pages` never falls.
    pub fn each(&self) -> impl Iterator<Item = Interval> {
        let mut footprint = 0;
        self.intervals.iter().map(move |interval| {
            footprint = footprint.max(interval.footprint_pages);
            Interval { footprint_pages: footprint, ..interval.clone() }
        })
    }

    /// Returns the interval of the next request, which arrives at `at`. A record with an earlier
    /// time than one before it counts in the latest interval.
    fn at(&mut self, at: Ps) -> &mut Interval {
        if self.by == IntervalUnit::Requests && at > Ps::ZERO {
            self.count_time();
        }
        let position = if self.by == IntervalUnit::Time { at.0 } else { self.requests };
        while position / self.width >= MAX_INTERVALS as u64 {
            self.double();
        }
        let index = ((position / self.width) as usize).max(self.intervals.len().saturating_sub(1));
        self.intervals.resize_with(self.intervals.len().max(index + 1), Interval::default);
        &mut self.intervals[index]
    }

    /// Changes to intervals of time. All requests so far, which were at time 0, are in the first.
    fn count_time(&mut self) {
        let mut first = Interval::default();
        self.intervals.iter().for_each(|interval| first.join(interval));
        *self = Intervals {
            by: IntervalUnit::Time,
            width: FIRST_WIDTH_PS,
            requests: self.requests,
            intervals: vec![first],
        };
    }

    fn double(&mut self) {
        self.width *= 2;
        let pairs = self.intervals.chunks(2).map(|pair| {
            let mut joined = pair[0].clone();
            pair[1..].iter().for_each(|later| joined.join(later));
            joined
        });
        self.intervals = pairs.collect();
    }

    /// Counts a request, the pages of `device` that it reads or writes, and the footprint after it.
    pub(super) fn add(
        &mut self,
        at: Ps,
        op: HostOp,
        bytes: u64,
        device: u32,
        pages: std::ops::Range<u64>,
        footprint: u64,
    ) {
        let interval = self.at(at);
        interval.requests += 1;
        interval.footprint_pages = footprint;
        match op {
            HostOp::Read => interval.read_bytes += bytes,
            HostOp::Write => interval.written_bytes += bytes,
            HostOp::Trim | HostOp::Flush => {}
        }
        if matches!(op, HostOp::Read | HostOp::Write) {
            pages.for_each(|page| interval.pages.insert(&(device, page)));
        }
        self.requests += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn add(intervals: &mut Intervals, at_ms: u64, page: u64) {
        intervals.add(Ps(at_ms * MS), HostOp::Read, 4096, 0, page..page + 1, page + 1);
    }

    fn rows(intervals: &Intervals) -> Vec<(u64, u64, u64)> {
        intervals.each().map(|i| (i.requests, i.working_set_pages(), i.footprint_pages)).collect()
    }

    #[test]
    fn intervals_double_as_time_goes_on() {
        let mut intervals = Intervals::default();
        [(0, 0), (0, 1), (1, 1), (3, 2), (127, 3)]
            .iter()
            .for_each(|&(at, page)| add(&mut intervals, at, page));
        assert_eq!((intervals.by(), intervals.width()), (IntervalUnit::Time, MS));
        let (all, nothing) = (rows(&intervals), (0, 0, 2));
        assert_eq!((all.len(), &all[..4]), (128, &[(2, 2, 2), (1, 1, 2), nothing, (1, 1, 3)][..]));
        add(&mut intervals, 128, 3);
        assert_eq!(intervals.width(), 2 * MS);
        let all = rows(&intervals);
        assert_eq!((all.len(), &all[..2]), (65, &[(3, 2, 2), (1, 1, 3)][..]));
        add(&mut intervals, 5, 9); // too early: counts in the latest interval
        assert_eq!(rows(&intervals)[64], (2, 2, 10));
        add(&mut intervals, u64::MAX / MS, 10);
        assert!(intervals.each().count() <= MAX_INTERVALS);
        assert_eq!(intervals.each().map(|i| i.requests).sum::<u64>(), 8);
    }

    #[test]
    fn without_times_requests_are_counted() {
        let mut intervals = Intervals::default();
        (0..1000).for_each(|n| add(&mut intervals, 0, n));
        assert_eq!((intervals.by(), intervals.width()), (IntervalUnit::Requests, 8));
        assert_eq!(rows(&intervals)[..2], [(8, 8, 8), (8, 8, 16)]);
        assert_eq!(intervals.each().count(), 125);
    }

    #[test]
    fn working_sets_are_within_their_error() {
        let mut intervals = Intervals::default();
        intervals.add(Ps(0), HostOp::Write, 0, 0, 0..200_000, 0);
        intervals.add(Ps(0), HostOp::Write, 0, 1, 0..100_000, 0);
        intervals.add(Ps(MS), HostOp::Write, 0, 0, 100_000..200_000, 0);
        let sets: Vec<u64> = intervals.each().map(|i| i.working_set_pages()).collect();
        for (estimate, exact) in sets.iter().zip([300_000.0, 100_000.0]) {
            assert!((*estimate as f64 / exact - 1.0).abs() < 3.0 * 0.0163, "{estimate} of {exact}");
        }
    }
}
