//! FlashAtlas as one crate, for programs with parts of their own: the interfaces and the simulator.
//!
//! A part is a definition: a `const` with a name, a summary, parameters and a constructor. It is
//! added to a [`Registry`], and runs can then use it by name:
//!
//! ```
//! use flashatlas::prelude::*;
//!
//! /// Policy that collects the newest block that has an invalid slot.
//! #[derive(Default)]
//! struct Newest(Vec<LocalBlock>);
//!
//! impl VictimPolicy for Newest {
//!     fn closed(&mut self, block: LocalBlock, _: u32, _: Moment) {
//!         self.0.push(block);
//!     }
//!     fn invalidated(&mut self, _: LocalBlock, _: u32, _: Moment) {}
//!     fn removed(&mut self, block: LocalBlock) {
//!         self.0.retain(|&closed| closed != block);
//!     }
//!     fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
//!         let frees = |block: &LocalBlock| lane.valid[*block] < lane.slots;
//!         self.0.iter().rev().copied().find(frees)
//!     }
//! }
//!
//! const NEWEST: VictimDef = VictimDef {
//!     name: "newest",
//!     summary: "the block that was closed last and has an invalid slot",
//!     paper: "none",
//!     params: &[],
//!     build: &|_, _, _| Box::<Newest>::default(),
//!     steady: None,
//! };
//!
//! let registry = Registry::standard().with(&NEWEST)?;
//! let record = registry.run(serde_json::json!({
//!     "drive": "tiny", "mode": "untimed", "precondition": "fill",
//!     "workload": "uniform:requests=5000,size=2KiB", "set": ["ftl.victim=newest"],
//! }))?;
//! assert_eq!(record["oracle"]["violations"], 0);
//! assert!(record["waf"].as_f64() > Some(1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`conformance!`] makes a test for a part, which FlashAtlas' own parts also pass. With the
//! feature `python`, `extension!` makes a Python extension. Its parts can be used in the command
//! line, the API and the reports.
//!
//! `docs/STABILITY.md` of the repository lists the interfaces that may change, and the interfaces
//! that will not change.

pub use flashatlas_conformance as testing;
pub use flashatlas_conformance::conformance;
pub use flashatlas_crash as crash;
pub use flashatlas_device as device;
pub use flashatlas_dram as dram;
pub use flashatlas_fio as fio;
pub use flashatlas_ftl as ftl;
pub use flashatlas_host as host;
pub use flashatlas_lookup as lookup;
pub use flashatlas_lpmt as lpmt;
pub use flashatlas_nand as nand;
#[cfg(feature = "python")]
pub use flashatlas_python as python;
pub use flashatlas_sim as sim;
pub use flashatlas_timing as timing;
pub use flashatlas_types as types;
pub use flashatlas_workload as workload;

mod registry;

pub use registry::{Registry, digest};

/// Names that a part of any kind needs.
pub mod prelude {
    pub use crate::Registry;
    pub use crate::device::{
        Cmd, Device, Done, DriveConfig, LayerDef, LayerLimit, Reply, Stack, Storage, SubmitError,
    };
    pub use crate::ftl::caching::{CachePolicy, CachePolicyDef, MapAccess};
    pub use crate::ftl::classifiers::{
        Classifier, ClassifierDef, Collected, Page, Stream, Streams,
    };
    pub use crate::ftl::maps::{MapContext, MapStore, MapStoreDef};
    pub use crate::ftl::victims::{Candidates, LaneShape, Moment, VictimDef, VictimPolicy};
    pub use crate::ftl::{
        Ftl, FtlContext, FtlReport, Idle, Located, MemoryUse, MountLimit, MountReport, Place, Role,
        SchemeConfig, SchemeDef,
    };
    pub use crate::lookup::hashes::{Hash, HashDef};
    pub use crate::nand::{Flash, Medium, OobRole, ReadPart, Unit};
    pub use crate::sim::metrics::{Findings, Metric, MetricDef, Snapshot};
    pub use crate::sim::{Origin, RunSpec};
    pub use crate::types::{
        BlockId, Cause, Class, ConfigError, Dur, FrameId, FtlError, HostOp, LaneId, Layout, Lba,
        LocalBlock, Lpn, Mechanism, MediumError, MemoryKind, Note, NoteDef, OpId, OpKind, Param,
        ParamDef, Params, PartFault, Ppn, Ps, Request, Rng, Seed, Stamp, StreamId, Tag, Text,
        TiVec, Violation,
    };
    pub use crate::workload::{
        Account, FormatDef, GeneratorDef, Presence, Reader, Record, RecordSource, Sniff, TraceError,
    };
}

/// Returns the origin of the parts of this crate, for run records.
///
/// The origin consists of the name and version of the crate, and the digest of the named source
/// files. Paths of files are given as for `include_bytes!`.
///
/// ```
/// let origin = flashatlas::origin!("lib.rs");
/// assert!(origin.digest.starts_with("sha256:"));
/// ```
#[macro_export]
macro_rules! origin {
    ($($source:literal),+ $(,)?) => {
        $crate::sim::Origin {
            distribution: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            digest: $crate::digest(&[$(include_bytes!($source)),+]),
        }
    };
}

/// Makes a Python extension: a native module `$name` with all of FlashAtlas and the given parts.
///
/// ```ignore
/// flashatlas::extension!(my_parts, origin!("lib.rs"), [&NEWEST]);
/// ```
#[cfg(feature = "python")]
#[macro_export]
macro_rules! extension {
    ($name:ident, $origin:expr, [$($part:expr),+ $(,)?]) => {
        #[$crate::python::pyo3::pymodule]
        #[pyo3(crate = "flashatlas::python::pyo3")]
        fn $name(
            module: &$crate::python::pyo3::Bound<'_, $crate::python::pyo3::types::PyModule>,
        ) -> $crate::python::pyo3::PyResult<()> {
            let parts = vec![$($crate::sim::AnyPart::from($part)),+];
            let extension = $crate::python::Extension { origin: $origin, parts };
            $crate::python::populate(module, Some(extension))
        }
    };
}
