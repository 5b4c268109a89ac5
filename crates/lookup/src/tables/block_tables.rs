//! The block tables. There is one table for each flash block, with one row for each page. Rows link
//! the pages of a file in both directions. The row of the first page points back to the LPMT entry.

use super::pack::Writer;
use super::{Location, Pn, TableShape};
use crate::LookupError;

const NONE: u32 = u32::MAX;

const VALID: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

#[derive(Clone, Copy, Debug)]
struct Row {
    /// The previous page of the file. For a first page, the place of its entry, which is a set and
    /// a way.
    ppid: u32,
    npid: u32,
    flags: u8,
}

const FREE: Row = Row { ppid: 0, npid: NONE, flags: 0 };

/// All block tables.
#[derive(Clone, Debug)]
pub struct BlockTables {
    shape: TableShape,
    row_bits: u32,
    way_bits: u32,
    rows: Vec<Row>,
    /// WP of each table, which is the number of its rows that were used since the last erase.
    write_pointer: Vec<u32>,
    /// Number of valid rows of each table.
    valid: Vec<u32>,
    /// The table that [`BlockTables::allocate`] fills.
    current: u32,
}

impl BlockTables {
    pub(super) fn new(shape: &TableShape) -> BlockTables {
        let tables = shape.block_tables as usize;
        BlockTables {
            shape: *shape,
            row_bits: shape.row_bits(),
            way_bits: shape.way_bits(),
            rows: vec![FREE; tables * shape.rows as usize],
            write_pointer: vec![0; tables],
            valid: vec![0; tables],
            current: 0,
        }
    }

    /// Returns the table and the row of a page.
    pub fn split(&self, pn: Pn) -> (u32, u32) {
        (pn >> self.row_bits, pn & ((1 << self.row_bits) - 1))
    }

    /// Returns the page of a row.
    pub fn page(&self, table: u32, row: u32) -> Pn {
        table << self.row_bits | row
    }

    fn index(&self, pn: Pn) -> usize {
        let (table, row) = self.split(pn);
        table as usize * self.shape.rows as usize + row as usize
    }

    fn row(&self, pn: Pn) -> &Row {
        &self.rows[self.index(pn)]
    }

    fn row_mut(&mut self, pn: Pn) -> &mut Row {
        let index = self.index(pn);
        &mut self.rows[index]
    }

    fn in_range(&self, pn: Pn) -> Result<(), LookupError> {
        let (table, row) = self.split(pn);
        if table < self.shape.block_tables && row < self.shape.rows {
            Ok(())
        } else {
            Err(LookupError::Row { pn, why: "lies beyond the block tables" })
        }
    }

    pub(super) fn is_free(&self, pn: Pn) -> Result<(), LookupError> {
        self.in_range(pn)?;
        match self.row(pn).flags & VALID {
            0 => Ok(()),
            _ => Err(LookupError::Row { pn, why: "already holds a page" }),
        }
    }

    pub(super) fn is_used(&self, pn: Pn) -> Result<(), LookupError> {
        self.in_range(pn)?;
        match self.row(pn).flags & VALID {
            0 => Err(LookupError::Row { pn, why: "holds no page" }),
            _ => Ok(()),
        }
    }

    pub(super) fn is_last(&self, pn: Pn) -> Result<(), LookupError> {
        self.is_used(pn)?;
        match self.row(pn).flags & LAST {
            0 => Err(LookupError::Row { pn, why: "is not the last page of its file" }),
            _ => Ok(()),
        }
    }

    /// Returns `true` if a row holds a page.
    pub fn is_valid(&self, pn: Pn) -> bool {
        self.is_used(pn).is_ok()
    }

    /// Returns NPid, which is the next page of the file, or `None` after the last page.
    pub fn next(&self, pn: Pn) -> Option<Pn> {
        let row = self.row(pn);
        (row.flags & LAST == 0).then_some(row.npid)
    }

    /// Returns PPid of a page: the previous page of the file. Returns `None` for a first page.
    pub fn previous(&self, pn: Pn) -> Option<Pn> {
        let row = self.row(pn);
        (row.flags & FIRST == 0).then_some(row.ppid)
    }

    /// Returns PPid of a first page: the place of its entry. Returns `None` for any other page.
    pub fn location(&self, pn: Pn) -> Option<Location> {
        let row = self.row(pn);
        let way_mask = (1 << self.way_bits) - 1;
        (row.flags & FIRST != 0)
            .then(|| Location { set: row.ppid >> self.way_bits, way: row.ppid & way_mask })
    }

