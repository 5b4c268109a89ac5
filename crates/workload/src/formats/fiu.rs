//! FIU: `ns pid process lba sectors R|W major minor md5`, one line a request.

use crate::devices::Devices;
use crate::format::{FormatDef, Presence, Reader};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Extent, Fault, NANOSECOND_PS, Raw};
use crate::text::{Field, extent_fault, split_blanks};
use flashatlas_types::HostOp;

/// Units, which the text does not name.
const ASSUMES: &str = "times are nanoseconds, addresses and sizes sectors of 512 bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "fiu",
    summary: "FIU IODedup and SRCMap: timestamp pid process lba sectors R|W major minor md5",
    quirks: "Timestamps are nanoseconds, addresses and lengths sectors of 512 bytes. Major and \
             minor number together are a device. The digests of the content, which follow these \
             numbers, are not read.",
    source: "Koller, Rangaswami: I/O Deduplication, FAST 2010; Verma and others: SRCMap, FAST \
             2010; traces at SNIA IOTTA (https://iotta.snia.org).",
    licence: super::SNIA_LICENCE,
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_assuming(head, Fiu::default(), ASSUMES),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Fiu::default(), start.options)))
    },
    writer: None,
};

const COLUMNS: &str = "at least 8 columns: timestamp pid process lba sectors R|W major minor md5";

#[derive(Default)]
struct Fiu {
    devices: Devices,
}

impl LineFormat for Fiu {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([time, _pid, _process, lba, size, op, major, minor], count) = split_blanks::<8>(line);
        if count < 8 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let kind = match op.text {
            b"R" => HostOp::Read,
            b"W" => HostOp::Write,
            _ => return Err(op.fault("an unknown operation", "R or W")),
        };
        let (first, sectors) =
            (lba.number("an address in sectors")?, size.number("a length in sectors")?);
        let extent =
            Extent::of_sectors(kind, first, sectors).map_err(|e| extent_fault(e, lba, size))?;
        let time = time.time(NANOSECOND_PS, "a time in nanoseconds")?;
        major.number("a major number")?;
        minor.number("a minor number")?;
        // the text `major minor` of the line
        let name =
            Field { text: &line[major.start..minor.start + minor.text.len()], start: major.start };
        Ok(Some(Raw::plain(time, self.devices.number(name)?, kind, extent)))
    }

    fn devices(&self) -> Option<&Devices> {
        Some(&self.devices)
    }
}
