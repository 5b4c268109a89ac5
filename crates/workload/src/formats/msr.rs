//! MSR Cambridge: `timestamp,host,disk,Read|Write,offset,size,response`, one line a request.

use crate::Record;
use crate::devices::Devices;
use crate::format::{FormatDef, Presence, Reader, WriterDef};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Fault, Raw};
use crate::text::{Field, byte_extent, split};
use crate::write::{Encoder, Holds, put_number, text_sink};
use flashatlas_types::{Dur, HostOp, SECTOR_BYTES};

/// Units, which the text does not name.
const ASSUMES: &str = "times are units of 100 ns, addresses and sizes bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "msr",
    summary: "MSR Cambridge CSV: timestamp,host,disk,Read|Write,offset,size,response",
    quirks: "Timestamps are units of 100 ns since 1601. Offsets and sizes are bytes: a request is \
             widened to the sectors that it touches. Each host and disk together is a device. The \
             response time is not read. A line of column names is skipped.",
    source: "Narayanan, Donnelly, Rowstron: Write Off-Loading, FAST 2008; traces at SNIA IOTTA \
             (https://iotta.snia.org).",
    licence: super::SNIA_LICENCE,
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_assuming(head, Msr::default(), ASSUMES),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Msr::default(), start.options)))
    },
    writer: Some(WriterDef { params: &[], create: |create| text_sink(create, MsrText) }),
};

const COLUMNS: &str = "7 columns: timestamp,host,disk,Read|Write,offset,size,response";

/// Picoseconds in a unit of a Windows file time, which is 100 ns.
const TICK_PS: u64 = 100_000;

#[derive(Default)]
struct Msr {
    devices: Devices,
}

impl LineFormat for Msr {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([time, host, disk, op, offset, length, _response], count) = split::<7>(line, b',');
        if time.text.eq_ignore_ascii_case(b"timestamp") {
            return Ok(None);
        }
        if count != 7 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let time = time.time(TICK_PS, "a timestamp in units of 100 ns")?;
        disk.number("the number of a disk")?;
        let op = match op.text {
            text if text.eq_ignore_ascii_case(b"read") => HostOp::Read,
            text if text.eq_ignore_ascii_case(b"write") => HostOp::Write,
            _ => return Err(op.fault("an unknown operation", "Read or Write")),
        };
        let extent = byte_extent(op, offset, length)?;
        // the text `host,disk` of the line
        let name =
            Field { text: &line[host.start..disk.start + disk.text.len()], start: host.start };
        let device = self.devices.number(name)?;
        Ok(Some(Raw::plain(time, device, op, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}

struct MsrText;

impl Encoder for MsrText {
    fn holds(&self) -> Holds {
        Holds { tick: Dur(TICK_PS), ..Holds::reads_and_writes("msr") }
    }

    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let request = &record.request;
        put_number(out, request.at.0 / TICK_PS);
        out.extend_from_slice(b",host,");
        put_number(out, record.device.into());
        out.extend_from_slice(if request.op == HostOp::Read { b",Read," } else { b",Write," });
        put_number(out, request.lba.0 * u64::from(SECTOR_BYTES));
        out.push(b',');
        put_number(out, u64::from(request.sectors) * u64::from(SECTOR_BYTES));
        out.extend_from_slice(b",0\n");
    }
}
