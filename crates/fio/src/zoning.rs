//! `zonemode=strided`: a job uses parts of its file and skips the gaps between these parts.

/// Options of zones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Zoning {
    /// `zonemode=strided`.
    pub strided: bool,
    /// `zonesize`: bytes of requests before the job moves to the next zone; 0 if the option is not
    /// given.
    pub size: u64,
    /// `zonerange`: number of bytes of a zone; 0 means the value of `size`.
    pub range: u64,
    /// `zoneskip`: number of bytes between two zones.
    pub skip: u64,
}

/// The zones of a file.
#[derive(Clone, Copy)]
pub(super) struct Zones {
    pub size: u64,
    pub range: u64,
    pub skip: u64,
}

impl Zoning {
    /// Returns the zones of each file, or `None` without `zonemode=strided`.
    pub(super) fn zones(&self) -> Option<Zones> {
        let range = if self.range == 0 { self.size } else { self.range };
        let zones = Zones { size: self.size, range, skip: self.skip };
        self.strided.then_some(zones)
    }

    /// Checks the options against each other. The error contains the option at fault and the
    /// reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match (self.strided, self.size) {
            (true, 0) => Err(("zonemode", "the zones have no size; give a zonesize")),
            (false, 1..) => Err(("zonesize", "there are no zones; set zonemode=strided")),
            _ => Ok(()),
        }
    }
}
