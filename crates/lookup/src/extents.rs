//! The tables of a drive, in which any page of an extent can be looked up.
//!
//! An extent is a file of the paper: logical pages that were written one after the other, within a
//! window of a few pages. The paper looks up only the beginning of a file, but a drive must also
//! find pages in the middle. Such a page is not in the LPMT. A bit map has one bit for each page,
//! which is set if an extent begins there. One burst of the bit map shows where the extent of a
//! page begins. The engine then looks up this beginning, and follows the links to the page.

use crate::LookupError;
use crate::tables::{Memory, Pn, SearchResult, Tables};
use flashatlas_types::Violation;

/// Reason why an operation of the tables cannot fail here. [`crate::tables::TableShape::holds_any`]
/// was checked, and the caller passes the right place of a page and a free place for it.
const ROOM: &str = "tables that hold any addresses, the right place of a page, and a free place";

/// Extents, whose pages can be looked up by any address.
pub struct Extents {
    /// The LPMT and the block tables.
    pub tables: Tables,
    /// Number of pages in a window, a power of two up to 64.
    window: u32,
    /// One bit for each page, which is set if an extent begins there.
    starts: Vec<u64>,
    /// The page that was written last. The next page may continue its extent.
    written: Option<u32>,
    /// Counts so far.
    pub counts: Counts,
}

/// Result of looking up a page.
struct Searched {
    /// Result of the search under the page's own address.
    own: SearchResult,
    pn: Option<Pn>,
    /// `true` if a second search looked for the beginning of the page's extent.
    second: bool,
    /// Number of links of block tables that were followed.
    walked: u64,
}

/// Counts of the work that extents cost in addition to the first search.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Searches for the beginning of an extent, after the search for the page itself had failed.
    pub second_searches: u64,
    /// Number of links of block tables that were followed.
    pub walked: u64,
    /// Number of written pages that continued the extent of the page before them.
    pub continued: u64,
}

impl Extents {
    /// Returns extents in which no page is mapped.
    pub fn new(tables: Tables, pages: u32, window: u32) -> Extents {
        assert!(
            window.is_power_of_two() && window <= 64,
            "windows that words of 64 bits divide into"
        );
        Extents {
            tables,
            window,
            starts: vec![0; pages.div_ceil(64) as usize],
            written: None,
            counts: Counts::default(),
        }
    }

    /// Returns the number of bytes of the bit map, or 0 if every page is an extent.
    pub fn bitmap_bytes(&self) -> u64 {
        if self.window > 1 { self.starts.len() as u64 * 8 } else { 0 }
    }

    /// Returns `true` if two pages may belong to one extent.
    pub fn share_window(&self, a: u32, b: u32) -> bool {
        a / self.window == b / self.window
    }

    fn starts_at(&self, la: u32) -> bool {
        self.starts[la as usize / 64] >> (la % 64) & 1 == 1
    }

    fn set_start(&mut self, la: u32, starts: bool, memory: &mut impl Memory) {
        let word = &mut self.starts[la as usize / 64];
        *word = *word & !(1 << (la % 64)) | u64::from(starts) << (la % 64);
        if self.window > 1 {
            memory.store_start(la);
        }
    }

    /// Returns the beginning of the last extent before a page in the same window, or `None` if no
    /// extent begins there.
    fn start_before(&self, la: u32) -> Option<u32> {
        let before = self.starts[la as usize / 64] & ((1u64 << (la % 64)) - 1);
        let start = la / 64 * 64 + 63u32.checked_sub(before.leading_zeros())?;
        self.share_window(start, la).then_some(start)
    }

    fn find(&self, la: u32, memory: &mut impl Memory) -> Searched {
        let own = self.tables.search(la, memory);
        let mut searched = Searched { own, pn: None, second: false, walked: 0 };
        if let SearchResult::At(at) = own {
            searched.pn = Some(self.tables.lpmt.get(at).0);
            return searched;
        }
        if self.window == 1 {
            return searched;
        }
        memory.load_starts(la);
        let Some(start) = self.start_before(la) else { return searched };
        searched.second = true;
        let hit = self.tables.lookup(start, memory).expect("an extent begins where its bit is set");
        let mut at = Some(hit.pn).filter(|_| !hit.single);
        for _ in start..la {
            let Some(pn) = at else { return searched };
            searched.walked += 1;
            at = self.tables.next_page(pn, memory);
        }
        searched.pn = at;
        searched
    }

