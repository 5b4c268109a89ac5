//! Alibaba block traces: `device,R|W,offset,length,microseconds`, one line a request.

use crate::devices::Devices;
use crate::format::{FormatDef, Presence, Reader};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Fault, MICROSECOND_PS, Raw};
use crate::text::{byte_extent, split};
use flashatlas_types::HostOp;

/// Units, which the text does not name.
const ASSUMES: &str = "times are microseconds, addresses and sizes bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "alibaba",
    summary: "Alibaba block traces, CSV: device,R|W,offset,length,timestamp",
    quirks: "Offsets and lengths are bytes: a request is widened to the sectors that it touches. \
             Timestamps are microseconds. Every volume is a device. A line of column names is \
             skipped.",
    source: "Li, Wang, Lee, Lui: An In-Depth Analysis of Cloud Block Storage Workloads in \
             Large-Scale Production, IISWC 2020; traces at \
             https://github.com/alibaba/block-traces.",
    licence: "For research; cite the paper.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_assuming(head, Alibaba::default(), ASSUMES),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Alibaba::default(), start.options)))
    },
    writer: None,
};

const COLUMNS: &str = "5 columns: device,R|W,offset,length,timestamp";

#[derive(Default)]
struct Alibaba {
    devices: Devices,
}

impl LineFormat for Alibaba {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([device, op, offset, length, time], count) = split::<5>(line, b',');
        if device.text.eq_ignore_ascii_case(b"device_id") {
            return Ok(None);
        }
        if count != 5 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let kind = match op.text {
            b"R" => HostOp::Read,
            b"W" => HostOp::Write,
            _ => return Err(op.fault("an unknown operation", "R or W")),
        };
        let extent = byte_extent(kind, offset, length)?;
        let time = time.time(MICROSECOND_PS, "a timestamp in microseconds")?;
        Ok(Some(Raw::plain(time, self.devices.number(device)?, kind, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}
