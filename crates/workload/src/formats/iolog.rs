//! fio iolog, versions 2 and 3: a header line, then `file action [offset length]`, in version 3
//! after a timestamp.
//!
//! A job that replays such a log reads its lines with [`entry`].

pub use crate::error::excerpt;
pub use crate::raw::Fault;
pub use crate::text::Field;

use crate::Record;
use crate::devices::Devices;
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Sniff, Start, WriterDef};
use crate::lines::{LineFormat, TextSource, first_line, head_lines};
use crate::raw::{Extent, MICROSECOND_PS, MILLISECOND_PS, Raw, Time};
use crate::text::{byte_extent, split_blanks};
use crate::write::{Encoder, Holds, put_number, text_sink};
use flashatlas_types::{Dur, HostOp, SECTOR_BYTES};
use std::io::BufRead;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "iolog",
    summary: "fio iolog v2 and v3: [timestamp] file action [offset length]",
    quirks: "Version 3 timestamps are microseconds, both when fio writes a log and when it replays \
             one. Version 2 has no times except `wait`, whose number is milliseconds since the \
             start of the log, as fio replays it. A wait for an instant that has passed has no \
             effect. Every file is a device; files are numbered in the order in which the log \
             names them first. `sync` and `datasync` are flushes; `add`, `open`, `close` and \
             `unlink` are skipped. Offsets and lengths are bytes: a request is widened to the \
             sectors that it touches. A version 2 log counts as a log with times if there is a \
             `wait` in its first 64 KiB.",
    source: "fio (https://fio.readthedocs.io, trace file formats); `fio --write_iolog` records it.",
    licence: "Whoever recorded a log sets its terms.",
    times: Presence::Sometimes,
    operations: Presence::Always,
    params: &[],
    sniff: |head| if version(first_line(head)).is_some() { Sniff::Yes } else { Sniff::No },
    open,
    writer: Some(WriterDef {
        params: &[],
        create: |create| text_sink(create, IologText::default()),
    }),
};

/// Possible first lines of a log.
pub const HEADER: &str = "`fio version 2 iolog` or `fio version 3 iolog`";
const ACTIONS: &str =
    "add, open, close, unlink, read, write, trim, sync, datasync or (version 2) wait";

/// Version of a log. The first line of the log names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 2: times only as `wait`.
    Two,
    /// Version 3: a time in each line.
    Three,
}

/// Returns the version that the first line of a log names, or `None` if it names none.
pub fn version(line: &[u8]) -> Option<Version> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(Version::Two),
        b"fio version 3 iolog" => Some(Version::Three),
        _ => None,
    }
}

/// Line of a log behind its header.
pub struct Entry<'a> {
    /// Field with the time in microseconds, in version 3.
    pub time: Field<'a>,
    /// Field with the name of the file.
    pub file: Field<'a>,
    /// Action on the file.
    pub action: Action<'a>,
}

/// Action in a line of a log.
pub enum Action<'a> {
    /// A read, write or trim: the fields with the first byte and the number of bytes.
    Data(HostOp, Field<'a>, Field<'a>),
    /// A sync, of data alone or with metadata.
    Sync {
        /// `true` for `datasync`.
        data_only: bool,
    },
    /// A wait until a time in milliseconds.
    Wait(u64),
    /// An action without a request: `add`, `open`, `close` or `unlink`.
    File,
}

/// Returns the content of a line.
///
/// # Errors
/// Returns an error for an unknown action, and for the wrong number of columns.
pub fn entry(version: Version, line: &[u8]) -> Result<Entry<'_>, Fault> {
    let (fields, count) = split_blanks::<5>(line);
    let none = Field::default();
    let (time, [file, action, offset, length], count) = match version {
        Version::Two => (none, [fields[0], fields[1], fields[2], fields[3]], count),
        Version::Three => {
            (fields[0], [fields[1], fields[2], fields[3], fields[4]], count.saturating_sub(1))
        }
    };
    let op = match action.text {
        b"read" => Some(HostOp::Read),
        b"write" => Some(HostOp::Write),
        b"trim" => Some(HostOp::Trim),
        _ => None,
    };
    let action = match (op, action.text) {
        (Some(op), _) => {
            columns(line, count, &[4], "a file, an action, an offset and a length")?;
            Action::Data(op, offset, length)
        }
        (None, text @ (b"sync" | b"datasync")) => {
            columns(line, count, &[2, 4], "a file and an action, and either two numbers or none")?;
            Action::Sync { data_only: text == b"datasync" }
        }
        (None, b"add" | b"open" | b"close" | b"unlink") => {
            columns(line, count, &[2], "a file and an action")?;
            Action::File
        }
        (None, b"wait") if version == Version::Two => {
            columns(line, count, &[3, 4], "a file, `wait` and a time")?;
            Action::Wait(offset.number("a time in milliseconds since the start of the log")?)
        }
        (None, b"") => {
            return Err(Fault::whole("the wrong number of columns in", "a file and an action"));
        }
        (None, _) => {
            if version == Version::Three {
                time.number("a timestamp in microseconds")?; // the timestamp may be missing
            }
            return Err(action.fault("an unknown action", ACTIONS));
        }
    };
    Ok(Entry { time, file, action })
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let source = TextSource::open(input, Iolog::default(), start.options);
    let waits = || head_lines(start.head).any(|line| split_blanks::<2>(line).0[1].text == b"wait");
    let times = !matches!(version(first_line(start.head)), Some(Version::Two)) || waits();
    Ok(Reader { source, times, operations: true })
}

