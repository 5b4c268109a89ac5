//! Orders of the pages of a block. An order assigns bits of a word line to each page of a block.
//! Pages are numbered in the order in which they are programmed.
//!
//! Flash with several bits in a cell does not complete a word line before it begins the next word
//! line. The lower pages run ahead, so that each word line is completed after its neighbours have
//! got their lower bits. This halves the disturbance between neighbours. It also means that the
//! program of an upper page endangers data that was written many pages before it.

use crate::Cell;

/// Greatest number of pages that a page shares its word line with.
pub(crate) const SHARED_MAX: usize = 3;

/// An order of the pages of a block.
///
/// In every order, each kind of page visits the word lines in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PageOrder {
    /// The pages of a word line have consecutive numbers. No part is known to have this order.
    #[default]
    Consecutive,
    /// The lower page of the next word line comes before the upper page of a word line. For MLC:
    /// the lower page of word line n is page 2n - 1, and its upper page is page 2n + 2, except at
    /// both ends of the block (Cai et al., HPCA 2017; `dist3_pairing_scheme` of Linux).
    Shadow,
    /// An order like `Shadow` in which a word line has two pages of each kind, on its even and on
    /// its odd bit lines.
    ///
    /// - MLC: pages 0 and 4, 1 and 5, 2 and 8, 3 and 9 share cells, and so on (the tables of paired
    ///   pages in data sheets of Samsung, such as K9GAG08U0M).
    /// - TLC: two word lines get their lower pages ahead (MQSim, which names Yaakobi et al., ICNC
    ///   2012; FEMU and SimpleSSD have the same).
    /// - QLC: as the table of FEMU.
    ShadowEvenOdd,
}

impl PageOrder {
    /// Every order.
    pub const ALL: [PageOrder; 3] =
        [PageOrder::Consecutive, PageOrder::Shadow, PageOrder::ShadowEvenOdd];

    /// The names of the orders, as in [`PageOrder::ALL`].
    pub const NAMES: [&'static str; 3] = ["consecutive", "shadow", "shadow-even-odd"];

    /// Returns the order with this name, or `None` if no order has this name.
    pub fn parse(name: &str) -> Option<PageOrder> {
        let at = PageOrder::NAMES.iter().position(|&known| known == name)?;
        Some(PageOrder::ALL[at])
    }

    /// Returns the name of the order.
    pub const fn name(self) -> &'static str {
        PageOrder::NAMES[self as usize]
    }

    /// Returns the number of word lines by which each kind of page is behind the lower pages, and
    /// the number of pages of a kind on each word line. Returns `None` if no such order was
    /// published for the cell.
    pub(crate) fn delays(self, cell: Cell) -> Option<(&'static [u32], u32)> {
        match (self, cell) {
            (PageOrder::Shadow, Cell::Mlc) => Some((&[0, 1], 1)),
            (PageOrder::ShadowEvenOdd, Cell::Mlc) => Some((&[0, 1], 2)),
            (PageOrder::ShadowEvenOdd, Cell::Tlc) => Some((&[0, 2, 3], 2)),
            (PageOrder::ShadowEvenOdd, Cell::Qlc) => Some((&[0, 2, 3, 4], 2)),
            _ => None,
        }
    }

    /// Returns every page of a block in this order. The block must consist of whole word lines.
    pub(crate) fn pages(self, pages: u32, delays: &[u32], of_a_kind: u32) -> Vec<PageOfLine> {
        let lines = pages / (delays.len() as u32 * of_a_kind);
        let last = delays.last().copied().unwrap_or(0);
        let mut order = Vec::with_capacity(pages as usize);
        for step in 0..lines + last {
            for (level, &delay) in (0u8..).zip(delays) {
                let Some(line) = step.checked_sub(delay).filter(|&line| line < lines) else {
                    continue;
                };
                order.extend((0..of_a_kind).map(|n| (line * of_a_kind + n, level)));
            }
        }
        order
    }
}

/// The cells that a page is stored in (a number for each word line, or for each half of it), and
/// the kind of the page.
pub(crate) type PageOfLine = (u32, u8);

/// The kinds and the shared cells of the pages of a block, for orders that are not consecutive.
#[derive(Clone, Debug)]
pub(crate) struct PageTable {
    kinds: Vec<u8>,
    /// For each page, the word line that it lies on.
    pub lines: Vec<u32>,
    /// Number of pages of a kind on each word line.
    pub of_a_kind: u32,
    /// For each page, the earlier pages of the same cells. A lower page has none.
    pub shared: Vec<[u32; SHARED_MAX]>,
}

