//! Reasons for latencies, from the critical path of every request.
//!
//! The times on the paths are summed by reason, in bins of requests with nearly the same latency.
//! From these sums, the record compares the slowest requests with the other requests.

use crate::RunError;
use flashatlas_device::Stack;
use flashatlas_timing::paths::before_issue;
use flashatlas_timing::{Reason, Step};
use flashatlas_types::{Cause, Dur, HostOp, OpKind, Ps, Tag};
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Time of each reason, in picoseconds.
type Parts = [u128; Reason::ALL.len()];

/// Number of requests whose whole critical paths are shown. No two of them belong to one burst.
const LONGEST: usize = 5;

/// Number of bursts whose longest request is kept during the run.
///
/// The number is larger than [`LONGEST`], because a request that joins two bursts replaces the
/// longest requests of both.
const BURSTS: usize = 4 * LONGEST;

/// Number of completions after which the drives drop the paths that are no longer needed.
const FORGET_EVERY: u32 = 1024;

/// Bands of latency: the name of each band, and the share of the requests up to its upper end.
const BANDS: [(&str, f64); 5] =
    [("p0", 0.5), ("p50", 0.9), ("p90", 0.99), ("p99", 0.999), ("p99.9", 1.0)];

/// Parses a percentile such as `p99.9`, and returns the share of the requests below it.
///
/// # Errors
/// Returns an error if `text` is no percentile.
pub(crate) fn percentile(text: &str) -> Result<f64, RunError> {
    let number = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
    number.filter(|p| (0.0..100.0).contains(p)).map(|p| p / 100.0).ok_or_else(|| {
        let why =
            format!("`{text}` is not a percentile: give one from p0 to below p100, such as p99.9");
        RunError::option("explain", why)
    })
}

/// Requests with nearly the same latency.
#[derive(Clone, Default)]
struct Bin {
    requests: u64,
    parts: Parts,
}

impl Bin {
    fn add(&mut self, other: &Bin) {
        self.requests += other.requests;
        self.parts.iter_mut().zip(other.parts).for_each(|(sum, part)| *sum += part);
    }

    /// Returns mean times in nanoseconds, without parts that took no time.
    fn to_json(&self) -> Map<String, Value> {
        let mean = |ps: u128| ps as f64 / self.requests.max(1) as f64 / 1e3;
        let parts = Reason::ALL.iter().zip(self.parts).filter(|(_, part)| *part > 0);
        let parts: Map<String, Value> =
            parts.map(|(reason, part)| (reason.name().to_owned(), json!(mean(part)))).collect();
        let Value::Object(map) = json!({
            "requests": self.requests, "mean_ns": mean(self.parts.iter().sum()), "parts_ns": parts,
        }) else {
            unreachable!("an object was written")
        };
        map
    }
}

/// A request and its path, the earliest step first.
struct Long {
    op: HostOp,
    arrived: Ps,
    at: Ps,
    steps: Vec<Step>,
}

/// Keeps a request if it is the longest of its burst.
///
/// A burst is a set of requests that are in the drive at the same time. `longest` contains the
/// longest request of each burst, for at most [`BURSTS`] bursts, in descending order of latency.
/// `steps` returns the path of the request and is called only if the request is kept.
fn keep(
    longest: &mut Vec<Long>,
    op: HostOp,
    arrived: Ps,
    at: Ps,
    steps: impl FnOnce() -> Vec<Step>,
) {
    let latency = at.since(arrived);
    let shortest = longest.last().map_or(Dur(0), Long::latency);
    if longest.len() >= BURSTS && latency <= shortest {
        return;
    }
    let same_burst = |long: &Long| long.arrived < at && arrived < long.at;
    if longest.iter().any(|long| same_burst(long) && long.latency() >= latency) {
        return;
    }
    longest.retain(|long| !same_burst(long));
    let place = longest.partition_point(|long| long.latency() >= latency);
    longest.insert(place, Long { op, arrived, at, steps: steps() });
    longest.truncate(BURSTS);
}

/// A request that is complete.
#[derive(Clone, Copy)]
pub(crate) struct Completed {
    pub op: HostOp,
    pub tag: u32,
    pub arrived: Ps,
    pub submitted: Ps,
    pub at: Ps,
}

