//! Operations on tables in DRAM whose commands are timed one by one (`map.store = lpmt`).

use super::{Findings, MetricDef, OfCounters, Snapshot};
use flashatlas_timing::OperationTimes;
use serde_json::{Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "lookup",
    summary: "latency of map lookups and changes in timed DRAM: mean, percentiles, maximum; \
              bursts, activations, refreshes",
    build: |_| Box::new(OfCounters(finish)),
};

/// Returns times in nanoseconds.
fn latency(times: &OperationTimes) -> Value {
    let ns = |ps: u64| ps as f64 / 1e3;
    let at = |q| ns(times.histogram.value_at_quantile(q).min(times.max));
    let count = times.histogram.len();
    json!({
        "count": count,
        "mean": times.total as f64 / count.max(1) as f64 / 1e3,
        "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p99_9": at(0.999), "p99_99": at(0.9999),
        "max": ns(times.max),
    })
}

fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    let Some(dram) = end.statistics.and_then(|s| s.dram.as_deref()) else { return };
    let value = json!({
        "lookup_ns": latency(&dram.lookups),
        "update_ns": latency(&dram.updates),
        "bursts": dram.bursts,
        "activations": dram.activations,
        "refreshes": dram.refreshes,
    });
    found.record.insert("lookup".into(), value);
}
