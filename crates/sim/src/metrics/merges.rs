//! Merges of block-mapped and log-block schemes, and the areas of the log over time.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use flashatlas_ftl::{AreaUse, MergeClass};
use serde_json::{Map, Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "merges",
    summary: "merges by class, their copies, associations; the areas of the log",
    build: |_| Box::new(OfCounters(finish)),
};

/// Returns counts by name of class, zeros included, because a missing class is a result, too.
fn by_class(counts: &[u64]) -> Value {
    MergeClass::ALL
        .iter()
        .zip(counts)
        .map(|(class, n)| (class.name().to_owned(), json!(n)))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns the valid share of an area's pages, or `None` for an area without blocks.
pub(super) fn utilisation(area: &AreaUse) -> Option<f64> {
    (area.pages > 0).then(|| area.valid as f64 / area.pages as f64)
}

fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    let Some(m) = end.ftl.merges else { return };
    let mut merges = Map::new();
    merges.insert("data_blocks".into(), by_class(&m.data_blocks));
    if let Some(logs) = m.log_blocks {
        let reclaimed: u64 = logs.iter().sum();
        merges.insert("log_blocks".into(), by_class(&logs));
        merges.insert("sequential_full".into(), m.sequential_full.into());
        merges.insert("moved_pages".into(), m.moved_pages.into());
        merges.insert("migrated_blocks".into(), m.migrated_blocks.into());
        let mean = (reclaimed > 0).then(|| m.associated as f64 / reclaimed as f64);
        merges.insert("association".into(), json!({ "mean": mean, "max": m.associated_max }));
        merges.insert("order_detours".into(), m.order_detours.into());
    }
    merges.insert("in_place".into(), m.in_place.into());
    merges.insert("copies".into(), m.copies.into());
    found.record.insert("merges".into(), Value::Object(merges));
    if !end.ftl.areas.is_empty() {
        let area = |a: &AreaUse| {
            let now = json!({
                "budget": a.budget, "blocks": a.blocks, "valid_pages": a.valid,
                "utilisation": utilisation(a)
            });
            (a.name.to_owned(), now)
        };
        found
            .record
            .insert("log_areas".into(), Value::Object(end.ftl.areas.iter().map(area).collect()));
    }
}