/// Critical paths of the requests so far.
pub(crate) struct Explain {
    name: String,
    percentile: f64,
    /// Histogram that decides which latencies share a bin, as in the record.
    scale: Histogram<u64>,
    ops: [BTreeMap<u64, Bin>; 4],
    /// The longest request of each burst, in descending order of latency.
    longest: Vec<Long>,
    until_forgotten: u32,
}

impl Explain {
    pub fn new(name: &str) -> Result<Explain, RunError> {
        Ok(Explain {
            name: name.to_owned(),
            percentile: percentile(name)?,
            scale: Histogram::new(3).expect("three digits are supported"),
            ops: Default::default(),
            longest: Vec::new(),
            until_forgotten: FORGET_EVERY,
        })
    }

    /// Drops all requests so far.
    pub fn reset(&mut self) {
        self.ops = Default::default();
        self.longest.clear();
    }

    /// Adds a completed request of the measured part.
    pub fn note(&mut self, drive: &Stack, request: Completed) {
        let Completed { op, tag, arrived, submitted, at } = request;
        // under a layer, a request has no tag: its path is the path of a command that completes at
        // the same time
        let tag = drive.is_bare().then(|| Tag(tag.into()));
        let paths = drive.drives().into_iter().filter_map(|ssd| ssd.path(tag, at, submitted));
        let path = paths.min_by_key(|steps| before_issue(steps));
        let whole = |reason, from, to| Step { from, to, reason, op: None };
        let mut steps = path.unwrap_or_else(|| vec![whole(Reason::Layer, submitted, at)]);
        if submitted > arrived {
            steps.push(whole(Reason::HostQueue, arrived, submitted));
        }
        let mut bin = Bin { requests: 1, ..Bin::default() };
        for step in &steps {
            bin.parts[step.reason as usize] += u128::from(step.to.since(step.from).0);
        }
        let latency = at.since(arrived);
        assert!(
            bin.parts.iter().sum::<u128>() == u128::from(latency.0),
            "the critical path of a request is as long as its latency"
        );
        let place = self.scale.lowest_equivalent(latency.ns());
        self.ops[op as usize].entry(place).or_default().add(&bin);
        keep(&mut self.longest, op, arrived, at, || {
            steps.reverse();
            steps
        });
    }

    /// Drops the paths that ended before `oldest`, in one of [`FORGET_EVERY`] calls.
    ///
    /// `oldest` returns the time at which the oldest command in flight was submitted. Older paths
    /// are not needed any more.
    pub fn forget(&mut self, drive: &mut Stack, oldest: impl FnOnce() -> Ps) {
        self.until_forgotten -= 1;
        if self.until_forgotten == 0 {
            self.until_forgotten = FORGET_EVERY;
            let oldest = oldest();
            drive.drives_mut().into_iter().for_each(|ssd| ssd.forget_paths(oldest));
        }
    }

    /// Returns the value of the record's key `explain`.
    pub fn to_json(&self) -> Value {
        let done = HostOp::ALL.iter().zip(&self.ops).filter(|(_, bins)| !bins.is_empty());
        let ops: Map<String, Value> =
            done.map(|(op, bins)| (op.name().to_owned(), self.of_bins(bins))).collect();
        json!({
            "percentile": self.name,
            "percent": 100.0 * self.percentile,
            "ops": ops,
            "longest": self.longest.iter().take(LONGEST).map(Long::to_json).collect::<Vec<_>>(),
        })
    }

    /// Returns the mean times of the slowest requests and of each band.
    ///
    /// Bins are not split. A bin that contains a percentile counts as above this percentile.
    fn of_bins(&self, bins: &BTreeMap<u64, Bin>) -> Value {
        let total: u64 = bins.values().map(|bin| bin.requests).sum();
        let (mut slowest, mut from, mut bands) = (Bin::default(), None, Vec::new());
        bands.resize(BANDS.len(), Bin::default());
        let mut below = 0;
        for (&latency, bin) in bins {
            below += bin.requests;
            let share = below as f64 / total as f64;
            if share > self.percentile {
                from.get_or_insert(latency);
                slowest.add(bin);
            }
            let band = BANDS.iter().filter(|&&(_, end)| share > end).count();
            bands[band].add(bin);
        }
        let bands = BANDS.iter().zip(bands).filter(|(_, bin)| bin.requests > 0);
        let bands: Vec<Value> = bands
            .map(|(&(name, _), bin)| {
                let mut band = bin.to_json();
                band.insert("from".into(), name.into());
                Value::Object(band)
            })
            .collect();
        let mut found = slowest.to_json();
        found.insert("from_ns".into(), json!(from));
        found.insert("bands".into(), bands.into());
        Value::Object(found)
    }
}

