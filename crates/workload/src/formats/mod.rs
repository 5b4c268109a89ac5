//! Trace formats: one file each, listed in [`FORMATS`].
//!
//! To add one, write a file here with a `pub(super) const FORMAT: FormatDef`, and add it to the list. A text format
//! implements `LineFormat`, which gives it line handling, error places, the account of bad records and sniffing.

mod alibaba;
mod arc;
mod atlas;
mod blkparse;
mod blkreplay;
mod blktrace;
mod columns;
mod csv;
mod disksim;
mod events;
mod fiu;
mod iolog;
mod mqsim;
mod msr;
mod nexus5;
mod pixel6a;
mod spc;
mod ssdsim;
mod systor17;
mod tencent;
mod vscsi;

use crate::error::OpenError;
use crate::source::{ReadOptions, RecordSource};
use crate::write::{Create, RecordSink};
use flashatlas_types::{ConfigError, ParamDef, Params, SECTOR_BYTES};
use std::io::BufRead;

/// Whether the records of a format say something: when they were issued, or which operation they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Says {
    /// Every record does.
    Always,
    /// None does. Without times every [`Request::at`](flashatlas_types::Request::at) is 0.
    Never,
    /// It depends on the file, or on the parameters.
    Sometimes,
}

/// Whether content is in a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sniff {
    /// It is not.
    No,
    /// It is.
    Yes,
    /// It may be: it looks the same in another format, or with another parameter. The text says what this reading
    /// makes of it.
    Perhaps(&'static str),
}

/// What a reader is made from, besides the content.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The start of the content, which will be read again: all of it, or the first 64 KiB.
    pub head: &'a [u8],
    /// The parameters of the format.
    pub params: &'a Params,
    /// How to read.
    pub options: &'a ReadOptions,
}

/// The records of a trace, and what they say.
pub struct Reader {
    /// Yields the records.
    pub source: Box<dyn RecordSource>,
    /// Whether they carry times, as far as the start of the trace and the parameters tell.
    pub times: bool,
    /// Whether they carry operations.
    pub operations: bool,
}

impl Reader {
    /// A reader whose records say when they were issued and which operation they are.
    pub(crate) fn complete(source: Box<dyn RecordSource>) -> Reader {
        Reader { source, times: true, operations: true }
    }
}

/// Makes the records of decompressed content.
pub type Open = fn(Box<dyn BufRead + Send>, &Start<'_>) -> Result<Reader, OpenError>;

/// How a format is written.
#[derive(Clone, Copy, Debug)]
pub struct WriterDef {
    /// What may be set after the name when writing.
    pub params: &'static [ParamDef],
    /// Make the sink.
    ///
    /// # Errors
    /// Parameters that contradict each other.
    pub create: fn(Create) -> Result<Box<dyn RecordSink>, ConfigError>,
}

/// A trace format.
#[derive(Clone, Copy, Debug)]
pub struct FormatDef {
    /// The name, as `trace.format` takes it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What is peculiar about it, and what the reader does about that.
    pub quirks: &'static str,
    /// Who defined it, and where traces in it are published.
    pub source: &'static str,
    /// What the terms of those traces ask for: citation, no redistribution.
    pub licence: &'static str,
    /// Whether its records carry times.
    pub times: Says,
    /// Whether its records carry operations.
    pub operations: Says,
    /// What may be set after the name when reading: `NAME:key=value,key=value`.
    pub params: &'static [ParamDef],
    /// Whether content that starts like this (decompressed, at most 64 KiB) is in this format.
    pub sniff: fn(&[u8]) -> Sniff,
    /// Read decompressed content.
    ///
    /// # Errors
    /// When the content cannot be in this format at all, and parameters that contradict each other or the content.
    /// Faults of single records come from the source.
    pub open: Open,
    /// Write it; `None` for formats that are only read.
    pub writer: Option<WriterDef>,
}

/// The terms of the SNIA IOTTA repository.
const SNIA_LICENCE: &str = "SNIA Trace Data Files Download License: cite the paper and the repository, and read it \
                            before passing traces on.";

/// Every format.
pub const FORMATS: &[FormatDef] = &[
    alibaba::FORMAT,
    arc::FORMAT,
    atlas::FORMAT,
    blkparse::FORMAT,
    blkreplay::FORMAT,
    blktrace::FORMAT,
    columns::FORMAT,
    csv::FORMAT,
    disksim::FORMAT,
    events::FORMAT,
    fiu::FORMAT,
    iolog::FORMAT,
    mqsim::FORMAT,
    msr::FORMAT,
    nexus5::FORMAT,
    pixel6a::FORMAT,
    spc::FORMAT,
    ssdsim::FORMAT,
    systor17::FORMAT,
    tencent::FORMAT,
    vscsi::FORMAT,
];

/// The format called `name`.
///
/// # Errors
/// Names the nearest and all others when there is none.
pub fn format_by_name(name: &str) -> Result<&'static FormatDef, ConfigError> {
    flashatlas_types::by_name(FORMATS, |f| f.name, "trace.format", "trace format", name)
}

/// The parameter `key` of bytes, of the format called `name`, as whole sectors.
fn whole_sectors(params: &Params, name: &str, key: &str) -> Result<u64, ConfigError> {
    let (bytes, sector) = (params.int(key), u64::from(SECTOR_BYTES));
    if bytes % sector == 0 {
        return Ok(bytes / sector);
    }
    Err(ConfigError {
        allowed: vec!["multiples of 512".to_owned()],
        ..ConfigError::new(key, format!("{bytes} bytes are no whole sectors")).at(name)
    })
}
