//! Evenness of erases among blocks, over the life of the drive.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use crate::table::{Column, Table};
use serde_json::json;
use std::collections::BTreeMap;

pub const DEF: MetricDef = MetricDef {
    name: "wear",
    summary: "erases of a block: minimum, mean, maximum, standard deviation",
    build: |_| Box::new(OfCounters(finish)),
};

fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    let medium = end.medium;
    let good =
        || medium.layout().block_ids().filter(|&b| !medium.is_bad(b)).map(|b| medium.erases(b));
    let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u128);
    for erases in good() {
        count += 1;
        sum += u64::from(erases);
        squares += u128::from(erases) * u128::from(erases);
    }
    if count == 0 {
        return;
    }
    let mut histogram = BTreeMap::new();
    good().for_each(|erases| *histogram.entry(i64::from(erases)).or_insert(0) += 1);
    let mut table = Table::new("wear");
    table.add("erases", Column::Int(histogram.keys().copied().collect()));
    table.add("blocks", Column::Int(histogram.into_values().collect()));
    found.tables.push(table);
    let mean = sum as f64 / count as f64;
    let variance = (squares as f64 / count as f64 - mean * mean).max(0.0);
    found.record.insert(
        "wear".into(),
        json!({
            "min": good().min(), "mean": mean, "max": good().max(), "stddev": variance.sqrt(),
            "blocks": count, "bad_blocks": u64::from(medium.layout().blocks()) - count,
            "retired_blocks": end.ftl.retired_blocks,
        }),
    );
}
