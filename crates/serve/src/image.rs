//! A medium in a file: every page with its spare area, what is known of every block, and NVM.
//!
//! The bytes are described in `docs/FORMATS.md`. What makes the file consistent:
//!
//! - Changes are written in the order in which the drive made them. A process that is killed leaves
//!   a beginning of them, which is what a power failure leaves.
//! - A frame carries the number of erases of its block, and a checksum. Where a block has been
//!   erased since, its frames count as erased, although nothing of them was overwritten.
//! - Before the file says that a block is erased, or what NVM holds, and before a page of the map
//!   is written, everything that was written before is made durable. A host that loses any part of
//!   what it had not written back loses no page that had been moved away from an erased block, no
//!   map leads to data that is not there, and none says that a part survives which does not.
//!
//! Nothing in a file is trusted: a frame that does not match its checksum is a page that cannot be
//! read, and the scheme mounts what is there as after a power failure.

use crate::disk::Disk;
use crate::error::ImageError;
use crate::frame::{
    ERASED, EXTRA_BYTES, Frame, HEAD_BYTES, Head, PROGRAMMED, SLOT_BYTES, TORN, long, word,
};
use crate::plan::CutMode;
use flashatlas_nand::image::{BAD, ERASE_FAILS, PROGRAM_FAILS};
use flashatlas_nand::{Change, Cut, Medium, OobRole, Unit};
use flashatlas_types::{BlockId, FrameId, LaneId, Layout};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"FAIMAGE\n";
const VERSION: u32 = 1;
/// The header, and where what follows is aligned.
const PAGE: u64 = 4096;
/// Bytes of the header's text at most.
const TEXT_MAX: usize = 1 << 20;
/// Bytes of a record of a block, and of a lane.
const BLOCK_BYTES: u64 = 32;
const LANE_BYTES: u64 = 16;

/// The key of a header that is no setting of a drive.
pub const CAPACITY: &str = "capacity in sectors";

/// What an image is of, as its header says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Preset, or name of the file.
    pub drive: String,
    /// The parameters that decide the places of pages on flash.
    pub on_flash: Map<String, Value>,
}

impl Header {
    /// The header of the image on `disk`.
    ///
    /// # Errors
    /// What is no image.
    pub fn read(disk: &impl Disk) -> Result<Header, ImageError> {
        Header::parse(&read_text(disk)?)
    }

    fn parse(text: &[u8]) -> Result<Header, ImageError> {
        serde_json::from_slice(text)
            .map_err(|error| ImageError::Foreign(format!("byte 24: the header: {error}")))
    }
}

/// Where things are in a file.
#[derive(Clone, Copy, Debug)]
struct Places {
    blocks: u64,
    lanes: u64,
    nvm: u64,
    frames: u64,
    frame_bytes: u64,
}

impl Places {
    fn of(layout: &Layout, nvm_bytes: u64, text: usize) -> Places {
        let aligned = |at: u64| at.div_ceil(PAGE) * PAGE;
        let blocks = aligned(24 + text as u64);
        let lanes = aligned(blocks + u64::from(layout.blocks()) * BLOCK_BYTES);
        let nvm = aligned(lanes + u64::from(layout.lanes) * LANE_BYTES);
        let frames = aligned(nvm + nvm_bytes);
        let slots = layout.slots_per_frame as usize;
        let record =
            HEAD_BYTES + slots * (SLOT_BYTES + EXTRA_BYTES) + layout.frame_bytes() as usize;
        Places { blocks, lanes, nvm, frames, frame_bytes: (record as u64).div_ceil(512) * 512 }
    }
}

/// What a mount of an image found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Frames that hold something that does not match its checksum.
    pub damaged: Vec<FrameId>,
    /// Records of blocks that do not match theirs; the frames of the block say what it is.
    pub damaged_blocks: Vec<BlockId>,
    /// Frames that hold data or a part of a map.
    pub programmed: u64,
}

/// An open image.
pub struct Image<D> {
    disk: D,
    layout: Arc<Layout>,
    places: Places,
    erases: Vec<u32>,
    health: Vec<u8>,
    /// Blocks of which no frame can be read since their erase failed.
    unreadable: Vec<bool>,
    roles: Vec<OobRole>,
    /// Frames that matched no checksum when the image was opened, by block: they say no number of
    /// erases, so that an erase must write over them.
    damaged: FxHashMap<BlockId, Vec<FrameId>>,
    spares: Vec<u32>,
    /// Stores to NVM that no fence followed.
    stores: Vec<(u64, Vec<u8>)>,
    /// Something was written since the file was last made durable.
    unsynced: bool,
    buffer: Vec<u8>,
}

