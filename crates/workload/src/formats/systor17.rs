//! Systor '17: `Timestamp,Response,IOType,LUN,Offset,Size`, one line a request.

use crate::devices::Devices;
use crate::format::{FormatDef, Presence, Reader};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Fault, Raw, SECOND_PS};
use crate::text::{byte_extent, split};
use flashatlas_types::HostOp;

/// Units, which the text does not name.
const ASSUMES: &str = "times are seconds, addresses and sizes bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "systor17",
    summary: "Systor '17 (Fujitsu VDI), CSV: Timestamp,Response,IOType,LUN,Offset,Size",
    quirks: "Timestamps are seconds since 1970, offsets and sizes bytes. Records were written as \
             requests completed: a quarter is out of order. Response times may be missing and are \
             not read. Every LUN is a device. The line of column names is skipped.",
    source: "Lee and others: Understanding Storage Traffic Characteristics on Enterprise Virtual \
             Desktop Infrastructure, SYSTOR 2017; traces at SNIA IOTTA (https://iotta.snia.org).",
    licence: super::SNIA_LICENCE,
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_assuming(head, Systor::default(), ASSUMES),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Systor::default(), start.options)))
    },
    writer: None,
};

const COLUMNS: &str = "6 columns: Timestamp,Response,IOType,LUN,Offset,Size";

#[derive(Default)]
struct Systor {
    devices: Devices,
}

impl LineFormat for Systor {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([time, response, op, lun, offset, size], count) = split::<6>(line, b',');
        if time.text.eq_ignore_ascii_case(b"timestamp") {
            return Ok(None);
        }
        if count != 6 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let kind = match op.text {
            b"R" => HostOp::Read,
            b"W" => HostOp::Write,
            _ => return Err(op.fault("an unknown operation", "R or W")),
        };
        if !response.text.is_empty() {
            response.decimal_time(SECOND_PS, "a response time in seconds, or nothing")?;
        }
        let extent = byte_extent(kind, offset, size)?;
        let time = time.decimal_time(SECOND_PS, "a time in seconds")?;
        Ok(Some(Raw::plain(time, self.devices.number(lun)?, kind, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}
