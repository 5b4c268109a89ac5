//! Opening of byte streams: their compression and format are recognised by content.

use crate::Registry;
use crate::compress::{Compression, MAGIC_BYTES};
use crate::error::{OpenError, Place, TraceError, excerpt};
use crate::format::{Alternative, FormatDef, Reader, Sniff, Start};
use crate::formats::blktrace;
use crate::guess::guess;
use crate::lines::first_line;
use crate::plausible::Looks;
use crate::settings;
use crate::source::{Account, ReadOptions, Record, RecordSource};
use flashatlas_types::{ConfigError, HostOp, Params};
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maximum number of decompressed bytes that a format's `sniff` sees.
pub const SNIFF_BYTES: usize = 64 << 10;

/// Decompressed bytes read at a time.
const CONTENT_BUFFER_BYTES: usize = 256 << 10;

/// A trace that is being read.
pub struct Opened {
    /// Format of the trace.
    pub format: &'static FormatDef,
    /// Compression: `none`, `gz`, `bz2`, `xz` or `zst`. It is `several` if the files differ in
    /// compression.
    pub compression: &'static str,
    /// `true` if its records carry times. If that depends on the file, its first 64 KiB decide.
    pub times: bool,
    /// `true` if its records carry operations. If not, every operation is
    /// [`ReadOptions::assume_op`]; without that option, every operation is a read. A caller that
    /// needs the real operations must refuse such a trace.
    pub operations: bool,
    /// Assumptions about units that the trace does not state. `None` if the caller named the
    /// format, or if the format fixes its units.
    pub guess: Option<String>,
    /// The records.
    pub source: Box<dyn RecordSource>,
}

impl Registry {
    /// Opens a trace: finds out its compression and, unless `format` names it, its format. The name
    /// of a format may be followed by its parameters: `blkparse:action=C`.
    ///
    /// # Errors
    /// Returns an error for a format name or parameter that does not exist, and for a stream that
    /// is empty or damaged at the start. Returns an error for content that no format or more than
    /// one format recognises. Returns an error for an assumed operation if the trace names
    /// operations.
    pub fn open(
        &self,
        reader: Box<dyn Read + Send>,
        format: Option<&str>,
        options: &ReadOptions,
    ) -> Result<Opened, OpenError> {
        let named = format.map(|spec| self.choose(spec)).transpose()?;
        let consumed = Arc::new(AtomicU64::new(0));
        let (compression, content) = content(reader, &consumed)?;
        if content.head().is_empty() {
            return Err(at_start(
                content.error.map_or("the trace is empty".to_owned(), |e| e.to_string()),
            )
            .into());
        }
        let (format, params, guess) = match named {
            Some((format, params)) => (format, params, None),
            None => self.recognise(content.head(), compression)?,
        };
        let head = content.head().to_vec();
        let content = Box::new(BufReader::with_capacity(CONTENT_BUFFER_BYTES, content));
        let reader = (format.open)(content, &Start { head: &head, params: &params, options })?;
        check_assumed(format, reader.operations, options.assume_op)?;
        let Reader { source, times, operations } = reader;
        let source = Box::new(MeteredSource { source, consumed });
        Ok(Opened { format, compression: compression.name(), times, operations, guess, source })
    }

    /// Opens the files of one recording of blktrace, one for each CPU. Errors name the file.
    ///
    /// # Errors
    /// Returns the number of the file, with the error that [`Registry::open`] returns for a single
    /// file. Returns an error for a format that does not come in several files.
    pub fn open_together(
        &self,
        files: Vec<(String, Box<dyn Read + Send>)>,
        format: Option<&str>,
        options: &ReadOptions,
    ) -> Result<Opened, (usize, Box<OpenError>)> {
        let chosen = self.choose(format.unwrap_or(blktrace::FORMAT.name));
        let refused = |number, error: OpenError| (number, Box::new(error));
        let (format, params) = chosen.map_err(|error| refused(0, error.into()))?;
        if format.name != blktrace::FORMAT.name {
            let why = format!("the format `{}` does not use a file for each CPU", format.name);
            let error = ConfigError::allowing("format", why, blktrace::FORMAT.name);
            return Err(refused(0, error.into()));
        }
        let consumed = Arc::new(AtomicU64::new(0));
        let (mut compressions, mut heads, mut pieces): (Vec<_>, Vec<_>, Vec<_>) =
            Default::default();
        for (number, (name, reader)) in files.into_iter().enumerate() {
            let (compression, content) =
                content(reader, &consumed).map_err(|error| refused(number, error.into()))?;
            if let (true, Some(error)) = (content.head().is_empty(), &content.error) {
                return Err(refused(number, at_start(error.to_string()).into()));
            }
            compressions.push(compression.name());
            heads.push(content.head().to_vec());
            let content = BufReader::with_capacity(CONTENT_BUFFER_BYTES, content);
            pieces.push((name, Box::new(content) as Box<dyn BufRead + Send>));
        }
        compressions.dedup();
        let heads: Vec<&[u8]> = heads.iter().map(Vec::as_slice).collect();
        let reader = blktrace::open_together(pieces, &heads, &params, options)?;
        check_assumed(format, reader.operations, options.assume_op)
            .map_err(|error| refused(0, error.into()))?;
        let Reader { source, times, operations } = reader;
        let source = Box::new(MeteredSource { source, consumed });
        let compression = if let [one] = compressions[..] { one } else { "several" };
        Ok(Opened { format, compression, times, operations, guess: None, source })
    }

