//! Cost of the mount with which the run began.

use super::{Findings, MetricDef, OfCounters, Snapshot};
use serde_json::json;

pub const DEF: MetricDef = MetricDef {
    name: "mount",
    summary: "operations and time of the mount with which the run began, and what it found damaged",
    build: |_| Box::new(OfCounters(finish)),
};

/// Adds the key `mount` to the record.
///
/// `estimated_ns` assumes that lanes work side by side, and that each lane runs its operations one
/// after the other.
fn finish(end: &Snapshot<'_>, found: &mut Findings) {
    let mount = &end.ftl.mount;
    found.record.insert(
        "mount".into(),
        json!({
            "spare_reads": mount.spare_reads.iter().sum::<u64>(),
            "map_page_reads": mount.map_page_reads,
            "map_page_writes": mount.map_page_writes,
            "nvm_bytes": mount.nvm_bytes,
            "estimated_ns": end.drive.mount_time().ns(),
            "rolled_forward": mount.rolled_forward,
            "lost_entries": mount.lost,
            "damaged_map_pages": mount.damaged_map_pages,
            "damaged_nvm_slots": mount.damaged_nvm_slots,
            "programs": mount.programs,
            "erases": mount.erases,
            "unreadable_blocks": mount.unreadable_blocks,
            "unreadable_frames": mount.unreadable_frames,
        }),
    );
}
