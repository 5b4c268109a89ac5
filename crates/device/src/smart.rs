//! Definitions of the SMART log of NVMe (Base 5.1.12.1.3), which an NVMe controller and the run
//! record share.

use crate::Ssd;
use flashatlas_nand::Medium;

/// Percentage of spare blocks below which a drive warns its host.
pub const SPARE_THRESHOLD: u8 = 10;

/// Units of 512 bytes in a data unit of the log.
const DATA_UNIT: u64 = 1000;
/// Milliseconds of an hour.
const HOUR: u64 = 3_600_000;

/// State of a drive's flash, as the log shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashHealth {
    /// Percentage of the endurance that is used; may be more than 100.
    pub percentage_used: u32,
    /// Percentage of the spare blocks that are left, 0 to 100.
    pub available_spare: u8,
    /// `true` if the drive takes no writes any more.
    pub read_only: bool,
}

impl FlashHealth {
    /// Returns the state of a drive's flash, in O(blocks).
    ///
    /// The percentage used is the mean wear of the good blocks in native cycles, as a share of
    /// their endurance.
    pub fn of(drive: &Ssd) -> FlashHealth {
        let medium = drive.medium();
        let good = medium.layout().block_ids().filter(|&block| !medium.is_bad(block));
        let (blocks, wear) =
            good.fold((0, 0), |(n, sum), block| (n + 1, sum + u64::from(medium.wear(block))));
        let endured = blocks * u64::from(medium.rules().endurance);
        FlashHealth {
            percentage_used: (wear * 100).checked_div(endured).unwrap_or(100) as u32,
            available_spare: available_spare(medium),
            read_only: drive.is_read_only(),
        }
    }
}

/// Returns the percentage of the spare blocks that are left; 100 if the drive never had a spare
/// block.
pub fn available_spare(medium: &Medium) -> u8 {
    let layout = medium.layout();
    let spares = u64::from(layout.lanes) * u64::from(medium.rules().spare_blocks);
    let left: u64 = layout.lane_ids().map(|lane| u64::from(medium.spares(lane))).sum();
    (left * 100).checked_div(spares).unwrap_or(100) as u8
}

/// Returns the critical warnings of a drive without those about its temperature (Base, Figure 206).
pub fn critical_warning(available_spare: u8, read_only: bool) -> u8 {
    u8::from(available_spare < SPARE_THRESHOLD) | u8::from(read_only) << 3
}

/// Returns the field Percentage Used, which is 255 for more than 254 percent.
pub fn percentage_field(percentage_used: u32) -> u8 {
    if percentage_used > 254 { 255 } else { percentage_used as u8 }
}

/// Returns units of 512 bytes in data units: in thousands, rounded up.
pub fn data_units(units: u64) -> u64 {
    units.div_ceil(DATA_UNIT)
}

/// Returns the field Power On Hours for a simulated time with power, in milliseconds.
pub fn power_on_hours(powered_ms: u64) -> u64 {
    powered_ms / HOUR
}
