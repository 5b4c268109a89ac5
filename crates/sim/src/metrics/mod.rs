//! Metrics: each sees every event of a run and the drive's counters at its end, and adds its keys to the record.
//!
//! Observers observe: a metric is handed shared references and cannot change what it measures.

mod host;
mod latency;
mod map;
mod memory;
mod merges;
mod nand;
mod throughput;
mod utilisation;
mod wear;

use flashatlas_device::DeviceCounters;
use flashatlas_ftl::FtlReport;
use flashatlas_nand::Medium;
use flashatlas_timing::Statistics;
use flashatlas_types::{Dur, HostOp, Ps};
use serde_json::{Map, Value};

/// Something that happened to a host command.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// It was handed to the drive.
    Submitted {
        /// What it asks.
        op: HostOp,
        /// Bytes of data; zero for a flush.
        bytes: u64,
    },
    /// It is complete.
    Done {
        /// What it asked.
        op: HostOp,
        /// When the host wanted it.
        arrived: Ps,
        /// When the drive took it.
        submitted: Ps,
        /// When it was complete.
        at: Ps,
    },
}

/// The drive's counters at the end of a run.
pub struct Snapshot<'a> {
    /// Cells, with their operations by cause.
    pub medium: &'a Medium,
    /// The FTL's counters and tables.
    pub ftl: &'a FtlReport,
    /// The controller's counters.
    pub device: DeviceCounters,
    /// Busy times; `None` when no time passed.
    pub statistics: Option<&'a Statistics>,
    /// Simulated time that was measured.
    pub elapsed: Dur,
    /// Simulated time until the drive had also finished what it does behind the host's back.
    pub active: Dur,
    /// Bytes of the write cache.
    pub cache_bytes: u64,
    /// Units left in the write cache.
    pub dirty_units: u64,
}

/// Sees the events of a run and reports at its end.
pub trait Metric: Send {
    /// An event of the measured part of the run.
    fn on(&mut self, event: &Event) {
        let _ = event;
    }

    /// Add this metric's keys to the record. Keys that do not apply stay out.
    fn finish(&mut self, end: &Snapshot<'_>, record: &mut Map<String, Value>);
}

/// One metric of the registry.
pub struct MetricDef {
    /// The key of the record that it fills, or the first of several.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Build it, empty.
    pub build: fn() -> Box<dyn Metric>,
}

/// All metrics, in the order of their keys in the record.
pub const METRICS: &[MetricDef] = &[
    host::DEF,
    nand::DEF,
    merges::DEF,
    latency::DEF,
    throughput::DEF,
    utilisation::DEF,
    map::DEF,
    memory::DEF,
    wear::DEF,
];

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_is_registered() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/metrics");
        let mut files: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|f| f.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .filter(|f| f != "mod")
            .collect();
        files.sort();
        let mut names: Vec<&str> = super::METRICS.iter().map(|m| m.name).collect();
        names.sort();
        assert_eq!(files, names);
    }
}
