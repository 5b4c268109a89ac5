//! Replay of a workload on a device.
//!
//! A run checks every read, counts everything, and returns one record at the end.
//!
//! ```
//! use flashatlas_sim::metrics::METRICS;
//! use flashatlas_sim::{Build, Environment, RunSpec, run};
//! use flashatlas_types::Entries;
//!
//! let spec: RunSpec = serde_json::from_value(serde_json::json!({
//!     "drive": "tiny", "mode": "untimed", "precondition": "fill",
//!     "workload": "uniform:requests=2000,size=2KiB,read=0.3",
//! }))?;
//! let environment = Environment {
//!     registry: &flashatlas_device::Registry::DRIVES,
//!     workloads: flashatlas_workload::Registry::STANDARD,
//!     metrics: Entries::of(METRICS),
//!     opener: &|_: &str| Err(std::io::Error::other("no file is read here")),
//!     build: Build { version: "example", sources: "none", commit: None },
//!     added: &[],
//! };
//! let record = run(&spec, &environment, &mut |_| true)?.record;
//! assert_eq!(record["oracle"]["violations"], 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asked;
pub mod checkpoint;
mod config_hash;
mod drive_notes;
pub use asked::{layout, planned};
pub use config_hash::config_hash;
pub use notes::{NOTES, say_codes};
mod environment;
pub mod error;
mod explain;
mod fit;
pub mod input;
mod jobs;
mod live;
pub mod lookup;
mod merged;
pub mod metrics;
mod needed;
pub mod notes;
mod opener;
mod options;
mod oracle;
mod parts;
mod player;
mod precondition;
mod progress;
mod record;
mod room;
mod run;
mod scan;
mod settling;
pub mod spec;
pub mod steadiness;
mod stream;
pub mod table;
mod trace_name;
mod worn_out;

pub use environment::{Build, Environment};
pub use error::RunError;
pub use input::{Input, Inputs, summarize};
pub use live::{Kept, Live, Made, checkpointed};
pub use merged::MERGE_PARAMS;
pub use opener::{Opener, Stream};
pub use options::{OPTIONS, OptionGroup, OptionKind, Reading, Recorded, RunOption, RunSpec};
pub use parts::{AddedPart, AnyPart, Origin, Parts};
pub use progress::Progress;
pub use record::SCHEMA;
pub use room::free_memory;
pub use run::{Outcome, kinds_skipped, run, save_checkpoint};
pub use spec::{Base, Extent, Fit, Mode, Precondition, SkipBad, Until};
pub use table::{Column, Table};
pub use trace_name::{trace_files, trace_with_files, whole_trace};
