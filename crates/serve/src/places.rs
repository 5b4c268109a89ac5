//! Places in the file of an image, and functions that read the content of slots there.

use crate::disk::Disk;
use crate::error::ImageError;
use crate::frame::{EXTRA_BYTES, Frame, HEAD_BYTES, SLOT_BYTES, Slot, mark_lost};
use crate::header::{HEADER_BYTES, VERSION};
use flashatlas_nand::Contents;
use flashatlas_nvme::slots::SLOTS;
use flashatlas_types::{BlockId, FrameId, LaneId, Layout, MediumError, Ppn};
use std::sync::Arc;
use std::{fmt, io};

/// Size of the header, and alignment of the parts behind it.
pub const PAGE: u64 = 4096;
/// Bytes of the mark.
pub const MARK_BYTES: usize = 24;
/// Bytes of the record of a block.
pub const BLOCK_BYTES: usize = 32;
/// Bytes of the record of a lane.
pub const LANE_BYTES: usize = 16;

/// Places in the file of an image.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub mark: u64,
    pub blocks: u64,
    pub lanes: u64,
    pub nvm: u64,
    heads: u64,
    contents: u64,
    /// Bytes of a frame's head.
    pub head_bytes: usize,
    /// Bytes of a frame's content.
    pub content_bytes: u64,
    /// The slots of the controller's record, and the end of an image without them.
    pub record: u64,
    pub end: u64,
}

impl Places {
    pub fn of(layout: &Layout, nvm_bytes: u64, text: usize) -> Places {
        let aligned = |at: u64| at.div_ceil(PAGE) * PAGE;
        let slots = layout.slots_per_frame as usize;
        let head_bytes = HEAD_BYTES + slots * SLOT_BYTES;
        let content_bytes =
            (layout.frame_bytes() + (slots * EXTRA_BYTES) as u64).next_multiple_of(512);
        let frames = u64::from(layout.frames());
        let mark = aligned((HEADER_BYTES + text) as u64);
        let blocks = mark + PAGE;
        let lanes = aligned(blocks + u64::from(layout.blocks()) * BLOCK_BYTES as u64);
        let nvm = aligned(lanes + u64::from(layout.lanes) * LANE_BYTES as u64);
        let heads = aligned(nvm + nvm_bytes);
        let contents = aligned(heads + frames * head_bytes as u64);
        let record = contents + frames * content_bytes;
        let end = aligned(record) + SLOTS * PAGE;
        Places { mark, blocks, lanes, nvm, heads, contents, head_bytes, content_bytes, record, end }
    }

    /// Returns an error unless an image of this version may have this length.
    ///
    /// # Errors
    /// Returns an error with both lengths.
    pub fn must_be_whole(&self, length: u64, version: u32) -> Result<(), ImageError> {
        let expected = if version < VERSION { self.record } else { self.end };
        // an image of the previous version may have grown before it gets its new version
        if length == expected || length == self.end {
            return Ok(());
        }
        let why = format!(
            "the image has {length} bytes, but an image of this drive has {expected} bytes: its \
             end is missing"
        );
        Err(ImageError::Foreign(why))
    }

    /// Returns the place of a slot of the controller's record: a whole number of pages, so that no
    /// write touches two slots.
    pub fn slot(&self, slot: u64) -> u64 {
        self.end - (SLOTS - slot) * PAGE
    }

    pub fn block(&self, block: BlockId) -> u64 {
        self.blocks + u64::from(block.number()) * BLOCK_BYTES as u64
    }

    pub fn lane(&self, lane: LaneId) -> u64 {
        self.lanes + u64::from(lane.number()) * LANE_BYTES as u64
    }

    pub fn head(&self, frame: FrameId) -> u64 {
        self.heads + u64::from(frame.0) * self.head_bytes as u64
    }

    pub fn content(&self, frame: FrameId) -> u64 {
        self.contents + u64::from(frame.0) * self.content_bytes
    }

    /// Marks the data of a programmed frame as unreadable. Its head keeps the logical pages.
    ///
    /// # Errors
    /// Returns an error if the head cannot be read or written.
    pub fn lose(&self, disk: &impl Disk, frame: FrameId) -> io::Result<()> {
        let mut head = vec![0; self.head_bytes];
        disk.read_at(&mut head, self.head(frame))?;
        mark_lost(&mut head, frame);
        disk.write_at(&head, self.head(frame))
    }

    /// Returns the bytes of a slot of a frame, or `Some(None)` if the slot has no bytes.
    ///
    /// Returns `None` if the bytes cannot be read or do not match their checksum.
    pub fn bytes_of(
        &self,
        disk: &impl Disk,
        frame: FrameId,
        slot: &Slot,
    ) -> Option<Option<Arc<[u8]>>> {
        let Some((at, length)) = slot.bytes else { return Some(None) };
        if at + u64::from(length) > self.content_bytes {
            return None;
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length as usize).collect();
        let into = Arc::get_mut(&mut bytes).expect("the image is new");
        disk.read_at(into, self.content(frame) + at).ok()?;
        slot.matches(&bytes).then_some(Some(bytes))
    }
}

/// Reader of the slots whose content the medium does not hold in memory.
pub struct OnDisk<D> {
    pub disk: Arc<D>,
    pub layout: Arc<Layout>,
    pub places: Places,
}

impl<D> fmt::Debug for OnDisk<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDisk").field("places", &self.places).finish_non_exhaustive()
    }
}

impl<D: Disk> Contents for OnDisk<D> {
    fn bytes(&self, ppn: Ppn, sequence: u64) -> Result<Option<Arc<[u8]>>, MediumError> {
        let frame = self.layout.frame_of(ppn);
        let index = (ppn.0 - self.layout.first_slot(frame).0) as usize;
        let mut head = vec![0; self.places.head_bytes];
        let read = self.disk.read_at(&mut head, self.places.head(frame)).ok();
        read.and_then(|()| Frame::decode(&head, frame))
            .filter(|read| read.head.sequence == sequence)
            .and_then(|read| read.slots().nth(index))
            .and_then(|slot| self.places.bytes_of(&*self.disk, frame, &slot))
            .ok_or(MediumError::Damaged(ppn))
    }
}
