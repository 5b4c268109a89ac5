//! The home of the controller's record: two slots, which a power failure may tear.

use flashatlas_nand::Torn;
use flashatlas_nvme::slots::{self, SLOTS};

/// Bytes of a slot, which has room for every record.
const SLOT_BYTES: usize = 1024;

/// The slots.
#[derive(Clone)]
pub struct Home([Vec<u8>; SLOTS as usize]);

/// A write of a slot.
#[derive(Clone, Debug)]
pub struct SlotWrite {
    slot: usize,
    bytes: Vec<u8>,
}

impl Home {
    /// Returns a home without a record.
    pub fn new() -> Home {
        Home(std::array::from_fn(|_| vec![0; SLOT_BYTES]))
    }

    fn newest(&self) -> Option<slots::Newest<'_>> {
        slots::newest(self.0.iter().map(Vec::as_slice))
    }

    /// Returns the newest record.
    pub fn record(&self) -> Option<&[u8]> {
        self.newest().map(|newest| newest.record)
    }

    /// Returns the write that keeps a record.
    ///
    /// # Panics
    /// Panics if the record is longer than a slot.
    pub fn keeping(&self, record: &[u8]) -> SlotWrite {
        let (number, slot) = slots::next(self.newest());
        let bytes = slots::encode(number, record);
        assert!(bytes.len() <= SLOT_BYTES, "a record of {} bytes", record.len());
        SlotWrite { slot: slot as usize, bytes }
    }

    /// Carries a write out.
    pub fn write(&mut self, write: &SlotWrite) {
        self.0[write.slot][..write.bytes.len()].copy_from_slice(&write.bytes);
    }

    /// Leaves a write half done: only its first half is written, or the content of the slot is
    /// unknown.
    pub fn tear(&mut self, write: &SlotWrite, torn: Torn) {
        let slot = &mut self.0[write.slot];
        if torn == Torn::Part {
            let half = write.bytes.len() / 2;
            slot[..half].copy_from_slice(&write.bytes[..half]);
        } else {
            slot.iter_mut().zip(0..).for_each(|(byte, at): (_, u32)| *byte ^= at as u8 | 1);
        }
    }
}
