//! Requests of the host.

use super::{Event, Findings, Metric, MetricDef, Snapshot};
use flashatlas_types::HostOp;
use serde_json::{Map, Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "host",
    summary: "requests and bytes by operation",
    build: |_| Box::new(Host::default()),
};

#[derive(Default)]
struct Host {
    requests: [u64; 4],
    bytes: [u64; 4],
}

impl Metric for Host {
    fn on(&mut self, event: &Event) {
        if let Event::Submitted { op, bytes, .. } = *event {
            self.requests[op as usize] += 1;
            self.bytes[op as usize] += bytes;
        }
    }

    fn look(&mut self, now: &Snapshot<'_>, found: &mut Findings) {
        let [reads, writes, trims, flushes] = self.requests;
        let d = now.device;
        found.record.insert(
            "host".into(),
            json!({
                "reads": reads, "writes": writes, "trims": trims, "flushes": flushes,
                "read_bytes": self.bytes[HostOp::Read as usize],
                "write_bytes": self.bytes[HostOp::Write as usize],
                "trim_bytes": self.bytes[HostOp::Trim as usize],
                "unmapped_reads": now.unmapped_units(),
            }),
        );
        let mut cache = Map::new();
        for (key, n) in [
            ("read_hits", d.cache_read_hits),
            ("write_hits", d.cache_write_hits),
            ("evictions", d.cache_evictions),
            ("dirty_units", now.drive.dirty_units()),
            ("page_buffer_hits", now.ftl.buffer_hits),
            ("rmw_units", d.rmw_units),
            ("trimmed_units", d.trimmed_units),
            ("trim_partial_units", d.trim_partial_units),
            ("throttled_writes", d.throttled_writes),
            ("throttled_ns", d.throttled.ns()),
            ("idle_gaps", d.idle_gaps),
            ("idle_predicted", d.idle_predicted),
            ("idle_held_back", d.idle_held_back),
            ("idle_late", d.idle_late),
            ("idle_interrupted", d.idle_interrupted),
        ] {
            if n > 0 {
                cache.insert(key.into(), n.into());
            }
        }
        found.record.insert("controller".into(), Value::Object(cache));
    }
}
