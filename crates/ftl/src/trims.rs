//! Records of trims on flash, for schemes that write no map and find pages by their spare areas.
//!
//! A trim alone changes nothing on flash, so a mount would bring the newest copy of the page back.
//! Therefore these schemes write a *trim record* before a FLUSH completes. They also write a record
//! before they erase a block from which a page was trimmed, if no record names the page yet.
//! Otherwise a copy older than the last FLUSH would come back.
//!
//! A record has a number, and names every page that was trimmed and not written again. A copy of
//! one of these pages is dead if its number is smaller than the record's number. Only the newest
//! complete record counts. Records are stored in blocks of role [`OobRole::MAP`], one frame after
//! another. If a record does not fit into the rest of a block, it begins a new block. Blocks
//! without a part of the newest record are then erased.
//!
//! Each part of a record fills a frame. Its fields are little-endian: magic `FATR` (4), number of
//! the part (2), parts of the record (2), number of the record (8), 0 for ranges or 1 for a bitmap
//! (1), zeros (3), bytes of the payload (4). The payload is the first page and the count of each
//! range (4 + 4), or one bit for each page, the lowest first. Zeros fill the frame. The stamp of
//! the frame is its CRC-32C. See `docs/FORMATS.md`.

use crate::bits::BitSet;
use crate::blocks::{Blocks, Role};
use crate::free::FreePool;
use crate::{FtlContext, MemoryUse};
use flashatlas_nand::{Medium, OobRole, Unit};
use flashatlas_types::{
    BlockId, Cause, Class, FtlError, LaneId, Layout, Lpn, MemoryKind, OpId, Ppn, SeededBug, Stamp,
    TiSlice, TiVec,
};
use std::sync::Arc;

const MAGIC: [u8; 4] = *b"FATR";
const HEADER_BYTES: usize = 24;

/// The trimmed pages of a drive.
pub(crate) struct Trims {
    frame_bytes: usize,
    frames_per_block: u32,
    logical_units: u32,
    /// The pages that were trimmed and not written again; `None` until the first trim.
    pages: Option<BitSet<Lpn>>,
    /// `true` if a trimmed page is not in any record.
    pending: bool,
    /// The number of the newest record.
    recorded: u64,
    /// A count that increases with each record. For each block, `pointed` has the count of the last
    /// trim of a page in this block.
    epoch: u64,
    pointed: TiVec<BlockId, u64>,
    /// Programs of pages that were trimmed and then written again. The next record omits these
    /// pages and waits for the programs.
    rewritten: Vec<OpId>,
    /// Programs of records that may be unfinished.
    in_flight: Vec<OpId>,
    /// The blocks of the newest record, each with the operation that its programs wait for. The
    /// last block is being filled.
    blocks: Vec<(BlockId, OpId)>,
    /// The next frame in the last block.
    next: u32,
}

/// A record that was written.
pub(crate) struct TrimRecord {
    /// The operation after which the record is on flash.
    pub written: OpId,
    /// Blocks without a part of the record.
    pub outdated: Vec<BlockId>,
}

/// Returns the number of blocks that are reserved for records: enough for two records, because a
/// record is written before the blocks of the previous record are erased.
pub(crate) fn blocks_kept(layout: &Layout) -> u32 {
    let payload = layout.frame_bytes() - HEADER_BYTES as u64;
    let parts = u64::from(layout.logical_units).div_ceil(8).div_ceil(payload);
    2 * parts.div_ceil(layout.frames_per_block.into()) as u32
}

/// A part of a record, as a mount finds it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RecordPart {
    record: u64,
    number: u16,
    of: u16,
    block: BlockId,
    bitmap: bool,
    payload: Vec<u8>,
}

impl RecordPart {
    fn read(medium: &Medium, block: BlockId, index: u32) -> Option<RecordPart> {
        let layout = medium.layout();
        let bytes = medium.map_page(layout.first_slot(layout.frame_in(block, index))).ok()?;
        if bytes.len() < HEADER_BYTES || bytes[..4] != MAGIC {
            return None;
        }
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let record = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(bytes[20..24].try_into().expect("four bytes")) as usize;
        let payload = bytes[HEADER_BYTES..].get(..length)?.to_vec();
        Some(RecordPart {
            record,
            number: half(4),
            of: half(6),
            block,
            bitmap: bytes[16] == 1,
            payload,
        })
    }
}

impl Trims {
    /// Returns the state without trimmed pages.
    pub fn new(layout: &Layout) -> Trims {
        Trims {
            frame_bytes: layout.frame_bytes() as usize,
            frames_per_block: layout.frames_per_block,
            logical_units: layout.logical_units,
            pages: None,
            pending: false,
            recorded: 0,
            epoch: 1,
            pointed: layout.per_block(0),
            rewritten: Vec::new(),
            in_flight: Vec::new(),
            blocks: Vec::new(),
            next: 0,
        }
    }

    /// Notes that a page was trimmed whose newest version was in `block`.
    pub fn trimmed(&mut self, lpn: Lpn, block: BlockId) {
        self.pages.get_or_insert_with(|| BitSet::new(self.logical_units)).insert(lpn);
        self.pointed[block] = self.epoch;
        self.pending = true;
    }

