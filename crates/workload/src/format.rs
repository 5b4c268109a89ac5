//! What a trace format is: how its records are recognised, read and written.

use crate::error::OpenError;
use crate::source::{ReadOptions, RecordSource};
use crate::write::{Create, RecordSink};
use flashatlas_types::{ConfigError, ParamDef, Params};
use std::io::BufRead;

/// Whether the records of a format say something: when they were issued, or which operation they
/// are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
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
    /// It is, and says so itself.
    Yes,
    /// It is, by its looks. The text says which units are taken, because none stands in it.
    Assuming(&'static str),
    /// It may be: it looks the same in another format, or with another parameter. One of these
    /// readings is meant.
    Perhaps(&'static [Alternative]),
}

/// A reading of content that has several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternative {
    /// The format with its parameters.
    pub spec: &'static str,
    /// What it takes times, addresses and sizes for: equal texts are one reading.
    pub says: &'static str,
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
    pub times: Presence,
    /// Whether its records carry operations.
    pub operations: Presence,
    /// What may be set after the name when reading: `NAME:key=value,key=value`.
    pub params: &'static [ParamDef],
    /// Whether content that starts like this (decompressed, at most 64 KiB) is in this format.
    pub sniff: fn(&[u8]) -> Sniff,
    /// Read decompressed content.
    ///
    /// # Errors
    /// When the content cannot be in this format at all, and parameters that contradict each other
    /// or the content. Faults of single records come from the source.
    pub open: Open,
    /// Write it; `None` for formats that are only read.
    pub writer: Option<WriterDef>,
}
