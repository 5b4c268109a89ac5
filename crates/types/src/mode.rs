//! Modes of blocks: a block may store fewer bits in a cell than its flash can.
//!
//! Addresses do not depend on modes. Every block has the same range of frames and slots, and a
//! block in SLC mode uses the first part of them. It has one page on each word line, so it stores a
//! share of the bits of a native block: 1 / [`Cell::levels`](crate::Cell::levels).

use crate::{ConfigError, Layout, ProgramUnit};

/// The number of kinds of page that have times of their own: the levels of a word line, and pages
/// of blocks in SLC mode.
pub const PAGE_KINDS: usize = 5;

/// The kind of the pages of blocks in SLC mode. Kinds below it are levels of a word line.
pub const SLC_MODE_LEVEL: u8 = PAGE_KINDS as u8 - 1;

/// The number of bits that a block stores in a cell. A block gets its mode when it is opened, and
/// keeps it until its next erase.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum BlockMode {
    /// Mode with all the bits that the cells of the drive can store.
    #[default]
    Native = 0,
    /// Mode with one bit in each cell.
    Slc = 1,
}

impl BlockMode {
    /// Returns the mode with this number, or `None` if no mode has this number.
    pub const fn from_number(number: u8) -> Option<BlockMode> {
        match number {
            0 => Some(BlockMode::Native),
            1 => Some(BlockMode::Slc),
            _ => None,
        }
    }
}

impl Layout {
    /// Returns the number of frames that a block in this mode uses.
    #[inline]
    pub fn frames_in(&self, mode: BlockMode) -> u32 {
        self.modes[mode as usize].frames
    }

    /// Returns the number of slots that a frame uses in a block of this mode.
    #[inline]
    pub fn slots_in(&self, mode: BlockMode) -> u32 {
        self.modes[mode as usize].slots
    }

    /// Returns the number of pages that a frame of a block in this mode consists of.
    #[inline]
    pub fn pages_in(&self, mode: BlockMode) -> u32 {
        self.modes[mode as usize].pages
    }

    /// Returns the number of pages that one program writes on a plane of a block in this mode.
    #[inline]
    pub fn pages_at_once(&self, mode: BlockMode) -> u32 {
        self.modes[mode as usize].at_once
    }

    /// Returns the kind of the page number `index` of a block in this mode. A frame that is a whole
    /// word line counts as its first page.
    #[inline]
    pub fn level_in(&self, mode: BlockMode, index: u32) -> u8 {
        match mode {
            BlockMode::Native => match &self.page_table {
                None => (index % self.frame_levels) as u8,
                Some(table) => table.level(index),
            },
            BlockMode::Slc => SLC_MODE_LEVEL,
        }
    }

    fn levels(&self) -> u32 {
        u32::from(self.geometry.cell.levels())
    }

    /// Checks that blocks of this drive may be in SLC mode.
    ///
    /// # Errors
    /// Returns an error that names the key at fault if cells store one bit anyway, if a block has
    /// less than one word line, or if a unit spans several pages of a word line.
    pub fn allows_slc_mode(&self) -> Result<(), ConfigError> {
        let levels = self.levels();
        if levels == 1 {
            let why = "blocks in SLC mode need cells of several bits: mlc, tlc or qlc";
            return Err(ConfigError::new("drive.cell", why));
        }
        if self.frames_in(BlockMode::Slc) == 0 {
            let why =
                format!("a block in SLC mode has a page of each {levels}: give at least that");
            return Err(ConfigError::new("drive.pages", why));
        }
        if self.program_unit == ProgramUnit::WordLine && self.slots_per_frame % levels != 0 {
            let page = self.frame_bytes() / u64::from(levels);
            let why = format!(
                "{} bytes: a frame in SLC mode has one page a plane, {page} bytes, and must hold \
                 whole units",
                self.unit_bytes
            );
            return Err(ConfigError::new("map.unit", why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllocationOrder, Cell, Geometry, Span};

    const BOARD: Geometry = Geometry {
        channels: 1,
        ways: 1,
        dies: 1,
        planes: 2,
        blocks: 4,
        pages: 14,
        page_bytes: 8192,
        spare_bytes: 256,
        cell: Cell::Tlc,
    };

    fn layout(geometry: Geometry, unit: u32, of: ProgramUnit) -> Result<Layout, ConfigError> {
        let span = Span { planes: 2, ..Span::ONE };
        let order = AllocationOrder::parse("CWDP").unwrap();
        Layout::of_frames(geometry, span, unit, order, 10, of)
    }

    #[test]
    fn a_block_in_slc_mode_has_a_page_of_each_word_line() {
        let pages = layout(BOARD, 4096, ProgramUnit::Page).unwrap();
        // 14 pages have four whole word lines of three pages
        assert_eq!((pages.frames_in(BlockMode::Native), pages.frames_in(BlockMode::Slc)), (14, 4));
        assert_eq!((pages.slots_in(BlockMode::Native), pages.slots_in(BlockMode::Slc)), (4, 4));
        assert_eq!(
            (pages.level_in(BlockMode::Native, 5), pages.level_in(BlockMode::Slc, 5)),
            (2, 4)
        );
        pages.allows_slc_mode().unwrap();
    }

    #[test]
    fn a_frame_of_a_whole_word_line_has_a_page_of_it_in_slc_mode() {
        let board = Geometry { pages: 12, ..BOARD };
        let lines = layout(board, 4096, ProgramUnit::WordLine).unwrap();
        // two planes x three pages of 8 KiB are twelve units
        assert_eq!(
            (lines.frames_per_block, lines.slots_per_frame, lines.pages_per_frame),
            (4, 12, 6)
        );
        assert_eq!((lines.frames_in(BlockMode::Slc), lines.slots_in(BlockMode::Slc)), (4, 4));
        assert_eq!((lines.pages_in(BlockMode::Native), lines.pages_in(BlockMode::Slc)), (6, 2));
        assert_eq!(lines.slots(), 4 * 4 * 12);
        lines.allows_slc_mode().unwrap();
    }

    #[test]
    fn what_has_no_slc_mode_is_refused_by_name() {
        let key = |geometry, unit, of| {
            layout(geometry, unit, of).and_then(|l| l.allows_slc_mode()).unwrap_err().key
        };
        let slc = Geometry { cell: Cell::Slc, ..BOARD };
        assert_eq!(key(slc, 4096, ProgramUnit::Page), "drive.cell");
        assert_eq!(key(Geometry { pages: 2, ..BOARD }, 4096, ProgramUnit::Page), "drive.pages");
        // a unit of 48 KiB is the whole word line of both planes
        let whole = Geometry { pages: 12, ..BOARD };
        assert_eq!(key(whole, 48 << 10, ProgramUnit::WordLine), "map.unit");
        assert_eq!(key(BOARD, 4096, ProgramUnit::WordLine), "drive.pages", "14 is not 3 n");
        // four planes' worth of units: 2 x 3 x 8 KiB in units of 512 bytes are 96 slots
        assert_eq!(key(whole, 512, ProgramUnit::WordLine), "map.unit");
    }
}
