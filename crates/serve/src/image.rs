//! A medium in a file: the spare area and the content of every page, a record of every block, and
//! NVM.
//!
//! The bytes are described in `docs/FORMATS.md`. These rules make the file consistent:
//!
//! - Changes are written in the order in which the drive made them. A process that is killed leaves
//!   a beginning of them, as a power failure does.
//! - A frame's head carries the number of erases of its block. If the block has been erased since,
//!   its frames count as erased, although nothing of them was overwritten.
//! - All writes are made durable before the file marks a block as erased, before the content of NVM
//!   changes, and before a page of the map is written. A host may lose any part of what it had not
//!   written back: no page is lost that had been moved away from an erased block, no map leads to
//!   data that is not there, and no map vouches for a part that is lost.
//! - A mark has the last program up to which everything was durable, and the blocks that may have
//!   been erased since. The content of frames that the mark covers is looked at when it is read;
//!   only the content of other frames is looked at when the image is opened.
//!
//! Nothing in a file is trusted: a frame whose head or content does not match its checksum is a
//! page that cannot be read, and the scheme mounts what is there as after a power failure.

use crate::aged::{Laid, frames_of, lay};
use crate::disk::Disk;
use crate::error::ImageError;
use crate::frame::{ERASED, Frame, Head, PROGRAMMED, TORN, long, word};
use crate::header::{Header, MAKING, header_bytes, is_unfinished, read_text};
use crate::mark::{Mark, NONE};
use crate::places::{BLOCK_BYTES, LANE_BYTES, MARK_BYTES, OnDisk, Places};
use flashatlas_nand::image::{BAD, ERASE_FAILS, Image as Held, PROGRAM_FAILS};
use flashatlas_nand::{Change, Medium, OobRole, Unit};
use flashatlas_types::{BlockId, FrameId, LaneId, Layout, TiVec};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;

/// Findings of a mount of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Frames that hold something that does not match its checksum, of those that were looked at.
    pub damaged: Vec<FrameId>,
    /// Records of blocks that do not match their checksums; the frames of such a block show its
    /// state.
    pub damaged_blocks: Vec<BlockId>,
    /// Frames that hold data or a part of a map.
    pub programmed: u64,
}

/// Parts of an image that are checked when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify {
    /// Heads of frames, and the content of those that may not have been durable.
    New,
    /// The content of all.
    All,
}

/// An open image.
pub struct Image<D> {
    disk: Arc<D>,
    layout: Arc<Layout>,
    places: Places,
    erases: TiVec<BlockId, u32>,
    health: TiVec<BlockId, u8>,
    /// Blocks without a readable frame, because their erase failed.
    unreadable: TiVec<BlockId, bool>,
    roles: TiVec<BlockId, OobRole>,
    /// Frames whose heads matched no checksum when the image was opened, by block: the number of
    /// erases in them is lost, so an erase must write over them.
    damaged: FxHashMap<BlockId, Vec<FrameId>>,
    /// Frames whose content matched no checksum then: the first write marks them as torn.
    torn: Vec<FrameId>,
    spares: TiVec<LaneId, u32>,
    /// Stores to NVM that no fence followed.
    stores: Vec<(u64, Vec<u8>)>,
    /// Something was written since the file was last made durable.
    unsynced: bool,
    /// The mark in the file.
    mark: Mark,
    /// The last program that was written, and the last one that was durable at the last sync.
    written: u64,
    durable: u64,
    /// The block whose erase was written since then.
    erased: u32,
    buffer: Vec<u8>,
    /// `true` if it was made when it was opened.
    is_new: bool,
}