impl<D: Disk> Image<D> {
    /// Open the image on `disk` for the drive whose blank medium this is, or make one where nothing
    /// is. `on_flash` are the drive's parameters that decide what is where. Lays out on `medium`
    /// what the image holds.
    ///
    /// # Errors
    /// What is no image of this drive. Nothing was changed.
    pub fn open(
        disk: D,
        drive: &str,
        on_flash: &Map<String, Value>,
        medium: &mut Medium,
    ) -> Result<(Image<D>, Found), ImageError> {
        let header = Header { drive: drive.to_owned(), on_flash: on_flash.clone() };
        let layout = medium.shared_layout();
        let (blocks, lanes) = (layout.blocks() as usize, layout.lanes as usize);
        let spares = medium.rules().spare_blocks;
        let blank = disk.length()? == 0;
        let text =
            if blank { serde_json::to_vec(&header).expect("plain") } else { read_text(&disk)? };
        if !blank {
            must_suit(&text, &header)?;
        }
        let places = Places::of(&layout, medium.rules().nvm_bytes, text.len());
        let mut image = Image {
            disk,
            places,
            erases: vec![0; blocks],
            health: vec![0; blocks],
            unreadable: vec![false; blocks],
            roles: vec![OobRole::default(); blocks],
            damaged: FxHashMap::default(),
            spares: vec![spares; lanes],
            stores: Vec::new(),
            unsynced: false,
            buffer: Vec::new(),
            layout,
        };
        if blank {
            image.format(&text, medium)?;
            return Ok((image, Found::default()));
        }
        let end = places.frames + u64::from(image.layout.frames()) * places.frame_bytes;
        let length = image.disk.length()?;
        if length != end {
            let why = format!("it has {length} bytes, an image of this drive {end}: it was cut");
            return Err(ImageError::Foreign(why));
        }
        let found = image.lay_out(medium)?;
        Ok((image, found))
    }

    /// What it is kept on.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// A blank image: the header comes last, so that a file whose making was cut is no image.
    fn format(&mut self, text: &[u8], medium: &Medium) -> io::Result<()> {
        let Places { frames, frame_bytes, .. } = self.places;
        self.disk.set_length(frames + u64::from(self.layout.frames()) * frame_bytes)?;
        for block in (0..self.layout.blocks()).map(BlockId).filter(|&b| medium.is_bad(b)) {
            self.health[block.0 as usize] = BAD;
            self.write_block(block)?;
        }
        for lane in 0..self.layout.lanes {
            self.write_lane(LaneId(lane))?;
        }
        self.disk.sync()?;
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend((text.len() as u32).to_le_bytes());
        head.extend(crc32c::crc32c(text).to_le_bytes());
        head.extend([0; 4]);
        head.extend(text);
        self.disk.write_at(&head, 0)?;
        self.disk.sync()
    }

    fn lay_out(&mut self, medium: &mut Medium) -> io::Result<Found> {
        let mut found = Found::default();
        let layout = self.layout.clone();
        let mut records = vec![0; (u64::from(layout.blocks()) * BLOCK_BYTES) as usize];
        self.disk.read_at(&mut records, self.places.blocks)?;
        let mut frames =
            vec![0; (u64::from(layout.frames_per_block) * self.places.frame_bytes) as usize];
        for (block, record) in
            (0..layout.blocks()).map(BlockId).zip(records.chunks_exact(BLOCK_BYTES as usize))
        {
            let at = block.0 as usize;
            if record.iter().any(|&b| b != 0) {
                match word(record, 0) == crc32c::crc32c(&record[4..])
                    && long(record, 4) == at as u64
                {
                    true => {
                        self.erases[at] = word(record, 12);
                        (self.health[at], self.unreadable[at]) = (record[16], record[17] != 0);
                    }
                    false => found.damaged_blocks.push(block),
                }
            }
            let first = layout.frame_in(block, 0);
            self.disk.read_at(&mut frames, self.frame_at(first))?;
            self.lay_block(medium, block, &frames, &mut found);
        }
        for lane in 0..layout.lanes {
            let mut record = [0; LANE_BYTES as usize];
            self.disk.read_at(&mut record, self.places.lanes + u64::from(lane) * LANE_BYTES)?;
            if word(&record, 0) == crc32c::crc32c(&record[4..]) {
                self.spares[lane as usize] = word(&record, 4);
            }
            medium.lay_spares(LaneId(lane), self.spares[lane as usize]);
        }
        let bytes = medium.rules().nvm_bytes as usize;
        if bytes > 0 {
            let mut nvm = vec![0; bytes];
            self.disk.read_at(&mut nvm, self.places.nvm)?;
            medium.redo(&Change::Store { address: 0, bytes: nvm });
            medium.redo(&Change::Fence);
        }
        Ok(found)
    }