impl PageTable {
    pub fn new(order: &[PageOfLine], of_a_kind: u32) -> PageTable {
        let cells = order.iter().map(|&(cells, _)| cells as usize + 1).max().unwrap_or(0);
        let mut of_cells = vec![[0; SHARED_MAX]; cells];
        let mut shared = Vec::with_capacity(order.len());
        for (page, &(cells, level)) in (0..).zip(order) {
            let earlier = &mut of_cells[cells as usize];
            shared.push(*earlier);
            if let Some(place) = earlier.get_mut(level as usize) {
                *place = page;
            }
        }
        PageTable {
            kinds: order.iter().map(|&(_, level)| level).collect(),
            lines: order.iter().map(|&(cells, _)| cells / of_a_kind).collect(),
            of_a_kind,
            shared,
        }
    }

    #[inline]
    pub fn level(&self, page: u32) -> u8 {
        self.kinds[page as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllocationOrder, BlockId, BlockMode, Geometry, Layout, ProgramUnit, Span};

    fn layout(cell: Cell, pages: u32, of: ProgramUnit) -> Layout {
        let geometry = Geometry {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 4,
            pages,
            page_bytes: 2048,
            spare_bytes: 64,
            cell,
        };
        let order = AllocationOrder::parse("CWDP").unwrap();
        Layout::of_frames(geometry, Span::ONE, 2048, order, 10, of).unwrap()
    }

    fn ordered(cell: Cell, pages: u32, order: PageOrder) -> Layout {
        layout(cell, pages, ProgramUnit::Page).in_page_order(order).unwrap()
    }

    fn level(layout: &Layout, page: u32) -> u8 {
        layout.level_in(BlockMode::Native, page)
    }

    fn before(layout: &Layout, page: u32) -> Vec<u32> {
        let block = BlockId(2);
        let frames = layout.paired_before(layout.frame_in(block, page));
        frames.map(|frame| layout.index_in(block, frame)).collect()
    }

    /// Each order is a bijection between pages and pairs of cells and kind, and a page comes after
    /// the lower pages of its cells.
    #[test]
    fn an_order_visits_each_kind_of_each_word_line_once() {
        let mut tried = 0;
        for order in PageOrder::ALL {
            for cell in [Cell::Slc, Cell::Mlc, Cell::Tlc, Cell::Qlc] {
                if order != PageOrder::Consecutive && order.delays(cell).is_none() {
                    continue;
                }
                for lines in [1, 2, 3, 5, 32] {
                    tried += 1;
                    let bits = u32::from(cell.levels());
                    let layout = ordered(cell, 2 * bits * lines, order);
                    let mut words: Vec<Vec<u32>> = Vec::new();
                    for page in 0..layout.frames_per_block {
                        let earlier = before(&layout, page);
                        assert_eq!(earlier.len(), usize::from(level(&layout, page)), "{order:?}");
                        if earlier.is_empty() {
                            words.push(vec![page]);
                        } else {
                            // the cells were programmed up to the kind just below
                            let of = words.iter_mut().find(|word| **word == earlier);
                            of.expect("no other page came between").push(page);
                        }
                    }
                    assert_eq!(words.len() as u32, 2 * lines, "{order:?} {cell:?}");
                    assert!(words.iter().all(|word| word.len() as u32 == bits), "{order:?}");
                    assert!(words.is_sorted(), "a kind visits the word lines in order");
                }
            }
        }
        assert_eq!(tried, 5 * (4 + 1 + 3));
    }

    #[test]
    fn consecutive_pages_share_a_word_line_unless_told_otherwise() {
        let tlc = layout(Cell::Tlc, 9, ProgramUnit::Page);
        let found: Vec<Vec<u32>> = (3..7).map(|page| before(&tlc, page)).collect();
        assert_eq!(found, [vec![], vec![3], vec![3, 4], vec![]]);
        let lines = layout(Cell::Tlc, 9, ProgramUnit::WordLine);
        assert!((0..3).all(|frame| before(&lines, frame).is_empty()));
    }

    /// `dist3_pairing_scheme` of Linux (drivers/mtd/nand/raw/nand_base.c): pair 0 is pages 0 and 2,
    /// and the upper page of the last pair is the last page.
    #[test]
    fn shadow_order_has_the_pairs_of_linux() {
        let layout = ordered(Cell::Mlc, 256, PageOrder::Shadow);
        let pairs = [(0, 2), (1, 4), (3, 6), (5, 8), (251, 254), (253, 255)];
        for (lower, upper) in pairs {
            assert_eq!(before(&layout, upper), [lower]);
            assert_eq!((level(&layout, lower), level(&layout, upper)), (0, 1));
        }
    }

    /// The first, middle and last rows of the table of paired pages of K9GAG08U0M, in hexadecimal.
    #[test]
    fn even_and_odd_pages_of_mlc_pair_as_in_the_data_sheet() {
        let layout = ordered(Cell::Mlc, 128, PageOrder::ShadowEvenOdd);
        let pairs = [
            (0x00, 0x04),
            (0x01, 0x05),
            (0x02, 0x08),
            (0x03, 0x09),
            (0x06, 0x0c),
            (0x07, 0x0d),
            (0x0a, 0x10),
            (0x76, 0x7c),
            (0x77, 0x7d),
            (0x7a, 0x7e),
            (0x7b, 0x7f),
        ];
        for (lower, upper) in pairs {
            assert_eq!(before(&layout, upper), [lower], "page {upper:#x}");
        }
    }

    /// FEMU and SimpleSSD: pages 0 to 5 are lower and 6 and 7 middle; from page 8 on, two pages of
    /// each kind follow each other.
    #[test]
    fn kinds_of_tlc_are_those_of_two_other_simulators() {
        let layout = ordered(Cell::Tlc, 192, PageOrder::ShadowEvenOdd);
        // near the end of a block no lower pages are left; the formulas of FEMU and SimpleSSD do
        // not cover this part
        for page in 0..180 {
            let kind = match page {
                0..=5 => 0,
                6 | 7 => 1,
                _ => ((page - 8) / 2 % 3) as u8,
            };
            assert_eq!(level(&layout, page), kind, "page {page}");
        }
        // by hand: word lines 0, 1, 2 are lower pages 0/1, 2/3, 4/5; middle pages 6/7, 10/11
        assert_eq!((before(&layout, 12), before(&layout, 19)), (vec![0, 6], vec![3, 11]));
    }

    /// FEMU's table of QLC: lower 0 to 5, 8, 9; lower middle 6, 7, 10, 11; upper middle 12, 13;
    /// from page 14 on, two pages of each kind follow each other.
    #[test]
    fn kinds_of_qlc_are_those_of_femu() {
        let layout = ordered(Cell::Qlc, 256, PageOrder::ShadowEvenOdd);
        let kinds: Vec<u8> = (0..22).map(|page| level(&layout, page)).collect();
        assert_eq!(kinds, [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 3, 3]);
        // word line 0: lower 0, lower middle 6, upper middle 12, top 20
        assert_eq!(before(&layout, 20), [0, 6, 12]);
    }

    /// By hand: the first pages of three word lines, as each order programs them.
    #[test]
    fn each_page_lies_on_a_word_line() {
        use BlockMode::{Native, Slc};
        let lines = |layout: &Layout, mode, pages: u32| -> Vec<u32> {
            (0..pages).map(|page| layout.word_line(mode, page)).collect()
        };
        let tlc = layout(Cell::Tlc, 9, ProgramUnit::Page);
        assert_eq!(lines(&tlc, Native, 9), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!((lines(&tlc, Slc, 3), tlc.word_lines()), (vec![0, 1, 2], 3));
        let whole = layout(Cell::Tlc, 9, ProgramUnit::WordLine);
        assert_eq!((lines(&whole, Native, 3), whole.word_lines()), (vec![0, 1, 2], 3));
        assert_eq!(lines(&whole, Slc, 3), [0, 1, 2]);
        // lower pages run one word line ahead: L0 L1 U0 L2 U1 U2
        let shadow = ordered(Cell::Mlc, 6, PageOrder::Shadow);
        assert_eq!(lines(&shadow, Native, 6), [0, 1, 0, 2, 1, 2]);
        // the same, with an even and an odd page of each kind; a block in SLC mode has both, too
        let twice = ordered(Cell::Mlc, 12, PageOrder::ShadowEvenOdd);
        assert_eq!(lines(&twice, Native, 12), [0, 0, 1, 1, 0, 0, 2, 2, 1, 1, 2, 2]);
        assert_eq!((lines(&twice, Slc, 6), twice.word_lines()), (vec![0, 0, 1, 1, 2, 2], 3));
        // a block that is no whole number of word lines ends with a part of one
        assert_eq!(layout(Cell::Tlc, 8, ProgramUnit::Page).word_lines(), 3);
    }

    #[test]
    fn what_has_no_order_is_refused_by_name() {
        let refused = |cell, pages, of, order| {
            layout(cell, pages, of).in_page_order(order).map(|_| ()).unwrap_err()
        };
        let tlc = refused(Cell::Tlc, 24, ProgramUnit::Page, PageOrder::Shadow);
        assert_eq!(tlc.key, "drive.page_order");
        assert_eq!(tlc.allowed, ["consecutive", "shadow-even-odd"]);
        let slc = refused(Cell::Slc, 24, ProgramUnit::Page, PageOrder::ShadowEvenOdd);
        assert_eq!((slc.key.as_str(), slc.allowed.len()), ("drive.page_order", 1));
        let line = refused(Cell::Mlc, 24, ProgramUnit::WordLine, PageOrder::Shadow);
        assert_eq!(line.key, "drive.page_order");
        let odd = refused(Cell::Mlc, 6, ProgramUnit::Page, PageOrder::ShadowEvenOdd);
        assert_eq!(odd.key, "drive.pages");
        assert!(odd.why.contains("multiple of 4"), "{odd}");
        for (order, name) in PageOrder::ALL.into_iter().zip(PageOrder::NAMES) {
            assert_eq!((PageOrder::parse(name), order.name()), (Some(order), name));
        }
    }
}
