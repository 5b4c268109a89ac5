//! Writing of traces: sinks of records, and the treatment of what a format cannot hold.

use crate::compress::Finish;
use crate::raw::SECOND_PS;
use crate::source::{END_OF_SECTORS, MAX_DEVICES, MAX_TRANSFER_SECTORS, Record};
use flashatlas_types::{ConfigError, Dur, HostOp, Lba, Params, Ps};
use std::fmt;
use std::io::{self, Write};

/// Number of bytes that are gathered before they go to the output.
const BUFFER_BYTES: usize = 256 << 10;

/// Options of writing a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteOptions {
    /// `true` to drop or round the parts of records that the format cannot hold, and count them;
    /// `false` to refuse such records.
    pub lossy: bool,
}

/// Origin of a trace; formats that have a place for it keep it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The format that it was read from.
    pub format: String,
    /// The digest of the file that it was read from, such as `sha256:…`.
    pub digest: String,
    /// The names of its devices, in order of their numbers.
    pub device_names: Vec<String>,
}

/// Sink that writes records.
pub trait RecordSink: Send {
    /// Writes a record.
    ///
    /// # Errors
    /// Returns an error for a record that the format cannot hold, and an error of the output. After
    /// an error nothing more can be written.
    fn put(&mut self, record: &Record) -> Result<(), WriteError>;

    /// Notes the origin of the trace, at any time before the end. Most formats have no place for
    /// it.
    fn describe(&mut self, _origin: &Origin) {}

    /// Writes what is left, and ends the trace.
    ///
    /// # Errors
    /// Returns an error of the output, and an error if the trace has no records.
    fn finish(self: Box<Self>) -> Result<Written, WriteError>;
}

/// Account of the records that were written, and of the parts that were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Number of records written.
    pub records: u64,
    /// Number of bytes of the format, before compression.
    pub bytes: u64,
    /// Number of trims left out.
    pub trims_dropped: u64,
    /// Number of flushes left out.
    pub flushes_dropped: u64,
    /// Number of records left out because they do not belong to the first device.
    pub devices_dropped: u64,
    /// Number of requests whose forced unit access was left out.
    pub fua_dropped: u64,
    /// Number of times rounded down to the unit of the format.
    pub times_rounded: u64,
}

/// Reason for which a trace cannot be written.
#[derive(Debug)]
pub enum WriteError {
    /// The format cannot hold a record.
    Unholdable {
        /// Number of the record, from 1.
        record: u64,
        /// Part of the record that the format cannot hold.
        why: String,
        /// Advice on how to write the trace.
        advice: &'static str,
    },
    /// An error of the output.
    Io(io::Error),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Unholdable { record, why, advice } => {
                write!(f, "record {record}: {why}; {advice}")
            }
            WriteError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io(error) => Some(error),
            WriteError::Unholdable { .. } => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Io(error)
    }
}

/// Input of a writer.
pub struct Create {
    /// Output of the bytes.
    pub(crate) output: Box<dyn Finish>,
    /// The parameters of the format.
    pub(crate) params: Params,
    pub(crate) options: WriteOptions,
}

/// Capabilities of a format. Every format holds reads and writes of whole sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holds {
    pub name: &'static str,
    pub trims: bool,
    pub flushes: bool,
    /// Forced unit access of reads, writes and trims.
    pub fua: bool,
    /// Forced unit access of flushes, although it has no effect.
    pub flush_fua: bool,
    pub devices: u32,
    /// The unit of time.
    pub tick: Dur,
}

impl Holds {
    /// Returns the capabilities of a format that holds everything in a record.
    pub const fn everything(name: &'static str) -> Holds {
        Holds {
            name,
            trims: true,
            flushes: true,
            fua: true,
            flush_fua: true,
            devices: MAX_DEVICES,
            tick: Dur(1),
        }
    }

    /// Returns the capabilities of a format that holds reads and writes of many devices.
    pub const fn reads_and_writes(name: &'static str) -> Holds {
        Holds {
            trims: false,
            flushes: false,
            fua: false,
            flush_fua: false,
            ..Holds::everything(name)
        }
    }
}

/// Fitting of records to a format.
pub(crate) struct Fitting {
    holds: Holds,
    lossy: bool,
    seen: u64,
    /// Device of the first record.
    device: Option<u32>,
    pub written: Written,
}

impl Fitting {
    pub fn new(holds: Holds, options: &WriteOptions) -> Fitting {
        Fitting { holds, lossy: options.lossy, seen: 0, device: None, written: Written::default() }
    }

