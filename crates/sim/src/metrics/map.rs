//! Work of the map.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use flashatlas_ftl::Reason;
use flashatlas_types::Cause;
use serde_json::{Map, Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "map",
    summary: "lookups and changes, hits and misses; map pages read and written, and why; NVM",
    build: |_| Box::new(OfCounters(finish)),
};

/// Adds the counters of the map to the record.
///
/// `flash_reads` and `flash_writes` are physical pages; `loads`, `merges`, `exported_pages`,
/// `copies` and `writes` are map pages.
fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    let m = end.ftl.map;
    let counters = &end.medium.counters;
    let mut map = Map::new();
    for (key, n) in [
        ("lookups", m.lookups),
        ("hits", m.hits),
        ("misses", m.misses),
        ("updates", m.updates),
        ("update_hits", m.update_hits),
        ("update_misses", m.update_misses),
        ("flash_reads", counters.reads[Cause::Map as usize]),
        ("flash_writes", counters.programs[Cause::Map as usize]),
    ] {
        map.insert(key.into(), n.into());
    }
    if m.lookups + m.update_hits + m.update_misses > 0 {
        let hits = m.hits + m.update_hits;
        let all = m.lookups + m.update_hits + m.update_misses;
        map.insert("hit_ratio".into(), (hits as f64 / all as f64).into());
    }
    let pages = end.ftl.map_pages;
    for (key, n) in [
        ("loads", pages.loads),
        ("merges", pages.merges),
        ("exported_pages", pages.exported_pages),
        ("copies", pages.copies),
    ] {
        map.insert(key.into(), n.into());
    }
    let writes =
        Reason::ALL.iter().map(|&r| (r.name().to_owned(), pages.writes[r as usize].into()));
    map.insert("writes".into(), Value::Object(writes.collect()));
    for &(key, n) in &end.ftl.map_details {
        map.insert(key.into(), n.into());
    }
    let nvm = &end.medium.nvm;
    if !nvm.is_empty() {
        map.insert(
            "nvm".into(),
            json!({
                "bytes": nvm.len(), "stored_bytes": nvm.counters.stored,
                "loaded_bytes": nvm.counters.loaded,
                "fences": nvm.counters.fences, "line_stores_max": nvm.wear_max(),
            }),
        );
    }
    found.record.insert("map".into(), Value::Object(map));
}
