//! Enumeration of the power failures of a drive.
//!
//! A workload is carried out once. At each operation on flash and NVM, a copy of the medium loses
//! its power before, during and after the operation. The copy is mounted, every logical unit is
//! compared with the versions that a reference model allows, the tables are checked, and further
//! writes are sent to the drive. At depth 2 the mounts are cut, too.
//!
//! [`run()`] tries every scheme and map store of the registries ([`subject`]), on every geometry,
//! with every workload ([`workloads`]).
//!
//! ```
//! use flashatlas_crash::{CrashSpec, run};
//!
//! let plan = CrashSpec {
//!     schemes: vec!["fast".into()], geometries: vec!["square".into()],
//!     workloads: vec!["random".into()], layers: vec!["-".into()], steps: 60, one_in: 20,
//!     ..CrashSpec::default()
//! };
//! let report = run(&flashatlas_device::Registry::DRIVES, &plan, &mut |_, _| true).unwrap();
//! assert!(report.found.is_empty());
//! assert!(report.rows.iter().map(|row| row.cuts).sum::<u64>() > 10);
//! ```

pub mod at_random;
pub mod cut;
pub mod enumerate;
mod error;
pub mod examine;
pub mod failing_part;
pub mod failing_runs;
mod failure;
pub mod faults;
mod flying;
pub mod in_flight;
mod interface;
mod media;
pub mod minimise;
pub mod model;
pub mod nvme;
pub mod recording;
mod rerun;
pub mod run;
pub mod sample;
pub mod subject;
pub mod threads;
mod trial;
pub mod verify;
pub mod workloads;

pub use cut::{Cut, CutKind, Id};
pub use enumerate::{Depth, Enumerator, Tally};
pub use error::CrashError;
pub use failure::Failure;
pub(crate) use failure::guarded;
pub use faults::{Fault, Faults};
pub use interface::Interface;
pub use recording::Recording;
pub use rerun::rerun;
pub use run::{CrashSpec, Report, run};
pub use sample::Sample;
