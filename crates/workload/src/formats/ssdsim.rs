//! SSDsim: `time device sector sectors op`, times in nanoseconds.

use crate::ascii::{Ascii, NANOSECONDS, sniff_nanoseconds};
use crate::format::{Alternative, FormatDef, Presence, Reader};
use crate::lines::TextSource;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "ssdsim",
    summary: "SSDsim text: time device sector sectors op, in nanoseconds",
    quirks: "1 is a read, 0 a write. Addresses and lengths are sectors of 512 bytes. Every device \
             is an address space of its own. MQSim reads the same text in the same way; DiskSim \
             reads times as milliseconds, so name the format if the times of a file are whole \
             numbers.",
    source: "Hu and others: Performance Impact and Interplay of SSD Parallelism, ICS 2011; its \
             example holds only the first minutes of Financial1 (UMass), and must not be reported \
             as that trace.",
    licence: "As the trace that was converted.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_nanoseconds(head, &[Alternative { spec: "ssdsim", says: NANOSECONDS }]),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Ascii::nanoseconds(), start.options)))
    },
    writer: None,
};
