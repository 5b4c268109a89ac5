//! The LPMT. A key selects a primary set of entries. Secondary sets extend primary sets that are
//! full.

use super::pack::{Reader, Writer};
use super::{BlockTables, Location, Memory, Pn, TableShape};
use crate::LookupError;

/// Value for no set.
pub(super) const NONE: u32 = u32::MAX;

/// Result of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchResult {
    /// The entry.
    At(Location),
    /// No entry was found.
    Nowhere {
        /// The first free place for an entry in the chain, if there is one.
        free: Option<Location>,
        /// The last set of the chain.
        tail: u32,
    },
}

/// Primary and secondary table.
#[derive(Clone, Debug)]
pub struct Lpmt {
    shape: TableShape,
    /// Entries with LA, PN, V and S from the lowest bit on. An invalid entry is 0.
    entries: Vec<u64>,
    /// NSid of each set, as the number of a set in both tables.
    next: Vec<u32>,
    /// PSid of each secondary set.
    previous: Vec<u32>,
    /// The first free secondary set. NSid links the free sets.
    free: u32,
    /// Number of secondary sets in use.
    pub secondary_used: u32,
    /// Numbers of entries in the primary and in the secondary table.
    pub used: [u64; 2],
    pn_shift: u32,
    valid: u64,
    single: u64,
}

impl Lpmt {
    /// Returns empty tables.
    pub fn new(shape: &TableShape) -> Lpmt {
        let (sets, secondary) = (shape.sets(), shape.secondary_sets);
        let all = sets + secondary;
        // the list of free secondary sets is in the order of their numbers
        let next =
            (0..all).map(|set| if set < sets || set + 1 == all { NONE } else { set + 1 }).collect();
        Lpmt {
            shape: *shape,
            entries: vec![0; all as usize * shape.ways as usize],
            next,
            previous: vec![NONE; secondary as usize],
            free: sets,
            secondary_used: 0,
            used: [0; 2],
            pn_shift: shape.la_bits,
            valid: 1 << (shape.la_bits + shape.pn_bits()),
            single: 1 << (shape.la_bits + shape.pn_bits() + 1),
        }
    }

    /// Returns the sizes of the tables and the widths of their fields.
    pub fn shape(&self) -> &TableShape {
        &self.shape
    }

    /// Returns the entries of a set.
    #[inline]
    pub(super) fn ways(&self, set: u32) -> &[u64] {
        let ways = self.shape.ways as usize;
        &self.entries[set as usize * ways..][..ways]
    }

    #[inline]
    fn entry(&mut self, at: Location) -> &mut u64 {
        &mut self.entries[at.set as usize * self.shape.ways as usize + at.way as usize]
    }

    /// Searches the chain of a key.
    #[inline]
    pub fn find(&self, key: u32, la: u32, memory: &mut impl Memory) -> SearchResult {
        let wanted = u64::from(la) | self.valid;
        let compared = (self.valid - 1) >> (self.shape.pn_bits()) | self.valid;
        let mut free = None;
        let mut set = key;
        loop {
            let ways = self.ways(set);
            // all ways are compared, as in hardware, because a branch predictor could not predict
            // the entry's way
            let hits = ways
                .iter()
                .rev()
                .fold(0u64, |hits, entry| hits << 1 | u64::from(entry & compared == wanted));
            if hits != 0 {
                let way = hits.trailing_zeros();
                memory.scan(set, Some(way));
                return SearchResult::At(Location { set, way });
            }
            memory.scan(set, None);
            if free.is_none() {
                let way = ways.iter().position(|entry| entry & self.valid == 0);
                free = way.map(|way| Location { set, way: way as u32 });
            }
            match self.next[set as usize] {
                NONE => return SearchResult::Nowhere { free, tail: set },
                next => set = next,
            }
        }
    }

