//! Statistics that fio reports of a job: counts, latencies, rates in windows, depths.

use flashatlas_fio::Direction;
use flashatlas_types::{Dur, Ps};
use hdrhistogram::Histogram;

/// Significant digits of a histogram: a percentile is off by at most 1 %, about as much as in fio.
/// Means and extremes are exact.
const DIGITS: u8 = 2;
/// Length of a window of rates, as fio's `bwavgtime` and `iopsavgtime`.
const WINDOW: Dur = Dur::from_us(500_000);
/// Upper bounds of fio's depth classes except the last: 1, 2 to 3, 4 to 7 …
const DEPTHS: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// Upper bounds of fio's latency classes within a unit (nanoseconds, microseconds, milliseconds).
const LATENCIES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// All requests that jobs have completed, including requests that their statistics omit.
#[derive(Clone, Copy, Default)]
pub(super) struct Completed {
    pub requests: u64,
    pub bytes: u64,
    pub latency_ns: u64,
}

/// Counts of one kind of latency, in nanoseconds.
#[derive(Clone)]
pub(super) struct Times {
    pub histogram: Histogram<u64>,
    pub count: u64,
    pub min: u64,
    pub max: u64,
    total: u128,
    squares: f64,
}

impl Times {
    fn new() -> Times {
        let histogram = Histogram::new(DIGITS).expect("two digits are supported");
        Times { histogram, count: 0, min: u64::MAX, max: 0, total: 0, squares: 0.0 }
    }

    fn add(&mut self, ns: u64) {
        self.histogram.record(ns).expect("the histogram grows");
        self.count += 1;
        (self.min, self.max) = (self.min.min(ns), self.max.max(ns));
        self.total += u128::from(ns);
        self.squares += ns as f64 * ns as f64;
    }

    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total as f64 / self.count as f64 }
    }

    /// Returns the standard deviation of a sample, as fio computes it.
    pub fn deviation(&self) -> f64 {
        deviation(self.count as f64, self.mean() * self.count as f64, self.squares)
    }

    fn merge(&mut self, other: &Times) {
        self.histogram.add(&other.histogram).expect("the histogram grows");
        self.count += other.count;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.total += other.total;
        self.squares += other.squares;
    }
}

/// Returns the standard deviation of a sample from its count, sum and sum of squares.
fn deviation(count: f64, sum: f64, squares: f64) -> f64 {
    if count < 2.0 { 0.0 } else { ((squares - sum * sum / count) / (count - 1.0)).max(0.0).sqrt() }
}

/// Rates in windows.
#[derive(Clone, Default)]
pub(super) struct Rates {
    pub samples: u64,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub deviation: f64,
    sum: f64,
    squares: f64,
}

impl Rates {
    fn add(&mut self, rate: f64) {
        self.min = if self.samples == 0 { rate } else { self.min.min(rate) };
        self.max = self.max.max(rate);
        self.samples += 1;
        self.sum += rate;
        self.squares += rate * rate;
        self.mean = self.sum / self.samples as f64;
        self.deviation = deviation(self.samples as f64, self.sum, self.squares);
    }

    /// Merges rates as fio does for a group: the means are added, and the windows of all jobs
    /// count.
    fn merge(&mut self, other: &Rates) {
        if other.samples > 0 {
            self.min = if self.samples == 0 { other.min } else { self.min.min(other.min) };
            self.max = self.max.max(other.max);
            self.samples += other.samples;
            self.mean += other.mean;
            self.deviation = self.deviation.hypot(other.deviation);
        }
    }
}

/// One direction of a job.
#[derive(Clone)]
pub(super) struct DirectionStats {
    pub issued: u64,
    pub ios: u64,
    pub bytes: u64,
    pub latency: Times,
    pub bandwidth: Rates,
    pub iops: Rates,
    /// Requests and bytes since the window began.
    window: (u64, u64),
}

/// One job, or a group of them.
#[derive(Clone)]
pub(super) struct Stats {
    pub directions: [DirectionStats; 3],
    /// Latencies of fsyncs and fdatasyncs.
    pub sync: Times,
    /// Number of fsyncs, because fio counts only fsyncs as requests.
    pub fsyncs: u64,
    /// Number of requests sent in each class of depth.
    pub depths: [u64; 7],
    /// Number of requests in each of fio's latency classes of nanoseconds, microseconds and
    /// milliseconds.
    pub latency_ns: [u64; 10],
    pub latency_us: [u64; 10],
    pub latency_ms: [u64; 12],
    /// Start and end of the time that counts.
    pub from: Ps,
    pub until: Ps,
    next_window: Ps,
}

