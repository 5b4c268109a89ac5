//! blktrace: the binary events of the Linux block layer, as `blktrace` writes them for each CPU.
//!
//! | Byte | | |
//! |---|---|---|
//! | 0 | `u32` | magic, `0x65617400`, and in the low byte the version, 7 |
//! | 4 | `u32` | sequence number |
//! | 8 | `u64` | time in nanoseconds |
//! | 16 | `u64` | first sector |
//! | 24 | `u32` | length in bytes |
//! | 28 | `u32` | action in the low half, categories in the high half |
//! | 32 | `u32` | process |
//! | 36 | `u32` | device: major number, and minor number in the low 20 bits |
//! | 40 | `u32` | CPU |
//! | 44 | `u16` | error |
//! | 46 | `u16` | bytes of the payload that follows |
//!
//! All numbers are in the byte order of the recording machine. The magic number shows this order.

use crate::binary::{Fixed, FixedSource, bytes_at};
use crate::devices::Devices;
use crate::error::{OpenError, Place};
use crate::format::{FormatDef, Presence, Reader, Sniff, Start};
use crate::raw::{Extent, ExtentError, Fault, NANOSECOND_PS, Raw, Time};
use crate::rwbs::{ACTION, Action};
use crate::source::ReadOptions;
use crate::text::Field;
use crate::together::{Piece, Together};
use flashatlas_types::{HostOp, Params};
use std::io::BufRead;

pub(crate) const FORMAT: FormatDef = FormatDef {
    name: "blktrace",
    summary: "blktrace, binary: the events of each CPU, or the events of all CPUs, merged by \
              `blkparse -d`",
    quirks: "Both byte orders are read. One kind of event is read: D (issued) if the first 64 KiB \
             hold a D event, else C (completed), else Q (queued); `action=C` names the kind. All \
             other events, pass-through commands, and payloads are skipped. blktrace writes a file \
             for each CPU, `NAME.blktrace.0` and so on. If one of these files is named, the other \
             files beside it are also read, in order of time; `cpus:FILE;FILE` names the files to \
             read. Times are nanoseconds, addresses sectors of 512 bytes, lengths bytes. A request \
             that asks for a flush first is read as a flush and a request. Every device is an \
             address space of its own.",
    source: "Linux, include/uapi/linux/blktrace_api.h; blktrace \
             (https://git.kernel.dk/cgit/blktrace).",
    licence: "Whoever recorded a trace sets its terms.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[ACTION.def],
    sniff: |head| if Order::detect(head).is_some() { Sniff::Yes } else { Sniff::No },
    open,
    writer: None,
};

/// Bytes of an event without its payload.
const EVENT: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u8 = 7;
const MINOR_BITS: u32 = 20;

/// Actions, in the low half; bit 8 marks a payload that begins with a control group.
const ACTIONS: u32 = 0xff;
const QUEUED: u32 = 1;
const ISSUED: u32 = 7;
const COMPLETED: u32 = 8;

/// Categories, in the high half.
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSED_THROUGH: u32 = 1 << 25;
const NOTE: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;

/// The byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn detect(head: &[u8]) -> Option<Order> {
        let magic = *head.first_chunk::<4>()?;
        [Order::Little, Order::Big].into_iter().find(|order| order.u32(magic) & !0xff == MAGIC)
    }

    fn u16(self, bytes: [u8; 2]) -> u16 {
        if self == Order::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        if self == Order::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    fn u64(self, bytes: [u8; 8]) -> u64 {
        if self == Order::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
    }

    /// Returns the action of an event, or `None` if it is no [`Action`].
    fn action(self, event: &[u8]) -> Option<Action> {
        let word = self.u32(bytes_at(event, 28));
        match word & ACTIONS {
            _ if word & NOTE != 0 => None,
            QUEUED => Some(Action::Queued),
            ISSUED => Some(Action::Issued),
            COMPLETED => Some(Action::Completed),
            _ => None,
        }
    }

    fn payload(self, event: &[u8]) -> usize {
        usize::from(self.u16(bytes_at(event, 46)))
    }

    /// Returns the actions of the events in `head`.
    fn actions(self, head: &[u8]) -> impl Iterator<Item = Action> {
        let mut rest = head;
        let events = std::iter::from_fn(move || {
            let event = rest.get(..EVENT)?;
            rest = rest.get(EVENT + self.payload(event)..).unwrap_or_default();
            Some(self.action(event))
        });
        events.flatten()
    }
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let Some(order) = Order::detect(start.head) else {
        let fault = Fault {
            why: "not a blktrace event:".into(),
            expected: MAGICS,
            span: (0, 4),
            kind: None,
        };
        return Err(fault.at(start.head, |_| Place::Byte(0)).into());
    };
    let action = Action::chosen(start.params, order.actions(start.head));
    let format = Blktrace { order, action, device: None, devices: Devices::default() };
    Ok(Reader::complete(FixedSource::open(input, format, start.options)))
}

