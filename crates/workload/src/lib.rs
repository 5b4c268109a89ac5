//! Where requests come from: readers of block traces and generators of synthetic load.
//!
//! Both are a [`RecordSource`]: a stream of [`Record`]s in constant memory. [`open`] takes any byte stream, recognises
//! its compression and its format by content, and hands back the source; [`generate`] makes one from a line such as
//! `zipf:requests=100000,theta=0.9`. [`TraceSummary`] measures a stream as it passes. The crate opens no file and reads
//! no clock: readers are handed in.
//!
//! Every record that leaves a reader keeps three promises, so that nothing behind it has to check again: it covers at
//! least one sector (a flush none), a transfer covers at most [`MAX_TRANSFER_SECTORS`], and its last byte has an
//! address below `2^64`.

pub mod compress;
pub mod error;
pub mod fio;
pub mod formats;
pub mod generators;
mod lines;
mod open;
pub mod source;
pub mod summary;
mod text;

pub use error::{OpenError, Place, TraceError};
pub use formats::{FORMATS, FormatDef, Open, Times, format_by_name};
pub use generators::{Build, GENERATORS, GeneratorDef, generate, generator_by_name};
pub use open::{SNIFF_BYTES, open};
pub use source::{MAX_TRANSFER_SECTORS, ReadOptions, Record, RecordSource};
pub use summary::TraceSummary;
