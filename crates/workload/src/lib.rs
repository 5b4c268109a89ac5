//! Sources of requests (readers of block traces, and generators of synthetic load), and writers of
//! traces.
//!
//! Readers and generators are a [`RecordSource`]: a stream of [`Record`]s in constant memory.
//! [`open`] takes any byte stream, recognises its compression and its format by content, and
//! returns the source. [`generate`] makes a source from a line such as
//! `zipf:requests=100000,theta=0.9`. [`Slice`] takes a part of a source, and [`TraceSummary`]
//! measures a source as it passes. [`create`] makes a [`RecordSink`], which writes records. The
//! crate opens no file and reads no clock: the caller hands in readers and writers.
//!
//! Every record from a reader keeps four promises, so that later code need not check them again. It
//! covers at least one sector (a flush covers none). A transfer covers at most
//! [`MAX_TRANSFER_SECTORS`]. The address of its last byte is below `2^64`. The number of its device
//! is below [`MAX_DEVICES`].
//!
//! ```
//! use flashatlas_types::{HostOp, Seed};
//! use flashatlas_workload::generate;
//!
//! let mut source = generate("zipf:requests=3,size=4KiB", 1 << 20, Seed(1))?;
//! let mut written = 0;
//! while let Some(record) = source.next()? {
//!     assert_eq!((record.request.op, record.request.sectors), (HostOp::Write, 8));
//!     written += 1;
//! }
//! assert_eq!(written, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ascii;
pub mod atlas;
mod bad;
mod binary;
pub mod compress;
mod create;
mod described;
mod devices;
pub mod error;
pub mod ext4;
pub mod format;
pub mod formats;
mod gate;
pub mod generators;
mod guess;
mod lines;
pub mod merge;
mod open;
mod plausible;
mod raw;
mod registry;
pub mod reuse;
mod rwbs;
mod settings;
pub mod slice;
pub mod source;
pub mod summary;
mod text;
mod together;
pub mod write;

pub use bad::{Alike, BadKind, BadKinds};
pub use create::create;
pub use error::{OpenError, Place, TraceError};
pub use format::{Alternative, FormatDef, Open, Presence, Reader, Sniff, Start, WriterDef};
pub use formats::FORMATS;
pub use generators::{Build, GENERATORS, GeneratorDef};
pub use merge::{Begin, Merge, MergePart};
pub use open::{Opened, SNIFF_BYTES, open};
pub use registry::{Registry, format_by_name, generate, generator_by_name};
pub use reuse::{MapUnits, Reuse};
pub use settings::settings_of;
pub use slice::{Bounds, Slice};
pub use source::{
    Account, DeviceMap, JUMP, Jump, MAX_DEVICES, MAX_TRANSFER_SECTORS, ReadOptions, Record,
    RecordSource,
};
pub use summary::TraceSummary;
pub use write::{Create, Origin, RecordSink, WriteError, WriteOptions, Written};
