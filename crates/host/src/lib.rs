//! Layers that a host uses over a drive. A layer is a [`Device`](flashatlas_device::Device) that
//! owns one or several lower devices. Each layer has a folder here and an entry in [`LAYERS`].
//!
//! [`wire`] encodes the commands between a layer and a drive.
//!
//! ```
//! use flashatlas_host::STANDARD;
//! use flashatlas_types::Seed;
//!
//! let settings = ["layers=mirror".to_owned(), "mirror.drives=2".to_owned()];
//! let stack = STANDARD.load("tiny", None, &settings)?.build_stack(Seed(1))?;
//! assert_eq!(stack.drives().len(), 2);
//! # Ok::<(), flashatlas_types::ConfigError>(())
//! ```

mod completion;
mod hard;
mod hpb_host;
mod mirror;
mod notes;
pub mod wire;

use flashatlas_device::{LayerDef, Registry};
use flashatlas_types::Entries;

pub use notes::NOTES;

/// All layers.
pub const LAYERS: &[LayerDef] = &[hard::DEF, hpb_host::DEF, mirror::DEF];

/// Registry of all built-in presets, parts of FTLs, and layers.
pub const STANDARD: Registry =
    Registry { ftl: PARTS, layers: Entries::of(LAYERS), ..Registry::DRIVES };

/// Parts of FTLs: all parts of the crate `ftl`, and the map store that has a crate of its own.
const PARTS: flashatlas_ftl::Registry = flashatlas_ftl::Registry {
    stores: Registry::DRIVES.ftl.stores.and(&[&flashatlas_lpmt::DEF]),
    kinds: flashatlas_lpmt::KINDS,
    ..Registry::DRIVES.ftl
};
