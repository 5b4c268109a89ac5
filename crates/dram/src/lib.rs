//! Simulation of DRAM, command by command. The module [`timings`] describes the limits of a
//! device's banks and buses. The module [`engine`] issues activations, precharges, reads and writes
//! as early as these limits allow.
//!
//! Accesses are served in order or through a queue ([`queue`]). If a device returns to an earlier
//! state, the times come from a table ([`Transitions`]). The paper's own table of latencies is a
//! reference for the engine ([`paper_table`]).
//!
//! ```
//! use flashatlas_dram::{Dram, PRESETS, Rules};
//! use flashatlas_types::DramAccess;
//!
//! let preset = &PRESETS[0];
//! let mut dram = Dram::new(&preset.device, &preset.timings, Rules::NONE);
//! let read = |row| DramAccess { row, bank: 0, bursts: 1, write: false, dependent: false };
//! let miss = dram.serve_all(&[read(1)], 0, &mut |_| {});
//! let hit = dram.serve_all(&[read(1)], miss.data, &mut |_| {});
//! let conflict = dram.serve_all(&[read(2)], hit.data, &mut |_| {});
//! assert!(hit.data - miss.data < conflict.data - hit.data, "another row takes longer");
//! ```

pub mod engine;
pub mod paper_table;
pub mod queue;
mod rules;
pub mod timings;
mod transitions;

pub use engine::{Command, CommandKind, Dram, Served};
pub use queue::Queue;
pub use rules::Rules;
pub use timings::{Device, PARAMS, PRESETS, Timings};
pub use transitions::Transitions;
