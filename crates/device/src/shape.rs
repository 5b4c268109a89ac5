//! Shape of a device: the sectors and units that it exports.

use crate::{Cmd, SubmitError};
use flashatlas_types::Layout;

/// Shape that a device exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceShape {
    /// Sectors of a mapping unit.
    pub unit_sectors: u32,
    /// Sectors in all.
    pub sectors: u64,
}

impl DeviceShape {
    /// Returns the shape that a drive of this layout exports.
    pub fn of(layout: &Layout) -> DeviceShape {
        DeviceShape { unit_sectors: layout.unit_sectors(), sectors: layout.sectors() }
    }

    /// Returns the number of mapping units.
    pub fn units(&self) -> u32 {
        (self.sectors / u64::from(self.unit_sectors)) as u32
    }

    /// Returns an error if a command has a range that is empty or does not lie inside the device.
    ///
    /// # Errors
    /// Returns [`SubmitError::OutOfRange`] if the range is empty or does not lie inside the device.
    pub fn accepts(&self, cmd: &Cmd<'_>) -> Result<(), SubmitError> {
        let Some((lba, sectors)) = cmd.range(self.unit_sectors) else { return Ok(()) };
        let end = lba.0.checked_add(u64::from(sectors));
        if sectors == 0 || end.is_none_or(|end| end > self.sectors) {
            Err(SubmitError::OutOfRange { sectors: self.sectors })
        } else {
            Ok(())
        }
    }

    /// Returns the number of bytes in all.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(flashatlas_types::SECTOR_BYTES)
    }
}
