//! Text of blkparse in its default form:
//! `device cpu sequence time pid action flags sector + sectors [process]`.

use crate::devices::Devices;
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Start};
use crate::lines::{LineFormat, TextSource, head_lines, sniff};
use crate::raw::{Extent, Fault, Raw, SECOND_PS};
use crate::rwbs::{self, ACTION, Action};
use crate::text::{Field, extent_fault, split_blanks};
use flashatlas_types::HostOp;
use std::io::BufRead;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "blkparse",
    summary: "blkparse text: device cpu sequence time pid action flags sector + sectors [process]",
    quirks: "One kind of event is read: D (issued) if the first 64 KiB hold a D event, else C \
             (completed), else Q (queued); `action=C` names the kind. All other events are \
             skipped. Pass-through commands (N, or bytes in brackets) are skipped, too, and so are \
             lines that begin with a letter: the summary for each CPU at the end. Times are \
             seconds, addresses and lengths sectors of 512 bytes. A flag F before the operation is \
             delivered as a flush before the request. An append to a zone (ZA) is a write at the \
             sector of its event. A reset (ZR) is a trim if the event has a length. A reset \
             without a length is skipped, and so are ZRA, ZO, ZC and ZF, which carry no data. \
             Every device is an address space of its own. Some files hold absurd times (see \
             --time-gap-max).",
    source: "blktrace (https://git.kernel.dk/cgit/blktrace): blkparse(1), default output.",
    licence: "Whoever recorded a trace sets its terms.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[ACTION.def],
    sniff: |head| sniff(head, Blkparse { action: None, devices: Devices::default() }),
    open,
    writer: None,
};

const EVENT: &str = "the fields device cpu sequence time pid action flags sector + sectors";

struct Blkparse {
    /// Action of the events that are read; `None` reads every [`Action`].
    action: Option<Action>,
    devices: Devices,
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let occurring =
        head_lines(start.head).filter_map(|line| Action::named(split_blanks::<6>(line).0[5].text));
    let format = Blkparse {
        action: Some(Action::chosen(start.params, occurring)),
        devices: Devices::default(),
    };
    Ok(Reader::complete(TextSource::open(input, format, start.options)))
}

impl LineFormat for Blkparse {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        if line.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic) {
            return Ok(None);
        }
        let (fields, count) = split_blanks::<10>(line);
        let [device, _cpu, _sequence, time, _pid, action, flags, sector, plus, sectors] = fields;
        if count < 7 || !is_device(device.text) {
            return Err(Fault::whole("not a blkparse event:", EVENT));
        }
        match Action::named(action.text) {
            Some(action) if self.action.is_none_or(|wanted| wanted == action) => {}
            _ => return Ok(None),
        }
        let flags = rwbs::flags(flags)?;
        let passed_through = sector.text.starts_with(b"(") || plus.text.starts_with(b"(");
        let Some(op) = flags.op.filter(|_| !passed_through) else { return Ok(None) };
        // the event of a zone reset has no length, and no other event holds the size of the zone
        if op == HostOp::Trim && flags.zone && sectors.text == b"0" {
            return Ok(None);
        }
        let extent = match op {
            HostOp::Flush => Extent::NONE,
            _ if plus.text != b"+" => return Err(Fault::whole("no sectors in the event", EVENT)),
            _ => extent(op, sector, sectors)?,
        };
        let time = time.decimal_time(SECOND_PS, "a time in seconds")?;
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

/// Returns `true` if `text` is `major,minor`.
pub(super) fn is_device(text: &[u8]) -> bool {
    let mut parts = text.split(|&b| b == b',');
    let number = |part: Option<&[u8]>| {
        part.is_some_and(|p| !p.is_empty() && p.iter().all(u8::is_ascii_digit))
    };
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

pub(super) fn extent(op: HostOp, sector: Field<'_>, sectors: Field<'_>) -> Result<Extent, Fault> {
    let (first, count) =
        (sector.number("an address in sectors")?, sectors.number("a length in sectors")?);
    Extent::of_sectors(op, first, count).map_err(|e| extent_fault(e, sector, sectors))
}
