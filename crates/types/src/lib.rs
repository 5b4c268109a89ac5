//! The vocabulary of FlashAtlas: addresses, time, geometry, the plan of a request, parameters,
//! seeds and errors.
//!
//! This crate uses one other crate of the project: `flashatlas-prefetch`, for the prefetch
//! instruction of the processor. Nearly all other crates use the types of this crate.
//!
//! ```
//! use flashatlas_types::{Dur, Param, Ps, RawConfig};
//!
//! const WINDOW: Param<Dur> = Param::time("ftl.window", "how far back the policy looks").or("1ms");
//! let mut raw = RawConfig::default();
//! raw.set("ftl.window", "250us", "set");
//! let params = raw.resolve(&[&WINDOW.def], |_| None)?;
//! assert_eq!(Ps::ZERO.after(params.get(WINDOW)), Ps(250_000_000));
//! raw.set("ftl.windw", "1us", "set");
//! let error = raw.resolve(&[&WINDOW.def], |_| None).unwrap_err();
//! assert!(error.to_string().contains("did you mean `ftl.window`?"));
//! # Ok::<(), flashatlas_types::ConfigError>(())
//! ```

mod allocation;
mod at_once;
mod attention;
pub mod base;
mod block_permutation;
mod cause;
mod cell;
pub mod content;
mod dealing;
mod divisor;
pub mod error;
mod fault;
pub mod flash_times;
pub mod geometry;
pub mod ids;
mod mechanism;
mod mode;
pub mod note;
mod page_order;
mod pair_sum;
pub mod params;
mod parity;
mod permutation;
pub mod plan;
mod ppn_table;
pub mod quantity;
pub mod registry;
pub mod request;
pub mod rng;
mod seeded_bug;
pub mod spelling;
mod steps;
mod table;
mod tables;
pub mod time;
mod word_lines;

pub use allocation::AllocationOrder;
pub use at_once::{at_once, cores, share};
pub use attention::{BLOCK_STEPS, Interrupted, attentive, beat};
pub use base::Base;
pub use block_permutation::BlockPermutation;
pub use cell::{Cell, ProgramUnit};
pub use content::Stamp;
pub use dealing::Dealing;
pub use divisor::Divisor;
pub use error::{ConfigError, FtlError, MediumError, Violation, nearest};
pub use fault::PartFault;
pub use geometry::{Geometry, Layout, MEMORY_PER_UNIT, Span};
pub use ids::{
    BlockId, DieBlock, FrameId, FrontierId, Index, LaneId, Lba, LocalBlock, LogicalBlock, Lpn,
    OpId, Ppn, StreamId, Tag,
};
pub use mechanism::Mechanism;
pub use mode::{BlockMode, PAGE_KINDS, SLC_MODE_LEVEL};
pub use note::{Note, NoteDef, NoteValue, RANK_MIDDLE};
pub use page_order::PageOrder;
pub use pair_sum::{PairSum, StampSum};
pub use params::{Param, ParamDef, ParamKind, ParamType, Params, RawConfig, Text, Value};
pub use parity::PARITY_DIES_MIN;
pub use permutation::Permutation;
pub use plan::{Cause, Class, CopySource, DramAccess, MemoryKind, Op, OpKind, Plan};
pub use ppn_table::{PpnShare, PpnTable};
pub use registry::{Entries, Entry, Kind, Kinds, by_name};
pub use request::{HostOp, Request, SECTOR_BYTES};
pub use rng::{Rng, Seed, drawn_streams};
pub use seeded_bug::SeededBug;
pub use steps::{PROGRAM_KINDS, ProgramStep, STEPS_MAX};
pub use table::Table;
pub use time::{Dur, Ps};
pub use typed_index_collections::{TiSlice, TiVec, ti_vec};