/// Returns a reader of the files of one recording. `heads` are the starts of their content; an
/// empty file belongs to a CPU without events.
///
/// # Errors
/// Returns the number of the faulty file and the reason: the file does not begin with an event, or
/// its byte order differs from the byte order of the first file.
pub(crate) fn open_together(
    pieces: Vec<Piece>,
    heads: &[&[u8]],
    params: &Params,
    options: &ReadOptions,
) -> Result<Reader, (usize, Box<OpenError>)> {
    let mut order = None;
    for (number, head) in heads.iter().enumerate().filter(|(_, head)| !head.is_empty()) {
        let found = Order::detect(head);
        if found.is_none() || order.is_some_and(|order| Some(order) != found) {
            let why = if found.is_none() {
                "not a blktrace event:"
            } else {
                "not the byte order of the first file:"
            };
            let fault = Fault { why: why.into(), expected: MAGICS, span: (0, 4), kind: None };
            let error = fault.at(head, |_| Place::Byte(0));
            return Err((number, Box::new(error.into())));
        }
        order = found;
    }
    let order = order.unwrap_or(Order::Little);
    let action = Action::chosen(params, heads.iter().flat_map(|head| order.actions(head)));
    let format = Blktrace { order, action, device: None, devices: Devices::default() };
    Ok(Reader::complete(Together::open(pieces, format, options)))
}

const MAGICS: &str = "0x65617407 in either byte order";

struct Blktrace {
    order: Order,
    action: Action,
    /// The device of the latest event and its number here.
    device: Option<(u32, u32)>,
    devices: Devices,
}

impl Blktrace {
    fn fault(at: usize, len: usize, why: &'static str, expected: &'static str) -> Fault {
        Fault { why: why.into(), expected, span: (at, at + len), kind: None }
    }

    fn device(&mut self, device: u32) -> Result<u32, Fault> {
        if let Some((_, number)) = self.device.filter(|&(latest, _)| latest == device) {
            return Ok(number);
        }
        let name = format!("{},{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1));
        let number = self
            .devices
            .number(Field { text: name.as_bytes(), start: 0 })
            .map_err(|fault| Fault { span: (36, 40), ..fault })?;
        self.device = Some((device, number));
        Ok(number)
    }
}

impl Fixed for Blktrace {
    fn bytes(&self) -> usize {
        EVENT
    }

    fn truncated(&self) -> &'static str {
        "48 bytes"
    }

    fn decode(&mut self, event: &[u8]) -> Result<Option<Raw>, Fault> {
        let magic = self.order.u32(bytes_at(event, 0));
        if magic & !0xff != MAGIC {
            return Err(Blktrace::fault(0, 4, "not a blktrace event:", MAGICS));
        }
        if magic as u8 != VERSION {
            return Err(Blktrace::fault(0, 4, "an unknown event version:", MAGICS));
        }
        let word = self.order.u32(bytes_at(event, 28));
        if word & PASSED_THROUGH != 0 || self.order.action(event) != Some(self.action) {
            return Ok(None);
        }
        let length = u64::from(self.order.u32(bytes_at(event, 24)));
        let flush = word & FLUSH != 0;
        let op = match word {
            _ if flush && length == 0 => HostOp::Flush,
            _ if word & DISCARD != 0 => HostOp::Trim,
            _ if word & WRITE != 0 => HostOp::Write,
            _ if length == 0 => return Ok(None), // neither data nor a flush: blkparse prints `N`
            _ => HostOp::Read,
        };
        let extent =
            if op == HostOp::Flush { Extent::NONE } else { self.extent(event, op, length)? };
        let device = self.device(self.order.u32(bytes_at(event, 36)))?;
        let time = Time::of(self.order.u64(bytes_at(event, 8)), NANOSECOND_PS);
        let data = op != HostOp::Flush;
        Ok(Some(Raw {
            time,
            device,
            op,
            extent,
            fua: data && word & FUA != 0,
            preflush: data && flush,
        }))
    }

    fn time(&self, event: &[u8]) -> u64 {
        self.order.u64(bytes_at(event, 8))
    }

    fn payload(&self, event: &[u8]) -> u64 {
        if self.in_step(event) { self.order.payload(event) as u64 } else { 0 }
    }

    fn in_step(&self, event: &[u8]) -> bool {
        self.order.u32(bytes_at(event, 0)) == MAGIC | u32::from(VERSION)
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}

impl Blktrace {
    fn extent(&self, event: &[u8], op: HostOp, length: u64) -> Result<Extent, Fault> {
        Extent::of_sector_and_bytes(op, self.order.u64(bytes_at(event, 16)), length).map_err(|e| {
            let (at, len) = if e == ExtentError::TooFar { (16, 8) } else { (24, 4) };
            e.fault((at, at + len))
        })
    }
}