    /// Returns the format that `spec` names, and its parameters.
    fn choose(&self, spec: &str) -> Result<(&'static FormatDef, Params), ConfigError> {
        let (name, parameters) = settings::split_name(spec);
        let format = self.formats.named(name)?;
        Ok((format, settings::parse(parameters, name, format.params)?))
    }

    /// Returns the one plausible reading of `head`, and its assumptions if it is a guess.
    fn recognise(
        &self,
        head: &[u8],
        compression: Compression,
    ) -> Result<(&'static FormatDef, Params, Option<String>), OpenError> {
        let sniffed = self.formats.iter().map(|format| (format, (format.sniff)(head)));
        let candidates: Vec<(&'static FormatDef, Sniff)> =
            sniffed.filter(|(_, sniff)| *sniff != Sniff::No).collect();
        if candidates.is_empty() {
            return Err(OpenError::Unrecognised {
                compression: compression.name(),
                excerpt: excerpt(first_line(head)),
                hint: self.hint(head),
                formats: self.formats.names(),
            });
        }
        if let [(format, sniff @ (Sniff::Yes | Sniff::Assuming(_)))] = candidates[..] {
            let params = settings::parse("", format.name, format.params)?;
            let Sniff::Assuming(says) = sniff else { return Ok((format, params, None)) };
            let why = Looks::of(format, &params, head).and_then(|l| l.implausible(l.unfit));
            let doubt =
                why.map_or(String::new(), |why| format!("; this would mean {why}, so check it"));
            return Ok((format, params, Some(format!("{says}{doubt}"))));
        }
        let readings: Vec<Alternative> = candidates
            .iter()
            .flat_map(|(format, sniff)| match sniff {
                Sniff::Perhaps(readings) => readings.to_vec(),
                Sniff::Assuming(says) => vec![Alternative { spec: format.name, says }],
                _ => vec![Alternative { spec: format.name, says: "" }],
            })
            .collect();
        self.weighed(&readings, head)
    }

    /// Returns the only one of several readings that is plausible, and its assumptions.
    fn weighed(
        &self,
        readings: &[Alternative],
        head: &[u8],
    ) -> Result<(&'static FormatDef, Params, Option<String>), OpenError> {
        let mut looked = Vec::new();
        for reading in readings {
            let (format, params) = self.choose(reading.spec)?;
            let looks = Looks::of(format, &params, head);
            looked.push((reading, format, params, looks));
        }
        let unfit = looked.iter().filter_map(|(.., looks)| Some(looks.as_ref()?.unfit)).min();
        let doubt = |looks: &Option<Looks>| match looks {
            Some(looks) => looks.implausible(unfit.unwrap_or_default()),
            None => Some("records that do not fit".to_owned()),
        };
        let (plausible, others): (Vec<_>, Vec<_>) =
            looked.into_iter().partition(|(.., looks)| doubt(looks).is_none());
        let first = plausible.first().map(|(reading, ..)| reading.says);
        // formats with the same meaning count as one reading
        if plausible.iter().any(|(reading, ..)| Some(reading.says) != first || first == Some("")) {
            return Err(ambiguous(plausible.iter().map(|(reading, ..)| **reading)));
        }
        let Some((reading, format, params, _)) = plausible.into_iter().next() else {
            return Err(ambiguous(readings.iter().copied()));
        };
        let not: Vec<String> = others
            .iter()
            .map(|(other, .., looks)| {
                format!(
                    "`{}` ({}) would mean {}",
                    other.spec,
                    other.says,
                    doubt(looks).unwrap_or_default()
                )
            })
            .collect();
        Ok((format, params, Some(format!("{}; {}", reading.says, not.join("; ")))))
    }

    /// Returns a guess at content that no format recognises, and advice on how to read it.
    fn hint(&self, head: &[u8]) -> Cow<'static, str> {
        let few = &head[..head.len().min(1024)];
        let zeros = few.iter().filter(|&&b| b == 0).count();
        let printable = few.iter().filter(|b| b.is_ascii_graphic()).count();
        let known = if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            "; the content begins like UTF-16 text, but traces are UTF-8 (convert it with `iconv \
             -f UTF-16 -t UTF-8`)"
        } else if zeros > 0 && 3 * zeros > few.len() && 3 * printable > few.len() {
            "; every other byte is zero, as in UTF-16 text, but traces are UTF-8 (convert it with \
             `iconv -f UTF-16LE -t UTF-8`)"
        } else if few.contains(&b'\r') && !head.contains(&b'\n') {
            "; the lines end only in carriage returns (convert them with `tr '\\r' '\\n'`)"
        } else {
            let guessed = || {
                guess(head).map(|spec| {
                    format!("; the content looks like the format `{spec}`: check the units")
                })
            };
            return self.begins_well(head).or_else(guessed).map_or(Cow::Borrowed(""), Cow::from);
        };
        Cow::Borrowed(known)
    }

    /// Returns the format that recognises the first line of text alone, and the place where the
    /// format's reader stops.
    fn begins_well(&self, head: &[u8]) -> Option<String> {
        let first = first_line(head);
        if first.len() == head.len() {
            return None;
        }
        let (format, params, _) = self.recognise(first, Compression::None).ok()?;
        let options = ReadOptions::default();
        let start = Start { head, params: &params, options: &options };
        let mut source = (format.open)(Box::new(Cursor::new(head.to_vec())), &start).ok()?.source;
        let error = loop {
            match source.next() {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => break error,
            }
        };
        let name = format.name;
        Some(format!(
            "; the content begins like the format {name} (‹format={name}›), whose reader stops at \
             {error}"
        ))
    }
}

