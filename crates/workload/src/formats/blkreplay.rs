//! blkreplay: a text preamble, a line of column names, then `start ; sector ; length ; op ; …`, one
//! line a request.

use crate::Record;
use crate::format::{FormatDef, Presence, Reader, WriterDef};
use crate::lines::{LineFormat, TextSource, sniff};
use crate::raw::{Extent, Fault, NANOSECOND_PS, Raw, SECOND_PS};
use crate::text::{extent_fault, split};
use crate::write::{Encoder, Holds, put_number, put_seconds, text_sink};
use flashatlas_types::{Dur, HostOp};

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "blkreplay",
    summary: "blkreplay load: start ; sector ; length ; op ; replay_delay ; replay_duration",
    quirks: "Everything before the line of column names is a preamble and is skipped. A load that \
             was published twice has a second preamble with its own column names before the first \
             request; the second preamble is skipped, too. Lines must have the number of columns \
             of the latest line of column names. Starts are seconds, addresses and lengths sectors \
             of 512 bytes. Operations are blktrace flags: R, W or D (trim), then A (read ahead), S \
             (synchronous) and M (metadata), which change nothing, and F (forced unit access); F \
             alone is a flush.",
    source: "Thomas Schöbel-Theuer, blkreplay (https://github.com/schoebel/blkreplay); loads of \
             1&1 Internet come with it.",
    licence: "The natural loads may be passed on; changed loads must be renamed.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff(head, Blkreplay::default()),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Blkreplay::default(), start.options)))
    },
    writer: Some(WriterDef { params: &[], create: |create| text_sink(create, BlkreplayText) }),
};

const COLUMNS: &str = "as many columns as the line of column names has";
const NAMES: &str = "a line of column names: start ; sector ; length ; op ; …";
const OPS: &str = "R, W or D and then any of A, S, M, F; or F alone";

#[derive(Default)]
struct Blkreplay {
    /// Number of columns in the line of column names; 0 before this line is read.
    columns: usize,
    /// `true` once the first request was read: no preamble follows.
    begun: bool,
}

impl LineFormat for Blkreplay {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([start, sector, length, flags], count) = split::<4>(line, b';');
        let names = [start, sector, length, flags].map(|f| f.text);
        if names == [&b"start"[..], b"sector", b"length", b"op"] {
            self.columns = count;
            return Ok(None);
        }
        if self.columns == 0 || line.starts_with(b"#") {
            return Ok(None);
        }
        // a time is a number: before the first request, anything else is a preamble
        if !self.begun && start.decimal_time(SECOND_PS, "").is_err() {
            return Ok(None);
        }
        self.begun = true;
        if count != self.columns {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let time = start.decimal_time(SECOND_PS, "a time in seconds")?;
        let (op, fua) =
            operation(flags.text).ok_or_else(|| flags.fault("an unknown operation", OPS))?;
        let extent = if op == HostOp::Flush {
            Extent::NONE
        } else {
            let (first, count) =
                (sector.number("an address in sectors")?, length.number("a length in sectors")?);
            Extent::of_sectors(op, first, count).map_err(|e| extent_fault(e, sector, length))?
        };
        Ok(Some(Raw { time, device: 0, op, extent, fua, preflush: false }))
    }

    fn missing(&self) -> (&'static str, &'static str) {
        if self.columns == 0 {
            ("the line of column names is missing", NAMES)
        } else {
            ("the trace holds no request", "at least one line after the column names")
        }
    }
}

/// Returns the operation of blktrace flags, and `true` if they force unit access.
fn operation(flags: &[u8]) -> Option<(HostOp, bool)> {
    let (&kind, modifiers) = flags.split_first()?;
    let op = match kind {
        b'R' => HostOp::Read,
        b'W' => HostOp::Write,
        b'D' => HostOp::Trim,
        b'F' if modifiers.is_empty() => return Some((HostOp::Flush, false)),
        _ => return None,
    };
    let known = modifiers.iter().all(|m| b"ASMF".contains(m));
    known.then(|| (op, modifiers.contains(&b'F')))
}

struct BlkreplayText;

impl Encoder for BlkreplayText {
    fn holds(&self) -> Holds {
        Holds {
            devices: 1,
            flush_fua: false,
            tick: Dur(NANOSECOND_PS),
            ..Holds::everything("blkreplay")
        }
    }

    fn header(&self) -> Vec<u8> {
        b"start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n".to_vec()
    }

    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let request = &record.request;
        put_seconds(out, request.at);
        for number in [request.lba.0, request.sectors.into()] {
            out.extend_from_slice(b" ; ");
            put_number(out, number);
        }
        out.extend_from_slice(match request.op {
            HostOp::Read => b" ; R",
            HostOp::Write => b" ; W",
            HostOp::Trim => b" ; D",
            HostOp::Flush => b" ; F",
        });
        out.extend_from_slice(if request.fua { b"F ; 0.0 ; 0.0\n" } else { b" ; 0.0 ; 0.0\n" });
    }
}
