//! Reader of text traces, line by line in constant memory.

use crate::bad::Alike;
use crate::devices::Devices;
use crate::error::{Place, TraceError};
use crate::format::Sniff;
use crate::gate::Gate;
use crate::raw::{Fault, Raw};
use crate::source::{Account, ReadOptions, Record, RecordSource};
use std::io::{self, BufRead};

/// Maximum number of bytes of a line. The rest of a longer line is skipped.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// Number of bytes of a line that are kept. The number is above [`MAX_LINE`]: a line that is too
/// long is still too long without its byte order mark and its carriage return.
const KEPT: usize = MAX_LINE + 8;

/// Maximum number of records that [`sniff`] looks at.
const SNIFF_RECORDS: u32 = 32;

/// Decoder of the lines of a text format.
pub(crate) trait LineFormat: Send {
    /// Decodes a line, which is not blank and has no line end. Returns `Ok(None)` if it holds no
    /// request.
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault>;

    /// Returns the fault of input that ends without a request, and the content expected.
    fn missing(&self) -> (&'static str, &'static str) {
        ("the trace holds no request", "at least one")
    }

    /// Returns the devices named so far, or `None` in formats that name none.
    fn devices(&self) -> Option<&Devices> {
        None
    }

    /// Returns the origin of all times; `None` stands for the time of the first record.
    fn origin_ps(&self) -> Option<u128> {
        None
    }
}

/// Returns [`Sniff::Yes`] if more of the first lines of `head` decode than fail to.
pub(crate) fn sniff(head: &[u8], format: impl LineFormat) -> Sniff {
    if mostly(head, format) { Sniff::Yes } else { Sniff::No }
}

/// Returns [`Sniff::Assuming`] where [`sniff`] returns `Yes`. It is for formats whose text names no
/// units; `assumes` names the units.
pub(crate) fn sniff_assuming(head: &[u8], format: impl LineFormat, assumes: &'static str) -> Sniff {
    if mostly(head, format) { Sniff::Assuming(assumes) } else { Sniff::No }
}

/// Returns the whole lines of `head` without their ends. A last line without an end counts only if
/// it is the only line: the end of `head` may have cut it.
pub(crate) fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = &head[..memchr::memrchr(b'\n', head).unwrap_or(head.len())];
    whole.split(|&b| b == b'\n').enumerate().map(|(i, line)| trim(line, i == 0))
}

/// Returns `true` if more of the first lines of `head` decode than fail to.
pub(crate) fn mostly(head: &[u8], mut format: impl LineFormat) -> bool {
    let (mut good, mut bad) = (0, 0);
    for line in head_lines(head) {
        if line.len() > MAX_LINE || good + bad == SNIFF_RECORDS {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match format.decode(line) {
            Ok(Some(_)) => good += 1,
            Ok(None) => {}
            Err(_) => bad += 1,
        }
    }
    good > bad
}

/// Returns the first line of `head` that is not blank.
pub(crate) fn first_line(head: &[u8]) -> &[u8] {
    let mut lines =
        head.split(|&b| b == b'\n').enumerate().map(|(i, line)| trim(line, i == 0).trim_ascii());
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns a line without its carriage return and, if it is the first, without a byte order mark.
fn trim(line: &[u8], first: bool) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line }
}

struct Lines {
    input: Box<dyn BufRead + Send>,
    /// Line that straddles two buffers of the input.
    straddling: Vec<u8>,
    /// Bytes of the input's buffer that belong to the line handed out last.
    lent: usize,
    /// Number of the line handed out last, from 1.
    number: u64,
    bytes: u64,
}

