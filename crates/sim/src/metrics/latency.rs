//! Latencies by operation, and the part of each latency before the drive accepted the command.

use super::{Event, Findings, Metric, MetricDef, Snapshot};
use crate::table::{Column, Table};
use flashatlas_types::{Dur, HostOp};
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "latency",
    summary: "latency by operation: mean, percentiles, maximum; time at the host and in the drive",
    build: |_| Box::new(Latency { ops: HostOp::ALL.map(|_| Times::new()) }),
};

/// Significant digits of a histogram: a percentile is off by at most 0.1 %. Counts, means and
/// maxima are exact.
const DIGITS: u8 = 3;

struct Latency {
    ops: [Times; 4],
}

struct Times {
    histogram: Histogram<u64>,
    count: u64,
    /// Sum of the latencies, in picoseconds.
    total: u128,
    /// Sum of the times before the drive accepted the command, in picoseconds.
    waited: u128,
    max: Dur,
}

impl Times {
    fn new() -> Times {
        let histogram = Histogram::new(DIGITS).expect("three digits are supported");
        Times { histogram, count: 0, total: 0, waited: 0, max: Dur::ZERO }
    }

    fn add(&mut self, latency: Dur, waited: Dur) {
        self.histogram.record(latency.ns()).expect("the histogram grows");
        self.count += 1;
        self.total += u128::from(latency.0);
        self.waited += u128::from(waited.0);
        self.max = self.max.max(latency);
    }

    /// Returns times in nanoseconds.
    fn to_json(&self) -> Value {
        let at = |q| self.histogram.value_at_quantile(q).min(self.max.ns());
        let mean = |ps: u128| ps as f64 / self.count as f64 / 1e3;
        json!({
            "count": self.count,
            "mean": mean(self.total),
            "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p99_9": at(0.999),
            "p99_99": at(0.9999),
            "max": self.max.0 as f64 / 1e3,
            "queue_mean": mean(self.waited),
            "service_mean": mean(self.total - self.waited),
        })
    }
}

impl Metric for Latency {
    fn on(&mut self, event: &Event) {
        if let Event::Done { op, arrived, submitted, at, .. } = *event {
            self.ops[op as usize].add(at.since(arrived), submitted.since(arrived));
        }
    }

    fn look(&mut self, _: &Snapshot<'_>, found: &mut Findings) {
        let done = HostOp::ALL.iter().filter(|&&op| self.ops[op as usize].count > 0);
        let table: Map<String, Value> =
            done.map(|&op| (op.name().to_owned(), self.ops[op as usize].to_json())).collect();
        if !table.is_empty() {
            found.record.insert("latency_ns".into(), Value::Object(table));
            found.tables.push(self.histograms());
        }
    }
}

impl Latency {
    /// Returns the table of all bins with requests, for every operation.
    fn histograms(&self) -> Table {
        let bins = || {
            let ops = HostOp::ALL.iter().map(|&op| (op, &self.ops[op as usize]));
            ops.flat_map(|(op, times)| {
                times.histogram.iter_recorded().map(move |bin| (op, times, bin))
            })
        };
        let edge = |times: &Times, value| {
            times.histogram.highest_equivalent(value).min(times.max.ns()) as i64
        };
        let mut table = Table::new("latency");
        let words = HostOp::ALL.iter().map(|op| op.name()).collect();
        table.add(
            "op",
            Column::Words { of: words, codes: bins().map(|(op, ..)| op as u8).collect() },
        );
        let edges = bins().map(|(_, times, bin)| edge(times, bin.value_iterated_to()));
        table.add("latency_ns", Column::Int(edges.collect()));
        table.add(
            "count",
            Column::Int(bins().map(|(.., bin)| bin.count_at_value() as i64).collect()),
        );
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_max_are_exact_and_percentiles_within_a_thousandth() {
        let mut t = Times::new();
        (1..=1000).for_each(|us| t.add(Dur::from_us(us), Dur::from_us(1)));
        let j = t.to_json();
        assert_eq!((j["mean"].as_f64(), j["max"].as_f64()), (Some(500_500.0), Some(1_000_000.0)));
        assert_eq!(
            (j["queue_mean"].as_f64(), j["service_mean"].as_f64()),
            (Some(1000.0), Some(499_500.0))
        );
        for (key, expected) in [("p50", 500e3), ("p99", 990e3), ("p99_99", 1e6)] {
            let error = j[key].as_f64().unwrap() / expected - 1.0;
            assert!(error.abs() < 1e-3, "{key}: {error}");
        }
    }
}
