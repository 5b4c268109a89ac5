//! Parts from shared libraries: victim policies, classifiers, map stores and whole FTLs through a C
//! ABI.
//!
//! `python/flashatlas/include/flashatlas_plugin.h` is the interface, and `src/abi.rs` the same in
//! Rust. A plug-in is loaded once and stays loaded. Its parts are added to a registry, and are then
//! used like the other parts. If a plug-in breaks a rule of flash, an error names the plug-in, the
//! call and the block (`firmware`). If it ends the process or never returns, a line names the call
//! and the simulated time (`watch`). A wild write into memory of this process is not caught.

#[allow(non_camel_case_types, reason = "constants are named as C names them")]
pub mod abi;
mod classifier;
mod common;
mod firmware;
mod library;
mod notes;
mod params;
mod store;
mod tables;
mod victim;
mod watch;

pub use common::PluginError;
pub use library::{Library, load};
pub use notes::NOTES;
