//! DiskSim ASCII: `time device sector size op`, times in milliseconds.

use crate::ascii::{Ascii, Look, look, may_be_bytes};
use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Sniff, Start};
use crate::lines::TextSource;
use flashatlas_types::{Param, SECTOR_BYTES};
use std::io::BufRead;

const SIZE: Param<u64> = Param::bytes(
    "size",
    SECTOR_BYTES as u64,
    1 << 20,
    "bytes in a unit of size, a multiple of 512; 4KiB for the uFLIP traces",
)
.or("512");

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "disksim",
    summary: "DiskSim ASCII: time device sector size op, in milliseconds",
    quirks: "1 is a read, 0 a write. Addresses are sectors of 512 bytes, and so are sizes; in the \
             traces that go by the name of uFLIP, whose columns are separated by tabs, sizes are \
             pages of 4 KiB (size=4KiB). Every device is an address space of its own. Times with \
             decimals tell the format from those of SSDsim and MQSim. Where every address and size \
             is a multiple of 512, they may be bytes, and the format must be named.",
    source: "Bucy and others: The DiskSim Simulation Environment, version 4.0, CMU-PDL-08-101 \
             (2008); the SSD extension of Microsoft Research comes with traces in it.",
    licence: "As the trace that was converted.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[SIZE.def],
    sniff,
    open,
    writer: None,
};

fn sniff(head: &[u8]) -> Sniff {
    match look(head) {
        None => Sniff::No,
        Some(Look::Decimal | Look::DecimalTabs) if may_be_bytes(head) => Sniff::Perhaps(
            "disksim if addresses and sizes are sectors and times milliseconds, \
             columns:time=0:ms,device=1,offset=2:bytes,size=3:bytes,op=4,read=1,write=0,\
             delimiter=space if they are bytes (time=0:s if times are seconds)",
        ),
        Some(Look::Decimal) => Sniff::Yes,
        Some(Look::DecimalTabs) => Sniff::Perhaps(
            "disksim if sizes are sectors, disksim:size=4KiB if they are pages of 4 KiB, as in the \
             uFLIP traces",
        ),
        Some(Look::Whole) => Sniff::Perhaps("times are milliseconds"),
    }
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let size_bytes =
        super::whole_sectors(start.params, FORMAT.name, SIZE)? * u64::from(SECTOR_BYTES);
    Ok(Reader::complete(TextSource::open(input, Ascii::milliseconds(size_bytes), start.options)))
}