/// Opens a trace as [`Registry::open`] does, with the formats of this crate.
///
/// # Errors
/// Returns the errors of [`Registry::open`].
pub fn open(
    reader: Box<dyn Read + Send>,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<Opened, OpenError> {
    Registry::STANDARD.open(reader, format, options)
}

/// Returns the compression of a stream, and its decompressed content, whose start was read ahead.
/// `consumed` counts the stored bytes that are read.
fn content(
    reader: Box<dyn Read + Send>,
    consumed: &Arc<AtomicU64>,
) -> Result<(Compression, Ahead<Box<dyn Read + Send>>), TraceError> {
    let input = Metered { reader, consumed: Arc::clone(consumed) };
    let input = Ahead::read(input, MAGIC_BYTES);
    let compression = Compression::detect(input.head());
    let content = compression.decoder(input).map_err(|e| at_start(e.to_string()))?;
    Ok((compression, Ahead::read(content, SNIFF_BYTES)))
}

fn at_start(why: String) -> TraceError {
    TraceError::new(Place::Byte(0), why, "")
}

/// Refuses an assumed operation that would be ignored, and an assumed flush.
fn check_assumed(
    format: &FormatDef,
    operations: bool,
    assumed: Option<HostOp>,
) -> Result<(), ConfigError> {
    let key = "assume_op";
    match assumed {
        Some(_) if operations => Err(ConfigError::new(
            key,
            format!("this {} trace already names the operation of each record", format.name),
        )),
        Some(HostOp::Flush) => Err(ConfigError {
            allowed: [HostOp::Read, HostOp::Write, HostOp::Trim]
                .map(|op| op.name().to_owned())
                .to_vec(),
            ..ConfigError::new(key, "a flush has no address")
        }),
        _ => Ok(()),
    }
}

/// Returns the error that asks the user to name one of several formats.
fn ambiguous(readings: impl Iterator<Item = Alternative>) -> OpenError {
    OpenError::Ambiguous { readings: readings.map(|one| (one.spec, one.says)).collect() }
}

/// Reader whose first bytes were read ahead. It yields them again, and then the error, if any, that
/// ended the reading ahead.
struct Ahead<R> {
    head: Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: R,
}

impl<R: Read> Ahead<R> {
    /// Reads at most `limit` bytes of `rest` ahead.
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

/// Reader that counts the bytes read through it.
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

    fn account(&self) -> Account {
        self.source.account()
    }

    fn bytes_read(&self) -> u64 {
        self.consumed.load(Relaxed)
    }

    fn expected(&self) -> Option<u64> {
        self.source.expected()
    }

    fn origin_ps(&self) -> Option<u128> {
        self.source.origin_ps()
    }

    fn file(&self) -> Option<&str> {
        self.source.file()
    }
}
