//! The shape of a device: the number of sectors and units that it exports.

use crate::{Cmd, SubmitError};
use flashatlas_types::Layout;

/// Shape that a device exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceShape {
    /// Number of sectors in a mapping unit.
    pub unit_sectors: u32,
    /// Number of sectors of the whole device.
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

    /// Checks that the range of a command is not empty and lies inside the device.
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

    /// Returns the number of bytes of the whole device.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(flashatlas_types::SECTOR_BYTES)
    }
}