impl Long {
    fn latency(&self) -> Dur {
        self.at.since(self.arrived)
    }

    /// Returns the request and its steps; the times of steps count from the request's arrival.
    ///
    /// Neighbouring steps with the same reason become one step.
    fn to_json(&self) -> Value {
        let ns = |at: Ps| at.since(self.arrived).0 as f64 / 1e3;
        let runs = self.steps.chunk_by(|one, next| one.reason == next.reason);
        let steps: Vec<Value> = runs
            .map(|run| {
                let (first, last) = (run[0], run[run.len() - 1]);
                let same = run.iter().all(|step| step.op == first.op);
                let what = match first.op {
                    Some((op, cause)) if same => described(op, cause),
                    Some(_) => format!("{} steps", run.len()),
                    None => String::new(),
                };
                json!({
                    "from_ns": ns(first.from), "to_ns": ns(last.to),
                    "reason": first.reason.name(), "what": what,
                })
            })
            .collect();
        json!({
            "op": self.op.name(), "arrived_ns": self.arrived.0 as f64 / 1e3,
            "latency_ns": ns(self.at), "steps": steps,
        })
    }
}

/// Describes an operation in words.
fn described(op: OpKind, cause: Option<Cause>) -> String {
    let cause = cause.map_or_else(String::new, |cause| format!(", {}", cause.name()));
    match op {
        OpKind::Read { die, block, page, .. } => {
            format!("read of die {die}, block {block}, page {page}{cause}")
        }
        OpKind::Program { die, block, page, .. } => {
            format!("program of die {die}, block {block}, page {page}{cause}")
        }
        OpKind::Copyback { die, block, page, .. } => {
            format!("copyback on die {die}, to block {block}, page {page}{cause}")
        }
        OpKind::Erase { die, block } => format!("erase of die {die}, block {block}{cause}"),
        OpKind::Memory { kind, accesses, .. } => format!("{accesses} accesses to {kind:?}"),
        OpKind::Dram { count, .. } => format!("{count} accesses to timed DRAM"),
        OpKind::Link { inbound: true, bytes } => format!("{bytes} bytes to the drive"),
        OpKind::Link { inbound: false, bytes } => format!("{bytes} bytes to the host"),
        OpKind::Delay(_) | OpKind::Core(_) => "the controller".into(),
        OpKind::Throttle(_) => "throttling of writes".into(),
        OpKind::AwaitSlots(_) => "a slot of the write cache".into(),
        OpKind::Join | OpKind::Complete(_) | OpKind::FreeSlots(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the arrivals and completions of the requests that are kept, the longest first.
    fn kept(requests: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut longest = Vec::new();
        for &(arrived, at) in requests {
            keep(&mut longest, HostOp::Read, Ps(arrived), Ps(at), Vec::new);
        }
        longest.iter().map(|long| (long.arrived.0, long.at.0)).collect()
    }

    #[test]
    fn of_requests_in_the_drive_at_once_the_longest_is_kept() {
        // 10 to 40 and 20 to 45 overlap, and the first is longer; 50 to 52 arrives after both
        assert_eq!(kept(&[(10, 40), (20, 45), (50, 52)]), [(10, 40), (50, 52)]);
        // 45 to 90 overlaps 60 to 80 and 30 to 50, and is the longest of the three
        assert_eq!(kept(&[(10, 40), (30, 50), (60, 80), (45, 90)]), [(45, 90), (10, 40)]);
        // a request that begins when another request ends does not overlap it
        assert_eq!(kept(&[(0, 10), (10, 30)]), [(10, 30), (0, 10)]);
    }

    #[test]
    fn no_more_bursts_are_kept_than_asked_for() {
        let requests: Vec<(u64, u64)> = (1..=100).map(|k| (1000 * k, 1000 * k + k)).collect();
        let longest = kept(&requests);
        assert_eq!(longest.len(), BURSTS);
        assert_eq!(longest[0], (100_000, 100_100));
        assert_eq!(longest[BURSTS - 1], (81_000, 81_081));
    }
}
