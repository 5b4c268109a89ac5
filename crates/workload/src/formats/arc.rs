//! ARC: `first count ignored number`, one line a request, without operations and times.

use crate::error::OpenError;
use crate::format::{FormatDef, Presence, Reader, Start};
use crate::lines::{LineFormat, TextSource, sniff_assuming};
use crate::raw::{Extent, Fault, Raw, Time};
use crate::text::{extent_fault, split_blanks};
use flashatlas_types::{HostOp, Param, SECTOR_BYTES};
use std::io::BufRead;

const BLOCK: Param<u64> =
    Param::bytes("block", SECTOR_BYTES as u64, 1 << 20, "bytes of a block, a multiple of 512")
        .or("512");

/// Units, which the text does not name, and the lack of times.
const ASSUMES: &str = "addresses and lengths are blocks of 512 bytes, and there are no times";

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "arc",
    summary: "ARC cache traces: first_block count ignored sequence_number",
    quirks: "There are no operations and no times: requests are reads unless an operation is \
             assumed (`assume_op`), and all are at time 0. Addresses and counts are blocks. The \
             files do not hold the size of a block: the paper gives 512 bytes for P1 to P14 and \
             4 KiB for its other traces.",
    source: "Megiddo, Modha: ARC, A Self-Tuning, Low Overhead Replacement Cache, FAST 2003.",
    licence: "Cite the paper.",
    times: Presence::Never,
    operations: Presence::Never,
    params: &[BLOCK.def],
    sniff: |head| sniff_assuming(head, Arc { block_sectors: 1, op: HostOp::Read }, ASSUMES),
    open,
    writer: None,
};

const COLUMNS: &str = "4 columns: first_block count ignored sequence_number";

struct Arc {
    block_sectors: u64,
    op: HostOp,
}

fn open(input: Box<dyn BufRead + Send>, start: &Start<'_>) -> Result<Reader, OpenError> {
    let block_sectors = super::whole_sectors(start.params, FORMAT.name, BLOCK)?;
    let format = Arc { block_sectors, op: start.options.assume_op.unwrap_or(HostOp::Read) };
    Ok(Reader {
        source: TextSource::open(input, format, start.options),
        times: false,
        operations: false,
    })
}

impl LineFormat for Arc {
    fn decode(&mut self, line: &[u8]) -> Result<Option<Raw>, Fault> {
        let ([first, count, ignored, sequence], columns) = split_blanks::<4>(line);
        if columns != 4 {
            return Err(Fault::whole("the wrong number of columns in", COLUMNS));
        }
        let (block, blocks) =
            (first.number("an address in blocks")?, count.number("a number of blocks")?);
        ignored.number("a number, which is ignored")?;
        sequence.number("the number of the request")?;
        let sectors = |blocks: u64| blocks.saturating_mul(self.block_sectors);
        let extent = Extent::of_sectors(self.op, sectors(block), sectors(blocks));
        Ok(Some(Raw::plain(
            Time::whole(0),
            0,
            self.op,
            extent.map_err(|e| extent_fault(e, first, count))?,
        )))
    }
}
