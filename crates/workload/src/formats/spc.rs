//! Storage Performance Council: `ASU,LBA,size,opcode,timestamp`, one line a request (UMass Financial and WebSearch).

use super::{FormatDef, Times};
use crate::lines::{LineFormat, TextSource, sniff};
use crate::source::{Extent, Fault, Raw};
use crate::text::{Devices, extent_fault, split};
use flashatlas_types::HostOp;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "spc",
    summary: "Storage Performance Council: ASU,LBA,size,opcode,timestamp",
    quirks: "LBAs are sectors of 512 bytes, sizes are bytes (rounded up to sectors), timestamps are seconds. Opcodes \
             come in both cases. Every ASU is a device, an address space of its own. Fields after the fifth, which the \
             specification leaves open, are not read.",
    times: Times::Always,
    sniff: |head| sniff(head, Spc::default()),
    open: |input, options| Ok(TextSource::open(input, Spc::default(), options)),
};

const COLUMNS: &str = "at least 5 columns: ASU,LBA,size,opcode,timestamp";
const SECOND_PS: u64 = 1_000_000_000_000;

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
        let (first, bytes) = (lba.number("an address in sectors")?, size.number("a size in bytes")?);
        let extent = Extent::of_sector_and_bytes(kind, first, bytes).map_err(|e| extent_fault(e, lba, size))?;
        let time_ps = time.decimal_ps(SECOND_PS, "a time in seconds")?;
        let device = self.devices.number(asu)?;
        Ok(Some(Raw { time_ps, device, op: kind, extent, fua: false }))
    }
}
