//! Definition of a trace format: how its records are recognised, read and written.

use crate::error::OpenError;
use crate::source::{ReadOptions, RecordSource};
use crate::write::{Create, RecordSink};
use flashatlas_types::{ConfigError, ParamDef, Params};
use std::io::BufRead;

/// Presence of the times of issue, or of the operations, in the records of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Every record has them.
    Always,
    /// No record has them. Without times every [`Request::at`](flashatlas_types::Request::at) is 0.
    Never,
    /// The file or the parameters decide.
    Sometimes,
}

/// Verdict on whether content is in a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sniff {
    /// The content is not in the format.
    No,
    /// The content is in the format, and says so itself.
    Yes,
    /// The content looks like the format. The text names the units that are assumed, because the
    /// content names none.
    Assuming(&'static str),
    /// The content may be in the format: it looks the same in another format, or with another
    /// parameter. One of these readings is meant.
    Perhaps(&'static [Alternative]),
}

/// One of several readings of content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternative {
    /// The format with its parameters.
    pub spec: &'static str,
    /// Meaning of times, addresses and sizes in this format. Alternatives with equal texts count as
    /// one reading.
    pub says: &'static str,
}

/// Input of a reader, besides the content.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The start of the content, at most 64 KiB. The content that is opened begins with it again.
    pub head: &'a [u8],
    /// The parameters of the format.
    pub params: &'a Params,
    /// Options of reading.
    pub options: &'a ReadOptions,
}

/// Records of a trace, and what they carry.
pub struct Reader {
    /// Source of the records.
    pub source: Box<dyn RecordSource>,
    /// `true` if the records carry times, as far as the start of the trace and the parameters tell.
    pub times: bool,
    /// `true` if the records carry operations.
    pub operations: bool,
}

impl Reader {
    /// Returns a reader whose records carry times and operations.
    pub(crate) fn complete(source: Box<dyn RecordSource>) -> Reader {
        Reader { source, times: true, operations: true }
    }
}

/// Function that opens decompressed content.
pub type Open = fn(Box<dyn BufRead + Send>, &Start<'_>) -> Result<Reader, OpenError>;

/// Writer of a format.
#[derive(Clone, Copy, Debug)]
pub struct WriterDef {
    /// Parameters after the name when writing.
    pub params: &'static [ParamDef],
    /// Function that makes the sink.
    ///
    /// # Errors
    /// Returns an error if parameters contradict each other.
    pub create: fn(Create) -> Result<Box<dyn RecordSink>, ConfigError>,
}

/// A trace format.
#[derive(Clone, Copy, Debug)]
pub struct FormatDef {
    /// The name, as `trace.format` takes it.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Peculiarities of the format, and how the reader treats them.
    pub quirks: &'static str,
    /// Authors of the format, and places where traces in it are published.
    pub source: &'static str,
    /// Terms of those traces, such as citation or no redistribution.
    pub licence: &'static str,
    /// Presence of times in its records.
    pub times: Presence,
    /// Presence of operations in its records.
    pub operations: Presence,
    /// Parameters after the name when reading: `NAME:key=value,key=value`.
    pub params: &'static [ParamDef],
    /// Function that judges content by its start (decompressed, at most 64 KiB).
    pub sniff: fn(&[u8]) -> Sniff,
    /// Function that reads decompressed content.
    ///
    /// # Errors
    /// Returns an error if the content cannot be in this format at all, or if parameters contradict
    /// each other or the content. Faults of single records come from the source.
    pub open: Open,
    /// Writer; `None` for formats that are only read.
    pub writer: Option<WriterDef>,
}