impl Lines {
    /// Returns the next line without its end, and its number, or `Ok(None)` at the end. A line
    /// longer than [`KEPT`] is cut to [`KEPT`] bytes.
    fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.input.consume(std::mem::take(&mut self.lent));
        if fill(&mut *self.input)? == 0 {
            return Ok(None);
        }
        let end = memchr::memchr(b'\n', self.input.fill_buf()?);
        self.number += 1;
        let number = self.number;
        let line = match end {
            Some(end) => {
                self.lent = end + 1;
                self.bytes += self.lent as u64;
                &self.input.fill_buf()?[..end]
            }
            None => self.gather()?,
        };
        Ok(Some((number, trim(&line[..line.len().min(KEPT)], number == 1))))
    }

    /// Returns a line whose end is not in the buffer.
    fn gather(&mut self) -> io::Result<&[u8]> {
        self.straddling.clear();
        loop {
            if fill(&mut *self.input)? == 0 {
                return Ok(&self.straddling);
            }
            let buffer = self.input.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = KEPT - self.straddling.len();
            self.straddling.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            self.bytes += used as u64;
            if end.is_some() {
                return Ok(&self.straddling);
            }
        }
    }
}

/// Refills the buffer of `input` if it is empty, and returns the number of bytes in it: 0 at the
/// end.
///
/// A read that a signal interrupts is repeated. If the buffer then holds any bytes, the next
/// `fill_buf` returns them without reading.
pub(crate) fn fill(input: &mut (dyn BufRead + Send)) -> io::Result<usize> {
    loop {
        match input.fill_buf() {
            Ok(buffer) => return Ok(buffer.len()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A text trace.
pub(crate) struct TextSource<F> {
    lines: Lines,
    format: F,
    gate: Gate,
}

impl<F: LineFormat + 'static> TextSource<F> {
    pub fn open(
        input: Box<dyn BufRead + Send>,
        format: F,
        options: &ReadOptions,
    ) -> Box<dyn RecordSource> {
        let lines = Lines { input, straddling: Vec::new(), lent: 0, number: 0, bytes: 0 };
        let gate = Gate::new(options);
        let gate = match format.origin_ps() {
            Some(origin) => gate.counting_from(origin),
            None => gate,
        };
        Box::new(TextSource { lines, format, gate })
    }
}

impl<F: LineFormat> TextSource<F> {
    /// Adds to `error` the number of lines from there on with the same kind of fault. The source is
    /// at its end afterwards.
    fn with_alike(&mut self, error: TraceError) -> TraceError {
        let alike = error.kind.map(|kind| {
            Alike::to(kind, || {
                let line = self.lines.next()?;
                Ok::<_, io::Error>(line.map(|(_, line)| {
                    let blank = line.len() > MAX_LINE || line.trim_ascii().is_empty();
                    let decoded = if blank { Ok(None) } else { self.format.decode(line) };
                    decoded.err().and_then(|fault| fault.kind)
                }))
            })
        });
        TraceError { alike, ..error }
    }
}

impl<F: LineFormat> RecordSource for TextSource<F> {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(record) = self.gate.pending() {
            return Ok(Some(record));
        }
        while !self.gate.ended() {
            let (number, line) = match self.lines.next() {
                Ok(Some(numbered)) => numbered,
                Ok(None) => {
                    let place = Place::Line { line: self.lines.number + 1, column: 1 };
                    let (why, expected) = self.format.missing();
                    return self.gate.finish(|| TraceError::new(place, why, expected));
                }
                Err(error) => {
                    let place = Place::Line { line: self.lines.number + 1, column: 1 };
                    return Err(self.gate.fail(TraceError::new(place, error.to_string(), "")));
                }
            };
            let decoded = if line.len() > MAX_LINE {
                Err(Fault::whole("a line that is too long", "at most 65,536 bytes"))
            } else if line.trim_ascii().is_empty() {
                continue;
            } else {
                self.format.decode(line)
            };
            let admitted = match decoded {
                Ok(None) => continue,
                Ok(Some(raw)) => self.gate.admit(&raw, Place::Line { line: number, column: 1 }),
                Err(fault) => Err(fault),
            };
            match admitted {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(fault) => {
                    let place = |offset| Place::Line { line: number, column: offset as u64 + 1 };
                    let error = fault.at(line, place);
                    self.gate.reject(error).map_err(|error| self.with_alike(error))?;
                }
            }
        }
        Ok(None)
    }

    fn account(&self) -> Account {
        let device_names = self.format.devices().map(Devices::names).unwrap_or_default();
        Account { device_names, ..self.gate.account() }
    }

    fn bytes_read(&self) -> u64 {
        self.lines.bytes
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn origin_ps(&self) -> Option<u128> {
        self.gate.origin_ps()
    }
}
