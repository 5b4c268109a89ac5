//! When the operations of a plan happen: dies, channels, memories and the host link as resources of
//! an event engine.

mod dies;
pub mod engine;
mod memory;
mod nodes;
pub mod nvm;
pub mod params;
mod resources;
mod statistics;
mod times;
mod trajectory;

pub use engine::{Engine, Finished};
pub use params::PARAMS;
pub use statistics::{DramStatistics, OperationTimes, Statistics};
pub use times::{MemoryTimes, Suspend, Times};
pub use trajectory::Trajectory;
