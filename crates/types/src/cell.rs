//! The bits of a cell, and the pages in the same cells that are programmed together.

/// The number of bits in a cell. It decides how many pages share a word line, and so how long
/// operations on a page take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// One bit: all pages are of the same kind.
    Slc,
    /// Two bits: lower and upper pages.
    Mlc,
    /// Three bits: lower, middle and upper pages.
    Tlc,
    /// Four bits: lower, middle, upper and top pages.
    Qlc,
}

impl Cell {
    /// Returns the number of kinds of page, 1 to 4.
    pub const fn levels(self) -> u8 {
        match self {
            Cell::Slc => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Qlc => 4,
        }
    }
}

/// The pages that one program writes on each of its planes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProgramUnit {
    /// One page.
    #[default]
    Page,
    /// All pages of a word line, in one shot. In SLC mode this is one page.
    WordLine,
}
