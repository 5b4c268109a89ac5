//! From a byte stream to records: compression and format are recognised by content.

use crate::compress::{Compression, MAGIC_BYTES};
use crate::error::{OpenError, Place, TraceError, excerpt};
use crate::formats::{FORMATS, FormatDef, format_by_name};
use crate::lines::first_line;
use crate::source::{ReadOptions, Record, RecordSource};
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Decompressed bytes that a format's `sniff` sees at most.
pub const SNIFF_BYTES: usize = 64 << 10;

/// Decompressed bytes read at a time.
const CONTENT_BUFFER_BYTES: usize = 256 << 10;

/// Open a trace: find out how it is compressed and, unless `format` names it, in which format it is. Returns the format,
/// the name of the compression (`none`, `gz`, `bz2`, `xz`, `zst`) and the records.
///
/// # Errors
/// A format name that does not exist; an empty stream, or one damaged at the start; content that no format, or more
/// than one, recognises.
pub fn open(
    reader: Box<dyn Read + Send>,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<(&'static FormatDef, &'static str, Box<dyn RecordSource>), OpenError> {
    let format = format.map(format_by_name).transpose()?;
    let consumed = Arc::new(AtomicU64::new(0));
    let input = Metered { reader, consumed: Arc::clone(&consumed) };
    let input = Ahead::read(input, MAGIC_BYTES);
    let compression = Compression::detect(input.head());
    let content = compression.decoder(input).map_err(|e| at_start(e.to_string()))?;
    let content = Ahead::read(content, SNIFF_BYTES);
    if content.head().is_empty() {
        return Err(at_start(content.error.map_or("the trace is empty".to_owned(), |e| e.to_string())).into());
    }
    let format = match format {
        Some(format) => format,
        None => recognise(content.head(), compression)?,
    };
    let source = (format.open)(Box::new(BufReader::with_capacity(CONTENT_BUFFER_BYTES, content)), options)?;
    Ok((format, compression.name(), Box::new(MeteredSource { source, consumed })))
}

fn at_start(why: String) -> TraceError {
    TraceError::new(Place::Byte(0), why, "")
}

/// The one format that recognises `head`.
fn recognise(head: &[u8], compression: Compression) -> Result<&'static FormatDef, OpenError> {
    let candidates: Vec<&'static FormatDef> = FORMATS.iter().filter(|f| (f.sniff)(head)).collect();
    match candidates[..] {
        [format] => Ok(format),
        [] => Err(OpenError::Unrecognised {
            compression: compression.name(),
            excerpt: excerpt(first_line(head)),
            formats: FORMATS.iter().map(|f| f.name).collect(),
        }),
        _ => Err(OpenError::Ambiguous { formats: candidates.iter().map(|f| f.name).collect() }),
    }
}

/// A reader whose first bytes were looked at; they, and an error met on the way, are read again.
struct Ahead<R> {
    head: Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: R,
}

impl<R: Read> Ahead<R> {
    /// Look at up to `limit` bytes of `rest`.
    fn read(mut rest: R, limit: usize) -> Ahead<R> {
        let mut head = Vec::new();
        let error = rest.by_ref().take(limit as u64).read_to_end(&mut head).err();
        Ahead { head: Cursor::new(head), error, rest }
    }

    fn head(&self) -> &[u8] {
        self.head.get_ref()
    }
}

impl<R: Read> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.head.read(buffer)? {
            0 => match self.error.take() {
                Some(error) => Err(error),
                None => self.rest.read(buffer),
            },
            n => Ok(n),
        }
    }
}

/// Counts what is read through it.
struct Metered {
    reader: Box<dyn Read + Send>,
    consumed: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.consumed.fetch_add(n as u64, Relaxed);
        Ok(n)
    }
}

/// A source whose progress is counted in stored bytes.
struct MeteredSource {
    source: Box<dyn RecordSource>,
    consumed: Arc<AtomicU64>,
}

impl RecordSource for MeteredSource {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        self.source.next()
    }

    fn skipped(&self) -> u64 {
        self.source.skipped()
    }

    fn bytes_read(&self) -> u64 {
        self.consumed.load(Relaxed)
    }

    fn expected(&self) -> Option<u64> {
        self.source.expected()
    }
}
