//! Tables as Python takes them: each column as the bytes of an Arrow buffer.

use flashatlas_sim::{Column, Table};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Name of a column; `int64`, `float64` (absent: NaN) or `dictionary` (with `uint8` indices); its
/// buffer, little-endian; the words of a dictionary.
pub type PyColumn<'py> = (String, &'static str, Bound<'py, PyBytes>, Vec<&'static str>);

/// Name and columns.
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
