//! What a device exports.

use crate::{Cmd, SubmitError};
use flashatlas_types::Layout;

/// What a device exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceShape {
    /// Sectors of a mapping unit.
    pub unit_sectors: u32,
    /// Sectors in all.
    pub sectors: u64,
}

impl DeviceShape {
    /// What a drive exports.
    pub fn of(layout: &Layout) -> DeviceShape {
        DeviceShape { unit_sectors: layout.unit_sectors(), sectors: layout.sectors() }
    }

    /// Mapping units.
    pub fn units(&self) -> u32 {
        (self.sectors / u64::from(self.unit_sectors)) as u32
    }

    /// `Ok` when a command has no range, or one that is not empty and lies inside.
    ///
    /// # Errors
    /// [`SubmitError::OutOfRange`].
    pub fn accepts(&self, cmd: &Cmd<'_>) -> Result<(), SubmitError> {
        let Some((lba, sectors)) = cmd.range(self.unit_sectors) else { return Ok(()) };
        let end = lba.0.checked_add(u64::from(sectors));
        match sectors == 0 || end.is_none_or(|end| end > self.sectors) {
            true => Err(SubmitError::OutOfRange { sectors: self.sectors }),
            false => Ok(()),
        }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(flashatlas_types::SECTOR_BYTES)
    }
}
