//! A medium in a file. The file holds the spare area and the content of every page, a record of
//! every block, and NVM.
//!
//! The format is described in `docs/FORMATS.md`. These rules keep the file consistent:
//!
//! - Changes are written in the order in which the drive made them. If the process is killed, the
//!   file holds the changes up to some point, as after a power failure.
//! - A frame's head contains the number of erases of its block. If the block has been erased since,
//!   its frames count as erased, although their bytes were not overwritten.
//! - All writes are made durable before the file marks a block as erased, before the content of NVM
//!   changes, and before a page of the map is written. So a host that fails may lose any part of
//!   the writes that were not durable. Three things are still in the file: the pages that were
//!   moved out of an erased block, the data to which the map points, and the map pages to which
//!   other map pages point.
//! - A mark contains the number of the last program up to which everything was durable, and the
//!   blocks that may have been erased since. The content of a frame that the mark covers is checked
//!   when it is read. The content of the other frames is checked when the image is opened.
//!
//! Checksums protect everything in a file. A frame whose head or content does not match its
//! checksum is treated as a page that cannot be read. The scheme mounts the other frames as after a
//! power failure.

use crate::aged::{Laid, frames_of, lay};
use crate::ages::{Ages, SLC_ERASES};
use crate::disk::Disk;
use crate::error::ImageError;
use crate::frame::{ERASED, Frame, Head, LOST, PROGRAMMED, TORN, long, word};
use crate::header::{Header, MAKING, VERSION, header_bytes, is_unfinished, read_text};
use crate::kept::Home;
use crate::mark::{Mark, NONE, Verify};
use crate::places::{BLOCK_BYTES, LANE_BYTES, MARK_BYTES, OnDisk, Places};
use flashatlas_nand::image::{BAD, ERASE_FAILS, Image as Held, PROGRAM_FAILS};
use flashatlas_nand::{Change, Medium, OobRole, Unit};
use flashatlas_types::{BlockId, BlockMode, FrameId, LaneId, Layout, TiVec};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;

/// Findings of a mount of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Frames whose head, or whose content if it was checked, does not match its checksum.
    pub damaged: Vec<FrameId>,
    /// Blocks whose records do not match their checksums. The state of such a block is derived from
    /// its frames.
    pub damaged_blocks: Vec<BlockId>,
    /// Frames that hold data or a part of a map.
    pub programmed: u64,
}

/// An open image.
pub struct Image<D> {
    pub(crate) disk: Arc<D>,
    layout: Arc<Layout>,
    pub(crate) places: Places,
    pub(crate) erases: TiVec<BlockId, u32>,
    pub(crate) health: TiVec<BlockId, u8>,
    /// Blocks without a readable frame, because their erase failed.
    pub(crate) unreadable: TiVec<BlockId, bool>,
    roles: TiVec<BlockId, (OobRole, BlockMode)>,
    /// Number of erases of each block that ended a cycle in SLC mode.
    pub(crate) slc_erases: TiVec<BlockId, u32>,
    /// Frames whose heads did not match their checksums when the image was opened, by block. The
    /// number of erases in these heads is lost, so an erase of the block must overwrite them.
    damaged: FxHashMap<BlockId, Vec<FrameId>>,
    /// Frames whose content did not match its checksum when the image was opened. The next sync
    /// marks them as torn.
    torn: Vec<FrameId>,
    pub(crate) ages: Ages,
    pub(crate) spares: TiVec<LaneId, u32>,
    /// Stores to NVM since the last fence.
    stores: Vec<(u64, Vec<u8>)>,
    /// `true` if something was written since the last sync.
    pub(crate) unsynced: bool,
    /// The mark in the file.
    mark: Mark,
    /// Number of the last program that was written.
    written: u64,
    /// Number of the last program that was written before the last sync.
    durable: u64,
    /// The block whose erase was written after the last sync, or [`NONE`].
    erased: u32,
    buffer: Vec<u8>,
    /// `true` if the image was created when it was opened.
    is_new: bool,
    version: u32,
}