    /// Returns the place of a page, without counting anything.
    pub fn peek(&self, la: u32) -> Option<Pn> {
        self.find(la, &mut ()).pn
    }

    /// Looks up a page by its own address. If this fails and extents may have several pages, looks
    /// up the beginning of its extent. Returns `None` if neither search finds the page.
    pub fn lookup(&mut self, la: u32, memory: &mut impl Memory) -> Option<Pn> {
        self.search(la, memory).pn
    }

    fn search(&mut self, la: u32, memory: &mut impl Memory) -> Searched {
        let searched = self.find(la, memory);
        self.counts.second_searches += u64::from(searched.second);
        self.counts.walked += searched.walked;
        searched
    }

    /// Returns the next page of the extent, or `None` after the last page.
    pub fn next_page(&mut self, pn: Pn, memory: &mut impl Memory) -> Option<Pn> {
        self.counts.walked += 1;
        self.tables.next_page(pn, memory)
    }

    /// Notes that a page was written to `pn` or, with `None`, is no longer mapped. Returns its
    /// earlier place.
    ///
    /// With `links`, the page may continue the extent of the page before it, if that page was
    /// written last.
    pub fn write(
        &mut self,
        la: u32,
        pn: Option<Pn>,
        links: bool,
        memory: &mut impl Memory,
    ) -> Option<Pn> {
        let Searched { own, pn: old, .. } = self.search(la, memory);
        match (old, pn) {
            (None, None) => {}
            (Some(old), None) => self.remove(la, old, memory),
            (Some(old), Some(new)) => {
                self.tables.relocate(old, new, memory).expect(ROOM);
                if self.tables.blocks.location(new).is_some()
                    && let Some(last) = self.continued(la, links)
                {
                    self.tables.join(last, new, memory).expect(ROOM);
                    self.set_start(la, false, memory);
                }
            }
            (None, Some(new)) => match self.continued(la, links) {
                Some(last) => self.tables.extend(last, new, memory).expect(ROOM),
                None => {
                    self.tables.insert_where(own, la, new, memory).expect(ROOM);
                    self.set_start(la, true, memory);
                }
            },
        }
        self.written = pn.map(|_| la);
        old
    }

    fn remove(&mut self, la: u32, pn: Pn, memory: &mut impl Memory) {
        let first = self.tables.blocks.location(pn).is_some();
        let follows = self.tables.blocks.next(pn).is_some();
        self.tables.drop_page(pn, la + 1, memory).expect(ROOM);
        if first {
            self.set_start(la, false, memory);
        }
        if follows {
            self.set_start(la + 1, true, memory);
        }
    }

    /// Returns the last page of the extent that page `la` continues, or `None` if the page begins
    /// an extent.
    fn continued(&mut self, la: u32, links: bool) -> Option<Pn> {
        let before = la.checked_sub(1)?;
        if !links || self.written != Some(before) || !self.share_window(before, la) {
            return None;
        }
        // the engine has just written this page, so the search takes no time
        let last = self.peek(before)?;
        let ends = self.tables.blocks.next(last).is_none();
        self.counts.continued += u64::from(ends);
        ends.then_some(last)
    }

    /// Moves a page from `old` to `new`. Its neighbours and its entry are found by the links at
    /// `old`.
    ///
    /// # Errors
    /// Returns the errors of [`Tables::relocate`].
    pub fn relocate(
        &mut self,
        old: Pn,
        new: Pn,
        memory: &mut impl Memory,
    ) -> Result<(), LookupError> {
        self.tables.relocate(old, new, memory)
    }

    /// Ends the current extent, so that the next written page begins a new extent.
    pub fn pause(&mut self) {
        self.written = None;
    }

    /// Checks the rules of the tables and of the bit map.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check(&self) -> Result<(), Violation> {
        self.tables.check()?;
        let lpmt = &self.tables.lpmt;
        let begins = (0..self.starts.len() as u32 * 64).filter(|&la| self.starts_at(la));
        let (mut found, mut bits) = (0, 0);
        for la in begins {
            bits += 1;
            found += u64::from(self.tables.lookup(la, &mut ()).is_some());
        }
        let entries = lpmt.used[0] + lpmt.used[1];
        Violation::unless(
            bits == found && found == entries,
            "the bit map marks the beginnings of extents",
            || format!("{bits} bits are set, but {found} of {entries} entries have their bit set"),
        )
    }
}
