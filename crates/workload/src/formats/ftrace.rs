//! The kernel's own text of its block events, as `/sys/kernel/tracing/trace`, `trace-cmd report`
//! and `perf script` print them. A line is `task-pid [cpu] … seconds: block_rq_issue: device flags
//! bytes (command) sector + sectors … [task]`.

use super::blkparse::{extent, is_device};
use crate::devices::Devices;
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Start};
use crate::lines::{LineFormat, TextSource, head_lines, sniff};
use crate::raw::{Extent, Fault, Raw, SECOND_PS, Time};
use crate::rwbs::{self, ACTION, Action};
use crate::text::{Field, fields};
use flashatlas_types::HostOp;
use std::io::BufRead;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "ftrace",
    summary: "the kernel's text of block events: task-pid [cpu] seconds: block_rq_issue: …",
    quirks: "This is the text that /sys/kernel/tracing/trace, trace-cmd report and perf script \
             print. One kind of event is read: D (block_rq_issue) if the first 64 KiB hold a D \
             event, else C (block_rq_complete), else Q (block_bio_queue); `action=C` names the \
             kind. All other events, lines that begin with #, and pass-through commands (N) are \
             skipped. Times are seconds, addresses and lengths sectors of 512 bytes. Flags, \
             flushes and zones are as in blkparse. Every device is an address space of its own.",
    source: "Linux, include/trace/events/block.h and Documentation/trace/ftrace.rst.",
    licence: "Whoever recorded a trace sets its terms.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[ACTION.def],
    sniff: |head| sniff(head, Ftrace { action: None, devices: Devices::default() }),
    open,
    writer: None,
};

const EVENT: &str = "the fields task-pid [cpu] seconds: event: its fields";
const FIELDS: &str = "the fields device flags … sector + sectors";

struct Ftrace {
    /// Action of the events that are read; `None` reads every [`Action`].
    action: Option<Action>,
    devices: Devices,
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let occurring = head_lines(start.head).filter_map(|line| event(line)?.1);
    let action = Some(Action::chosen(start.params, occurring));
    let format = Ftrace { action, devices: Devices::default() };
    Ok(Reader::complete(TextSource::open(input, format, start.options)))
}

/// Returns the time of a line, the action of its event if the event is a request, and the fields
/// that follow. The name of a task may contain blanks, so the time is the field before the event.
fn event(line: &[u8]) -> Option<(Field<'_>, Option<Action>, impl Iterator<Item = Field<'_>>)> {
    let mut rest = fields(line, None);
    let mut time = None;
    while let Some(field) = rest.next() {
        if let (Some(time), Some(name)) = (time, field.text.strip_suffix(b":")) {
            let name = name.strip_prefix(b"block:").unwrap_or(name);
            let action = match name {
                b"block_rq_issue" => Some(Action::Issued),
                b"block_rq_complete" => Some(Action::Completed),
                b"block_bio_queue" => Some(Action::Queued),
                _ => None,
            };
            return Some((time, action, rest));
        }
        time = seconds(field);
    }
    None
}

/// Returns `field` without its colon, or `None` if it is no time.
fn seconds(field: Field<'_>) -> Option<Field<'_>> {
    let text = field.text.strip_suffix(b":")?;
    let digits = text.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    (digits && text.contains(&b'.')).then_some(Field { text, ..field })
}

impl LineFormat for Ftrace {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let text = line.trim_ascii_start();
        if text.starts_with(b"#") || text.starts_with(b"CPU:") || text.starts_with(b"cpus=") {
            return Ok(None);
        }
        let Some((time, action, mut rest)) = event(line) else {
            return Err(Fault::whole("not a kernel event:", EVENT));
        };
        let Some(action) = action else { return Ok(None) };
        if self.action.is_some_and(|wanted| wanted != action) {
            return Ok(None);
        }
        let few = || Fault::whole("too few fields in a request event:", FIELDS);
        let (device, flags) = rest.next().zip(rest.next()).ok_or_else(few)?;
        if !is_device(device.text) {
            return Err(device.fault("not a device:", "major,minor"));
        }
        let flags = rwbs::flags(flags)?;
        let Some(op) = flags.op else { return Ok(None) };
        // some events have the bytes and the command before the sector, other events do not
        let mut before = [Field::default(); 2];
        let plus = rest.by_ref().find(|field| {
            before = [before[1], *field];
            field.text == b"+"
        });
        let (Some(_), Some(sectors)) = (plus, rest.next()) else { return Err(few()) };
        let sector = before[0];
        // the event of a zone reset has no length, and no other event holds the size of the zone
        if op == HostOp::Trim && flags.zone && sectors.text == b"0" {
            return Ok(None);
        }
        let extent = if op == HostOp::Flush { Extent::NONE } else { extent(op, sector, sectors)? };
        let time: Time = time.decimal_time(SECOND_PS, "a time in seconds")?;
        let device = self.devices.number(device)?;
        Ok(Some(Raw { time, device, op, extent, fua: flags.fua, preflush: flags.preflush }))
    }

    fn missing(&self) -> (&'static str, &'static str) {
        ("the trace holds no request", "at least one event of the action that is read")
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}