    /// Notes that a page was programmed.
    #[inline]
    pub fn written(&mut self, lpn: Lpn, op: OpId) {
        let is_rewritten = self.pages.as_mut().is_some_and(|pages| pages.remove(lpn));
        if is_rewritten && op != OpId::NONE {
            self.rewritten.push(op);
        }
    }

    fn has(&self, lpn: Lpn) -> bool {
        self.pages.as_ref().is_some_and(|pages| pages.contains(lpn))
    }

    /// Returns whether a trimmed page is not in any record.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// Returns `true` if a record must be written before a block is erased.
    pub fn needs(&self, block: BlockId) -> bool {
        self.pending && self.pointed[block] == self.epoch
    }

    /// Returns the number of blocks that records use, out of [`blocks_kept`].
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns whether a block stores records.
    pub fn has_block(&self, block: BlockId) -> bool {
        self.blocks.iter().any(|b| b.0 == block)
    }

    /// Writes a record of all trimmed pages. Returns the operation after which the record is on
    /// flash, and the blocks that store only older records.
    ///
    /// `take` returns an erased block and the operation that its programs wait for.
    ///
    /// # Errors
    /// Returns an error if there is no block, or if the power fails.
    fn record(
        &mut self,
        cx: &mut FtlContext<'_>,
        mut take: impl FnMut(&mut FtlContext<'_>) -> Result<(BlockId, OpId), FtlError>,
    ) -> Result<(OpId, Vec<BlockId>), FtlError> {
        if SeededBug::DropTrimRecord.is_active() {
            self.pending = false;
            return Ok((OpId::NONE, Vec::new()));
        }
        let parts = self.parts(cx.flash.medium.take_number());
        let room = if self.blocks.is_empty() { 0 } else { self.frames_per_block - self.next };
        let first =
            if parts.len() as u32 <= room { self.blocks.len() - 1 } else { self.blocks.len() };
        let mut written = std::mem::take(&mut self.rewritten);
        written.retain(|&op| op >= cx.command.oldest_unfinished);
        let mut programs = Vec::with_capacity(parts.len());
        for (number, part) in (0..).zip(parts) {
            if first == self.blocks.len() || self.next == self.frames_per_block {
                let (block, ready) = take(cx)?;
                cx.flash.open(block, OobRole::MAP);
                self.blocks.push((block, ready));
                self.next = 0;
            }
            let &(block, ready) = self.blocks.last().expect("just opened");
            let stamp = Stamp(crc32c::crc32c(&part));
            let unit = Unit { lpn: Lpn(number), stamp, bytes: Some(Arc::from(part)) };
            let frame = cx.flash.medium.layout().frame_in(block, self.next);
            self.next += 1;
            let after = [&written[..], &[ready][..]].concat();
            programs.push(cx.flash.program(frame, std::iter::once(&unit), Cause::Map, &after)?.1);
        }
        self.pending = false;
        self.epoch += 1;
        let old = self.blocks.drain(..first).map(|(block, _)| block).collect();
        let written = cx.flash.plan.join(Class::Map, &programs);
        self.in_flight.push(written);
        Ok((written, old))
    }

    /// Writes a record if a trimmed page is not in any record. The record uses erased blocks from
    /// `free`. The caller erases the outdated blocks after the record is written.
    ///
    /// # Errors
    /// Returns `no_space` if there is no erased block, and the errors of the programs.
    pub fn record_pending(
        &mut self,
        cx: &mut FtlContext<'_>,
        free: &mut FreePool,
        blocks: &mut Blocks,
        no_space: FtlError,
    ) -> Result<TrimRecord, FtlError> {
        if !self.is_pending() {
            return Ok(TrimRecord { written: OpId::NONE, outdated: Vec::new() });
        }
        let take = |cx: &mut FtlContext<'_>| {
            let (block, waits) = free.take(cx, LaneId::new(0)).ok_or_else(|| no_space.clone())?;
            blocks.set_role(block, Role::Map);
            Ok((block, cx.flash.plan.join(Class::Map, &waits)))
        };
        let (written, outdated) = self.record(cx, take)?;
        Ok(TrimRecord { written, outdated })
    }

    /// Returns an operation that waits for all unfinished records. A FLUSH waits for this
    /// operation, and so does the erase of a block from which pages were trimmed.
    pub fn unfinished(&mut self, cx: &mut FtlContext<'_>) -> OpId {
        self.in_flight.retain(|&op| cx.may_be_unfinished(op));
        cx.flash.plan.join(Class::Map, &self.in_flight)
    }

    /// Returns [`Trims::unfinished`] if pages were trimmed from a block, otherwise [`OpId::NONE`].
    /// The erase of the block waits for the returned operation.
    pub fn unfinished_for(&mut self, cx: &mut FtlContext<'_>, block: BlockId) -> OpId {
        match std::mem::take(&mut self.pointed[block]) {
            0 => OpId::NONE,
            _ => self.unfinished(cx),
        }
    }

