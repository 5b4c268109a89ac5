//! Tables: results of a run that are too long for its record.
//!
//! A table has named columns of equal length.

/// The values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Column {
    /// Whole numbers.
    Int(Vec<i64>),
    /// Numbers; a missing number is NaN.
    Float(Vec<f64>),
    /// Words from a short list, by their numbers in the list.
    Words {
        /// The words.
        of: Vec<&'static str>,
        /// The number of each row's word.
        codes: Vec<u8>,
    },
}

impl Column {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Int(values) => values.len(),
            Column::Float(values) => values.len(),
            Column::Words { codes, .. } => codes.len(),
        }
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A table. See `docs/FORMATS.md` for the columns of each table.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The name of the table.
    pub name: &'static str,
    /// Columns in order.
    pub columns: Vec<(String, Column)>,
}

impl Table {
    /// Returns a table without columns.
    pub fn new(name: &'static str) -> Table {
        Table { name, columns: Vec::new() }
    }

    /// Adds a column.
    ///
    /// # Panics
    /// Panics if the column's length differs from the length of the columns before it.
    pub fn add(&mut self, name: impl Into<String>, column: Column) {
        let name = name.into();
        let rows = self.columns.first().map_or(column.len(), |(_, first)| first.len());
        assert!(
            rows == column.len(),
            "column {name} of table {} has {} rows instead of {rows}",
            self.name,
            column.len()
        );
        self.columns.push((name, column));
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Returns the column called `name`, if there is one.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, column)| column)
    }
}
