//! Trace formats: one file each, listed in [`FORMATS`].
//!
//! To add one, write a file here with a `pub(super) const FORMAT: FormatDef`, and add it to the list. A text format
//! implements `LineFormat`, which gives it line handling, error places, the account of bad records and sniffing.

mod blkreplay;
mod iolog;
mod msr;
mod spc;
mod vscsi;

use crate::error::TraceError;
use crate::source::{ReadOptions, RecordSource};
use flashatlas_types::ConfigError;
use std::io::BufRead;

/// Whether the records of a format say when they were issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Times {
    /// Every record does.
    Always,
    /// None does: every [`Request::at`](flashatlas_types::Request::at) is 0.
    Never,
    /// It depends on the file.
    Sometimes,
}

/// Makes the records of decompressed content.
pub type Open = fn(Box<dyn BufRead + Send>, &ReadOptions) -> Result<Box<dyn RecordSource>, TraceError>;

/// A trace format.
#[derive(Clone, Copy, Debug)]
pub struct FormatDef {
    /// The name, as `trace.format` takes it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What is peculiar about it, and what the reader does about that.
    pub quirks: &'static str,
    /// Whether its records carry times.
    pub times: Times,
    /// Whether content that starts like this (decompressed, at most 64 KiB) is in this format.
    pub sniff: fn(&[u8]) -> bool,
    /// Read decompressed content.
    ///
    /// # Errors
    /// When the content cannot be in this format at all. Faults of single records come from the source.
    pub open: Open,
}

/// Every format.
pub const FORMATS: &[FormatDef] = &[blkreplay::FORMAT, iolog::FORMAT, msr::FORMAT, spc::FORMAT, vscsi::FORMAT];

/// The format called `name`.
///
/// # Errors
/// Names the nearest and all others when there is none.
pub fn format_by_name(name: &str) -> Result<&'static FormatDef, ConfigError> {
    flashatlas_types::by_name(FORMATS, |f| f.name, "trace.format", "trace format", name)
}
