//! Record of a drive's counters, as JSON.

use super::{Drive, Power};
use flashatlas_device::Stack;
use flashatlas_nand::{Counters, Medium};
use flashatlas_types::{Cause, Dur, HostOp};
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

/// Name and version of the record's format.
const SCHEMA: &str = "flashatlas.drive/1";

/// Significant digits of a latency. With three digits, the error of a percentile is at most 0.1 %.
const DIGITS: u8 = 3;

/// Commands of one kind.
struct Commands {
    submitted: u64,
    bytes: u64,
    completed: u64,
    /// Sum of the latencies, in picoseconds.
    total: u128,
    max: Dur,
    /// Latencies, in nanoseconds.
    latencies: Histogram<u64>,
}

impl Default for Commands {
    fn default() -> Commands {
        let latencies = Histogram::new(DIGITS).expect("three digits are supported");
        Commands { submitted: 0, bytes: 0, completed: 0, total: 0, max: Dur::ZERO, latencies }
    }
}

impl Commands {
    fn to_json(&self) -> Value {
        let mut found = json!({ "submitted": self.submitted, "bytes": self.bytes,
            "completed": self.completed });
        if self.completed > 0 {
            let at = |q| self.latencies.value_at_quantile(q).min(self.max.ns());
            found["latency_ns"] = json!({
                "mean": self.total as f64 / self.completed as f64 / 1e3,
                "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p99_9": at(0.999),
                "max": self.max.0 as f64 / 1e3,
            });
        }
        found
    }
}

/// Commands, by kind.
#[derive(Default)]
pub struct Tally([Commands; HostOp::ALL.len()]);

impl Tally {
    /// Counts a command that was accepted.
    pub fn submitted(&mut self, op: HostOp, bytes: u64) {
        let of = &mut self.0[op as usize];
        of.submitted += 1;
        of.bytes += bytes;
    }

    /// Counts a command that is complete.
    pub fn completed(&mut self, op: HostOp, latency: Dur) {
        let of = &mut self.0[op as usize];
        of.completed += 1;
        of.total += u128::from(latency.0);
        of.max = of.max.max(latency);
        of.latencies.record(latency.ns()).expect("the histogram grows");
    }
}

fn by_cause<T: Into<Value>>(table: &[u64; Cause::ALL.len()], value: impl Fn(u64) -> T) -> Value {
    Counters::by_cause(table)
        .map(|(name, n)| (name.to_owned(), value(n).into()))
        .collect::<Map<String, Value>>()
        .into()
}

fn wear(medium: &Medium) -> Value {
    let blocks = || medium.layout().block_ids().filter(|&b| !medium.is_bad(b));
    let erases = || blocks().map(|b| medium.erases(b));
    let (good, sum) = (blocks().count(), erases().map(u64::from).sum::<u64>());
    json!({
        "min": erases().min(), "max": erases().max(),
        "mean": (good > 0).then(|| sum as f64 / good as f64),
        "bad_blocks": medium.layout().blocks() as usize - good,
    })
}

fn since_power_on(stack: &Stack) -> Value {
    let (controller, ftl) = (stack.ssd().counters(), stack.ssd().ftl_report());
    let [foreground, idle, wear] = ftl.collected;
    let trajectory = stack.ssd().trajectory();
    let layer = |report: flashatlas_device::LayerReport| {
        let counters = report.counters.iter().map(|&(name, n)| (name.to_owned(), n.into()));
        (report.layer.to_owned(), Value::Object(counters.collect()))
    };
    json!({
        "controller": {
            "unmapped_units": controller.unmapped_units,
            "cache_read_hits": controller.cache_read_hits,
            "cache_write_hits": controller.cache_write_hits,
            "cache_evictions": controller.cache_evictions,
            "rmw_units": controller.rmw_units,
            "trim_partial_units": controller.trim_partial_units,
            "trimmed_units": controller.trimmed_units,
            "throttled_writes": controller.throttled_writes,
            "throttled_ns": controller.throttled.ns(),
            "idle_gaps": controller.idle_gaps,
            "idle_predicted": controller.idle_predicted,
            "idle_held_back": controller.idle_held_back,
            "idle_late": controller.idle_late,
            "idle_interrupted": controller.idle_interrupted,
        },
        "blocks_collected": { "foreground": foreground, "idle": idle, "wear": wear },
        "free_blocks": ftl.free_blocks,
        "map": { "hits": ftl.map.hits, "misses": ftl.map.misses },
        "layers": stack.top().reports().into_iter().map(layer).collect::<Map<String, Value>>(),
        // the hash is a text, because many readers of JSON do not support integers of 64 bits
        "trajectory": {
            "operations": trajectory.operations(), "hash": format!("{:016x}", trajectory.hash()),
        },
        "approximations": ftl.approximations,
    })
}

/// Returns the record of a drive that is switched on.
pub fn record(drive: &Drive) -> Value {
    let config = drive.config.pairs().map(|(key, value)| (key.to_owned(), value.to_string()));
    let config: Map<String, Value> = config.map(|(key, value)| (key, value.into())).collect();
    let kind = |op: HostOp| (op.name().to_owned(), drive.tally.0[op as usize].to_json());
    let commands: Map<String, Value> = HostOp::ALL.into_iter().map(kind).collect();
    let mut found = json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "drive": drive.config.name,
        "seed": drive.seed.0,
        "config": config,
        "now_ps": drive.clock.0,
        "power_cuts": drive.cuts,
        "in_flight": drive.in_flight(),
        "commands": commands,
    });
    let Power::On(stack) = &drive.power else { return found };
    let medium = stack.ssd().medium();
    let counters = &medium.counters;
    found["nand"] = json!({
        "reads": by_cause(&counters.reads, |n| n),
        "programs": by_cause(&counters.programs, |n| n),
        "erases": by_cause(&counters.erases, |n| n),
        "padded_units": counters.padded_slots,
        "replaced_blocks": counters.replaced_blocks,
    });
    let written = drive.tally.0[HostOp::Write as usize].bytes;
    if written > 0 {
        let page = f64::from(medium.layout().geometry.page_bytes);
        let amplification = |pages: u64| pages as f64 * page / written as f64;
        found["waf"] = amplification(Counters::total(&counters.programs)).into();
        found["waf_parts"] = by_cause(&counters.programs, amplification);
    }
    found["wear"] = wear(medium);
    found["since_power_on"] = since_power_on(stack);
    found
}
