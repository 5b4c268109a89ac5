//! The drive from the host's point of view: commands go in, completions come out.
//!
//! [`Ssd`] is the controller: it splits requests into mapping units, manages the write cache,
//! merges partial units, and connects the FTL, the medium and the timing engine. A layer is a
//! [`Device`] that a host puts over one or several drives. A [`Stack`] consists of the drives and
//! the layers over them. It is a tree, and each node is a [`Storage`]. [`config`] builds drives and
//! stacks from a preset, a file and single settings. A [`Registry`] lists the parts that can be
//! named there. [`params`] declares the settings.
//!
//! ```
//! use flashatlas_device::{Cmd, Registry, Reply};
//! use flashatlas_types::{Lba, Ps, Seed, Tag};
//!
//! let config = Registry::DRIVES.load("tiny", None, &["ftl.victim=fifo".into()])?;
//! let mut drive = config.build_stack(Seed(1))?;
//! let mut reply = Reply::default();
//! let write = Cmd::Write { lba: Lba(0), sectors: 4, fua: false, content: 1, data: None };
//! drive.submit(Ps::ZERO, Tag(1), write, &mut reply)?;
//! let mut done = Vec::new();
//! while let Some(at) = drive.next_event() {
//!     drive.advance(at, &mut done);
//! }
//! assert_eq!((done[0].tag, done.len()), (Tag(1), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blame;
mod cache;
mod capacity;
mod command;
pub mod config;
mod contents;
pub mod hpb;
mod interface;
mod layer;
pub mod params;
pub mod pieces;
mod power;
pub mod presets;
mod registry;
mod room;
mod shape;
pub mod smart;
mod ssd;
mod stack;

pub use command::{Cmd, Done, LayerError, Reply, SubmitError};
pub use config::DriveConfig;
pub use contents::{Contents, Pages, UnitContent};
pub use hpb::HpbCounters;
pub use interface::{Device, Storage, Submission};
pub use layer::{Build, LayerDef, LayerLimit, LayerReport, LayersBelow};
pub use params::PARAMS;
pub use power::{EnergyRates, PowerStates, STATES as POWER_STATES};
pub use presets::{PRESETS, Preset};
pub use registry::{Part, Registry};
pub use shape::DeviceShape;
pub use ssd::{DeviceCounters, Ssd};
pub use stack::Stack;
