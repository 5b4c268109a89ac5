//! Merges of block-mapped and log-block schemes.

use super::{Metric, MetricDef, Snapshot};
use crate::table::Table;
use serde_json::{Map, Value, json};

pub const DEF: MetricDef =
    MetricDef { name: "merges", summary: "merges by class, and their copies", build: |_| Box::new(Merges) };

struct Merges;

impl Metric for Merges {
    fn finish(&mut self, end: &Snapshot<'_>, record: &mut Map<String, Value>, _: &mut Vec<Table>) {
        if let Some(m) = end.ftl.merges {
            record.insert("merges".into(), json!({ "data_blocks": { "full": m.full }, "copies": m.copies }));
        }
    }
}