impl<D: Disk + 'static> Image<D> {
    /// Opens the image on `disk` for a drive, and puts its content on the drive's blank `medium`.
    ///
    /// Creates a new image if there is none, or if the creation of this one was interrupted. A new
    /// image holds the content of `aged`. The parameters that determine the places of pages on
    /// flash are in `on_flash`. The bytes of data stay on `disk` and are read when they are needed.
    ///
    /// # Errors
    /// Returns an error if the file is not an image of this drive, or if it already holds a drive
    /// while `aged` is given. The file is then unchanged. Returns an error if a new image cannot be
    /// created. The file is then empty.
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
        let (text, version) = if blank { (header.text(), VERSION) } else { read_text(&disk)? };
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
            roles: layout.per_block(Default::default()),
            slc_erases: layout.per_block(0),
            ages: Ages::new(&layout),
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
            version,
            layout,
        };
        let (disk, layout) = (image.disk.clone(), image.layout.clone());
        medium.keep_bytes_in(Arc::new(OnDisk { disk, layout, places }));
        if blank {
            let made = image.format(&text, medium, aged);
            if made.is_err() {
                // an incomplete file that is not an image would be refused at the next start
                drop(image.disk.set_length(0));
            }
            made?;
            return Ok((image, Found::default()));
        }
        places.must_be_whole(image.disk.length()?, version)?;
        // writes of a killed process may still be in the host's cache and not durable
        image.disk.sync()?;
        let found = image.lay_out(medium, verify)?;
        (image.written, image.durable) = (medium.sequence(), medium.sequence());
        Ok((image, found))
    }

    /// Returns `true` if the image was created when it was opened.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the home of the controller's record.
    pub fn home(&mut self) -> Home<'_, D> {
        Home { disk: &self.disk, places: &self.places, version: &mut self.version }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the role of the pages of a block.
    pub(crate) fn role(&self, block: BlockId) -> OobRole {
        self.roles[block].0
    }

    /// Marks a frame as neither erased nor readable.
    pub(crate) fn write_torn(&mut self, frame: FrameId) -> io::Result<()> {
        self.write_frame(frame, TORN, 0, &[])
    }

    /// Returns the disk that the image is on.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Creates a new image. The header is written last, so that a file whose creation was
    /// interrupted can be recognised.
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

    /// Writes the content of a medium in the order of its blocks. Any order is allowed, because the
    /// image is not yet complete.
    fn put(&mut self, held: &Held) -> io::Result<()> {
        self.ages.take(held.aged.as_ref());
        for block in self.layout.block_ids() {
            let at = usize::from(block);
            (self.erases[block], self.health[block]) = (held.erases[at], held.health[at]);
            self.roles[block] = (OobRole(held.roles[at]), held.mode(at));
            self.slc_erases[block] = held.slc_erases.get(at).copied().unwrap_or(0);
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
                Laid::Lost(sequence, units) => {
                    self.write_frame(frame, LOST, sequence, &units)?;
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
                    self.slc_erases[block] = word(record, SLC_ERASES);
                    self.ages.read_block(block, record);
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
                self.ages.read_lane(lane, &record);
            }
            medium.lay_spares(lane, self.spares[lane]);
        }
        self.ages.lay(medium);
        let bytes = medium.rules().nvm_bytes as usize;
        if bytes > 0 {
            let mut nvm = vec![0; bytes];
            self.disk.read_at(&mut nvm, self.places.nvm)?;
            medium.redo(&Change::Store { address: 0, bytes: nvm });
            medium.redo(&Change::Fence);
        }
        // later programs get larger numbers than the mark, so the mark does not cover them
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
        medium.lay_slc_erases(block, self.slc_erases[block]);
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
                    let is_lost = read.head.kind == LOST;
                    let vouched = is_lost || trusted.vouches_for(block, read.head.sequence);
                    let Some(units) = self.units(frame, &read, vouched) else {
                        found.damaged.push(frame);
                        self.torn.push(frame);
                        medium.tear(frame);
                        continue;
                    };
                    let Head { role, mode, sequence, .. } = read.head;
                    self.roles[block] = (role, mode);
                    found.programmed += 1;
                    medium.redo(&Change::Open(block, role, mode));
                    medium.redo(&Change::Program { frame, sequence, units });
                    if is_lost {
                        medium.redo(&Change::Lost(frame));
                    }
                }
            }
        }
        if !damaged.is_empty() {
            self.damaged.insert(block, damaged);
        }
    }

    /// Returns the units of a frame, with bytes if the frame holds a part of a map.
    ///
    /// Returns `None` if the content must be checked and does not match its checksums.
    fn units(&self, frame: FrameId, read: &Frame<'_>, vouched: bool) -> Option<Vec<Unit>> {
        let (places, disk) = (&self.places, &*self.disk);
        let keeps = read.holds_map() && read.head.kind != LOST;
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
    /// Returns an error if the file cannot be written. The changes up to some point were then
    /// written.
    pub fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        changes.iter().try_for_each(|change| self.write_change(change))
    }

    /// Makes all writes durable.
    ///
    /// # Errors
    /// Returns an error if the host cannot make them durable. The content of its disk is then
    /// unknown.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.unsynced { self.sync_before_erase(NONE) } else { Ok(()) }
    }

    /// Makes all writes durable before the erase of block `next`.
    ///
    /// After this sync, writes may replace the block's content even before the block's erase is
    /// durable.
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

    /// Makes everything durable and writes a mark, so that the next mount need not check data.
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

    /// Removes the mark, so that the next mount checks everything. This is for an image in which
    /// something may be wrong.
    ///
    /// # Errors
    /// Returns the errors of [`Image::sync`].
    pub fn distrust(&mut self) -> io::Result<()> {
        self.put_mark(Mark::NOTHING)?;
        self.disk.sync()
    }

    pub(crate) fn write_change(&mut self, change: &Change) -> io::Result<()> {
        match change {
            // both are only in the controller's memory until the block's first program writes them
            Change::Open(block, role, mode) => self.roles[*block] = (*role, *mode),
            Change::Number(_) => {}
            Change::Copied { .. } | Change::LostPart { .. } => unreachable!("refused with images"),
            Change::Program { frame, sequence, units } => {
                let (role, _) = self.roles[self.layout.block_of_frame(*frame)];
                if role == OobRole::MAP || role == OobRole::MIXED {
                    self.sync()?;
                }
                self.write_frame(*frame, PROGRAMMED, *sequence, units)?;
                self.written = *sequence;
                let block = self.layout.block_of_frame(*frame);
                if self.ages.begins(block) {
                    self.write_block(block)?;
                }
            }
            Change::ProgramFailed(frame) => {
                self.write_frame(*frame, TORN, 0, &[])?;
                let block = self.layout.block_of_frame(*frame);
                self.health[block] |= PROGRAM_FAILS | ERASE_FAILS;
                self.write_block(block)?;
            }
            Change::Lost(frame) => {
                self.unsynced = true;
                self.places.lose(&*self.disk, *frame)?;
            }
            Change::Step { frame, .. } => self.write_torn(*frame)?,
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

    /// Writes the erase of a block. From then on, the number of erases in the heads of its frames
    /// is too small, so the frames count as erased.
    fn write_erased(&mut self, block: BlockId) -> io::Result<()> {
        self.sync_before_erase(block.number())?;
        self.erases[block] += 1;
        (self.health[block], self.unreadable[block]) = (0, false);
        if std::mem::take(&mut self.roles[block]).1 == BlockMode::Slc {
            self.slc_erases[block] += 1;
        }
        self.ages.erased(block);
        self.write_block(block)?;
        for frame in self.damaged.remove(&block).unwrap_or_default() {
            self.write_frame(frame, ERASED, 0, &[])?;
        }
        Ok(())
    }

    /// Writes a frame. The content is written before the head, so a process that is killed in
    /// between leaves the old frame.
    fn write_frame(
        &mut self,
        frame: FrameId,
        kind: u8,
        sequence: u64,
        units: &[Unit],
    ) -> io::Result<()> {
        let block = self.layout.block_of_frame(frame);
        let (role, mode) = self.roles[block];
        let head = Head { kind, role, mode, erases: self.erases[block], sequence };
        let mut buffer = std::mem::take(&mut self.buffer);
        self.unsynced = true;
        buffer.clear();
        units.iter().filter_map(|unit| unit.bytes.as_ref()).for_each(|b| buffer.extend(&b[..]));
        assert!(
            buffer.len() as u64 <= self.places.content_bytes,
            "frame {frame} takes {} bytes, but has {}",
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
