//! The word lines of a layout: the order of their pages, and the pages that share cells.

use crate::page_order::{PageTable, SHARED_MAX};
use crate::{BlockMode, ConfigError, FrameId, Layout, PageOrder, ProgramUnit};

impl Layout {
    /// Returns this layout with the pages of each block in `order`.
    ///
    /// # Errors
    /// Returns an error that names the key at fault if no such order was published for the cells of
    /// the drive, if a program writes whole word lines, or if a block is no whole number of word
    /// lines.
    pub fn in_page_order(mut self, order: PageOrder) -> Result<Layout, ConfigError> {
        if order == PageOrder::Consecutive {
            (self.page_order, self.page_table) = (order, None);
            return Ok(self);
        }
        let (pages, cell) = (self.geometry.pages, self.geometry.cell);
        let Some((delays, of_a_kind)) = order.delays(cell) else {
            let known = PageOrder::ALL.into_iter().filter(|order| order.delays(cell).is_some());
            let known = std::iter::once(PageOrder::Consecutive).chain(known);
            return Err(ConfigError {
                allowed: known.map(|order| order.name().to_owned()).collect(),
                ..ConfigError::new(
                    "drive.page_order",
                    format!(
                        "no order `{}` was published for cells of {} bits; give another order",
                        order.name(),
                        cell.levels()
                    ),
                )
            });
        };
        if self.program_unit == ProgramUnit::WordLine {
            let why = "drive.program_unit = word-line programs all pages of a word line together, \
                       so they have no order; leave this key out";
            return Err(ConfigError::new("drive.page_order", why));
        }
        let line = delays.len() as u32 * of_a_kind;
        if pages % line != 0 {
            let why = format!(
                "drive.page_order = {} has {line} pages on each word line, and {pages} pages are \
                 no whole word lines; give a multiple of {line}",
                order.name()
            );
            return Err(ConfigError::new("drive.pages", why));
        }
        self.page_order = order;
        self.page_table = Some(PageTable::new(&order.pages(pages, delays, of_a_kind), of_a_kind));
        Ok(self)
    }

    /// Returns the number of the word line on which frame number `index` of a block in this mode
    /// lies. A block in SLC mode fills one word line after another.
    pub fn word_line(&self, mode: BlockMode, index: u32) -> u32 {
        match (mode, self.program_unit, &self.page_table) {
            (_, ProgramUnit::WordLine, _) | (BlockMode::Slc, ProgramUnit::Page, None) => index,
            (BlockMode::Slc, ProgramUnit::Page, Some(table)) => index / table.of_a_kind,
            (BlockMode::Native, ProgramUnit::Page, None) => {
                index / u32::from(self.geometry.cell.levels())
            }
            (BlockMode::Native, ProgramUnit::Page, Some(table)) => table.lines[index as usize],
        }
    }

    /// Returns the number of word lines of a block.
    pub fn word_lines(&self) -> u32 {
        let of_a_kind = self.page_table.as_ref().map_or(1, |table| table.of_a_kind);
        self.geometry.pages.div_ceil(u32::from(self.geometry.cell.levels()) * of_a_kind)
    }

    /// Returns the frames that share the cells of a frame and were programmed before it. There are
    /// none for a lower page, one for the next kind of page, and so on. A frame that is a whole
    /// word line shares its cells with no other.
    pub fn paired_before(&self, frame: FrameId) -> impl Iterator<Item = FrameId> + use<> {
        let block = self.block_of_frame(frame);
        let first = self.frame_in(block, 0).0;
        let page = frame.0 - first;
        let (shared, pages) = match (self.program_unit, &self.page_table) {
            (ProgramUnit::WordLine, _) => (0, [0; SHARED_MAX]),
            (ProgramUnit::Page, None) => {
                let shared = self.geometry.level(page);
                let of = |back: u8| page.wrapping_sub(u32::from(shared) - u32::from(back));
                let pages = [0u8, 1, 2].map(|n| if n < shared { of(n) } else { 0 });
                (shared, pages)
            }
            (ProgramUnit::Page, Some(table)) => (table.level(page), table.shared[page as usize]),
        };
        pages.into_iter().take(usize::from(shared)).map(move |page| FrameId(first + page))
    }
}