impl<D: Disk + 'static> Image<D> {
    /// Opens the image on `disk` for a drive, and lays out its content on the drive's blank
    /// `medium`.
    ///
    /// Makes an image if there is none, or one whose making was cut; a new image holds the content
    /// of `aged`. `on_flash` are the drive's parameters that decide what is where. The content of
    /// data stays on `disk`, to be read when it is needed.
    ///
    /// # Errors
    /// Returns an error if the file is no image of this drive, or if it holds a drive while `aged`
    /// is given; the file is unchanged. Returns an error if a new image cannot be made; the file is
    /// empty then.
    pub fn open(
        disk: D,
        drive: &str,
        on_flash: &Map<String, Value>,
        medium: &mut Medium,
        verify: Verify,
        aged: Option<&Held>,
    ) -> Result<(Image<D>, Found), ImageError> {
        let header = Header { drive: drive.to_owned(), on_flash: on_flash.clone() };
        let layout = medium.shared_layout();
        let spares = medium.rules().spare_blocks;
        let blank = disk.length()? == 0 || is_unfinished(&disk)?;
        let text = if blank { header.text() } else { read_text(&disk)? };
        if !blank {
            header.must_suit(&text)?;
            if aged.is_some() {
                return Err(ImageError::Holds);
            }
        }
        let places = Places::of(&layout, medium.rules().nvm_bytes, text.len());
        let mut image = Image {
            disk: Arc::new(disk),
            places,
            erases: layout.per_block(0),
            health: layout.per_block(0),
            unreadable: layout.per_block(false),
            roles: layout.per_block(OobRole::default()),
            damaged: FxHashMap::default(),
            torn: Vec::new(),
            spares: layout.per_lane(spares),
            stores: Vec::new(),
            unsynced: false,
            mark: Mark::NOTHING,
            written: 0,
            durable: 0,
            erased: NONE,
            buffer: Vec::new(),
            is_new: blank,
            layout,
        };
        let (disk, layout) = (image.disk.clone(), image.layout.clone());
        medium.keep_bytes_in(Arc::new(OnDisk { disk, layout, places }));
        if blank {
            let made = image.format(&text, medium, aged);
            if made.is_err() {
                // a file that is no image would be refused at the next start
                drop(image.disk.set_length(0));
            }
            made?;
            return Ok((image, Found::default()));
        }
        let length = image.disk.length()?;
        if length != places.end {
            let why =
                format!("it has {length} bytes, an image of this drive {}: it was cut", places.end);
            return Err(ImageError::Foreign(why));
        }
        // of a process that was killed the host may have kept what it has not written back
        image.disk.sync()?;
        let found = image.lay_out(medium, verify)?;
        (image.written, image.durable) = (medium.sequence(), medium.sequence());
        Ok((image, found))
    }

    /// Returns `true` if the image was made when it was opened.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the role of the pages of a block.
    pub(crate) fn role(&self, block: BlockId) -> OobRole {
        self.roles[block]
    }

    /// Writes a page that is neither erased nor readable.
    pub(crate) fn write_torn(&mut self, frame: FrameId) -> io::Result<()> {
        self.write_frame(frame, TORN, 0, &[])
    }

    /// Returns the disk that the image is on.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Makes a new image; its header comes last, so that a file whose making was cut can be
    /// recognised.
    fn format(&mut self, text: &[u8], medium: &mut Medium, aged: Option<&Held>) -> io::Result<()> {
        self.disk.set_length(0)?;
        self.disk.set_length(self.places.end)?;
        self.disk.write_at(&MAKING, 0)?;
        for block in self.layout.block_ids().filter(|&b| medium.is_bad(b)) {
            self.health[block] = BAD;
            self.write_block(block)?;
        }
        for lane in self.layout.lane_ids() {
            self.write_lane(lane)?;
        }
        if let Some(held) = aged {
            self.put(held)?;
            lay(held, medium);
            (self.written, self.durable) = (held.sequence, held.sequence);
            self.put_mark(Mark { sequence: held.sequence, erased: [NONE; 2] })?;
        }
        self.disk.sync()?;
        self.disk.write_at(&header_bytes(text), 0)?;
        self.disk.sync()
    }

    /// Writes the content of a medium, in the order of its blocks: nobody sees the image meanwhile.
    fn put(&mut self, held: &Held) -> io::Result<()> {
        for block in self.layout.block_ids() {
            let at = usize::from(block);
            (self.erases[block], self.health[block]) = (held.erases[at], held.health[at]);
            self.roles[block] = OobRole(held.roles[at]);
            self.write_block(block)?;
        }
        for lane in self.layout.lane_ids() {
            self.spares[lane] = held.spares[usize::from(lane)];
            self.write_lane(lane)?;
        }
        let layout = self.layout.clone();
        for (frame, state) in frames_of(held, &layout) {
            match state {
                Laid::Torn => self.write_frame(frame, TORN, 0, &[])?,
                Laid::Holds(sequence, units) => {
                    self.write_frame(frame, PROGRAMMED, sequence, &units)?;
                }
            }
        }
        if !held.nvm.is_empty() {
            self.disk.write_at(&held.nvm, self.places.nvm)?;
        }
        Ok(())
    }

    fn lay_out(&mut self, medium: &mut Medium, verify: Verify) -> io::Result<Found> {
        let mut found = Found::default();
        let layout = self.layout.clone();
        let mut mark = [0; MARK_BYTES];
        self.disk.read_at(&mut mark, self.places.mark)?;
        self.mark = Mark::decode(&mark);
        let trusted = if verify == Verify::All { Mark::NOTHING } else { self.mark };
        let mut records = vec![0; layout.blocks() as usize * BLOCK_BYTES];
        self.disk.read_at(&mut records, self.places.blocks)?;
        let mut heads = vec![0; layout.frames_per_block as usize * self.places.head_bytes];
        for (block, record) in layout.block_ids().zip(records.chunks_exact(BLOCK_BYTES)) {
            if record.iter().any(|&b| b != 0) {
                if word(record, 0) == crc32c::crc32c(&record[4..])
                    && long(record, 4) == u64::from(block.number())
                {
                    self.erases[block] = word(record, 12);
                    (self.health[block], self.unreadable[block]) = (record[16], record[17] != 0);
                } else {
                    found.damaged_blocks.push(block)
                }
            }
            self.disk.read_at(&mut heads, self.places.head(layout.frame_in(block, 0)))?;
            self.lay_block(medium, block, &heads, trusted, &mut found);
        }
        for lane in layout.lane_ids() {
            let mut record = [0; LANE_BYTES];
            self.disk.read_at(&mut record, self.places.lane(lane))?;
            if word(&record, 0) == crc32c::crc32c(&record[4..]) {
                self.spares[lane] = word(&record, 4);
            }
            medium.lay_spares(lane, self.spares[lane]);
        }
        let bytes = medium.rules().nvm_bytes as usize;
        if bytes > 0 {
            let mut nvm = vec![0; bytes];
            self.disk.read_at(&mut nvm, self.places.nvm)?;
            medium.redo(&Change::Store { address: 0, bytes: nvm });
            medium.redo(&Change::Fence);
        }
        // programs that follow have numbers for which the mark does not vouch
        medium.redo(&Change::Number(self.mark.sequence));
        Ok(found)
    }

    fn lay_block(
        &mut self,
        medium: &mut Medium,
        block: BlockId,
        heads: &[u8],
        trusted: Mark,
        found: &mut Found,
    ) {
        let first = self.layout.frame_in(block, 0).0;
        let frames: Vec<(FrameId, Option<Frame<'_>>)> = heads
            .chunks_exact(self.places.head_bytes)
            .zip((first..).map(FrameId))
            .map(|(head, frame)| (frame, Frame::decode(head, frame)))
            .collect();
        let readable = frames.iter().filter_map(|(_, read)| read.as_ref());
        let erases = readable.map(|read| read.head.erases).max().unwrap_or(0);
        self.erases[block] = self.erases[block].max(erases);
        medium.lay_block(block, self.erases[block], self.health[block]);
        if self.unreadable[block] {
            medium.redo(&Change::EraseFailed(block));
            medium.lay_block(block, self.erases[block], self.health[block]);
            return;
        }
        let mut damaged = Vec::new();
        for (frame, read) in frames {
            match read {
                None => {
                    found.damaged.push(frame);
                    damaged.push(frame);
                    medium.tear(frame);
                }
                Some(Frame { head, .. })
                    if head.erases < self.erases[block] || head.kind == ERASED => {}
                Some(read) if read.head.kind == TORN => medium.tear(frame),
                Some(read) => {
                    let vouched = trusted.vouches_for(block, read.head.sequence);
                    let Some(units) = self.units(frame, &read, vouched) else {
                        found.damaged.push(frame);
                        self.torn.push(frame);
                        medium.tear(frame);
                        continue;
                    };
                    let Head { role, sequence, .. } = read.head;
                    self.roles[block] = role;
                    found.programmed += 1;
                    medium.redo(&Change::Open(block, role));
                    medium.redo(&Change::Program { frame, sequence, units });
                }
            }
        }
        if !damaged.is_empty() {
            self.damaged.insert(block, damaged);
        }
    }

    /// Returns the units of a frame, with bytes if they are of a map.
    ///
    /// Returns `None` if the content must be looked at and is not what was written.
    fn units(&self, frame: FrameId, read: &Frame<'_>, vouched: bool) -> Option<Vec<Unit>> {
        let (places, disk) = (&self.places, &*self.disk);
        let keeps = read.holds_map();
        let unit = |slot: crate::frame::Slot| {
            let bytes = if keeps || !vouched { places.bytes_of(disk, frame, &slot)? } else { None };
            let bytes = bytes.filter(|_| keeps);
            Some(Unit { lpn: slot.lpn, stamp: slot.stamp, bytes })
        };
        let units: Option<Vec<Unit>> = read.slots().map(unit).collect();
        units.filter(|units| units.len() == self.layout.slots_per_frame as usize)
    }

    /// Writes changes of the medium, in their order.
    ///
    /// # Errors
    /// Returns an error if the file takes no more. A first part of the changes was written then.
    pub fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        changes.iter().try_for_each(|change| self.write_change(change))
    }

    /// Makes all writes durable.
    ///
    /// # Errors
    /// Returns an error if the host cannot: then nothing is known of what is on its disk.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.unsynced { self.sync_before_erase(NONE) } else { Ok(()) }
    }

    /// Makes all writes durable before the erase of block `next`.
    ///
    /// Later writes may replace the block's content before the file says that the block
    /// is erased.
    fn sync_before_erase(&mut self, next: u32) -> io::Result<()> {
        self.put_mark(Mark { sequence: self.durable, erased: [self.erased, next] })?;
        for frame in std::mem::take(&mut self.torn) {
            self.write_frame(frame, TORN, 0, &[])?;
        }
        self.disk.sync()?;
        self.unsynced = false;
        (self.durable, self.erased) = (self.written, next);
        Ok(())
    }

    fn put_mark(&mut self, mark: Mark) -> io::Result<()> {
        if mark != self.mark {
            self.disk.write_at(&mark.encode(), self.places.mark)?;
            self.mark = mark;
        }
        Ok(())
    }

    /// Makes everything durable, and marks it so: the next mount looks at no content.
    ///
    /// # Errors
    /// Returns the errors of [`Image::sync`].
    pub fn close(&mut self) -> io::Result<()> {
        self.sync()?;
        let mark = Mark { sequence: self.durable, erased: [NONE; 2] };
        if mark != self.mark {
            self.put_mark(mark)?;
            self.disk.sync()?;
        }
        Ok(())
    }

    /// Marks that something in the image is not what was written: the next mount looks at
    /// everything.
    ///
    /// # Errors
    /// Returns the errors of [`Image::sync`].
    pub fn distrust(&mut self) -> io::Result<()> {
        self.put_mark(Mark::NOTHING)?;
        self.disk.sync()
    }

    pub(crate) fn write_change(&mut self, change: &Change) -> io::Result<()> {
        match change {
            // in the controller's memory, until the first program of the block says it
            Change::Open(block, role) => self.roles[*block] = *role,
            Change::Number(_) => {}
            Change::Program { frame, sequence, units } => {
                let role = self.roles[self.layout.block_of_frame(*frame)];
                if role == OobRole::MAP || role == OobRole::MIXED {
                    self.sync()?;
                }
                self.write_frame(*frame, PROGRAMMED, *sequence, units)?;
                self.written = *sequence;
            }
            Change::ProgramFailed(frame) => {
                self.write_frame(*frame, TORN, 0, &[])?;
                let block = self.layout.block_of_frame(*frame);
                self.health[block] |= PROGRAM_FAILS | ERASE_FAILS;
                self.write_block(block)?;
            }
            Change::Erase(block) => self.write_erased(*block)?,
            Change::EraseFailed(block) => {
                self.sync()?;
                self.unreadable[*block] = true;
                self.health[*block] |= ERASE_FAILS;
                self.write_block(*block)?;
            }
            Change::Replaced { block, failed } => {
                let lane = self.layout.lane_of(*block);
                self.spares[lane] -= 1;
                self.write_lane(lane)?;
                match failed {
                    None => self.write_erased(*block)?,
                    Some(frame) => {
                        self.health[*block] = 0;
                        self.write_frame(*frame, ERASED, 0, &[])?;
                        self.write_block(*block)?;
                    }
                }
            }
            Change::Retired(block) => {
                self.health[*block] |= BAD;
                self.write_block(*block)?;
            }
            Change::Store { address, bytes } => self.stores.push((*address, bytes.clone())),
            Change::Fence => {
                self.sync()?;
                for (address, bytes) in std::mem::take(&mut self.stores) {
                    self.disk.write_at(&bytes, self.places.nvm + address)?;
                }
                self.unsynced = true;
            }
            Change::Promised => self.sync()?,
        }
        Ok(())
    }

    /// Writes the erase of a block: its frames are of an earlier time from now on.
    fn write_erased(&mut self, block: BlockId) -> io::Result<()> {
        self.sync_before_erase(block.number())?;
        self.erases[block] += 1;
        (self.health[block], self.unreadable[block]) = (0, false);
        self.roles[block] = OobRole::default();
        self.write_block(block)?;
        for frame in self.damaged.remove(&block).unwrap_or_default() {
            self.write_frame(frame, ERASED, 0, &[])?;
        }
        Ok(())
    }

    fn write_block(&mut self, block: BlockId) -> io::Result<()> {
        let mut record = [0; BLOCK_BYTES];
        record[4..12].copy_from_slice(&u64::from(block.number()).to_le_bytes());
        record[12..16].copy_from_slice(&self.erases[block].to_le_bytes());
        (record[16], record[17]) = (self.health[block], u8::from(self.unreadable[block]));
        record[18] = 1; // no record is all zeros
        let sum = crc32c::crc32c(&record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        self.unsynced = true;
        self.disk.write_at(&record, self.places.block(block))
    }

    fn write_lane(&mut self, lane: LaneId) -> io::Result<()> {
        let mut record = [0; LANE_BYTES];
        record[4..8].copy_from_slice(&self.spares[lane].to_le_bytes());
        let sum = crc32c::crc32c(&record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        self.unsynced = true;
        self.disk.write_at(&record, self.places.lane(lane))
    }

    /// Writes a frame, the content first: a process that is killed in between has not written the
    /// frame.
    fn write_frame(
        &mut self,
        frame: FrameId,
        kind: u8,
        sequence: u64,
        units: &[Unit],
    ) -> io::Result<()> {
        let block = self.layout.block_of_frame(frame);
        let head = Head { kind, role: self.roles[block], erases: self.erases[block], sequence };
        let mut buffer = std::mem::take(&mut self.buffer);
        self.unsynced = true;
        buffer.clear();
        units.iter().filter_map(|unit| unit.bytes.as_ref()).for_each(|b| buffer.extend(&b[..]));
        assert!(
            buffer.len() as u64 <= self.places.content_bytes,
            "frame {frame} takes {} bytes of {}",
            buffer.len(),
            self.places.content_bytes
        );
        if !buffer.is_empty() {
            self.disk.write_at(&buffer, self.places.content(frame))?;
        }
        head.encode(frame, self.layout.slots_per_frame as usize, units, &mut buffer);
        let written = self.disk.write_at(&buffer, self.places.head(frame));
        self.buffer = buffer;
        written
    }
}
