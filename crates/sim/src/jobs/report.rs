//! Statistics of jobs as JSON: see `docs/howto/run-a-fio-job.md`.

use super::Jobs;
use super::settling::Watch;
use super::stats::{DirectionStats, Rates, Stats, Times};
use flashatlas_fio::{Direction, Job};
use serde_json::{Map, Value, json};

/// Version of the layout.
const SCHEMA: &str = "flashatlas.jobs/1";

/// Returns all jobs, in order; the jobs of a group with `group_reporting` count as one.
pub(super) fn jobs_json(jobs: &Jobs, stats: &[Stats], watches: &[Watch]) -> Value {
    let mut rows: Vec<(&Job, Stats, u32, Option<&Watch>)> = Vec::new();
    for (number, (job, stats)) in jobs.layout.jobs.iter().zip(stats).enumerate() {
        match rows.last_mut() {
            Some((first, sum, count, _))
                if first.group == job.group && first.options.group_reporting =>
            {
                sum.merge(stats);
                *count += 1;
            }
            _ => {
                let watch = watches.iter().find(|w| w.is_of(number));
                rows.push((job, stats.clone(), 1, watch));
            }
        }
    }
    json!({
        "schema": SCHEMA,
        "file": jobs.path,
        "options": given(&jobs.layout.global),
        "warnings": jobs.warnings().collect::<Vec<_>>(),
        "jobs": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row((job, stats, count, watch): &(&Job, Stats, u32, Option<&Watch>)) -> Value {
    let mut row = Map::new();
    row.insert("name".into(), job.name.as_str().into());
    row.insert("number".into(), job.number.into());
    row.insert("jobs".into(), (*count).into());
    row.insert("group".into(), job.group.into());
    row.insert("options".into(), given(&job.options.given));
    row.insert("start_ns".into(), stats.from.0.div_euclid(1000).into());
    row.insert("runtime_ns".into(), stats.until.since(stats.from).ns().into());
    for (direction, stats) in Direction::ALL.iter().zip(&stats.directions) {
        row.insert(direction.name().into(), direction_json(stats));
    }
    row.insert("fsyncs".into(), stats.fsyncs.into());
    row.insert("sync".into(), times(&stats.sync));
    row.insert("depth_classes".into(), json!(stats.depths));
    row.insert("latency_ns_classes".into(), json!(stats.latency_ns));
    row.insert("latency_us_classes".into(), json!(stats.latency_us));
    row.insert("latency_ms_classes".into(), json!(stats.latency_ms));
    if let Some(watch) = watch {
        row.insert("steadystate".into(), watch.json());
    }
    Value::Object(row)
}

/// Returns options as they were written.
fn given(options: &[(String, String)]) -> Value {
    options
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect::<Map<_, _>>()
        .into()
}

fn direction_json(d: &DirectionStats) -> Value {
    json!({
        "issued": d.issued,
        "ios": d.ios,
        "bytes": d.bytes,
        "latency_ns": times(&d.latency),
        "bandwidth_kib": rates(&d.bandwidth),
        "iops": rates(&d.iops),
    })
}

fn times(t: &Times) -> Value {
    let bins: Vec<[u64; 2]> = t
        .histogram
        .iter_recorded()
        .map(|v| [v.value_iterated_to().min(t.max), v.count_at_value()])
        .collect();
    let min = if t.count == 0 { 0 } else { t.min };
    json!({ "count": t.count, "min": min, "max": t.max, "mean": t.mean(), "stddev": t.deviation(),
        "bins": bins })
}

fn rates(r: &Rates) -> Value {
    json!({ "samples": r.samples, "min": r.min, "max": r.max, "mean": r.mean,
        "stddev": r.deviation })
}
