//! DiskSim ASCII: `time device sector size op`, times in milliseconds.

use crate::ascii::{Ascii, Look, look, may_be_bytes};
use crate::error::OpenError;
use crate::format::{Alternative, FormatDef, Presence, Reader, Sniff, Start};
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
    quirks: "1 is a read, 0 a write. Addresses and sizes are sectors of 512 bytes. In the uFLIP \
             traces, sizes are pages of 4 KiB (`size=4KiB`), and tabs separate the columns. Every \
             device is an address space of its own. The text names no units. The format must be \
             named if other units are plausible, too: seconds, bytes or, for times without \
             decimals, the nanoseconds of SSDsim and MQSim.",
    source: "Bucy and others: The DiskSim Simulation Environment, version 4.0, CMU-PDL-08-101 \
             (2008); the SSD extension of Microsoft Research comes with traces in this format.",
    licence: "As the trace that was converted.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[SIZE.def],
    sniff,
    open,
    writer: None,
};

/// Specification of `columns` for a reading of the five columns that no other format covers.
macro_rules! columns {
    ($time:literal, $unit:literal) => {
        concat!(
            "columns:time=0:",
            $time,
            ",device=1,offset=2:",
            $unit,
            ",size=3:",
            $unit,
            ",op=4,read=1,write=0,delimiter=space"
        )
    };
}

const MS_SECTORS: Alternative = Alternative {
    spec: "disksim",
    says: "times are milliseconds, addresses and sizes sectors of 512 bytes",
};
const MS_PAGES: Alternative = Alternative {
    spec: "disksim:size=4KiB",
    says: "times are milliseconds, addresses sectors and sizes pages of 4 KiB, as in the uFLIP \
           traces",
};
const S_SECTORS: Alternative = Alternative {
    spec: columns!("s", "sectors"),
    says: "times are seconds, addresses and sizes sectors of 512 bytes",
};
const MS_BYTES: Alternative = Alternative {
    spec: columns!("ms", "bytes"),
    says: "times are milliseconds, addresses and sizes bytes",
};
const S_BYTES: Alternative = Alternative {
    spec: columns!("s", "bytes"),
    says: "times are seconds, addresses and sizes bytes",
};
const NS_BYTES: Alternative = Alternative {
    spec: columns!("ns", "bytes"),
    says: "times are nanoseconds, addresses and sizes bytes",
};

/// Returns all readings of five columns. The text names no unit, and times with decimals do not
/// prove that the text comes from DiskSim.
fn sniff(head: &[u8]) -> Sniff {
    Sniff::Perhaps(match (look(head), may_be_bytes(head)) {
        (None, _) => return Sniff::No,
        (Some(Look::Decimal), false) => &[MS_SECTORS, S_SECTORS],
        (Some(Look::Decimal), true) => &[MS_SECTORS, S_SECTORS, MS_BYTES, S_BYTES],
        (Some(Look::DecimalTabs), false) => &[MS_SECTORS, MS_PAGES, S_SECTORS],
        (Some(Look::DecimalTabs), true) => &[MS_SECTORS, MS_PAGES, S_SECTORS, MS_BYTES, S_BYTES],
        (Some(Look::Whole), false) => &[MS_SECTORS],
        (Some(Look::Whole), true) => &[MS_SECTORS, MS_BYTES, NS_BYTES],
    })
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let size_bytes =
        super::whole_sectors(start.params, FORMAT.name, SIZE)? * u64::from(SECTOR_BYTES);
    Ok(Reader::complete(TextSource::open(input, Ascii::milliseconds(size_bytes), start.options)))
}
