//! Flash operations by cause, and write amplification by cause.

use super::{Event, Findings, Metric, MetricDef, Snapshot};
use flashatlas_nand::Counters;
use flashatlas_types::{Cause, HostOp};
use serde_json::{Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "nand",
    summary: "pages read and programmed and blocks erased by cause; write amplification",
    build: |_| Box::new(Nand::default()),
};

#[derive(Default)]
struct Nand {
    written: u64,
}

fn by_cause<T: Into<Value>>(table: &[u64; Cause::ALL.len()], value: impl Fn(u64) -> T) -> Value {
    Value::Object(
        Counters::by_cause(table).map(|(name, n)| (name.to_owned(), value(n).into())).collect(),
    )
}

impl Metric for Nand {
    fn on(&mut self, event: &Event) {
        if let Event::Submitted { op: HostOp::Write, bytes, .. } = *event {
            self.written += bytes;
        }
    }

    /// Adds operations by cause, the WAF, and the parts by cause that sum up to the WAF.
    ///
    /// The WAF is the bytes of all programmed pages divided by the bytes that the host wrote.
    fn look(&mut self, now: &Snapshot<'_>, found: &mut Findings) {
        let counters = &now.counters;
        found.record.insert(
            "nand".into(),
            json!({
                "reads": by_cause(&counters.reads, |n| n),
                "programs": by_cause(&counters.programs, |n| n),
                "erases": by_cause(&counters.erases, |n| n),
                "padded_units": counters.padded_slots,
                "replaced_blocks": counters.replaced_blocks,
            }),
        );
        if counters.copybacks > 0 {
            found.record["nand"]["copybacks"] = counters.copybacks.into();
        }
        if counters.in_slc_mode != [0; 3] {
            let [reads, programs, erases] = counters.in_slc_mode;
            found.record["nand"]["slc"] =
                json!({ "reads": reads, "programs": programs, "erases": erases });
        }
        if self.written > 0 {
            let page = f64::from(now.medium.layout().geometry.page_bytes);
            let amplification = |pages: u64| pages as f64 * page / self.written as f64;
            found
                .record
                .insert("waf".into(), amplification(Counters::total(&counters.programs)).into());
            found.record.insert("waf_parts".into(), by_cause(&counters.programs, amplification));
        }
        if !now.ftl.scheme_details.is_empty() {
            let details = now.ftl.scheme_details.iter().map(|&(key, n)| (key.to_owned(), n.into()));
            found.record.insert("scheme".into(), Value::Object(details.collect()));
        }
        let [foreground, idle, wear] = now.ftl.collected;
        let victims = foreground + idle + wear;
        if victims > 0 {
            let slots = victims * u64::from(now.medium.layout().slots_per_block);
            found.record.insert(
                "gc".into(),
                json!({
                    "foreground": foreground, "idle": idle, "wear": wear,
                    "valid_share": now.ftl.collected_valid_units as f64 / slots as f64,
                }),
            );
        }
    }
}
