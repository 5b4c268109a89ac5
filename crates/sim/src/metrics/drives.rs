//! Counts of each drive under a layer over several drives.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use flashatlas_device::smart::{FlashHealth, percentage_field};
use flashatlas_nand::Counters;
use serde_json::{Value, json};

pub const DEF: MetricDef = MetricDef {
    name: "drives",
    summary: "of each drive under a layer over several drives: pages read and programmed, blocks \
              erased and collected, the most erases of a block, bad and free blocks, wear and \
              spare blocks as SMART reports them",
    build: |_| Box::new(OfCounters(finish)),
};

fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    if end.drives.len() < 2 {
        return;
    }
    let drives: Vec<Value> = end
        .drives
        .iter()
        .map(|drive| {
            let (medium, ftl) = (drive.medium(), drive.ftl_report());
            let counters = &medium.counters;
            let health = FlashHealth::of(drive);
            let blocks = || medium.layout().block_ids();
            json!({
                "reads": Counters::total(&counters.reads),
                "programs": Counters::total(&counters.programs),
                "erases": Counters::total(&counters.erases),
                "collected": ftl.collected.iter().sum::<u64>(),
                "most_erases": blocks().map(|block| medium.erases(block)).max(),
                "bad_blocks": blocks().filter(|&block| medium.is_bad(block)).count(),
                "free_blocks": ftl.free_blocks,
                "percentage_used": percentage_field(health.percentage_used),
                "available_spare": health.available_spare,
            })
        })
        .collect();
    found.record.insert("drives".into(), Value::Array(drives));
}