    /// Returns the parts of a record, one frame for each.
    fn parts(&mut self, number: u64) -> Vec<Vec<u8>> {
        self.recorded = number;
        let (kind, payload) = self.payload();
        let mut chunks: Vec<&[u8]> = payload.chunks(self.frame_bytes - HEADER_BYTES).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        let parts = chunks.len() as u16;
        let part = |(i, chunk): (u16, &&[u8])| {
            let mut bytes = Vec::with_capacity(self.frame_bytes);
            bytes.extend(MAGIC);
            bytes.extend(i.to_le_bytes());
            bytes.extend(parts.to_le_bytes());
            bytes.extend(number.to_le_bytes());
            bytes.extend([kind, 0, 0, 0]);
            bytes.extend((chunk.len() as u32).to_le_bytes());
            bytes.extend(*chunk);
            bytes.resize(self.frame_bytes, 0);
            bytes
        };
        (0..).zip(&chunks).map(part).collect()
    }

    /// Returns the trimmed pages as ranges or as a bitmap, whichever is shorter.
    fn payload(&self) -> (u8, Vec<u8>) {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for Lpn(lpn) in self.pages.iter().flat_map(BitSet::iter) {
            match ranges.last_mut() {
                Some((first, count)) if *first + *count == lpn => *count += 1,
                _ => ranges.push((lpn, 1)),
            }
        }
        let bitmap_bytes = (self.logical_units as usize).div_ceil(8);
        if ranges.len() * 8 <= bitmap_bytes {
            return (
                0,
                ranges
                    .iter()
                    .flat_map(|&(a, b)| [a.to_le_bytes(), b.to_le_bytes()])
                    .flatten()
                    .collect(),
            );
        }
        let words = self.pages.as_ref().map_or(&[][..], BitSet::words);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(bitmap_bytes, 0);
        (1, bytes)
    }

    /// Begins a mount: adopts the newest complete record in `blocks`. Returns the blocks without a
    /// part of this record.
    pub fn mount(&mut self, medium: &Medium, blocks: &[BlockId]) -> Vec<BlockId> {
        let frames =
            |&block: &BlockId| (0..medium.write_pointer(block)).map(move |index| (block, index));
        let mut parts: Vec<RecordPart> = blocks
            .iter()
            .flat_map(frames)
            .filter_map(|(block, index)| RecordPart::read(medium, block, index))
            .collect();
        parts.sort_unstable();
        let whole = |parts: &&[RecordPart]| {
            parts.len() == usize::from(parts[0].of) && (0..).zip(*parts).all(|(i, p)| p.number == i)
                || SeededBug::HalfTrimRecord.is_active()
        };
        let Some(newest) = parts.chunk_by(|a, b| a.record == b.record).rfind(whole) else {
            return blocks.to_vec();
        };
        self.recorded = newest[0].record;
        self.blocks = newest.iter().map(|part| (part.block, OpId::NONE)).collect();
        self.blocks.dedup();
        self.next = medium.write_pointer(newest[newest.len() - 1].block);
        let mut pages = BitSet::new(self.logical_units);
        let payload: Vec<u8> =
            newest.iter().flat_map(|part| part.payload.iter().copied()).collect();
        let mut set = |lpn: u32| {
            if lpn < self.logical_units {
                pages.insert(Lpn(lpn));
            }
        };
        if newest[0].bitmap {
            let bytes = (0..).step_by(8).zip(&payload);
            let bits = bytes.flat_map(|(i, byte)| (0..8).map(move |b| (i + b, byte >> b & 1)));
            bits.filter(|&(_, bit)| bit == 1).for_each(|(lpn, _)| set(lpn));
        } else {
            for range in payload.chunks_exact(8) {
                let word = |at: usize| {
                    u32::from_le_bytes(range[at..at + 4].try_into().expect("four bytes"))
                };
                (word(0)..word(0).saturating_add(word(4))).for_each(&mut set);
            }
        }
        self.pages = Some(pages);
        blocks.iter().copied().filter(|&b| !self.has_block(b)).collect()
    }

    /// Returns whether a copy that a mount found is older than the trim of its page. The copy was
    /// programmed with number `sequence`.
    #[inline]
    pub fn is_dead(&self, lpn: Lpn, sequence: u64) -> bool {
        sequence < self.recorded && self.has(lpn)
    }

    /// Ends a mount that has found the newest copy of each page. A page with such a copy was
    /// written after the record, so it is no longer trimmed.
    pub fn mounted(&mut self, newest: &TiSlice<Lpn, Ppn>) {
        if let Some(pages) = &mut self.pages {
            let alive = newest.iter_enumerated().filter(|(_, ppn)| **ppn != Ppn::NONE);
            alive.for_each(|(lpn, _)| _ = pages.remove(lpn));
        }
    }

    /// Returns the table, or `None` if no page was ever trimmed.
    pub fn memory(&self) -> Option<MemoryUse> {
        let bytes = u64::from(self.logical_units).div_ceil(8);
        self.pages.is_some().then_some(MemoryUse {
            table: "trimmed pages",
            memory: MemoryKind::Sram,
            bytes,
        })
    }
}
