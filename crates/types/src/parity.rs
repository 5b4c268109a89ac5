//! Frames with parity over their dies: one die of each frame holds the XOR of the others.
//!
//! The die with parity has a number in the frame that depends on the frame's place in its block, so
//! that reads spread over all dies. The slots of a frame are on the other dies, in order of their
//! numbers.

use crate::{AllocationOrder, BlockMode, ConfigError, Geometry, Layout, ProgramUnit, Span};

/// The fewest dies of a frame with parity. On two dies, parity would be a copy.
pub const PARITY_DIES_MIN: u32 = 3;

impl Layout {
    /// Returns a layout as [`Layout::of_frames`] does, with parity on one die of each frame. A
    /// frame has slots for the data of its other dies.
    ///
    /// # Errors
    /// Returns the errors of [`Layout::of_frames`], and an error if a frame covers fewer than
    /// [`PARITY_DIES_MIN`] dies.
    pub fn of_frames_with_parity(
        geometry: Geometry,
        span: Span,
        unit_bytes: u32,
        order: AllocationOrder,
        logical_units: u32,
        program_unit: ProgramUnit,
    ) -> Result<Layout, ConfigError> {
        let dies = u64::from(span.channels) * u64::from(span.ways) * u64::from(span.dies);
        if dies < PARITY_DIES_MIN.into() {
            let why = format!(
                "parity lies inside a frame, and a frame covers {dies} of at least \
                 {PARITY_DIES_MIN} dies; give more of drive.frame_channels, _ways and _dies, or \
                 leave this out"
            );
            return Err(ConfigError::new("ecc.parity", why));
        }
        Layout::built(geometry, span, unit_bytes, order, logical_units, (program_unit, true))
    }

    /// Returns `true` if one die of each frame holds parity.
    #[inline]
    pub fn has_parity(&self) -> bool {
        self.data_planes_per_frame < self.planes_per_frame
    }

    /// Returns the number, in the frame, of the die with the parity of frame `index` of a block.
    /// Returns `None` if frames have no parity.
    pub fn parity_die(&self, index: u32) -> Option<u32> {
        self.has_parity().then(|| index % self.dies_per_frame)
    }

    /// Returns the number of a frame's die among those that hold data. The frame has number `index`
    /// in its block. Returns `None` if the die holds the frame's parity.
    pub fn data_die(&self, index: u32, die: u32) -> Option<u32> {
        match self.parity_die(index) {
            None => Some(die),
            Some(parity) if die == parity => None,
            Some(parity) => Some(die - u32::from(die > parity)),
        }
    }

    /// Returns the number of pages with data of a frame in a block of this mode.
    #[inline]
    pub fn data_pages_in(&self, mode: BlockMode) -> u32 {
        self.data_planes_per_frame * self.pages_at_once(mode)
    }

    /// Returns the number of pages with parity of a frame in a block of this mode.
    #[inline]
    pub fn parity_pages_in(&self, mode: BlockMode) -> u32 {
        self.pages_in(mode) - self.data_pages_in(mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;

    const BOARD: Geometry = Geometry {
        channels: 2,
        ways: 2,
        dies: 1,
        planes: 2,
        blocks: 4,
        pages: 12,
        page_bytes: 8192,
        spare_bytes: 256,
        cell: Cell::Tlc,
    };

    const FOUR: Span = Span { channels: 2, ways: 2, dies: 1, planes: 2 };

    fn layout(span: Span, unit: u32, of: ProgramUnit) -> Result<Layout, ConfigError> {
        let order = AllocationOrder::parse("CWDP").unwrap();
        Layout::of_frames_with_parity(BOARD, span, unit, order, 10, of)
    }

    #[test]
    fn a_frame_has_slots_for_the_data_of_all_dies_but_one() {
        let pages = layout(FOUR, 4096, ProgramUnit::Page).unwrap();
        // four dies of two pages of 8 KiB; three of them are 48 KiB, which are 12 units
        assert_eq!((pages.pages_per_frame, pages.slots_per_frame), (8, 12));
        assert_eq!(pages.frame_bytes(), 48 << 10);
        let both = [BlockMode::Native, BlockMode::Slc];
        assert_eq!(both.map(|mode| pages.data_pages_in(mode)), [6, 6]);
        assert_eq!(both.map(|mode| pages.parity_pages_in(mode)), [2, 2]);
        // with whole word lines of three pages, three times as much, and as much in SLC mode
        let lines = layout(FOUR, 4096, ProgramUnit::WordLine).unwrap();
        assert_eq!((lines.pages_per_frame, lines.slots_per_frame), (24, 36));
        assert_eq!(both.map(|mode| lines.data_pages_in(mode)), [18, 6]);
        assert_eq!(both.map(|mode| lines.parity_pages_in(mode)), [6, 2]);
        assert_eq!(lines.slots_in(BlockMode::Slc), 12);
        lines.allows_slc_mode().unwrap();
    }

    #[test]
    fn the_die_with_parity_goes_round() {
        let layout = layout(FOUR, 4096, ProgramUnit::Page).unwrap();
        let parity: Vec<_> = (0..6).map(|index| layout.parity_die(index).unwrap()).collect();
        assert_eq!(parity, [0, 1, 2, 3, 0, 1]);
        // the data of frame 2 is on dies 0, 1 and 3, in this order
        let ranks = [0, 1, 2, 3].map(|die| layout.data_die(2, die));
        assert_eq!(ranks, [Some(0), Some(1), None, Some(2)]);
        let order = AllocationOrder::parse("CWDP").unwrap();
        let without = Layout::new(BOARD, FOUR, 4096, order, 10).unwrap();
        assert_eq!((without.parity_die(2), without.data_die(2, 3)), (None, Some(3)));
        assert_eq!(without.parity_pages_in(BlockMode::Native), 0);
    }

    #[test]
    fn frames_over_few_dies_and_units_over_the_parity_are_refused() {
        let key = |span, unit| layout(span, unit, ProgramUnit::Page).unwrap_err().key;
        assert_eq!(key(Span { ways: 1, ..FOUR }, 4096), "ecc.parity");
        // a unit of the whole frame has no place beside its parity, and one of the data has
        assert_eq!(key(FOUR, 64 << 10), "map.unit");
        assert_eq!(layout(FOUR, 48 << 10, ProgramUnit::Page).unwrap().slots_per_frame, 1);
    }
}
