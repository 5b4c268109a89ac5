//! Contents of slots. Their bytes are in memory or in an image.

use crate::{Change, Medium, Oob, Unit};
use flashatlas_types::{BlockId, FrameId, Lpn, MediumError, Ppn, Stamp};
use std::fmt::Debug;
use std::sync::Arc;

/// Storage for the bytes that a medium does not hold in memory.
pub trait Contents: Debug + Send + Sync {
    /// Returns the bytes that program `sequence` wrote to a slot, or `Ok(None)` if it wrote no
    /// bytes.
    ///
    /// # Errors
    /// Returns [`MediumError::Damaged`] if the bytes were written by another program, or were
    /// changed.
    fn bytes(&self, ppn: Ppn, sequence: u64) -> Result<Option<Arc<[u8]>>, MediumError>;
}

impl Medium {
    /// Returns the content of a slot, without an operation. The caller has already read the slot
    /// with a counted operation.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] if the slot's frame is not programmed, or if bytes are
    /// in memory and the frame's OOB record is not intact. Returns the errors of
    /// [`Contents::bytes`] if the bytes are not in memory.
    #[inline]
    pub fn unit(&self, ppn: Ppn) -> Result<Unit, MediumError> {
        match self.cells.plain_cell(self.layout.frame_of(ppn), ppn) {
            Some([lpn, stamp]) if stamp != Stamp::LOST.0 && !self.rules.keep_bytes => {
                Ok(Unit { lpn: Lpn(lpn), stamp: Stamp(stamp), bytes: None })
            }
            _ => self.unit_otherwise(ppn),
        }
    }

    #[inline(never)]
    fn unit_otherwise(&self, ppn: Ppn) -> Result<Unit, MediumError> {
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
        let [lpn, stamp] = self.slot(ppn)?;
        if stamp == Stamp::LOST.0 {
            return Err(MediumError::Unreadable(self.layout.frame_of(ppn)));
        }
        Ok(Unit { lpn: Lpn(lpn), stamp: Stamp(stamp), bytes: None })
    }

    /// Returns the content of a slot as [`Medium::unit`] does. An unreadable slot gives a unit with
    /// the stamp [`Stamp::LOST`]. A copy of this unit cannot be read either.
    ///
    /// A real controller knows the logical page of an unreadable slot from the spare area, which
    /// has a stronger code, or from a table of the pages of each block beside the map.
    ///
    /// # Errors
    /// Returns the errors of [`Medium::unit`] on a medium without errors.
    #[inline]
    pub fn unit_or_lost(&self, ppn: Ppn) -> Result<Unit, MediumError> {
        if self.has_errors() { self.unit_that_may_be_lost(ppn) } else { self.unit(ppn) }
    }

    #[cold]
    fn unit_that_may_be_lost(&self, ppn: Ppn) -> Result<Unit, MediumError> {
        match self.unit(ppn) {
            Err(MediumError::Unreadable(_)) => {
                Ok(Unit { lpn: self.named(ppn)?, stamp: Stamp::LOST, bytes: None })
            }
            unit => unit,
        }
    }

    /// Returns the number of slots whose content cannot be read. Slots of erased frames do not
    /// count.
    pub fn lost_slots(&self) -> u64 {
        let is_lost = |slot: u32| u64::from(self.unit_by_stamp(Ppn(slot)).is_err());
        let of_block = |block| {
            let first = self.layout.block_slot(block).0;
            let slots = self.write_pointer(block) * self.layout.slots_per_frame;
            (first..first + slots).map(is_lost).sum::<u64>()
        };
        self.layout.block_ids().filter(|&block| !self.is_base(block)).map(of_block).sum()
    }

    /// Returns the logical page of a slot as [`Medium::lpn`] does, also if the slot has become
    /// unreadable (see [`Medium::unit_or_lost`]).
    ///
    /// # Errors
    /// Returns the errors of [`Medium::lpn`] on a medium without errors.
    #[inline]
    pub fn named(&self, ppn: Ppn) -> Result<Lpn, MediumError> {
        if self.has_errors() { self.name_that_may_be_lost(ppn) } else { self.lpn(ppn) }
    }

    #[cold]
    fn name_that_may_be_lost(&self, ppn: Ppn) -> Result<Lpn, MediumError> {
        match self.lpn(ppn) {
            Err(MediumError::Unreadable(_)) => Ok(Lpn(self.cells.cell(ppn)[0])),
            lpn => lpn,
        }
    }

    fn stamp(&self, ppn: Ppn) -> Stamp {
        Stamp(self.cells.cell(ppn)[1])
    }

    fn bytes_of(&self, ppn: Ppn) -> Result<Option<Arc<[u8]>>, MediumError> {
        let held = self.bytes.get(&ppn).cloned();
        let frame = self.layout.frame_of(ppn);
        if let Some(elsewhere) = &self.elsewhere {
            // a frame that is not stored there yet may hold units without bytes: copies of pages
            // from a precondition
            if held.is_some() || self.not_elsewhere.contains(&frame) {
                return Ok(held);
            }
            return elsewhere.bytes(ppn, self.frame_sequence(frame)?);
        }
        let spare = self.spare.get(&frame).and_then(|spare| Oob::decode(spare).ok());
        spare.map(|_| held).ok_or(MediumError::Unreadable(frame))
    }

    /// Returns the bytes of the map page that begins in a slot, without an operation. Their
    /// checksum matches the page's stamp. Of a map page over a base, [`Medium::map_content`]
    /// returns the content.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] if the slot's frame is not programmed. Returns
    /// [`MediumError::Damaged`] if there are no bytes or their checksum does not match.
    pub fn map_page(&self, ppn: Ppn) -> Result<&Arc<[u8]>, MediumError> {
        self.slot(ppn)?;
        let bytes = self.bytes.get(&ppn).ok_or(MediumError::Damaged(ppn))?;
        if crc32c::crc32c(bytes) != self.stamp(ppn).0 {
            return Err(MediumError::Damaged(ppn));
        }
        Ok(bytes)
    }

    /// Removes the bytes of a block from memory, if there are any.
    pub(crate) fn drop_bytes(&mut self, block: BlockId) {
        if let Some(maps) = &mut self.cells.maps {
            maps.drop_block(&self.layout, block);
        }
        let (slot, frame) = (self.layout.block_slot(block).0, self.layout.frame_in(block, 0).0);
        (slot..slot + self.layout.slots_per_block).for_each(|s| drop(self.bytes.remove(&Ppn(s))));
        (frame..frame + self.layout.frames_per_block).for_each(|f| {
            self.spare.remove(&FrameId(f));
            self.not_elsewhere.remove(&FrameId(f));
        });
    }

    /// Makes `contents` the storage of data bytes that are not in memory.
    pub fn keep_bytes_in(&mut self, contents: Arc<dyn Contents>) {
        self.elsewhere = Some(contents);
    }

    /// Removes from memory the data bytes that these changes programmed, because they are now
    /// stored elsewhere. The bytes of a frame stay in memory if the frame has been programmed again
    /// since.
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