    /// Returns the page number and S of a valid entry.
    #[inline]
    pub fn get(&self, at: Location) -> (Pn, bool) {
        let entry = self.ways(at.set)[at.way as usize];
        debug_assert!(entry & self.valid != 0, "an invalid entry is read");
        (((entry & (self.valid - 1)) >> self.pn_shift) as Pn, entry & self.single != 0)
    }

    /// Returns the address of a valid entry.
    pub fn address(&self, at: Location) -> u32 {
        (self.ways(at.set)[at.way as usize] & ((1 << self.pn_shift) - 1)) as u32
    }

    /// Returns `true` if there is an entry.
    pub fn is_valid(&self, at: Location) -> bool {
        self.ways(at.set)[at.way as usize] & self.valid != 0
    }

    /// Inserts an entry of one page where the search for it ended, in a new secondary set if
    /// needed.
    ///
    /// # Errors
    /// Returns an error if the address is already there, or if a new set is needed and no set is
    /// free.
    pub(super) fn insert(
        &mut self,
        found: SearchResult,
        la: u32,
        pn: Pn,
        memory: &mut impl Memory,
    ) -> Result<Location, LookupError> {
        let at = match found {
            SearchResult::At(_) => return Err(LookupError::Exists { la }),
            SearchResult::Nowhere { free: Some(at), .. } => at,
            SearchResult::Nowhere { free: None, tail } => self.lengthen(tail, la, memory)?,
        };
        *self.entry(at) = u64::from(la) | u64::from(pn) << self.pn_shift | self.valid | self.single;
        self.used[self.table(at.set)] += 1;
        memory.store_entry(at);
        Ok(at)
    }

    fn lengthen(
        &mut self,
        tail: u32,
        la: u32,
        memory: &mut impl Memory,
    ) -> Result<Location, LookupError> {
        let set = self.free;
        if set >= self.shape.sets() + self.shape.secondary_sets {
            return Err(LookupError::Overflow { la, sets: self.shape.secondary_sets });
        }
        memory.scan(set, None); // NSid of a free set leads to the next free one
        self.free = std::mem::replace(&mut self.next[set as usize], NONE);
        self.next[tail as usize] = set;
        self.previous[(set - self.shape.sets()) as usize] = tail;
        self.secondary_used += 1;
        memory.store_entry(Location { set: tail, way: 0 });
        Ok(Location { set, way: 0 })
    }

    /// Returns 0 for a primary set, 1 for a secondary set.
    fn table(&self, set: u32) -> usize {
        usize::from(set >= self.shape.sets())
    }

    /// Clears an entry. If its secondary set is then empty, the set is freed. In dense chains, the
    /// last entry of the chain moves to the cleared place, and the row of its file's first page is
    /// updated.
    pub(super) fn remove(
        &mut self,
        at: Location,
        blocks: &mut BlockTables,
        memory: &mut impl Memory,
    ) {
        let mut last = at;
        if self.shape.dense && self.next[at.set as usize] != NONE {
            while let Some(next) = self.next(last.set) {
                last.set = next;
                memory.scan(next, None);
            }
            let way = self.ways(last.set).iter().rposition(|entry| entry & self.valid != 0);
            last.way = way.expect("a secondary set that is empty is freed") as u32;
            *self.entry(at) = *self.entry(last);
            memory.store_entry(at);
            let (pn, _) = self.get(at);
            blocks.make_first(pn, at);
            memory.store_row(pn);
        }
        *self.entry(last) = 0;
        self.used[self.table(last.set)] -= 1;
        memory.store_entry(last);
        if self.table(last.set) == 1
            && self.ways(last.set).iter().all(|entry| entry & self.valid == 0)
        {
            self.unlink(last.set, memory);
        }
    }

    /// Removes an empty secondary set from its chain.
    fn unlink(&mut self, set: u32, memory: &mut impl Memory) {
        let sets = self.shape.sets();
        let before = std::mem::replace(&mut self.previous[(set - sets) as usize], NONE);
        let after = std::mem::replace(&mut self.next[set as usize], self.free);
        self.next[before as usize] = after;
        memory.store_entry(Location { set: before, way: 0 });
        if after != NONE {
            self.previous[(after - sets) as usize] = before;
            memory.store_entry(Location { set: after, way: 0 });
        }
        self.free = set;
        self.secondary_used -= 1;
    }