impl Stats {
    pub fn new(from: Ps) -> Stats {
        let direction = DirectionStats {
            issued: 0,
            ios: 0,
            bytes: 0,
            latency: Times::new(),
            bandwidth: Rates::default(),
            iops: Rates::default(),
            window: (0, 0),
        };
        Stats {
            directions: [(); 3].map(|()| direction.clone()),
            sync: Times::new(),
            fsyncs: 0,
            depths: [0; 7],
            latency_ns: [0; 10],
            latency_us: [0; 10],
            latency_ms: [0; 12],
            from,
            until: from,
            next_window: from.after(WINDOW),
        }
    }

    /// Counts a request that was issued.
    pub fn issue(&mut self, direction: Direction) {
        self.directions[direction as usize].issued += 1;
    }

    /// Counts `count` requests that were sent; `depth` requests, including them, are in flight.
    pub fn send(&mut self, count: u32, depth: u32) {
        let class = DEPTHS.iter().take_while(|&&bound| depth >= bound).count();
        self.depths[class] += u64::from(count);
    }

    /// Adds a completed request that was issued at `since`.
    pub fn complete(&mut self, direction: Direction, bytes: u64, since: Ps, now: Ps) {
        self.close_windows(now);
        let ns = now.since(since).ns();
        let stats = &mut self.directions[direction as usize];
        stats.ios += 1;
        stats.bytes += bytes;
        stats.window = (stats.window.0 + 1, stats.window.1 + bytes);
        stats.latency.add(ns);
        self.classify(ns);
    }

    /// Adds a completed fsync or fdatasync.
    pub fn complete_sync(&mut self, fsync: bool, since: Ps, now: Ps) {
        self.fsyncs += u64::from(fsync);
        self.sync.add(now.since(since).ns());
    }

    fn classify(&mut self, ns: u64) {
        let class = |value: u64| LATENCIES.iter().take_while(|&&bound| value >= bound).count();
        match ns {
            0..1_000 => self.latency_ns[class(ns)] += 1,
            1_000..1_000_000 => self.latency_us[class(ns / 1_000)] += 1,
            _ => {
                let ms = ns / 1_000_000;
                self.latency_ms[class(ms) + usize::from(ms >= 2_000)] += 1;
            }
        }
    }

    /// Closes the windows that ended by `now`, and adds their rates.
    pub fn close_windows(&mut self, now: Ps) {
        while self.next_window <= now {
            let active = self.directions.iter().map(|d| d.issued > 0).collect::<Vec<_>>();
            for (direction, active) in self.directions.iter_mut().zip(active) {
                let (ios, bytes) = std::mem::take(&mut direction.window);
                if active {
                    let seconds = WINDOW.0 as f64 / 1e12;
                    direction.iops.add(ios as f64 / seconds);
                    direction.bandwidth.add(bytes as f64 / seconds / 1024.0);
                }
            }
            self.next_window = self.next_window.after(WINDOW);
        }
    }

    /// Ends the statistics of a job that is over.
    pub fn finish(&mut self, now: Ps) {
        self.close_windows(now);
        self.until = now;
    }

    /// Adds the statistics of another job of the group.
    pub fn merge(&mut self, other: &Stats) {
        for (mine, theirs) in self.directions.iter_mut().zip(&other.directions) {
            mine.issued += theirs.issued;
            mine.ios += theirs.ios;
            mine.bytes += theirs.bytes;
            mine.latency.merge(&theirs.latency);
            mine.bandwidth.merge(&theirs.bandwidth);
            mine.iops.merge(&theirs.iops);
        }
        self.sync.merge(&other.sync);
        self.fsyncs += other.fsyncs;
        let add = |mine: &mut [u64], theirs: &[u64]| {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b)
        };
        add(&mut self.depths, &other.depths);
        add(&mut self.latency_ns, &other.latency_ns);
        add(&mut self.latency_us, &other.latency_us);
        add(&mut self.latency_ms, &other.latency_ms);
        let longest = self.until.since(self.from).0.max(other.until.since(other.from).0);
        self.from = self.from.min(other.from);
        self.until = self.from.after(Dur(longest));
    }
}
