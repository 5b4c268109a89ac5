//! The native module of the package: the binding with the parts that come with the project.

use pyo3::prelude::*;

/// Returns the compiled core of FlashAtlas.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    flashatlas_python::populate(module, None)
}
