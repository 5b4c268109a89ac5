//! Storage Performance Council: `ASU,LBA,size,opcode,timestamp`, one line a request (UMass
//! Financial and WebSearch).

use crate::Record;
use crate::devices::Devices;
use crate::format::{FormatDef, Presence, Reader, WriterDef};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Extent, Fault, Raw, SECOND_PS};
use crate::text::{extent_fault, split};
use crate::write::{Encoder, Holds, put_number, put_seconds, text_sink};
use flashatlas_types::{HostOp, SECTOR_BYTES};

/// Units, which the text does not name.
const ASSUMES: &str = "times are seconds, addresses sectors of 512 bytes and sizes bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "spc",
    summary: "Storage Performance Council: ASU,LBA,size,opcode,timestamp",
    quirks: "LBAs are sectors of 512 bytes, sizes are bytes (rounded up to sectors), timestamps \
             are seconds. Opcodes are letters in upper or lower case. Every ASU is a device, an \
             address space of its own. Fields after the fifth, which the specification leaves \
             open, are not read.",
    source: "Storage Performance Council, SPC trace file format specification, revision 1.0.1 \
             (2002); Financial and WebSearch at the UMass Trace Repository \
             (https://traces.cs.umass.edu).",
    licence: "UMass: free to use; acknowledge the repository.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_assuming(head, Spc::default(), ASSUMES),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Spc::default(), start.options)))
    },
    writer: Some(WriterDef { params: &[], create: |create| text_sink(create, SpcText) }),
};

const COLUMNS: &str = "at least 5 columns: ASU,LBA,size,opcode,timestamp";

#[derive(Default)]
struct Spc {
    devices: Devices,
}

impl LineFormat for Spc {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([asu, lba, size, op, time], count) = split::<5>(line, b',');
        if count < 5 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        asu.number("the number of an ASU")?;
        let kind = match op.text {
            b"r" | b"R" => HostOp::Read,
            b"w" | b"W" => HostOp::Write,
            _ => return Err(op.fault("an unknown operation", "r or w")),
        };
        let (first, bytes) =
            (lba.number("an address in sectors")?, size.number("a size in bytes")?);
        let extent = Extent::of_sector_and_bytes(kind, first, bytes)
            .map_err(|e| extent_fault(e, lba, size))?;
        let time = time.decimal_time(SECOND_PS, "a time in seconds")?;
        let device = self.devices.number(asu)?;
        Ok(Some(Raw::plain(time, device, kind, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}

struct SpcText;

impl Encoder for SpcText {
    fn holds(&self) -> Holds {
        Holds::reads_and_writes("spc")
    }

    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let request = &record.request;
        for number in [
            record.device.into(),
            request.lba.0,
            u64::from(request.sectors) * u64::from(SECTOR_BYTES),
        ] {
            put_number(out, number);
            out.push(b',');
        }
        out.extend_from_slice(if request.op == HostOp::Read { b"r," } else { b"w," });
        put_seconds(out, request.at);
        out.push(b'\n');
    }
}
