//! Nexus 5: tab-separated `sector sectors bytes flags generate start submit finish`, one line a
//! request.

use crate::format::{FormatDef, Presence, Reader};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Extent, Fault, Raw, SECOND_PS};
use crate::text::{extent_fault, split_blanks};
use flashatlas_types::{HostOp, SECTOR_BYTES};

/// Units, which the text does not name.
const ASSUMES: &str = "times are seconds, addresses and sizes sectors of 512 bytes";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "nexus5",
    summary: "Nexus 5 eMMC: sector sectors bytes flags generate start submit finish",
    quirks: "Bit 0 of the flags is 1 for a write; the other bits are not read. Addresses and \
             lengths are sectors of 512 bytes. Lengths include extra sectors of the driver: a \
             length above 8 sectors is rounded down to a multiple of 8. The time is the time of \
             generation, in seconds. Some records are out of order, and the clock was set during \
             the trace, which makes steps of days (see --time-gap-max).",
    source: "Zhou and others: I/O Characteristics of Smartphone Applications and Their \
             Implications for eMMC Design, IISWC 2015.",
    licence: "Published for research; cite the paper.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_assuming(head, Nexus5, ASSUMES),
    open: |input, start| Ok(Reader::complete(TextSource::open(input, Nexus5, start.options))),
    writer: None,
};

const COLUMNS: &str = "8 columns: sector sectors bytes flags generate start submit finish";

/// Sectors of a page of the phone's file system.
const PAGE_SECTORS: u64 = 8;

struct Nexus5;

impl LineFormat for Nexus5 {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([sector, size, bytes, flags, generate, start, submit, finish], count) =
            split_blanks::<8>(line);
        if count != 8 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let write = flags.number("flags, bit 0 of which is 1 for a write")? & 1 == 1;
        let op = if write { HostOp::Write } else { HostOp::Read };
        let (first, sectors) =
            (sector.number("an address in sectors")?, size.number("a length in sectors")?);
        if sectors.checked_mul(u64::from(SECTOR_BYTES)) != Some(bytes.number("a length in bytes")?)
        {
            return Err(
                bytes.fault("not the number of bytes in these sectors:", "512 bytes a sector")
            );
        }
        let whole = if sectors > PAGE_SECTORS { sectors - sectors % PAGE_SECTORS } else { sectors };
        let extent =
            Extent::of_sectors(op, first, whole).map_err(|e| extent_fault(e, sector, size))?;
        let time = generate.decimal_time(SECOND_PS, "a time in seconds")?;
        for later in [start, submit, finish] {
            later.decimal_time(SECOND_PS, "a time in seconds")?;
        }
        Ok(Some(Raw::plain(time, 0, op, extent)))
    }
}
