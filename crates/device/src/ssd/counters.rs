//! Counters of the controller.

use flashatlas_types::Dur;

/// Counters of the controller itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Mapping units that were read but never written.
    pub unmapped_units: u64,
    /// Mapping units read from the write cache.
    pub cache_read_hits: u64,
    /// Writes to a unit that was in the cache already.
    pub cache_write_hits: u64,
    /// Units that left the cache for flash.
    pub cache_evictions: u64,
    /// Units whose missing sectors were fetched from flash.
    pub rmw_units: u64,
    /// Units at the ends of trims that were ignored because the trim covered only a part of them.
    pub trim_partial_units: u64,
    /// Units trimmed.
    pub trimmed_units: u64,
    /// Writes that were delayed because free blocks ran low.
    pub throttled_writes: u64,
    /// Sum of these delays.
    pub throttled: Dur,
    /// Gaps between commands, if gaps are predicted.
    pub idle_gaps: u64,
    /// Gaps in which work began immediately, because they were predicted to be long enough.
    pub idle_predicted: u64,
    /// Gaps that were predicted to be too short for a step of background work.
    pub idle_held_back: u64,
    /// Gaps among them in which background work began later.
    pub idle_late: u64,
    /// Commands that came during a step of background work.
    pub idle_interrupted: u64,
}
