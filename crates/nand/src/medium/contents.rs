//! Contents of slots, and the place of their bytes, which is memory or an image.

use crate::{Change, Medium, Oob, Unit};
use flashatlas_types::{BlockId, FrameId, MediumError, Ppn, Stamp};
use std::fmt::Debug;
use std::sync::Arc;

/// A place for the bytes that a medium does not keep in memory.
pub trait Contents: Debug + Send + Sync {
    /// Returns the bytes that program `sequence` left in a slot, or `Ok(None)` if it left none.
    ///
    /// # Errors
    /// Returns [`MediumError::Damaged`] if the bytes are of another program, or were changed.
    fn bytes(&self, ppn: Ppn, sequence: u64) -> Result<Option<Arc<[u8]>>, MediumError>;
}

impl Medium {
    /// Returns the content of a slot, without an operation. A counted read has brought the data
    /// into the controller before.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] unless the slot's frame is programmed and, where bytes
    /// are kept in memory, its OOB record is intact. Returns the errors of [`Contents::bytes`]
    /// where bytes are kept elsewhere.
    #[inline]
    pub fn unit(&self, ppn: Ppn) -> Result<Unit, MediumError> {
        let mut unit = self.unit_by_stamp(ppn)?;
        if self.rules.keep_bytes {
            unit.bytes = self.bytes_of(ppn)?;
        }
        Ok(unit)
    }

    /// Returns the content of a slot as [`Medium::unit`] does, without bytes.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] unless the slot's frame is programmed.
    #[inline]
    pub fn unit_by_stamp(&self, ppn: Ppn) -> Result<Unit, MediumError> {
        let lpn = self.lpn(ppn)?;
        Ok(Unit { lpn, stamp: self.stamp(ppn), bytes: None })
    }

    fn stamp(&self, ppn: Ppn) -> Stamp {
        Stamp(self.slots[ppn.0 as usize][1])
    }

    fn bytes_of(&self, ppn: Ppn) -> Result<Option<Arc<[u8]>>, MediumError> {
        let held = self.bytes.get(&ppn).cloned();
        let frame = self.layout.frame_of(ppn);
        if let Some(elsewhere) = &self.elsewhere {
            // a frame that is not kept there yet may hold units without bytes: copies of pages that
            // a precondition wrote
            if held.is_some() || self.not_elsewhere.contains(&frame) {
                return Ok(held);
            }
            return elsewhere.bytes(ppn, self.frame_sequence(frame)?);
        }
        let spare = self.spare.get(&frame).and_then(|spare| Oob::decode(spare).ok());
        spare.map(|_| held).ok_or(MediumError::Unreadable(frame))
    }

    /// Returns the bytes of the map page that begins in a slot, without an operation. The bytes are
    /// returned only if their checksum matches the page's stamp.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] unless the slot's frame is programmed, and
    /// [`MediumError::Damaged`] if no bytes are kept or the checksum does not match.
    pub fn map_page(&self, ppn: Ppn) -> Result<&Arc<[u8]>, MediumError> {
        self.lpn(ppn)?;
        let bytes = self.bytes.get(&ppn).ok_or(MediumError::Damaged(ppn))?;
        if crc32c::crc32c(bytes) != self.stamp(ppn).0 {
            return Err(MediumError::Damaged(ppn));
        }
        Ok(bytes)
    }

    /// Drops the bytes of a block, if any are kept.
    pub(crate) fn drop_bytes(&mut self, block: BlockId) {
        let (slot, frame) = (self.layout.block_slot(block).0, self.layout.frame_in(block, 0).0);
        (slot..slot + self.layout.slots_per_block).for_each(|s| drop(self.bytes.remove(&Ppn(s))));
        (frame..frame + self.layout.frames_per_block).for_each(|f| {
            self.spare.remove(&FrameId(f));
            self.not_elsewhere.remove(&FrameId(f));
        });
    }

    /// Makes `contents` the place of the bytes of data that are not in memory.
    pub fn keep_bytes_in(&mut self, contents: Arc<dyn Contents>) {
        self.elsewhere = Some(contents);
    }

    /// Drops the bytes of data that these changes programmed from memory, because they are now kept
    /// elsewhere. The bytes of a frame stay if the frame was programmed again since.
    pub fn let_go(&mut self, changes: &[Change]) {
        for change in changes {
            let Change::Program { frame, sequence, .. } = *change else { continue };
            if self.frame_sequence(frame) != Ok(sequence) {
                continue;
            }
            self.not_elsewhere.remove(&frame);
            if !self.holds_map(frame) {
                let first = self.layout.first_slot(frame).0;
                (first..first + self.layout.slots_per_frame)
                    .for_each(|slot| drop(self.bytes.remove(&Ppn(slot))));
            }
        }
    }
}
