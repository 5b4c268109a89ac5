//! Utilisation of dies, channels, the host link, cores and the shared DRAM, and the parallelism
//! reached.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use crate::table::{Column, Table};
use flashatlas_types::Dur;
use serde_json::json;

pub const DEF: MetricDef = MetricDef {
    name: "utilisation",
    summary: "busy shares of dies, channels and link; dies at work at the same time",
    build: |_| Box::new(OfCounters(finish)),
};

fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    let Some(s) = end.statistics else { return };
    if end.active == Dur::ZERO {
        return;
    }
    let share = |busy: Dur| busy.0 as f64 / end.active.0 as f64;
    let spread = |busy: &[Dur]| {
        let shares = busy.iter().map(|&b| share(b));
        json!({
            "count": busy.len(),
            "mean": shares.clone().sum::<f64>() / busy.len() as f64,
            "min": shares.clone().fold(f64::INFINITY, f64::min),
            "max": shares.fold(0.0, f64::max),
        })
    };
    found.record.insert(
        "utilisation".into(),
        json!({
            "dies": spread(&s.die_busy),
            "channels": spread(&s.channel_busy),
            "link_in": share(s.link_busy[0]),
            "link_out": share(s.link_busy[1]),
            "dies_at_work_mean": s.mean_dies(),
            "dies_at_work_max": s.dies_max,
            "suspends": s.suspends,
        }),
    );
    if s.cores > 0 {
        let one = share(s.core_busy) / f64::from(s.cores);
        found.record["utilisation"]["cores"] = json!({ "count": s.cores, "mean": one });
    }
    if let Some(busy) = s.shared_dram {
        found.record["utilisation"]["dram"] = share(busy).into();
    }
    let of = |kind: u8, busy: &[Dur]| {
        (0..).zip(busy).map(|(i, &b)| (kind, i, share(b))).collect::<Vec<_>>()
    };
    let rows = [of(0, &s.die_busy), of(1, &s.channel_busy)].concat();
    let mut table = Table::new("resources");
    let codes = rows.iter().map(|r| r.0).collect();
    table.add("kind", Column::Words { of: vec!["die", "channel"], codes });
    table.add("index", Column::Int(rows.iter().map(|r| r.1).collect()));
    table.add("busy", Column::Float(rows.iter().map(|r| r.2).collect()));
    found.tables.push(table);
}
