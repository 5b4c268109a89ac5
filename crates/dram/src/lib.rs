//! DRAM, command by command: what the banks and the buses of a device allow ([`timings`]), and an
//! engine that issues activations, precharges, reads and writes as early as that allows
//! ([`engine`]), in order or through a queue ([`queue`]). The paper's own table of latencies is a
//! reference beside it ([`paper_table`]).

pub mod engine;
pub mod paper_table;
mod presets;
pub mod queue;
mod rules;
pub mod timings;

pub use engine::{Command, CommandKind, Dram, Served};
pub use presets::PRESETS;
pub use queue::Queue;
pub use rules::Rules;
pub use timings::{Device, PARAMS, Timings};