    /// Returns the record as the format holds it, or `Ok(None)` if it is left out.
    pub fn fit(&mut self, record: &Record) -> Result<Option<Record>, WriteError> {
        self.seen += 1;
        self.check(record)?;
        let mut fitted = *record;
        let request = &mut fitted.request;
        let name = self.holds.name;
        if request.op == HostOp::Trim && !self.holds.trims {
            self.lose(|| format!("{name} cannot hold trims"), |w| &mut w.trims_dropped)?;
            return Ok(None);
        }
        if request.op == HostOp::Flush && !self.holds.flushes {
            self.lose(|| format!("{name} cannot hold flushes"), |w| &mut w.flushes_dropped)?;
            return Ok(None);
        }
        if *self.device.get_or_insert(record.device) != record.device && self.holds.devices == 1 {
            self.lose_device()?;
            return Ok(None);
        }
        if request.fua
            && !(if request.op == HostOp::Flush { self.holds.flush_fua } else { self.holds.fua })
        {
            let kind = request.op.name();
            self.lose(
                || format!("{name} cannot hold the forced unit access of a {kind}"),
                |w| &mut w.fua_dropped,
            )?;
            request.fua = false;
        }
        let (at, tick) = (request.at, self.holds.tick);
        if at.0 % tick.0 != 0 {
            self.lose(
                || format!("the time {} ps is not a multiple of {tick}, the unit of {name}", at.0),
                |w| &mut w.times_rounded,
            )?;
            request.at = Ps(at.0 - at.0 % tick.0);
        }
        self.written.records += 1;
        Ok(Some(fitted))
    }

    fn lose(
        &mut self,
        why: impl FnOnce() -> String,
        count: fn(&mut Written) -> &mut u64,
    ) -> Result<(), WriteError> {
        if self.lossy {
            *count(&mut self.written) += 1;
            return Ok(());
        }
        let advice = "write a format that holds them, such as atlas or csv, or allow losses \
                      (`lossy`)";
        Err(WriteError::Unholdable { record: self.seen, why: why(), advice })
    }

    fn lose_device(&mut self) -> Result<(), WriteError> {
        if self.lossy {
            self.written.devices_dropped += 1;
            return Ok(());
        }
        let why = format!(
            "the format {} holds one device, but the record is of a second device",
            self.holds.name
        );
        let advice = "select a device (select:N) or merge all devices (collapse) when reading, \
                      write a format that holds several devices, such as atlas or csv, or allow \
                      losses (`lossy`)";
        Err(WriteError::Unholdable { record: self.seen, why, advice })
    }

    /// Refuses a record that no source yields.
    fn check(&self, record: &Record) -> Result<(), WriteError> {
        let request = &record.request;
        let why = match request.op {
            HostOp::Flush if (request.lba, request.sectors) == (Lba(0), 0) => None,
            HostOp::Flush => Some("a flush with an address or a length"),
            _ if request.sectors == 0 => Some("a length of zero"),
            HostOp::Read | HostOp::Write if request.sectors > MAX_TRANSFER_SECTORS => {
                Some("more than 1 GiB")
            }
            _ => None,
        };
        let far = request.end().is_none_or(|end| end > END_OF_SECTORS);
        let why = why.or(far.then_some("an address beyond all drives"));
        let why = why.or((record.device >= MAX_DEVICES).then_some("one device too many"));
        match why {
            None => Ok(()),
            Some(why) => {
                let advice = "a record needs at least one sector (a flush none), at most 1 GiB, an \
                              end below 2^64 bytes, and one of 65,536 devices";
                Err(WriteError::Unholdable { record: self.seen, why: why.to_owned(), advice })
            }
        }
    }

    /// Returns the account of the writing, or an error if no record was written.
    pub fn finish(self) -> Result<Written, WriteError> {
        if self.written.records > 0 {
            return Ok(self.written);
        }
        let why = if self.seen == 0 {
            "the trace holds no request"
        } else {
            "every request was left out"
        };
        let advice = "a trace needs at least one";
        Err(WriteError::Unholdable { record: self.seen, why: why.to_owned(), advice })
    }
}

/// Encoder of records as text.
pub(crate) trait Encoder: Send + 'static {
    /// Returns the capabilities of the text.
    fn holds(&self) -> Holds;

    /// Returns the bytes before the first record.
    fn header(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Appends `record`, which the text can hold, with its line end.
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>);
}

/// Returns a sink that writes the text of `encoder`.
pub(crate) fn text_sink(
    create: Create,
    encoder: impl Encoder,
) -> Result<Box<dyn RecordSink>, ConfigError> {
    let fitting = Fitting::new(encoder.holds(), &create.options);
    let buffer = encoder.header();
    Ok(Box::new(TextSink { output: create.output, buffer, encoder, fitting }))
}

struct TextSink<E> {
    output: Box<dyn Finish>,
    buffer: Vec<u8>,
    encoder: E,
    fitting: Fitting,
}

impl<E> TextSink<E> {
    fn pass_on(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer)?;
        self.fitting.written.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl<E: Encoder> RecordSink for TextSink<E> {
    fn put(&mut self, record: &Record) -> Result<(), WriteError> {
        if let Some(record) = self.fitting.fit(record)? {
            self.encoder.encode(&record, &mut self.buffer);
            if self.buffer.len() >= BUFFER_BYTES {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, WriteError> {
        self.pass_on()?;
        self.output.finish()?;
        self.fitting.finish()
    }
}

/// Appends `number` in decimal digits.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let (mut at, mut left) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `at` in seconds, with at most twelve decimals and no trailing zeros among them.
pub(crate) fn put_seconds(out: &mut Vec<u8>, at: Ps) {
    put_number(out, at.0 / SECOND_PS);
    let mut fraction = at.0 % SECOND_PS;
    let mut weight = SECOND_PS / 10;
    if fraction > 0 {
        out.push(b'.');
    }
    while fraction > 0 {
        out.push(b'0' + (fraction / weight) as u8);
        fraction %= weight;
        weight /= 10;
    }
}
