//! Replay: a workload against a device, every read checked, everything counted, one record at the
//! end.

pub mod checkpoint;
mod config_hash;
pub use config_hash::config_hash;
mod environment;
pub mod error;
mod fit;
pub mod input;
mod jobs;
mod live;
pub mod lookup;
pub mod metrics;
mod options;
mod oracle;
mod parts;
mod player;
mod precondition;
mod record;
mod run;
mod scan;
mod settling;
pub mod spec;
pub mod steadiness;
mod stream;
pub mod table;

pub use environment::{Build, Environment};
pub use error::RunError;
pub use input::{Input, Inputs, Opener, summarize};
pub use live::Live;
pub use options::{OPTIONS, OptionGroup, OptionKind, RunOption};
pub use parts::{AddedPart, AnyPart, Origin, Parts};
pub use record::SCHEMA;
pub use run::{Outcome, Progress, run, save_checkpoint};
pub use spec::{Extent, Fit, Mode, Precondition, Reading, RunSpec, Until};
pub use table::{Column, Table};
