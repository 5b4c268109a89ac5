//! Merges of block-mapped and log-block schemes.

use super::{Metric, MetricDef, Snapshot};
use serde_json::{Map, Value, json};

pub const DEF: MetricDef =
    MetricDef { name: "merges", summary: "merges by class, and their copies", build: || Box::new(Merges) };

struct Merges;

impl Metric for Merges {
    fn finish(&mut self, end: &Snapshot<'_>, record: &mut Map<String, Value>) {
        if let Some(m) = end.ftl.merges {
            record.insert("merges".into(), json!({ "data_blocks": { "full": m.full }, "copies": m.copies }));
        }
    }
}
