//! Tables of policies that learn: two tables by page and a log of events. The policy writes the
//! tables.
//!
//! The log contains the events since the policy last changed the tables.

use super::arrays::{Bytes, Longs, PyArray, Words};
use pyo3::prelude::*;

/// The tables and the log of one policy, for Python.
#[pyclass(frozen, name = "Tables")]
pub struct PyTables {
    /// Number of pages, each with an element in the tables.
    #[pyo3(get)]
    pages: u32,
    tables: [Bytes; 2],
    log: (Words, Longs),
}

#[pymethods]
impl PyTables {
    /// Returns the two tables, with an element for each page.
    #[getter]
    fn tables(&self) -> [PyArray; 2] {
        self.tables.each_ref().map(Bytes::shared)
    }

    /// Returns the last events: an array of pages, and an array with a number for each page.
    #[getter]
    fn log(&self) -> [PyArray; 2] {
        [self.log.0.shared(), self.log.1.shared()]
    }
}

/// The tables and the log of one policy, for Rust.
///
/// If `batch` is 0, the tables and the log are empty, and the policy is asked every time.
pub struct Learning {
    tables: [Bytes; 2],
    log: (Words, Longs),
    batch: usize,
    logged: usize,
}

impl Learning {
    /// Returns tables for `pages` pages, filled with `first`, and a log of `batch` events.
    pub fn new(pages: u32, first: [u8; 2], batch: usize) -> Learning {
        let by_page = if batch > 0 { pages as usize } else { 0 };
        Learning {
            tables: first.map(|value| Bytes::of(value, by_page)),
            log: (Words::of(0, batch), Longs::of(0, batch)),
            batch,
            logged: 0,
        }
    }

    /// Returns the tables and the log for Python. They share memory with this object.
    pub fn shown(&self, pages: u32) -> PyTables {
        PyTables { pages, tables: self.tables.clone(), log: self.log.clone() }
    }

    /// Returns `true` if the policy is asked every time.
    pub fn is_asked(&self) -> bool {
        self.batch == 0
    }

    /// Logs an event of a page, and returns `true` if the policy must change its tables now.
    pub fn hear(&mut self, page: u32, number: u64) -> bool {
        self.log.0.set(self.logged, page);
        self.log.1.set(self.logged, number);
        self.logged = (self.logged + 1) % self.batch;
        self.logged == 0
    }

    /// Returns the entry of a page in one of the tables.
    pub fn of(&self, table: usize, page: u32) -> u32 {
        self.tables[table].get(page as usize).into()
    }
}