    fn ppid(&self, at: Location) -> u32 {
        at.set << self.way_bits | at.way
    }

    fn put(&mut self, pn: Pn, row: Row) {
        let (table, number) = self.split(pn);
        *self.row_mut(pn) = row;
        self.valid[table as usize] += 1;
        let pointer = &mut self.write_pointer[table as usize];
        *pointer = (*pointer).max(number + 1);
    }

    /// Begins a file of one page.
    pub(super) fn put_first(&mut self, pn: Pn, at: Location) {
        let ppid = self.ppid(at);
        self.put(pn, Row { ppid, npid: NONE, flags: VALID | FIRST | LAST });
    }

    /// Appends page `pn` after page `last`.
    pub(super) fn append(&mut self, last: Pn, pn: Pn) {
        let row = self.row_mut(last);
        row.npid = pn;
        row.flags &= !LAST;
        self.put(pn, Row { ppid: last, npid: NONE, flags: VALID | LAST });
    }

    /// Links the file that begins at `first` after page `last`.
    pub(super) fn link(&mut self, last: Pn, first: Pn) {
        let row = self.row_mut(last);
        row.npid = first;
        row.flags &= !LAST;
        let row = self.row_mut(first);
        row.ppid = last;
        row.flags &= !FIRST;
    }

    pub(super) fn copy(&mut self, old: Pn, new: Pn) {
        let row = *self.row(old);
        self.put(new, row);
    }

    pub(super) fn make_first(&mut self, pn: Pn, at: Location) {
        let ppid = self.ppid(at);
        let row = self.row_mut(pn);
        row.ppid = ppid;
        row.flags |= FIRST;
    }

    pub(super) fn make_last(&mut self, pn: Pn) {
        let row = self.row_mut(pn);
        row.npid = NONE;
        row.flags |= LAST;
    }

    pub(super) fn set_next(&mut self, pn: Pn, next: Pn) {
        self.row_mut(pn).npid = next;
    }

    pub(super) fn set_previous(&mut self, pn: Pn, previous: Pn) {
        self.row_mut(pn).ppid = previous;
    }

    pub(super) fn clear(&mut self, pn: Pn) {
        let (table, _) = self.split(pn);
        *self.row_mut(pn) = FREE;
        self.valid[table as usize] -= 1;
    }

    /// Returns the number of valid rows of a table.
    pub fn valid_rows(&self, table: u32) -> u32 {
        self.valid[table as usize]
    }

    /// Returns WP of a table.
    pub fn write_pointer(&self, table: u32) -> u32 {
        self.write_pointer[table as usize]
    }

    /// Notes that the flash block of a table was erased. Its rows can then be used again, from the
    /// first on.
    ///
    /// # Panics
    /// Panics if a row is still valid.
    pub fn erase(&mut self, table: u32) {
        assert!(
            self.valid[table as usize] == 0,
            "block {table} is erased while its table links pages"
        );
        self.write_pointer[table as usize] = 0;
    }

    /// Returns the next page to write: the row at WP of the current table. Returns `None` if no row
    /// is free.
    ///
    /// If the current table is full, a table without valid rows is erased and becomes the current
    /// table. (The paper leaves the choice open.)
    pub fn allocate(&mut self) -> Option<Pn> {
        if self.write_pointer[self.current as usize] == self.shape.rows {
            let tables = self.shape.block_tables;
            let empty = (1..=tables)
                .map(|i| (self.current + i) % tables)
                .find(|&t| self.valid[t as usize] == 0)?;
            self.erase(empty);
            self.current = empty;
        }
        Some(self.page(self.current, self.write_pointer[self.current as usize]))
    }

    /// Returns a row in the format of the hardware: V, F, L, PPid, NPid.
    pub fn pack(&self, pn: Pn) -> Vec<u8> {
        let row = self.row(pn);
        let mut out = Writer::default();
        [VALID, FIRST, LAST].iter().for_each(|flag| out.put(u64::from(row.flags & flag != 0), 1));
        out.put(u64::from(row.ppid), self.shape.ppid_bits());
        out.put(if row.npid == NONE { 0 } else { u64::from(row.npid) }, self.shape.pn_bits());
        out.finish()
    }

    /// Returns V, F and L of a row.
    pub(super) fn flags(&self, pn: Pn) -> [bool; 3] {
        [VALID, FIRST, LAST].map(|flag| self.row(pn).flags & flag != 0)
    }
}
