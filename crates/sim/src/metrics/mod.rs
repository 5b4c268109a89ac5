//! Metrics of a run.
//!
//! Each metric sees every event of the run and the drive's counters at the end of the run, and adds
//! its keys to the record.
//!
//! A metric gets only shared references, so it cannot change what it measures.

mod blocks;
mod drives;
mod energy;
mod faults;
mod host;
mod latency;
mod layers;
mod lookup;
mod map;
mod memory;
mod merges;
mod mount;
mod nand;
mod series;
mod smart;
pub(crate) mod steady;
mod throughput;
mod utilisation;
mod wear;

use crate::table::Table;
use flashatlas_device::{DeviceCounters, LayerReport, Ssd};
use flashatlas_ftl::FtlReport;
use flashatlas_nand::{Counters, Medium};
use flashatlas_timing::Statistics;
use flashatlas_types::{Dur, HostOp, Ps};
use serde_json::{Map, Value};

/// Something that happened to a host command.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The command was handed to the drive.
    Submitted {
        /// The operation.
        op: HostOp,
        /// Bytes of data; zero for a flush.
        bytes: u64,
        /// The time.
        at: Ps,
    },
    /// The command is complete.
    Done {
        /// The operation.
        op: HostOp,
        /// Bytes of data; zero for a flush.
        bytes: u64,
        /// Time at which the request reached the host.
        arrived: Ps,
        /// Time at which the drive accepted the command.
        submitted: Ps,
        /// Time at which the command was complete.
        at: Ps,
    },
    /// A command failed because data cannot be read.
    Unreadable {
        /// Bytes of data that the command asked for.
        bytes: u64,
        /// `true` if the run goes on after a read: the read was shown as submitted before, and is
        /// shown as done later. `false` if the drive refused the command, which is not shown
        /// otherwise.
        goes_on: bool,
    },
}

/// The drive's counters at some instant, counted since measuring began.
pub struct Snapshot<'a> {
    /// The drive, or the first drive if a layer combines several drives.
    pub drive: &'a Ssd,
    /// All drives.
    pub drives: &'a [&'a Ssd],
    /// Operations on the cells of all drives.
    pub counters: Counters,
    /// Counts of each layer over the drive, from the top down.
    pub layers: &'a [LayerReport],
    /// Cells of the drive, with the operations on them by cause.
    pub medium: &'a Medium,
    /// The FTL's counters and tables.
    pub ftl: &'a FtlReport,
    /// The controller's counters.
    pub device: DeviceCounters,
    /// Busy times; `None` when no time passes.
    pub statistics: Option<&'a Statistics>,
    /// Simulated time until the last completion.
    pub elapsed: Dur,
    /// Simulated time until the drive had also finished its background work; zero before the end of
    /// the run.
    pub active: Dur,
    /// Number of requests submitted.
    pub submitted: u64,
    /// Commands in flight, summed over the picoseconds since measuring began.
    pub in_flight_time: u128,
}

/// Sees the events of a run and reports at its end.
pub trait Metric: Send {
    /// Sees an event of the measured part of the run.
    fn on(&mut self, event: &Event) {
        let _ = event;
    }

    /// Returns the reading of the sampling clock at which this metric takes its next sample.
    ///
    /// The clock counts picoseconds since measuring began, or requests submitted if no time passes.
    /// The reading must be later than at the last [`Metric::sample`].
    fn next_sample(&self) -> u64 {
        u64::MAX
    }

    /// Looks at the drive.
    ///
    /// Every metric is called for every sample, also for samples that other metrics asked for. The
    /// first sample is at 0.
    fn sample(&mut self, clock: u64, now: &Snapshot<'_>) {
        let _ = (clock, now);
    }

    /// Adds the findings so far; can be called at any time, unlike [`Metric::finish`].
    ///
    /// A metric that needs the whole run adds nothing.
    fn look(&mut self, now: &Snapshot<'_>, found: &mut Findings) {
        let _ = (now, found);
    }

    /// Adds this metric's keys to the record, and its table to the tables of `found`.
    ///
    /// Keys that do not apply are left out. A metric that adds nothing at the end needs only
    /// [`Metric::look`].
    fn finish(&mut self, end: &Snapshot<'_>, found: &mut Findings) {
        self.look(end, found);
    }
}

/// Findings of the metrics of a run.
#[derive(Default)]
pub struct Findings {
    /// Keys of the run record.
    pub record: Map<String, Value>,
    /// Tables beside the record.
    pub tables: Vec<Table>,
}

/// A metric that computes its findings from the counters alone.
struct OfCounters(fn(&Snapshot<'_>, &mut Findings));

impl Metric for OfCounters {
    fn look(&mut self, now: &Snapshot<'_>, found: &mut Findings) {
        self.0(now, found);
    }
}

/// Party that sets the pace of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// The drive: the host sends the next request when a request is complete.
    Drive,
    /// The times of the trace or generator.
    Times,
    /// Jobs that begin one after the other, each with a load of its own.
    Stages,
    /// Clients that wait for replies and pause between requests. Neither the pace of the clients
    /// nor the wait of the last command shows whether the drive keeps up.
    Clients,
}

/// Circumstances in which a metric begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// `true` if simulated time passes in the run.
    pub timed: bool,
    /// The party that sets the pace.
    pub pace: Pace,
    /// Length of a row of a time series, if the user chose a length.
    pub interval: Option<Dur>,
}

impl Start {
    /// Returns the first width of a row and of the interval between two frames.
    ///
    /// The width is a millisecond, or 64 requests if no time passes. It applies if the user chose
    /// no width.
    fn first_width(self) -> u64 {
        if self.timed { 1_000_000_000 } else { 64 }
    }
}

impl Snapshot<'_> {
    /// Returns the number of mapping units that were read and had never been written.
    ///
    /// The number counts the units of the drive and of the layers over the drive.
    fn unmapped_units(&self) -> u64 {
        self.device.unmapped_units + self.layers.iter().map(|l| l.unmapped_units).sum::<u64>()
    }

    /// Returns the sampling clock at the end of a run.
    fn end_clock(&self, timed: bool) -> u64 {
        if timed { self.active.max(self.elapsed).0 } else { self.submitted }
    }
}

/// Removes the second of every two items.
fn thin_out<T>(items: &mut Vec<T>) {
    let mut keep = false;
    items.retain(|_| {
        keep = !keep;
        keep
    });
}

/// One metric of the registry.
pub struct MetricDef {
    /// The key of the record that the metric fills, or the first of these keys.
    pub name: &'static str,
    /// Description of the metric in one line.
    pub summary: &'static str,
    /// Builds the metric, before its first event.
    pub build: fn(Start) -> Box<dyn Metric>,
}

flashatlas_types::entry!(MetricDef, "metric", "metric", none);

/// All metrics, in the order of their keys in the record.
pub const METRICS: &[MetricDef] = &[
    host::DEF,
    layers::DEF,
    nand::DEF,
    faults::DEF,
    merges::DEF,
    latency::DEF,
    throughput::DEF,
    utilisation::DEF,
    energy::DEF,
    map::DEF,
    lookup::DEF,
    mount::DEF,
    memory::DEF,
    wear::DEF,
    smart::DEF,
    steady::DEF,
    series::DEF,
    blocks::DEF,
    drives::DEF,
];
