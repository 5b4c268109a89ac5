//! FlashAtlas binary: blocks of columns with checksums and an index by time.

use crate::atlas::{self, Writer};
use crate::format::{FormatDef, Presence, Reader, Sniff, WriterDef};
use flashatlas_types::Param;

const ZSTD: Param<u64> =
    Param::int("zstd", 0, 19, "the level of compression of each block; 0: none").or("3");

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "atlas",
    summary: "FlashAtlas binary (.fatr): compact, checked, with an index by time",
    quirks: "A file holds every field of its records, the names of devices, and the origin of the \
             trace. Every part has a checksum. A damaged block ends reading, even if bad records \
             may be skipped. Times count from the first record of the trace.",
    source: "FlashAtlas, docs/FORMATS.md.",
    licence: "As the trace that was converted.",
    times: Presence::Always,
    operations: Presence::Always,
    params: &[],
    sniff: |head| if head.starts_with(&atlas::MAGIC) { Sniff::Yes } else { Sniff::No },
    open: |input, start| Ok(Reader::complete(atlas::stream(Box::new(input), start.options)?)),
    writer: Some(WriterDef {
        params: &[ZSTD.def],
        create: |create| {
            let level = create.params.get(ZSTD) as i32; // at most 19
            Ok(Box::new(Writer::new(create, level)))
        },
    }),
};