    fn lay_block(&mut self, medium: &mut Medium, block: BlockId, bytes: &[u8], found: &mut Found) {
        let at = block.0 as usize;
        let frame_of = |index: usize| self.layout.frame_in(block, index as u32);
        let records: Vec<Option<Frame<'_>>> = bytes
            .chunks_exact(self.places.frame_bytes as usize)
            .enumerate()
            .map(|(index, bytes)| Frame::decode(bytes, frame_of(index)))
            .collect();
        let newest = records.iter().flatten().map(|frame| frame.head.erases).max().unwrap_or(0);
        self.erases[at] = self.erases[at].max(newest);
        medium.lay_block(block, self.erases[at], self.health[at]);
        if self.unreadable[at] {
            medium.redo(&Change::EraseFailed(block));
            medium.lay_block(block, self.erases[at], self.health[at]);
            return;
        }
        for (index, record) in records.iter().enumerate() {
            let frame = frame_of(index);
            match record {
                None => {
                    found.damaged.push(frame);
                    self.damaged.entry(block).or_default().push(frame);
                    medium.tear(frame);
                }
                Some(Frame { head, .. })
                    if head.erases < self.erases[at] || head.kind == ERASED => {}
                Some(record) if record.head.kind == TORN => medium.tear(frame),
                Some(record) => {
                    let Some(units) = record.units(self.layout.slots_per_frame as usize) else {
                        found.damaged.push(frame);
                        self.damaged.entry(block).or_default().push(frame);
                        medium.tear(frame);
                        continue;
                    };
                    let Head { role, sequence, .. } = record.head;
                    self.roles[at] = role;
                    found.programmed += 1;
                    medium.redo(&Change::Open(block, role));
                    medium.redo(&Change::Program { frame, sequence, units });
                }
            }
        }
    }

    fn frame_at(&self, frame: FrameId) -> u64 {
        self.places.frames + u64::from(frame.0) * self.places.frame_bytes
    }

