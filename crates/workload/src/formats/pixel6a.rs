//! Pixel 6a: `proces,device,rw_flag,sector,size,timestamp`, one line a request.

use crate::devices::Devices;
use crate::format::{FormatDef, Presence, Reader};
use crate::lines::{LineFormat, TextSource, sniff};
use crate::raw::{Extent, Fault, MICROSECOND_PS, Raw, SECOND_PS, Time};
use crate::rwbs;
use crate::text::{Field, extent_fault, rsplit};
use flashatlas_types::HostOp;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "pixel6a",
    summary: "Pixel 6a UFS, CSV: proces,device,rw_flag,sector,size,timestamp",
    quirks: "Addresses and sizes are sectors of 512 bytes. Timestamps are seconds of uptime, \
             written as binary fractions: they are rounded to the microsecond that was recorded. \
             Gaps between sessions last days, and some records step back in time (see \
             --time-gap-max). In the public traces, 2 to 13 % of the records repeat the previous \
             record within 5 ms (see --drop-duplicates). Flags are operation flags of the Linux \
             block layer. A comma in the name of a process is part of it. The line with column \
             names is skipped.",
    source: "Space-efficient FTL for Mobile Storage via Tiny Neural Nets; traces at \
             https://github.com/acsl-technion/MobileBlockIOTraces: of phone applications while \
             they are installed (precond) and while they run (exec).",
    licence: "Cite the paper; see the repository before passing traces on.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff(head, Pixel::default()),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Pixel::default(), start.options)))
    },
    writer: None,
};

const COLUMNS: &str = "6 columns: proces,device,rw_flag,sector,size,timestamp";

#[derive(Default)]
struct Pixel {
    devices: Devices,
}

impl LineFormat for Pixel {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let Some([process, device, op, sector, size, time]) = rsplit::<6>(line, b',') else {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        };
        if process.text == b"proces" && device.text == b"device" {
            return Ok(None);
        }
        let flags = rwbs::flags(op)?;
        let Some(kind) = flags.op else { return Ok(None) };
        let extent = if kind == HostOp::Flush { Extent::NONE } else { extent(kind, sector, size)? };
        device.number("the number of a device")?;
        let time = time.decimal_time(SECOND_PS, "a time in seconds")?;
        let unit = u128::from(MICROSECOND_PS);
        let time = Time { ps: (time.ps + unit / 2) / unit * unit, ..time };
        let device = self.devices.number(device)?;
        Ok(Some(Raw { time, device, op: kind, extent, fua: flags.fua, preflush: flags.preflush }))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}

fn extent(op: HostOp, sector: Field<'_>, size: Field<'_>) -> Result<Extent, Fault> {
    let (first, sectors) =
        (sector.number("an address in sectors")?, size.number("a size in sectors")?);
    Extent::of_sectors(op, first, sectors).map_err(|e| extent_fault(e, sector, size))
}
