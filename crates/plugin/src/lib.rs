//! Parts from shared libraries with a C ABI: victim policies, classifiers, map stores and whole
//! FTLs.
//!
//! The interface is in `python/flashatlas/include/flashatlas_plugin.h`, and in Rust in
//! `src/abi.rs`. A plug-in is loaded once and stays loaded. Its parts are added to a registry, and
//! are then used like the other parts. If a plug-in breaks a rule of flash, an error names the
//! plug-in, the call and the block (`firmware`). If a call crashes the process or never returns, a
//! message names the call and the simulated time (`watch`). Writes of a plug-in to memory of this
//! process that it does not own are not detected.

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
