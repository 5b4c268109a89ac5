//! The keys of throttling, and the free blocks that it goes by. The controller delays the writes.

use super::PageMapped;
use super::slc_settings::SLC;
use flashatlas_types::{ConfigError, Param, Params, Text};

/// The parameter `ftl.throttle_from`.
pub const THROTTLE_FROM: Param<u32> = Param::int(
    "ftl.throttle_from",
    0,
    1 << 20,
    "host writes are delayed when the free blocks of a lane above ftl.low_water, in the mean over \
     all lanes, are fewer than this; a block counts once its erase is complete; 0: never",
)
.or("0");

/// The parameter `ftl.throttle_rate`.
pub const THROTTLE_RATE: Param<u64> = Param::rate(
    "ftl.throttle_rate",
    "ftl.throttle_from: bytes a second of host writes that the drive accepts without free blocks \
     above ftl.low_water; with more of them, the time for each byte is shorter in proportion, and \
     0 at ftl.throttle_from",
)
.or("0");

/// Refuses one key of throttling without the other, and settings with which free blocks above the
/// low-water mark are not the room of a drive. `gc_mode` is the parameter `ftl.gc_mode`.
pub(super) fn fits(params: &Params, gc_mode: Param<Text>) -> Result<(), ConfigError> {
    let (from, rate) = (params.get(THROTTLE_FROM), params.get(THROTTLE_RATE));
    let refuse = |key: &str, why: &str| Err(ConfigError::new(key, why));
    if from == 0 && rate == 0 {
        return Ok(());
    }
    if from == 0 {
        return refuse(
            THROTTLE_RATE.key(),
            "the drive never delays a write: set ftl.throttle_from, too",
        );
    }
    if rate == 0 {
        return refuse(
            THROTTLE_FROM.key(),
            "needs the rate at which writes are accepted without room: set ftl.throttle_rate, too",
        );
    }
    if params.get(gc_mode) == "single" {
        return refuse(
            THROTTLE_FROM.key(),
            "single mode keeps one reserved block of each lane and no low-water mark; throttling \
             needs ftl.gc_mode = dual",
        );
    }
    if params.get(SLC) != "none" {
        return refuse(
            THROTTLE_FROM.key(),
            "throttling goes by free native blocks, but host writes go to the blocks of an SLC \
             cache first; it needs ftl.slc = none",
        );
    }
    Ok(())
}

impl PageMapped {
    /// Returns the number of free blocks above the low-water mark of their lanes.
    pub(super) fn free_above_low_water(&self) -> u64 {
        let above = |lane| self.pool.free(lane).saturating_sub(self.settings.low_water);
        self.layout.lane_ids().map(|lane| u64::from(above(lane))).sum()
    }
}