    /// Write changes of the medium, in their order.
    ///
    /// # Errors
    /// When the file takes no more. What was written is a beginning of the changes.
    pub fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        changes.iter().try_for_each(|change| self.write_change(change))
    }

    /// Make everything durable that was written.
    ///
    /// # Errors
    /// When the host cannot: nothing is known of what is on its disk then.
    pub fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.unsynced) {
            self.disk.sync()?;
        }
        Ok(())
    }

    fn write_change(&mut self, change: &Change) -> io::Result<()> {
        match change {
            // in the controller's memory, until the first program of the block says it
            Change::Open(block, role) => self.roles[block.0 as usize] = *role,
            Change::Number(_) => {}
            Change::Program { frame, sequence, units } => {
                let role = self.roles[self.layout.block_of_frame(*frame).0 as usize];
                if role == OobRole::MAP || role == OobRole::MIXED {
                    self.sync()?;
                }
                self.write_frame(*frame, PROGRAMMED, *sequence, units)?;
            }
            Change::ProgramFailed(frame) => {
                self.write_frame(*frame, TORN, 0, &[])?;
                let block = self.layout.block_of_frame(*frame);
                self.health[block.0 as usize] |= PROGRAM_FAILS | ERASE_FAILS;
                self.write_block(block)?;
            }
            Change::Erase(block) => self.write_erased(*block)?,
            Change::EraseFailed(block) => {
                self.sync()?;
                self.unreadable[block.0 as usize] = true;
                self.health[block.0 as usize] |= ERASE_FAILS;
                self.write_block(*block)?;
            }
            Change::Replaced { block, failed } => {
                let lane = self.layout.lane_of(*block);
                self.spares[lane.0 as usize] -= 1;
                self.write_lane(lane)?;
                match failed {
                    None => self.write_erased(*block)?,
                    Some(frame) => {
                        self.health[block.0 as usize] = 0;
                        self.write_frame(*frame, ERASED, 0, &[])?;
                        self.write_block(*block)?;
                    }
                }
            }
            Change::Retired(block) => {
                self.health[block.0 as usize] |= BAD;
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
        }
        Ok(())
    }

    /// The power of `medium` failed: keep what was done until then, and of the operation in which
    /// it failed what `mode` says.
    ///
    /// # Errors
    /// When the file takes no more.
    pub fn lose_power(&mut self, medium: &mut Medium, mode: CutMode) -> io::Result<()> {
        self.write(&medium.take_journal())?;
        if let (CutMode::Torn, Some(cut)) = (mode, medium.cut()) {
            self.tear(cut)?;
        }
        self.sync()
    }

    /// The power failed in the middle of this: a page, or every page of a block, is neither erased
    /// nor readable.
    fn tear(&mut self, cut: Cut) -> io::Result<()> {
        let frames = match cut {
            Cut::Program(frame) => frame.0..frame.0 + 1,
            Cut::Erase(block) => {
                let first = self.layout.frame_in(block, 0).0;
                first..first + self.layout.frames_per_block
            }
        };
        frames.map(FrameId).try_for_each(|frame| self.write_frame(frame, TORN, 0, &[]))
    }

    /// A block is erased: its frames are of an earlier time from now on.
    fn write_erased(&mut self, block: BlockId) -> io::Result<()> {
        self.sync()?;
        let at = block.0 as usize;
        self.erases[at] += 1;
        (self.health[at], self.unreadable[at]) = (0, false);
        self.roles[at] = OobRole::default();
        self.write_block(block)?;
        for frame in self.damaged.remove(&block).unwrap_or_default() {
            self.write_frame(frame, ERASED, 0, &[])?;
        }
        Ok(())
    }

    fn write_block(&mut self, block: BlockId) -> io::Result<()> {
        let at = block.0 as usize;
        let mut record = [0; BLOCK_BYTES as usize];
        record[4..12].copy_from_slice(&(at as u64).to_le_bytes());
        record[12..16].copy_from_slice(&self.erases[at].to_le_bytes());
        (record[16], record[17]) = (self.health[at], u8::from(self.unreadable[at]));
        record[18] = 1; // no record is all zeros
        let sum = crc32c::crc32c(&record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        self.unsynced = true;
        self.disk.write_at(&record, self.places.blocks + at as u64 * BLOCK_BYTES)
    }

    fn write_lane(&mut self, lane: LaneId) -> io::Result<()> {
        let mut record = [0; LANE_BYTES as usize];
        record[4..8].copy_from_slice(&self.spares[lane.0 as usize].to_le_bytes());
        let sum = crc32c::crc32c(&record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        self.unsynced = true;
        self.disk.write_at(&record, self.places.lanes + u64::from(lane.0) * LANE_BYTES)
    }

    fn write_frame(
        &mut self,
        frame: FrameId,
        kind: u8,
        sequence: u64,
        units: &[Unit],
    ) -> io::Result<()> {
        let block = self.layout.block_of_frame(frame).0 as usize;
        let slots = if kind == PROGRAMMED { self.layout.slots_per_frame as usize } else { 0 };
        let head = Head { kind, role: self.roles[block], erases: self.erases[block], sequence };
        let mut buffer = std::mem::take(&mut self.buffer);
        head.encode(frame, slots, units, &mut buffer);
        assert!(
            buffer.len() as u64 <= self.places.frame_bytes,
            "frame {frame} takes {} bytes of {}",
            buffer.len(),
            self.places.frame_bytes
        );
        let written = self.disk.write_at(&buffer, self.frame_at(frame));
        self.buffer = buffer;
        self.unsynced = true;
        written
    }
}

fn read_text(disk: &impl Disk) -> Result<Vec<u8>, ImageError> {
    let foreign = |why: &str| ImageError::Foreign(why.to_owned());
    let mut head = [0; 24];
    disk.read_at(&mut head, 0).map_err(|_| {
        foreign("byte 0: not an image; expected the bytes `FAIMAGE` and a line end")
    })?;
    if head[..8] != MAGIC {
        return Err(foreign("byte 0: not an image; expected the bytes `FAIMAGE` and a line end"));
    }
    let version = word(&head, 8);
    if version != VERSION {
        let why = format!("an image of version {version}; this program reads version {VERSION}");
        return Err(ImageError::Foreign(why));
    }
    let length = word(&head, 12) as usize;
    if length > TEXT_MAX {
        return Err(foreign("byte 12: the header is longer than any that was written"));
    }
    let mut text = vec![0; length];
    disk.read_at(&mut text, 24)?;
    match crc32c::crc32c(&text) == word(&head, 16) {
        true => Ok(text),
        false => Err(foreign("byte 16: the header does not match its checksum")),
    }
}

fn must_suit(text: &[u8], here: &Header) -> Result<(), ImageError> {
    let there = Header::parse(text)?;
    let show = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
    for key in there.on_flash.keys().chain(here.on_flash.keys()) {
        if there.on_flash.get(key) != here.on_flash.get(key) {
            return Err(ImageError::OtherDrive {
                key: key.clone(),
                has: show(there.on_flash.get(key)),
                expected: show(here.on_flash.get(key)),
            });
        }
    }
    Ok(())
}
