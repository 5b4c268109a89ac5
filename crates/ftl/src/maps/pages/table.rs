//! The whole map as the simulator stores it, with the true place of every page. The parts that a
//! store has in memory and on flash are checked against this table.

use crate::maps::MapPage;
use flashatlas_nand::{MAP_HEADER_BYTES, MapContent, MapForm};
use flashatlas_types::{Base, Lpn, Ppn, PpnTable};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Bytes before the entries of a map page. A real drive would store them in the spare area.
pub(crate) const HEADER_BYTES: usize = MAP_HEADER_BYTES;

/// The age of a copy of a part of the map, as numbers of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The version. If there are two copies, the copy with the larger version is newer. Moving a
    /// copy does not change its version.
    pub version: u64,
    /// The last program whose change the copy contains.
    pub upto: u64,
    /// The last program up to which all changes survive, in every part of the map.
    pub replay_from: u64,
    /// `true` if the copy was written by a mount that had found lost pages of the map and had not
    /// rebuilt all of it yet. If the newest copy has this mark, the next mount continues that work.
    pub mending: bool,
}

/// The bit of the third number that stores [`Header::mending`].
const MENDING: u64 = 1 << 63;

impl Header {
    /// Returns the header as bytes: the three numbers, little-endian.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let third = self.replay_from | if self.mending { MENDING } else { 0 };
        for (at, number) in bytes.chunks_exact_mut(8).zip([self.version, self.upto, third]) {
            at.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Returns the header of a map page.
    pub fn of(content: MapContent<'_>) -> Header {
        Header::decode(match content {
            MapContent::Bytes(bytes) => bytes,
            MapContent::OfBase(page) => &page.header,
        })
    }

    /// Returns the header at the beginning of `bytes`.
    pub fn decode(bytes: &[u8]) -> Header {
        let number =
            |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Header {
            version: number(0),
            upto: number(8),
            replay_from: number(16) & !MENDING,
            mending: number(16) & MENDING != 0,
        }
    }
}

/// The entries of all logical pages, divided into map pages.
pub(crate) struct Table {
    entries: PpnTable,
    /// The number of entries of a map page.
    pub per_page: u32,
    entry_bytes: usize,
    shift: Option<u32>,
    /// The entries of each map page that were changed over a base, by their index in the page, in
    /// ascending order. Otherwise a write of a map page would have to look at all its entries.
    moved: FxHashMap<MapPage, Vec<u32>>,
}

impl Table {
    /// Builds a table of `pages` unmapped logical pages.
    pub fn new(pages: u32, per_page: u32, entry_bytes: u32) -> Table {
        let shift = per_page.is_power_of_two().then(|| per_page.trailing_zeros());
        Table {
            entries: PpnTable::new(pages),
            per_page,
            entry_bytes: entry_bytes as usize,
            shift,
            moved: FxHashMap::default(),
        }
    }

    /// Returns the logical pages whose entries are in a map page.
    pub fn lpns_of(&self, page: MapPage) -> std::ops::Range<u32> {
        let first = page.number() * self.per_page;
        first..first.saturating_add(self.per_page).min(self.len())
    }

    /// Returns the number of logical pages.
    pub fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Returns the number of map pages.
    pub fn pages(&self) -> u32 {
        self.len().div_ceil(self.per_page)
    }

    /// Returns the map pages, in ascending order.
    pub fn page_ids(&self) -> impl Iterator<Item = MapPage> + use<> {
        (0..self.pages()).map(MapPage::new)
    }

    /// Returns the map page that holds the entry of a logical page.
    #[inline]
    pub fn page_of(&self, lpn: Lpn) -> MapPage {
        MapPage::new(match self.shift {
            Some(shift) => lpn.0 >> shift,
            None => lpn.0 / self.per_page,
        })
    }

    /// Returns the first logical page of a map page.
    pub fn first_of(&self, page: MapPage) -> Lpn {
        Lpn(page.number() * self.per_page)
    }

    /// Returns the index of a logical page's entry in its map page.
    #[inline]
    pub fn index_in(&self, page: MapPage, lpn: Lpn) -> u32 {
        lpn.0 - page.number() * self.per_page
    }

    /// Returns the entry of a logical page.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        self.entries.get(lpn)
    }

    /// Changes an entry; returns its old value.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        if self.entries.lies_over_base() {
            self.note_moved(lpn);
        }
        self.entries.replace(lpn, ppn)
    }

    #[inline(never)]
    fn note_moved(&mut self, lpn: Lpn) {
        let page = self.page_of(lpn);
        let index = self.index_in(page, lpn);
        let moved = self.moved.entry(page).or_default();
        if let Err(at) = moved.binary_search(&index) {
            moved.insert(at, index);
        }
    }

    /// Returns the logical pages of a map page.
    pub fn lpns(&self, page: MapPage) -> std::ops::Range<u32> {
        let number = page.number();
        number * self.per_page..((number + 1) * self.per_page).min(self.len())
    }

    /// Returns the entries of a map page. The last map page may have fewer entries.
    pub fn entries(&self, page: MapPage) -> impl ExactSizeIterator<Item = Ppn> + '_ {
        self.entries.range(self.lpns(page))
    }

    /// Appends the entries of a map page as bytes ([`MapForm::encode`]).
    pub fn encode(&self, page: MapPage, out: &mut Vec<u8>) {
        let (per_page, entry_bytes) = (self.per_page, self.entry_bytes as u32);
        MapForm { per_page, entry_bytes, slots: 1 }.encode(self.entries(page), out);
    }

    /// Lays the table over a base. No earlier entry is kept.
    pub fn lay(&mut self, base: Arc<Base>) {
        self.entries.lay(base);
        self.moved.clear();
    }

    /// Returns the entries of a map page that were changed since the table was laid over its base,
    /// by their index in the page, in ascending order. Returns `None` without a base.
    pub fn moved(&self, page: MapPage) -> Option<impl ExactSizeIterator<Item = (u32, Ppn)> + '_> {
        let first = self.first_of(page).0;
        let moved = self.moved.get(&page).map_or(&[][..], Vec::as_slice);
        let moved = moved.iter().map(move |&index| (index, self.get(Lpn(first + index))));
        self.entries.lies_over_base().then_some(moved)
    }

    /// Returns all entries to be looked at.
    pub fn entries_of_all(&self) -> &PpnTable {
        &self.entries
    }

    /// Returns all entries to be changed.
    pub fn entries_mut(&mut self) -> &mut PpnTable {
        &mut self.entries
    }

    /// Returns entry number `index` of the bytes that [`Table::encode`] made.
    #[inline]
    pub fn decode(&self, bytes: &[u8], index: u32) -> Ppn {
        let at = index as usize * self.entry_bytes;
        Ppn(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
    }

    /// Restores all entries of a map page from the bytes that [`Table::encode`] made.
    pub fn restore(&mut self, page: MapPage, bytes: &[u8]) {
        for (index, lpn) in self.lpns(page).enumerate() {
            self.entries.replace(Lpn(lpn), self.decode(bytes, index as u32));
        }
    }

    /// Returns the number of bytes of the entries of one map page.
    pub fn page_bytes(&self) -> u32 {
        self.per_page * self.entry_bytes as u32
    }

    /// Returns the length of the entries of one map page, in bytes.
    pub fn page_len(&self) -> usize {
        self.per_page as usize * self.entry_bytes
    }

    /// Returns the number of bytes of all entries in the drive's memory.
    pub fn bytes(&self) -> u64 {
        u64::from(self.entries.len()) * self.entry_bytes as u64
    }
}
