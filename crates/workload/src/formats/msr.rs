//! MSR Cambridge: `timestamp,host,disk,Read|Write,offset,size,response`, one line a request.

use super::{FormatDef, Times};
use crate::lines::{LineFormat, TextSource, sniff};
use crate::source::{Fault, Raw};
use crate::text::{Devices, Field, byte_extent, split};
use flashatlas_types::HostOp;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "msr",
    summary: "MSR Cambridge CSV: timestamp,host,disk,Read|Write,offset,size,response",
    quirks: "Timestamps are units of 100 ns since 1601. Offsets and sizes are bytes: a request is widened to the sectors \
             that it touches. Each host and disk together is a device. The response time is not read. A line of \
             column names is passed over.",
    times: Times::Always,
    sniff: |head| sniff(head, Msr::default()),
    open: |input, options| Ok(TextSource::open(input, Msr::default(), options)),
};

const COLUMNS: &str = "7 columns: timestamp,host,disk,Read|Write,offset,size,response";

/// A Windows file time counts 100 ns.
const TICK_PS: u128 = 100_000;

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
        let ticks = time.number("a timestamp in units of 100 ns")?;
        disk.number("the number of a disk")?;
        let op = match op.text {
            text if text.eq_ignore_ascii_case(b"read") => HostOp::Read,
            text if text.eq_ignore_ascii_case(b"write") => HostOp::Write,
            _ => return Err(op.fault("an unknown operation", "Read or Write")),
        };
        let extent = byte_extent(op, offset, length)?;
        // `host,disk`, as it stands in the line
        let name = Field { text: &line[host.start..disk.start + disk.text.len()], start: host.start };
        let device = self.devices.number(name)?;
        Ok(Some(Raw { time_ps: u128::from(ticks) * TICK_PS, device, op, extent, fua: false }))
    }
}