    /// Sets or clears bit S of an entry.
    pub(super) fn set_single(&mut self, at: Location, single: bool) {
        let bit = self.single;
        let entry = self.entry(at);
        *entry = if single { *entry | bit } else { *entry & !bit };
    }

    /// Sets the first page of an entry.
    pub(super) fn set_pn(&mut self, at: Location, pn: Pn) {
        let (shift, fields) =
            (self.pn_shift, !(((self.valid - 1) >> self.pn_shift) << self.pn_shift));
        let entry = self.entry(at);
        *entry = *entry & fields | u64::from(pn) << shift;
    }

    /// Returns NSid of a set, or `None` at the end of its chain.
    pub fn next(&self, set: u32) -> Option<u32> {
        let next = self.next[set as usize];
        (next != NONE).then_some(next)
    }

    /// Returns PSid of a secondary set, or `None` while it is free.
    pub fn previous(&self, set: u32) -> Option<u32> {
        let previous = self.previous[(set - self.shape.sets()) as usize];
        (previous != NONE).then_some(previous)
    }

    /// Returns the free secondary sets, in order.
    pub(super) fn free_sets(&self) -> impl Iterator<Item = u32> {
        let end = self.shape.sets() + self.shape.secondary_sets;
        std::iter::successors(Some(self.free), |&set| self.next.get(set as usize).copied())
            .take_while(move |&s| s < end)
    }

    /// Returns the share of the entries that are in the primary table (Table IV), or 1 without
    /// entries.
    pub fn primary_share(&self) -> f64 {
        let all = self.used[0] + self.used[1];
        if all == 0 { 1.0 } else { self.used[0] as f64 / all as f64 }
    }

    /// Returns a set in the format of the hardware: its entries, then V and NSid and, for a
    /// secondary set, PSid.
    pub fn pack(&self, set: u32) -> Vec<u8> {
        let shape = &self.shape;
        let mut out = Writer::default();
        self.ways(set).iter().for_each(|&entry| out.put(entry, shape.entry_bits()));
        let secondary = set >= shape.sets();
        let next = self.next(set);
        out.put(u64::from(next.is_some()), 1);
        out.put(
            next.map_or(0, |next| u64::from(next - shape.sets())),
            shape.header_bits(false) - 1,
        );
        if secondary {
            out.put(self.previous(set).map_or(0, u64::from), 1 + shape.set_bits);
        }
        out.finish()
    }

    /// Returns the fields of a packed set: address, page number and S of each valid way, NSid, and
    /// PSid. Returns `None` if there are too few bytes.
    pub fn unpack(shape: &TableShape, secondary: bool, bytes: &[u8]) -> Option<Unpacked> {
        let mut fields = Reader::new(bytes);
        let mut ways = Vec::new();
        for _ in 0..shape.ways {
            let (la, pn) =
                (fields.take(shape.la_bits)? as u32, fields.take(shape.pn_bits())? as Pn);
            let (valid, single) = (fields.take(1)? == 1, fields.take(1)? == 1);
            ways.push(valid.then_some((la, pn, single)));
        }
        let linked = fields.take(1)? == 1;
        let next = fields.take(shape.header_bits(false) - 1)? as u32 + shape.sets();
        let previous = if secondary { Some(fields.take(1 + shape.set_bits)? as u32) } else { None };
        Some(Unpacked { ways, next: linked.then_some(next), previous })
    }
}

/// The fields of a packed set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unpacked {
    /// Address, first page and S of each valid way.
    pub ways: Vec<Option<(u32, Pn, bool)>>,
    /// The next set of the chain, as the number of a set in both tables.
    pub next: Option<u32>,
    /// The previous set of the chain, for a secondary set.
    pub previous: Option<u32>,
}
