//! Counts of the layers over the drive.

use super::{Event, Findings, Metric, MetricDef, Snapshot};
use flashatlas_nand::Counters;
use flashatlas_types::HostOp;
use serde_json::{Map, Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "layers",
    summary: "what each layer over the drive counted, its tables in the host's memory, and write \
              amplification above and below",
    build: |_| Box::new(Layers::default()),
};

#[derive(Default)]
struct Layers {
    written: u64,
}

impl Metric for Layers {
    fn on(&mut self, event: &Event) {
        if let Event::Submitted { op: HostOp::Write, bytes, .. } = *event {
            self.written += bytes;
        }
    }

    fn finish(&mut self, end: &Snapshot<'_>, found: &mut Findings) {
        if end.layers.is_empty() {
            return;
        }
        let mut layers = Map::new();
        let mut reached = self.written;
        for layer in end.layers {
            let mut body: Map<String, Value> =
                layer.counters.iter().map(|&(key, n)| (key.to_owned(), n.into())).collect();
            let memory = layer
                .memory
                .iter()
                .map(|&(table, bytes)| (table.to_owned(), bytes.into()))
                .collect();
            body.insert("memory_bytes".into(), Value::Object(memory));
            if let Some(&(_, bytes)) =
                layer.counters.iter().find(|(key, _)| *key == "lower_write_bytes")
            {
                reached = bytes;
            }
            layers.insert(layer.layer.to_owned(), Value::Object(body));
        }
        let page = u64::from(end.medium.layout().geometry.page_bytes);
        let programmed = Counters::total(&end.counters.programs) * page;
        let ratio =
            |n: u64, of: u64| if of == 0 { Value::Null } else { (n as f64 / of as f64).into() };
        layers.insert(
            "write_amplification".into(),
            json!({
                "layers": ratio(reached, self.written), "drive": ratio(programmed, reached),
                "total": ratio(programmed, self.written),
            }),
        );
        found.record.insert("layers".into(), Value::Object(layers));
    }
}
