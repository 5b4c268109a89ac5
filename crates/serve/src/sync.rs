//! What threads share: of the standard library, and of shuttle where it draws in what order they go
//! on (`tests/interleavings.rs`).

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
