//! Tencent cloud block storage: `seconds,offset,size,0|1,volume`, one line a request.

use crate::devices::Devices;
use crate::format::{FormatDef, Presence, Reader};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Extent, Fault, Raw, SECOND_PS};
use crate::text::{extent_fault, split};
use flashatlas_types::HostOp;

/// Units, which the text does not name.
const ASSUMES: &str = "times are seconds, addresses and sizes sectors of 512 bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "tencent",
    summary: "Tencent CBS, CSV: timestamp,offset,size,0|1,volume",
    quirks: "Timestamps are whole seconds since 1970: requests of a second arrive together. \
             Offsets and sizes are sectors of 512 bytes. 0 is a read, 1 a write. Every volume is a \
             device. A line of column names is skipped.",
    source: "Zhang and others: OSCA, USENIX ATC 2020; traces at SNIA IOTTA \
             (https://iotta.snia.org/traces/parallel/28064).",
    licence: super::SNIA_LICENCE,
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_assuming(head, Tencent::default(), ASSUMES),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Tencent::default(), start.options)))
    },
    writer: None,
};

const COLUMNS: &str = "5 columns: timestamp,offset,size,0|1,volume";

#[derive(Default)]
struct Tencent {
    devices: Devices,
}

impl LineFormat for Tencent {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([time, offset, size, op, volume], count) = split::<5>(line, b',');
        if time.text.eq_ignore_ascii_case(b"timestamp") {
            return Ok(None);
        }
        if count != 5 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let kind = match op.text {
            b"0" => HostOp::Read,
            b"1" => HostOp::Write,
            _ => return Err(op.fault("an unknown operation", "0 (read) or 1 (write)")),
        };
        let (first, sectors) =
            (offset.number("an offset in sectors")?, size.number("a size in sectors")?);
        let extent =
            Extent::of_sectors(kind, first, sectors).map_err(|e| extent_fault(e, offset, size))?;
        let time = time.time(SECOND_PS, "a time in whole seconds")?;
        volume.number("the number of a volume")?;
        Ok(Some(Raw::plain(time, self.devices.number(volume)?, kind, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}
