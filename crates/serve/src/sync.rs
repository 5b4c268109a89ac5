//! Locks and atomics that threads share, from the standard library or from shuttle.
//!
//! Shuttle chooses the order in which threads run (`tests/interleavings.rs`).

#[cfg(feature = "interleavings")]
pub use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(feature = "interleavings"))]
pub use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
