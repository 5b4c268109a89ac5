//! Tables for Python. Their columns are the bytes of Arrow buffers.

use flashatlas_sim::{Column, Table};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Column of a table: name, type, buffer (little-endian), and words of a dictionary.
///
/// The type is `int64`, `float64` (NaN for a missing value) or `dictionary` (with `uint8` indices).
pub type PyColumn<'py> = (String, &'static str, Bound<'py, PyBytes>, Vec<&'static str>);

/// Table: name and columns.
pub type PyTable<'py> = (&'static str, Vec<PyColumn<'py>>);

pub fn to_python<'py>(py: Python<'py>, tables: &[Table]) -> Vec<PyTable<'py>> {
    let column = |(name, column): &(String, Column)| -> PyColumn<'py> {
        let (kind, bytes, words) = match column {
            Column::Int(values) => {
                ("int64", values.iter().flat_map(|v| v.to_le_bytes()).collect(), vec![])
            }
            Column::Float(values) => {
                ("float64", values.iter().flat_map(|v| v.to_le_bytes()).collect(), vec![])
            }
            Column::Words { of, codes } => ("dictionary", codes.clone(), of.clone()),
        };
        (name.clone(), kind, PyBytes::new(py, &bytes), words)
    };
    tables.iter().map(|table| (table.name, table.columns.iter().map(column).collect())).collect()
}
