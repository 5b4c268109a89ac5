//! MQSim: `time device sector sectors op`, times in nanoseconds.

use crate::ascii::{Ascii, NANOSECONDS, sniff_nanoseconds};
use crate::format::{Alternative, FormatDef, Presence, Reader, WriterDef};
use crate::lines::TextSource;
use crate::raw::NANOSECOND_PS;
use crate::write::{Encoder, Holds, put_number, text_sink};
use flashatlas_types::{Dur, HostOp};

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "mqsim",
    summary: "MQSim text: time device sector sectors op, in nanoseconds",
    quirks: "1 is a read, 0 a write. Addresses and lengths are sectors of 512 bytes. Every device \
             is an address space of its own. SSDsim reads the same text in the same way; DiskSim \
             reads times as milliseconds, so name the format if the times of a file are whole \
             numbers.",
    source: "Tavakkol and others: MQSim, FAST 2018 (https://github.com/CMU-SAFARI/MQSim), with \
             traces of TPC-C and web search.",
    licence: "MQSim is under the MIT licence; cite the paper.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| sniff_nanoseconds(head, &[Alternative { spec: "mqsim", says: NANOSECONDS }]),
    open: |input, start| {
        Ok(Reader::complete(TextSource::open(input, Ascii::nanoseconds(), start.options)))
    },
    writer: Some(WriterDef { params: &[], create: |create| text_sink(create, MqsimText) }),
};

struct MqsimText;

impl Encoder for MqsimText {
    fn holds(&self) -> Holds {
        Holds { tick: Dur(NANOSECOND_PS), ..Holds::reads_and_writes("mqsim") }
    }

    fn encode(&mut self, record: &crate::Record, out: &mut Vec<u8>) {
        let request = &record.request;
        put_number(out, request.at.0 / NANOSECOND_PS);
        for number in [u64::from(record.device), request.lba.0, u64::from(request.sectors)] {
            out.push(b' ');
            put_number(out, number);
        }
        out.extend_from_slice(if request.op == HostOp::Read { b" 1\n" } else { b" 0\n" });
    }
}
