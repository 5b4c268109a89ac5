//! Reads by their correction, and operations that failed by themselves.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use flashatlas_nand::ErrorCounters;
use flashatlas_types::Cause;
use serde_json::json;

pub const DEF: MetricDef = MetricDef {
    name: "faults",
    summary: "reads by retries, corrected bits, and failures, of a drive whose flash has errors",
    build: |_| Box::new(OfCounters(look)),
};

/// Adds the key `faults` to the record of a drive whose flash has errors.
///
/// `by_retries` ends with the last number of retries that a read needed. With parity, each read
/// that nothing corrected counts as rebuilt or as lost.
fn look(now: &Snapshot<'_>, found: &mut Findings) {
    if !now.medium.has_errors() {
        return;
    }
    let ErrorCounters { by_retries, .. } = now.counters.errors;
    let last = by_retries.iter().rposition(|&n| n > 0).map_or(0, |last| last + 1);
    let errors = &now.counters.errors;
    let rebuild_reads = now.counters.reads[Cause::Parity as usize];
    found.record.insert(
        "faults".into(),
        json!({
            "reads": errors.reads,
            "by_retries": by_retries[..last],
            "soft": errors.soft,
            "uncorrectable": errors.uncorrectable,
            "further_reads": errors.further_reads,
            "corrected_bits": errors.corrected_bits,
            "program_failures": errors.program_failures,
            "erase_failures": errors.erase_failures,
            "failed_reads": errors.failed_reads,
            "refreshed_blocks": now.ftl.refreshed[0],
            "reclaimed_blocks": now.ftl.refreshed[1],
            "clock_s": now.medium.clock_s(),
        }),
    );
    if now.medium.layout().has_parity() {
        for (key, count) in
            [("rebuilt", errors.rebuilt), ("lost", errors.lost), ("rebuild_reads", rebuild_reads)]
        {
            found.record["faults"][key] = count.into();
        }
    }
}
