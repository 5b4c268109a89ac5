//! FlashAtlas CSV: all fields of a record, as text that other tools can read.

use crate::Record;
use crate::format::{FormatDef, Presence, Reader, Sniff, WriterDef};
use crate::lines::{LineFormat, TextSource, first_line};
use crate::raw::{Extent, Fault, Raw};
use crate::source::MAX_DEVICES;
use crate::text::{Field, extent_fault, split};
use crate::write::{Encoder, Holds, put_number, text_sink};
use flashatlas_types::HostOp;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "csv",
    summary: "FlashAtlas CSV: time_ps,op,sector,sectors,fua,device",
    quirks: "The first line names the columns and shows the format. Times are picoseconds since \
             the first record of the trace, even if this file begins with a later record. \
             Operations are read, write, trim and flush; fua is 0 or 1. The numbers of devices are \
             kept.",
    source: "FlashAtlas, docs/FORMATS.md.",
    licence: "As the trace that was converted.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| if first_line(head) == HEADER { Sniff::Yes } else { Sniff::No },
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Csv { named: false }, start.options)))
    },
    writer: Some(WriterDef { params: &[], create: |create| text_sink(create, CsvText) }),
};

const HEADER: &[u8] = b"time_ps,op,sector,sectors,fua,device";
const COLUMNS: &str = "6 columns: time_ps,op,sector,sectors,fua,device";

struct Csv {
    /// `true` once the line of column names has been read.
    named: bool,
}

impl LineFormat for Csv {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        if !self.named {
            self.named = line.trim_ascii() == HEADER;
            return if self.named {
                Ok(None)
            } else {
                Err(Fault::whole("not a line of column names:", COLUMNS))
            };
        }
        let ([time, op, sector, sectors, fua, device], count) = split::<6>(line, b',');
        if count != 6 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let kind = HostOp::ALL.into_iter().find(|kind| kind.name().as_bytes() == op.text);
        let kind =
            kind.ok_or_else(|| op.fault("an unknown operation", "read, write, trim or flush"))?;
        let extent = extent(kind, sector, sectors)?;
        let fua = match fua.text {
            b"0" => false,
            b"1" => true,
            _ => return Err(fua.fault("not 0 or 1:", "1 for forced unit access, else 0")),
        };
        let number = device.number("the number of a device")?;
        let number = u32::try_from(number).ok().filter(|&n| n < MAX_DEVICES);
        let device =
            number.ok_or_else(|| device.fault("not a device number:", "at most 65,535"))?;
        let time = time.time(1, "a time in picoseconds")?;
        Ok(Some(Raw { time, device, op: kind, extent, fua, preflush: false }))
    }

    fn origin_ps(&self) -> Option<u128> {
        Some(0)
    }
}

fn extent(op: HostOp, sector: Field<'_>, sectors: Field<'_>) -> Result<Extent, Fault> {
    let (first, count) =
        (sector.number("an address in sectors")?, sectors.number("a length in sectors")?);
    match op {
        HostOp::Flush if (first, count) == (0, 0) => Ok(Extent::NONE),
        HostOp::Flush => Err(sectors.fault("a flush with an address or length:", "0 for both")),
        _ => Extent::of_sectors(op, first, count).map_err(|e| extent_fault(e, sector, sectors)),
    }
}

struct CsvText;

impl Encoder for CsvText {
    fn holds(&self) -> Holds {
        Holds::everything("csv")
    }

    fn header(&self) -> Vec<u8> {
        [HEADER, b"\n"].concat()
    }

    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let request = &record.request;
        put_number(out, request.at.0);
        out.push(b',');
        out.extend_from_slice(request.op.name().as_bytes());
        for number in
            [request.lba.0, request.sectors.into(), request.fua.into(), record.device.into()]
        {
            out.push(b',');
            put_number(out, number);
        }
        out.push(b'\n');
    }
}
