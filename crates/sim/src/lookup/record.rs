//! The record of a study. See `docs/FORMATS.md`.

use super::LookupSpec;
use crate::record::param;
use flashatlas_dram::paper_table::CLASSES;
use flashatlas_lookup::study::{LOOK_AHEAD, PERCENTILES, Summary};
use flashatlas_types::Note;
use flashatlas_types::Params;
use serde_json::{Map, Value, json};

/// Name and version of the record's layout.
const SCHEMA: &str = "flashatlas.lookup/1";

/// Returns all settings of a study.
pub(super) fn config(params: &Params) -> Map<String, Value> {
    params.iter().map(|(key, value)| (key.to_owned(), param(value))).collect()
}

pub(super) fn record(
    spec: &LookupSpec,
    params: &Params,
    s: &Summary,
    version: &str,
    approximations: Vec<Note>,
) -> Value {
    let ns = |clocks: f64| clocks * f64::from(s.tck_ps) / 1000.0;
    let per = |clocks: u64, lookups: u64| clocks as f64 / lookups.max(1) as f64;
    let percentiles = |values: &[u64]| -> Value {
        let name = |p: f64| if p == 100.0 { "max".to_owned() } else { format!("p{p}") };
        PERCENTILES
            .iter()
            .zip(values)
            .map(|(&p, &v)| (name(p), json!(v)))
            .collect::<Map<_, _>>()
            .into()
    };
    let tenths: Vec<Value> = s
        .tenths
        .iter()
        .map(|t| {
            json!({
                "lookups": t.lookups,
                "reads_per_lookup": per(t.reads, t.lookups),
                "clocks_per_lookup": per(t.clocks, t.lookups),
                "ns_per_lookup": ns(per(t.clocks, t.lookups)),
                "paper_table_ns_per_lookup": ns(per(t.paper_clocks, t.lookups)),
            })
        })
        .collect();
    let classes: Map<String, Value> = CLASSES
        .iter()
        .zip(s.classes)
        .map(|(&name, n)| (name.to_owned(), json!(per(n, s.reads))))
        .collect();
    let mut record = json!({
        "schema": SCHEMA,
        "version": version,
        "config": config(params),
        "source": spec.source,
        "address": spec.address,
        "unit_sectors": spec.unit_sectors,
        "seed": spec.seed,
        "tck_ps": s.tck_ps,
        "lookups": s.lookups,
        "hits": s.hits,
        "reads_per_lookup": per(s.reads, s.lookups),
        "clocks_per_lookup": s.clocks_per_lookup(),
        "ns_per_lookup": ns(s.clocks_per_lookup()),
        "paper_table_clocks_per_lookup": per(s.paper_clocks, s.lookups),
        "paper_table_ns_per_lookup": ns(per(s.paper_clocks, s.lookups)),
        "service_clocks": percentiles(&s.service),
        "classes": classes,
        "tenths": tenths,
        "bank_skew": s.bank_skew(),
        "activations": s.activations,
        "refreshes": s.refreshes,
        "entries": s.entries,
        "primary_share": s.primary_share,
        "secondary_sets_used": s.secondary_used,
        "chains": s.chains,
        "sets_scanned": s.sets_scanned,
        "bytes": {
            "lpmt": s.lpmt_bytes, "block_tables": s.block_table_bytes,
            "lpmt_packed": s.lpmt_packed_bytes, "block_tables_packed": s.block_table_packed_bytes,
        },
        "approximations": approximations,
    });
    if let (true, Value::Object(record)) = (u64::from(params.get(LOOK_AHEAD)) > 0, &mut record) {
        record.insert("latency_clocks".into(), percentiles(&s.latency));
        record.insert("latency_clocks_mean".into(), s.latency_mean.into());
        record.insert("latency_ns_mean".into(), ns(s.latency_mean).into());
    }
    record
}
