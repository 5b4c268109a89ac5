//! Errors of traces, and their places.

use crate::bad::{Alike, BadKind};
use flashatlas_types::ConfigError;
use flashatlas_types::spelling::spell;
use std::borrow::Cow;
use std::fmt;

/// Maximum number of characters of the input that an error quotes.
const EXCERPT_CHARS: usize = 40;

/// A place in the decompressed input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Place in a text format. Line and column count from 1; the column counts bytes.
    Line {
        /// The line.
        line: u64,
        /// The byte of the line.
        column: u64,
    },
    /// Place in a binary format: the number of bytes before it.
    Byte(u64),
}

/// Error of a trace that cannot be read.
///
/// The error displays as `line:column: why; the reader expects …`. The caller puts the file name
/// before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// Place of the fault.
    pub place: Place,
    /// The number, from 1, of the record at fault: one more than the records delivered and skipped
    /// before it.
    pub record: u64,
    /// Cause, without a full stop.
    pub why: Cow<'static, str>,
    /// Content expected at the place; empty if nothing specific was expected.
    pub expected: &'static str,
    /// The offending bytes, escaped and cut to 40 characters; empty when there are none to show.
    pub excerpt: String,
    /// Bad records that were skipped before this record.
    pub skipped: u64,
    /// Kind of the fault, if all records with such a fault can be skipped.
    pub kind: Option<BadKind>,
    /// Count of the records of that kind from this record on, if they were counted.
    pub alike: Option<Alike>,
}

impl TraceError {
    /// Returns an error at a place, with its cause and the content expected there. Readers fill in
    /// the other fields where they have the values.
    pub fn new(
        place: Place,
        why: impl Into<Cow<'static, str>>,
        expected: &'static str,
    ) -> TraceError {
        TraceError {
            place,
            record: 1,
            why: why.into(),
            expected,
            excerpt: String::new(),
            skipped: 0,
            kind: None,
            alike: None,
        }
    }
}

/// Returns the beginning of `bytes` as printable text, with control and non-ASCII bytes escaped.
pub fn excerpt(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, &byte) in bytes.iter().enumerate() {
        let escaped = std::ascii::escape_default(byte);
        let quote = matches!(byte, b'"' | b'\'');
        let len = if quote { 1 } else { escaped.len() };
        let last = i + 1 == bytes.len();
        if text.len() + len > if last { EXCERPT_CHARS } else { EXCERPT_CHARS - 1 } {
            text.push('…');
            break;
        }
        if quote { text.push(char::from(byte)) } else { text.extend(escaped.map(char::from)) }
    }
    text
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { line, column } => write!(f, "{line}:{column}"),
            Place::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        spell(f, &self.why)?;
        if !self.excerpt.is_empty() {
            write!(f, " `{}`", self.excerpt)?;
        }
        if !self.expected.is_empty() {
            f.write_str("; the reader expects ")?;
            spell(f, self.expected)?;
        }
        if self.skipped > 0 {
            write!(f, " (bad records skipped before: {})", self.skipped)?;
        }
        if let Some(kind) = self.kind {
            let alike = self.alike.map_or(String::new(), |alike| format!("{alike}; "));
            let name = kind.name();
            spell(f, &format!(" ({alike}‹skip_bad={name}› skips and counts this kind)"))?;
        }
        Ok(())
    }
}

impl std::error::Error for TraceError {}

/// Reason for which [`open`](crate::open) found no reader for a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The format that was asked for does not exist.
    Config(ConfigError),
    /// The stream is empty or damaged before the first record.
    Trace(TraceError),
    /// No format recognises the content.
    Unrecognised {
        /// The compression found: `none`, `gz`, `bz2`, `xz` or `zst`.
        compression: &'static str,
        /// The start of the first line that is not blank, escaped.
        excerpt: String,
        /// Guess of the content, and help; empty if nothing is known.
        hint: Cow<'static, str>,
        /// The names of all formats.
        formats: Vec<&'static str>,
    },
    /// Several formats recognise the content: one must be named.
    Ambiguous {
        /// Each format with its parameters, and the meaning of the content in it. The meaning is
        /// empty for a format that reads the content in one way only.
        readings: Vec<(&'static str, &'static str)>,
    },
}

impl From<TraceError> for OpenError {
    fn from(error: TraceError) -> OpenError {
        OpenError::Trace(error)
    }
}

impl From<ConfigError> for OpenError {
    fn from(error: ConfigError) -> OpenError {
        OpenError::Config(error)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Config(error) => error.fmt(f),
            OpenError::Trace(error) => error.fmt(f),
            OpenError::Unrecognised { compression, excerpt, hint, formats } => {
                write!(f, "no trace format recognises `{excerpt}` (compression: {compression})")?;
                spell(f, hint)?;
                write!(f, "; formats: {}; ", formats.join(", "))?;
                spell(f, "name one of them (‹format›) to see where its reader stops")
            }
            OpenError::Ambiguous { readings } => {
                f.write_str("several formats fit this content: ")?;
                for (i, (spec, says)) in readings.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "; " };
                    match says {
                        &"" => write!(f, "{separator}{spec}")?,
                        says => write!(f, "{separator}`{spec}` if {says}")?,
                    }
                }
                spell(f, "; name one of them (‹format›)")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Config(error) => Some(error),
            OpenError::Trace(error) => Some(error),
            OpenError::Unrecognised { .. } | OpenError::Ambiguous { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_printable_and_short() {
        assert_eq!(excerpt(b"a\t\"b\"\xff"), "a\\t\"b\"\\xff");
        assert_eq!(excerpt(&[b'x'; 40]), "x".repeat(40));
        assert_eq!(excerpt(&[b'x'; 41]), format!("{}…", "x".repeat(39)));
        assert_eq!(
            excerpt(&[0; 1000]).chars().count(),
            37,
            "nine escapes of four characters and the mark"
        );
    }
}
