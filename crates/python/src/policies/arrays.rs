//! Arrays that Rust writes and numpy reads without a copy. A view in Python keeps the memory alive.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// Shared memory of one array.
#[derive(Clone)]
enum Shared {
    Bytes(Arc<[AtomicU8]>),
    Words(Arc<[AtomicU32]>),
    Longs(Arc<[AtomicU64]>),
}

/// An array for `numpy.asarray`; the resulting numpy array keeps this array alive.
#[pyclass(frozen, name = "Array")]
pub struct PyArray(Shared);

#[pymethods]
impl PyArray {
    /// Returns the address and the type of the array, in numpy's array interface (version 3).
    ///
    /// The policy may write only arrays of bytes.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (at, len, typestr, read_only) = match &self.0 {
            Shared::Bytes(all) => (all.as_ptr() as usize, all.len(), "|u1", false),
            Shared::Words(all) => (all.as_ptr() as usize, all.len(), "=u4", true),
            Shared::Longs(all) => (all.as_ptr() as usize, all.len(), "=u8", true),
        };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (len,))?;
        let native = if cfg!(target_endian = "little") { '<' } else { '>' };
        interface.set_item("typestr", typestr.replace('=', &native.to_string()))?;
        interface.set_item("data", (at, read_only))?;
        Ok(interface)
    }
}

/// Bytes, which a policy may write.
#[derive(Clone)]
pub struct Bytes(Arc<[AtomicU8]>);

/// Numbers of 32 bits.
#[derive(Clone)]
pub struct Words(Arc<[AtomicU32]>);

/// Numbers of 64 bits.
#[derive(Clone)]
pub struct Longs(Arc<[AtomicU64]>);

macro_rules! array {
    ($name:ident, $number:ty, $atomic:ident, $shared:ident) => {
        impl $name {
            /// Returns an array of `len` elements with the same value.
            pub fn of(value: $number, len: usize) -> $name {
                $name((0..len).map(|_| $atomic::new(value)).collect())
            }

            /// Returns the number of elements.
            #[allow(dead_code, reason = "not every kind of array uses this method")]
            pub fn len(&self) -> usize {
                self.0.len()
            }

            /// Returns the number at a place.
            #[inline]
            pub fn get(&self, at: usize) -> $number {
                self.0[at].load(Relaxed)
            }

            /// Writes a number to a place.
            #[allow(
                dead_code,
                reason = "an array that only Python writes does not use this method"
            )]
            #[inline]
            pub fn set(&self, at: usize, value: $number) {
                self.0[at].store(value, Relaxed);
            }

            /// Returns the array for Python. It shares memory with this object.
            pub fn shared(&self) -> PyArray {
                PyArray(Shared::$shared(self.0.clone()))
            }
        }
    };
}

array!(Bytes, u8, AtomicU8, Bytes);
array!(Words, u32, AtomicU32, Words);
array!(Longs, u64, AtomicU64, Longs);
