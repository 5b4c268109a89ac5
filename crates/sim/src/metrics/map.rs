//! Work of the map.

use super::{Metric, MetricDef, Snapshot};
use crate::table::Table;
use flashatlas_types::Cause;
use serde_json::{Map, Value, json};

pub const DEF: MetricDef =
    MetricDef { name: "map", summary: "lookups, updates, hits, misses, map pages", build: |_| Box::new(MapWork) };

struct MapWork;

impl Metric for MapWork {
    fn finish(&mut self, end: &Snapshot<'_>, record: &mut Map<String, Value>, _: &mut Vec<Table>) {
        let m = end.ftl.map;
        let counters = &end.medium.counters;
        record.insert(
            "map".into(),
            json!({
                "lookups": m.lookups, "hits": m.hits, "misses": m.misses, "updates": m.updates,
                "flash_reads": counters.reads[Cause::Map as usize],
                "flash_writes": counters.programs[Cause::Map as usize],
            }),
        );
    }
}
