//! Requests and bytes per second of simulated time.

use super::{Event, Findings, Metric, MetricDef, Snapshot};

pub const DEF: MetricDef = MetricDef {
    name: "throughput",
    summary: "simulated time, requests a second, bytes a second",
    build: |_| Box::new(Throughput::default()),
};

#[derive(Default)]
struct Throughput {
    done: u64,
    bytes: u64,
}

impl Metric for Throughput {
    fn on(&mut self, event: &Event) {
        match *event {
            Event::Submitted { op, bytes, .. } if matches!(op.name(), "read" | "write") => {
                self.bytes += bytes
            }
            Event::Submitted { .. } | Event::Unreadable { .. } => {}
            Event::Done { .. } => self.done += 1,
        }
    }

    fn look(&mut self, now: &Snapshot<'_>, found: &mut Findings) {
        if now.elapsed.0 > 0 && now.statistics.is_some() {
            let seconds = now.elapsed.0 as f64 / 1e12;
            found.record.insert("simulated_ns".into(), now.elapsed.ns().into());
            found.record.insert("iops".into(), (self.done as f64 / seconds).into());
            found
                .record
                .insert("bandwidth_bytes_per_s".into(), (self.bytes as f64 / seconds).into());
        }
    }
}
