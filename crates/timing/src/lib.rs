//! Timing of a plan's operations. The dies, channels, memories and the host link are resources of
//! an event engine.
//!
//! ```
//! use flashatlas_timing::{Engine, PARAMS, Times};
//! use flashatlas_types::{
//!     AllocationOrder, Cell, Class, Geometry, Layout, MemoryKind, OpKind, Plan, Ps, RawConfig,
//!     Span,
//! };
//!
//! let mut raw = RawConfig::default();
//! for (key, value) in [
//!     ("timing.t_read", "50us"), ("timing.t_program", "600us"), ("timing.t_erase", "3ms"),
//!     ("timing.channel_rate", "800MB"), ("memory.dram_latency", "30ns"),
//! ] {
//!     raw.set(key, value, "example");
//! }
//! let times = Times::from_params(&raw.resolve(&PARAMS.iter().collect::<Vec<_>>(), |_| None)?)?;
//! let geometry = Geometry {
//!     channels: 1, ways: 1, dies: 1, planes: 1, blocks: 4, pages: 8,
//!     page_bytes: 2048, spare_bytes: 64, cell: Cell::Slc,
//! };
//! let order = AllocationOrder::parse("CWDP").unwrap();
//! let layout = Layout::new(geometry, Span::ONE, 2048, order, 16)?;
//! let mut engine = Engine::new(&layout, times);
//! // two lookups in DRAM, one behind the other
//! let mut plan = Plan::default();
//! let lookup =
//!     OpKind::Memory { kind: MemoryKind::Dram, accesses: 1, bytes: 4, write: false };
//! let first = plan.push(lookup, Class::Map, &[]);
//! plan.push(lookup, Class::Map, &[first]);
//! engine.issue(Ps::ZERO, &plan);
//! let mut done = Vec::new();
//! let mut last = Ps::ZERO;
//! while let Some(at) = engine.next_event() {
//!     engine.advance(at, &mut done);
//!     last = at;
//! }
//! assert_eq!(last, Ps(60_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agenda;
mod buses;
mod busy;
mod copybacks;
mod cores;
mod dies;
pub mod engine;
mod inherit;
mod map_waits;
mod memory;
mod nodes;
pub mod nvm;
pub mod params;
pub mod paths;
mod planes;
mod resources;
mod shared_dram;
mod statistics;
mod times;
mod trajectory;

pub use engine::{Engine, Finished};
pub use params::PARAMS;
pub use paths::{Reason, Step};
pub use statistics::{DramStatistics, OperationTimes, Statistics};
pub use times::{CoreTimes, MemoryTimes, PlaneReads, SharedDramTimes, Suspend, Times};
pub use trajectory::Trajectory;
