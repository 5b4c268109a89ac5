//! The SMART log of NVMe, under the names that nvme-cli prints.

use super::{Event, Findings, Metric, MetricDef, Snapshot, Start};
use flashatlas_device::smart::{
    FlashHealth, SPARE_THRESHOLD, critical_warning, data_units, percentage_field, power_on_hours,
};
use flashatlas_types::{HostOp, SECTOR_BYTES};
use serde_json::json;

pub const DEF: MetricDef = MetricDef {
    name: "smart",
    summary: "the SMART log of NVMe: wear and spare blocks as a drive reports them, data units, \
              commands, media errors",
    build: |start| Box::new(Smart { start, asked: [Asked::default(); 2], media_errors: 0 }),
};

/// Commands of the host that succeeded, and their bytes: of its reads or of its writes.
#[derive(Clone, Copy, Default)]
struct Asked {
    commands: u64,
    bytes: u64,
}

struct Smart {
    start: Start,
    /// Reads and writes.
    asked: [Asked; 2],
    media_errors: u64,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Metric for Smart {
    fn on(&mut self, event: &Event) {
        match *event {
            Event::Submitted { op, bytes, .. } => {
                let index = match op {
                    HostOp::Read => READ,
                    HostOp::Write => WRITE,
                    _ => return,
                };
                self.asked[index].commands += 1;
                self.asked[index].bytes += bytes;
            }
            Event::Unreadable { bytes, goes_on } => {
                self.media_errors += 1;
                if goes_on {
                    // the log counts commands that succeed
                    self.asked[READ].commands -= 1;
                    self.asked[READ].bytes -= bytes;
                }
            }
            Event::Done { .. } => {}
        }
    }

    /// Adds the key `smart`, of a host that has one drive: several drives have a log each.
    fn look(&mut self, now: &Snapshot<'_>, found: &mut Findings) {
        if now.drives.len() > 1 {
            return;
        }
        let flash = FlashHealth::of(now.drive);
        let [read, written] = self.asked;
        let units = |asked: Asked| data_units(asked.bytes / u64::from(SECTOR_BYTES));
        let mut log = json!({
            "critical_warning": critical_warning(flash.available_spare, flash.read_only),
            "available_spare": flash.available_spare,
            "available_spare_threshold": SPARE_THRESHOLD,
            "percentage_used": percentage_field(flash.percentage_used),
            "data_units_read": units(read),
            "data_units_written": units(written),
            "host_read_commands": read.commands,
            "host_write_commands": written.commands,
            "media_errors": self.media_errors,
        });
        if self.start.timed {
            log["power_on_hours"] = power_on_hours(now.elapsed.0 / 1_000_000_000).into();
        }
        found.record.insert("smart".into(), log);
    }
}
