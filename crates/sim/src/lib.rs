//! Replay: a workload against a device, every read checked, everything counted, one record at the end.

mod config_hash;
pub mod error;
mod fit;
pub mod input;
pub mod metrics;
mod oracle;
mod precondition;
mod record;
mod replay;
pub mod spec;

pub use error::RunError;
pub use input::{Input, Inputs, Opener, summarize};
pub use record::SCHEMA;
pub use replay::{Progress, run};
pub use spec::{Fit, Mode, Precondition, RunSpec};
