//! `zonemode=strided`: a job uses parts of its file, and skips the gaps between them.

/// Options of zones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Zoning {
    /// `zonemode=strided`.
    pub strided: bool,
    /// `zonesize`: bytes of requests before the next zone; 0 if it is not given.
    pub size: u64,
    /// `zonerange`: bytes of a zone; 0 stands for the number in `size`.
    pub range: u64,
    /// `zoneskip`: bytes between two zones.
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

    /// Checks the options against each other. The error names the option at fault, and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match (self.strided, self.size) {
            (true, 0) => Err(("zonemode", "zones of no size; expected a zonesize")),
            (false, 1..) => Err(("zonesize", "there are no zones; expected zonemode=strided")),
            _ => Ok(()),
        }
    }
}
