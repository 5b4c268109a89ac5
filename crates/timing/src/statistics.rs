//! Busy times of the resources.

use flashatlas_types::{Dur, Ps};
use hdrhistogram::Histogram;

/// Busy times since the last reset.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// For each die, the time during which its cells sensed, programmed or erased.
    pub die_busy: Vec<Dur>,
    /// For each channel, the time during which it transferred.
    pub channel_busy: Vec<Dur>,
    /// Time during which the host link transferred, towards the drive and from it.
    pub link_busy: [Dur; 2],
    /// Number of cores of the controller, or 0 if there is always a core that has no work.
    pub cores: u32,
    /// Time during which cores of the controller worked, summed over the cores.
    pub core_busy: Dur,
    /// Time during which the shared DRAM transferred, if the drive has one.
    pub shared_dram: Option<Dur>,
    /// Time during which any operation was unfinished.
    pub at_work: Dur,
    /// Number of suspensions of programs and erases for a read.
    pub suspends: u64,
    /// Sum over time of the number of dies at work (one die at work for 1 ps adds 1).
    pub die_time: u128,
    /// Time during which at least one die was at work.
    pub active: Dur,
    /// Largest number of dies that were at work at the same time.
    pub dies_max: u32,
    /// Counts and times of the DRAM, if its commands are timed one by one.
    pub dram: Option<Box<DramStatistics>>,
    dies: u32,
    since: Ps,
}

/// Times of operations, in picoseconds.
#[derive(Clone, Debug)]
pub struct OperationTimes {
    /// Times, each with three significant digits.
    pub histogram: Histogram<u64>,
    /// Sum of the times.
    pub total: u128,
    /// The longest time.
    pub max: u64,
}

impl Default for OperationTimes {
    fn default() -> OperationTimes {
        // the histogram grows as times are added, so a drive that is only mounted has an empty one
        OperationTimes { histogram: Histogram::new(3).expect("three digits"), total: 0, max: 0 }
    }
}

impl OperationTimes {
    pub(crate) fn add(&mut self, ps: u64) {
        self.histogram.record(ps).expect("a histogram that grows");
        self.total += u128::from(ps);
        self.max = self.max.max(ps);
    }
}

/// Counts and times of the DRAM.
#[derive(Clone, Debug, Default)]
pub struct DramStatistics {
    /// Times of lookups, from the request until all data has arrived.
    pub lookups: OperationTimes,
    /// Times of updates, measured in the same way.
    pub updates: OperationTimes,
    /// Bursts.
    pub bursts: u64,
    /// Rows opened.
    pub activations: u64,
    /// Refreshes.
    pub refreshes: u64,
}

/// Resource that can be busy.
#[derive(Clone, Copy)]
pub(crate) enum Resource {
    Die(usize),
    Channel(usize),
    Cores,
    SharedDram,
    /// Way of the host link: 0 towards the drive, 1 from it.
    Link(usize),
}

impl Statistics {
    /// Returns a reference through which the busy time of a resource can be changed.
    pub(crate) fn of(&mut self, resource: Resource) -> &mut Dur {
        match resource {
            Resource::Die(d) => &mut self.die_busy[d],
            Resource::Channel(c) => &mut self.channel_busy[c],
            Resource::Cores => &mut self.core_busy,
            Resource::SharedDram => self.shared_dram.get_or_insert_default(),
            Resource::Link(way) => &mut self.link_busy[way],
        }
    }

    pub(crate) fn new(dies: usize, channels: usize) -> Statistics {
        Statistics {
            die_busy: vec![Dur::ZERO; dies],
            channel_busy: vec![Dur::ZERO; channels],
            ..Default::default()
        }
    }

    /// Sets all counts to zero at `now`. Dies at work are still counted as at work.
    pub(crate) fn reset(&mut self, now: Ps) {
        let dies = self.dies;
        let dram = self.dram.is_some().then(Box::default);
        let cores = self.cores;
        let shared_dram = self.shared_dram.map(|_| Dur::ZERO);
        *self = Statistics {
            dram,
            cores,
            shared_dram,
            ..Statistics::new(self.die_busy.len(), self.channel_busy.len())
        };
        (self.dies, self.dies_max, self.since) = (dies, dies, now);
    }

    /// Accounts for the time up to `now`. From then on, the number of dies at work changes by
    /// `more`.
    #[inline]
    pub(crate) fn dies_change(&mut self, now: Ps, more: i32) {
        let span = now.since(self.since);
        if self.dies > 0 {
            self.die_time += u128::from(span.0) * u128::from(self.dies);
            self.active = self.active + span;
        }
        self.since = now;
        self.dies = self.dies.checked_add_signed(more).expect("more dies stopped than had started");
        self.dies_max = self.dies_max.max(self.dies);
    }

    /// Returns the mean number of dies at work during the time in which at least one die was at
    /// work. Returns zero if no die was ever at work.
    pub fn mean_dies(&self) -> f64 {
        if self.active == Dur::ZERO { 0.0 } else { self.die_time as f64 / self.active.0 as f64 }
    }
}