#[derive(Default)]
struct Iolog {
    version: Option<Version>,
    devices: Devices,
    /// Time that the waits of a version 2 log have reached.
    waited_ps: u128,
}

impl LineFormat for Iolog {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let Some(version) = self.version else {
            self.version = version(line);
            return match self.version {
                Some(_) => Ok(None),
                None => Err(Fault::whole("not an iolog header:", HEADER)),
            };
        };
        let entry = entry(version, line)?;
        let time = match version {
            Version::Two => Time::whole(self.waited_ps),
            Version::Three => entry.time.time(MICROSECOND_PS, "a timestamp in microseconds")?,
        };
        let (op, extent) = match entry.action {
            Action::Data(op, offset, length) => (op, byte_extent(op, offset, length)?),
            Action::Sync { .. } => (HostOp::Flush, Extent::NONE),
            Action::Wait(until) => {
                self.waited_ps = self.waited_ps.max(Time::of(until, MILLISECOND_PS).ps);
                return Ok(None);
            }
            Action::File => {
                self.devices.number(entry.file)?;
                return Ok(None);
            }
        };
        let device = self.devices.number(entry.file)?;
        Ok(Some(Raw::plain(time, device, op, extent)))
    }

    fn missing(&self) -> (&'static str, &'static str) {
        match self.version {
            None => ("the iolog header is missing", HEADER),
            Some(_) => ("the trace holds no request", "at least one read, write, trim or sync"),
        }
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}

/// Returns a fault of the whole line unless `count` (without the timestamp) is one of `allowed`.
fn columns(
    line: &[u8],
    count: usize,
    allowed: &[usize],
    expected: &'static str,
) -> Result<(), Fault> {
    if allowed.contains(&count) {
        return Ok(());
    }
    Err(Field { text: line, start: 0 }.fault("the wrong number of columns in", expected))
}

/// Encoder of version 3. Every device is a file, named by its number.
#[derive(Default)]
struct IologText {
    /// `true` for each device that has been opened.
    opened: Vec<bool>,
}

impl IologText {
    fn line(out: &mut Vec<u8>, record: &Record, action: &[u8]) {
        put_number(out, record.request.at.0 / MICROSECOND_PS);
        out.extend_from_slice(b" device");
        put_number(out, record.device.into());
        out.push(b' ');
        out.extend_from_slice(action);
    }

    fn open(&mut self, record: &Record, out: &mut Vec<u8>) {
        let index = record.device as usize;
        self.opened.resize(self.opened.len().max(index + 1), false);
        if !std::mem::replace(&mut self.opened[index], true) {
            IologText::line(out, record, b"add\n");
            IologText::line(out, record, b"open\n");
        }
    }
}

impl Encoder for IologText {
    fn holds(&self) -> Holds {
        Holds {
            fua: false,
            flush_fua: false,
            tick: Dur(MICROSECOND_PS),
            ..Holds::everything("iolog")
        }
    }

    fn header(&self) -> Vec<u8> {
        b"fio version 3 iolog\n".to_vec()
    }

    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        self.open(record, out);
        let request = &record.request;
        IologText::line(
            out,
            record,
            match request.op {
                HostOp::Read => b"read ",
                HostOp::Write => b"write ",
                HostOp::Trim => b"trim ",
                HostOp::Flush => b"sync ",
            },
        );
        put_number(out, request.lba.0 * u64::from(SECTOR_BYTES));
        out.push(b' ');
        put_number(out, u64::from(request.sectors) * u64::from(SECTOR_BYTES));
        out.push(b'\n');
    }
}
