//! When the operations of a plan happen: dies, channels, memories and the host link as resources of
//! an event engine.

mod dies;
pub mod engine;
mod memory;
mod nodes;
pub mod nvm;
mod parameters;
mod resources;
mod statistics;
mod trajectory;

pub use engine::{Engine, Finished};
pub use parameters::{MemoryTimes, PARAMS, Suspend, Times};
pub use statistics::{DramStatistics, OperationTimes, Statistics};
pub use trajectory::Trajectory;
