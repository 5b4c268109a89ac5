//! How busy dies, channels and the host link were, and the parallelism reached.

use super::{Metric, MetricDef, Snapshot};
use flashatlas_types::Dur;
use serde_json::{Map, Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "utilisation",
    summary: "busy shares of dies, channels and link; dies at work at once",
    build: || Box::new(Utilisation),
};

struct Utilisation;

impl Metric for Utilisation {
    fn finish(&mut self, end: &Snapshot<'_>, record: &mut Map<String, Value>) {
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
        record.insert(
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
    }
}
