//! WiscSee events: `pid action op offset length time gap sync`, one line an event.

use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Start};
use crate::lines::{LineFormat, TextSource, head_lines, sniff_assuming};
use crate::raw::{Fault, Raw, SECOND_PS};
use crate::rwbs::{ACTION, Action};
use crate::text::{byte_extent, split_blanks};
use flashatlas_types::HostOp;
use std::io::BufRead;

/// Units, which the text does not name.
const ASSUMES: &str = "times are seconds, addresses and sizes bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "events",
    summary: "WiscSee events: pid action op offset length time gap sync",
    quirks: "One kind of event is read: D (issued) if the first 64 KiB hold a D event, else C \
             (completed), else Q (queued); `action=C` names the kind. Offsets and lengths are \
             bytes, times seconds. Operations are read, write and discard (a trim).",
    source: "He and others: The Unwritten Contract of Solid State Drives, EuroSys 2017 \
             (https://github.com/junhe/wiscsee).",
    licence: "Cite the paper.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[ACTION.def],
    sniff: |head| sniff_assuming(head, Events { action: None }, ASSUMES),
    open,
    writer: None,
};

const COLUMNS: &str = "8 columns: pid action op offset length time gap sync";

struct Events {
    /// Action of the events that are read; `None` reads every [`Action`].
    action: Option<Action>,
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let occurring =
        head_lines(start.head).filter_map(|line| Action::named(split_blanks::<2>(line).0[1].text));
    let action = Some(Action::chosen(start.params, occurring));
    Ok(Reader::complete(TextSource::open(input, Events { action }, start.options)))
}

impl LineFormat for Events {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([pid, action, op, offset, length, time, _gap, _sync], count) = split_blanks::<8>(line);
        if count != 8 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        pid.number("the number of a process")?;
        let kind = match op.text {
            b"read" => HostOp::Read,
            b"write" => HostOp::Write,
            b"discard" => HostOp::Trim,
            _ => return Err(op.fault("an unknown operation", "read, write or discard")),
        };
        let named = Action::named(action.text)
            .ok_or_else(|| action.fault("an unknown action", "D, C or Q"))?;
        if self.action.is_some_and(|wanted| wanted != named) {
            return Ok(None);
        }
        let extent = byte_extent(kind, offset, length)?;
        Ok(Some(Raw::plain(time.decimal_time(SECOND_PS, "a time in seconds")?, 0, kind, extent)))
    }

    fn missing(&self) -> (&'static str, &'static str) {
        ("the trace holds no request", "at least one event of the action that is read")
    }
}
