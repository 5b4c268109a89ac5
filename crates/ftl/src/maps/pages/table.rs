//! The map itself, whole, as the simulator knows it: where every page really is. What a store
//! has of it in memory, and what is on flash, is checked against this.

use flashatlas_types::{Lpn, Ppn, PpnTable};

/// Bytes before the entries of a map page: what the spare area of a real page would carry.
pub(crate) const HEADER_BYTES: usize = 24;

/// How new a copy of a part of the map is; numbers are those of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Of two copies the one with the larger number is newer; it stays as it is when the copy is
    /// moved.
    pub version: u64,
    /// The last program whose change the copy holds.
    pub upto: u64,
    /// The last program whose change survives, for every part of the map.
    pub replay_from: u64,
    /// Written by a mount that knew that pages of the map were lost, and had not put all of it
    /// together yet. Where the newest copy says so, the next mount takes it up again.
    pub mending: bool,
}

/// The bit of the third number that stands for [`Header::mending`].
const MENDING: u64 = 1 << 63;

impl Header {
    /// The header as bytes: the three numbers, little-endian.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let third = self.replay_from | if self.mending { MENDING } else { 0 };
        for (at, number) in bytes.chunks_exact_mut(8).zip([self.version, self.upto, third]) {
            at.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The header at the beginning of `bytes`.
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

/// The entries of all logical pages, cut into map pages.
pub(crate) struct Table {
    entries: PpnTable,
    /// Entries of a map page.
    pub per_page: u32,
    entry_bytes: usize,
    shift: Option<u32>,
}

impl Table {
    /// `pages` logical pages that are nowhere.
    pub fn new(pages: u32, per_page: u32, entry_bytes: u32) -> Table {
        let shift = per_page.is_power_of_two().then(|| per_page.trailing_zeros());
        Table { entries: PpnTable::new(pages), per_page, entry_bytes: entry_bytes as usize, shift }
    }

    /// The logical pages whose entries are in a map page.
    pub fn lpns_of(&self, page: u32) -> std::ops::Range<u32> {
        let first = page * self.per_page;
        first..first.saturating_add(self.per_page).min(self.len())
    }

    /// Logical pages.
    pub fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Map pages.
    pub fn pages(&self) -> u32 {
        self.len().div_ceil(self.per_page)
    }

    /// The map page that holds the entry of a logical page.
    #[inline]
    pub fn page_of(&self, lpn: Lpn) -> u32 {
        match self.shift {
            Some(shift) => lpn.0 >> shift,
            None => lpn.0 / self.per_page,
        }
    }

    /// The entry of a logical page.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        self.entries.get(lpn)
    }

    /// Change an entry; returns what it was.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        self.entries.replace(lpn, ppn)
    }

    /// The logical pages of a map page.
    pub fn lpns(&self, page: u32) -> std::ops::Range<u32> {
        page * self.per_page..((page + 1) * self.per_page).min(self.len())
    }

    /// The entries of a map page; the last one may be short.
    pub fn entries(&self, page: u32) -> impl ExactSizeIterator<Item = Ppn> + '_ {
        self.entries.range(self.lpns(page))
    }

    /// Append the entries of a map page as bytes, little-endian, `map.entry_bytes` each; all ones
    /// for pages that are nowhere and for those beyond the end of the drive.
    pub fn encode(&self, page: u32, out: &mut Vec<u8>) {
        let entries = self.entries(page);
        let padding = std::iter::repeat_n(Ppn::NONE, self.per_page as usize - entries.len());
        let all = entries.chain(padding);
        if self.entry_bytes == 4 {
            out.extend(all.flat_map(|p| p.0.to_le_bytes()));
        } else {
            // the upper half is room for larger drives
            out.extend(all.flat_map(|p| {
                if p == Ppn::NONE { u64::MAX } else { u64::from(p.0) }.to_le_bytes()
            }));
        }
    }

    /// Entry number `index` of the bytes that [`Table::encode`] made.
    #[inline]
    pub fn decode(&self, bytes: &[u8], index: u32) -> Ppn {
        let at = index as usize * self.entry_bytes;
        Ppn(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
    }

    /// Take over all entries of a map page from such bytes.
    pub fn restore(&mut self, page: u32, bytes: &[u8]) {
        for (index, lpn) in self.lpns(page).enumerate() {
            self.entries.replace(Lpn(lpn), self.decode(bytes, index as u32));
        }
    }

    /// Bytes of the entries of one map page.
    pub fn page_bytes(&self) -> u32 {
        self.per_page * self.entry_bytes as u32
    }

    /// Bytes of all entries in the drive's memory.
    pub fn bytes(&self) -> u64 {
        u64::from(self.entries.len()) * self.entry_bytes as u64
    }
}
