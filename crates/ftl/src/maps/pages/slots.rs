//! Map segments in byte-addressable memory. Each slot stores the copy of one segment: its entries,
//! and a header with the number of the segment, the age of the copy and two checksums. A mount does
//! not use a slot whose checksums do not match.
//!
//! The fields of a slot are little-endian: magic `FAMS` (4), CRC-32C of the rest of the header (4),
//! segment (4), length of the entries in bytes (4), CRC-32C of the entries (4), zeros (4),
//! `version` (8), `upto` (8), `replay_from` (8), and zeros up to 64 bytes. The entries follow. A
//! slot with the newest copy of a segment is never overwritten. The next copy is written to a free
//! slot, and becomes valid once a fence has made it durable.

use super::ids::{NvmSlot, Segment, filled};
use super::table::{HEADER_BYTES as NUMBERS_BYTES, Header};
use crate::FtlContext;
use flashatlas_nand::Nvm;
use flashatlas_types::{MediumError, OpId, SeededBug, TiVec};
use std::collections::VecDeque;

const MAGIC: [u8; 4] = *b"FAMS";
const HEADER_BYTES: u64 = 64;
const HEADER_LEN: usize = HEADER_BYTES as usize;
/// The bounds of the checksummed part of the header.
const CHECKED: std::ops::Range<usize> = 8..NUMBERS_AT + NUMBERS_BYTES;
const NUMBERS_AT: usize = 24;

/// The content of a slot: segment, header, and entries.
type StoredSegment<'n> = (Segment, Header, &'n [u8]);

/// The error that a slot is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Damaged;

/// The slots of a drive's NVM, and the slot of each segment.
pub(crate) struct Slots {
    /// The number of bytes of a segment's entries.
    bytes: u64,
    count: u32,
    /// The slot of each segment that has a slot.
    of: TiVec<Segment, Option<NvmSlot>>,
    /// Free slots, in the order in which they became free. Each slot has the operation that must be
    /// complete before the slot is written.
    free: VecDeque<(NvmSlot, OpId)>,
}

/// Returns the number of bytes of a slot for segments of `bytes`.
pub(crate) fn slot_bytes(bytes: u64) -> u64 {
    HEADER_BYTES + bytes.next_multiple_of(HEADER_BYTES)
}

impl Slots {
    /// Creates as many free slots for segments of `bytes` as `nvm_bytes` allow.
    pub fn new(nvm_bytes: u64, bytes: u64, segments: u32) -> Slots {
        let count = (nvm_bytes / slot_bytes(bytes)) as u32;
        Slots {
            bytes,
            count,
            of: filled(segments, None),
            free: (0..count).map(|s| (NvmSlot::new(s), OpId::NONE)).collect(),
        }
    }

    /// Returns the number of free slots.
    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Returns the number of all slots.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Returns `true` if a segment has a slot. The newest durable copy of any other segment is
    /// elsewhere.
    pub fn holds(&self, segment: Segment) -> bool {
        self.of[segment].is_some()
    }

    /// Returns `true` if a segment can be copied to a slot so that one slot is still free after
    /// that, for the next copy.
    pub fn has_room(&self, segment: Segment) -> bool {
        self.free() >= 2 || (self.holds(segment) && self.free() == 1)
    }

    fn address(&self, slot: NvmSlot) -> u64 {
        u64::from(slot.number()) * slot_bytes(self.bytes)
    }

    /// Copies a segment to a free slot, makes the copy durable, and frees the slot of the older
    /// copy. Returns the fence.
    ///
    /// # Errors
    /// Returns an error if the power fails. The older copy is then still intact.
    pub fn store(
        &mut self,
        cx: &mut FtlContext<'_>,
        segment: Segment,
        header: Header,
        entries: &[u8],
        after: &[OpId],
    ) -> Result<OpId, MediumError> {
        let (mut slot, free_since) = self.free.pop_front().expect("the caller checked the room");
        if SeededBug::NvmInPlace.is_active()
            && let Some(old) = self.of[segment]
        {
            self.free.push_front((slot, free_since));
            slot = old;
            self.of[segment] = None;
        }
        let mut bytes = Vec::with_capacity(HEADER_LEN + entries.len());
        bytes.extend(MAGIC);
        bytes.extend([0; 4]);
        bytes.extend(segment.number().to_le_bytes());
        bytes.extend((entries.len() as u32).to_le_bytes());
        bytes.extend(crc32c::crc32c(entries).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(header.encode());
        let checksum = crc32c::crc32c(&bytes[CHECKED]);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes.resize(HEADER_LEN, 0);
        bytes.extend(entries);
        let mut waits = after.to_vec();
        waits.push(free_since);
        let stored = cx.flash.nvm_store(self.address(slot), &bytes, &waits)?;
        let fenced = if SeededBug::NvmWithoutFence.is_active() {
            stored
        } else {
            cx.flash.nvm_fence(&[stored])?
        };
        if let Some(old) = self.of[segment].replace(slot) {
            self.free.push_back((old, fenced));
        }
        Ok(fenced)
    }

    /// Frees the slot of a segment that has a newer copy elsewhere. The newer copy is durable once
    /// `after` is complete.
    pub fn release(&mut self, segment: Segment, after: OpId) {
        if let Some(slot) = self.of[segment].take() {
            self.free.push_back((slot, after));
        }
    }

    /// Returns the content of a slot, or `Ok(None)` if it was never written.
    ///
    /// # Errors
    /// Returns [`Damaged`] if the slot was written and its header or its content is damaged.
    fn read<'n>(&self, nvm: &'n Nvm, slot: NvmSlot) -> Result<Option<StoredSegment<'n>>, Damaged> {
        let header = nvm.bytes(self.address(slot), HEADER_BYTES);
        if header.iter().all(|&b| b == 0) {
            return Ok(None);
        }
        let word =
            |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (segment, length) = (Segment::new(word(8)), u64::from(word(12)));
        let intact = header[..4] == MAGIC && word(4) == crc32c::crc32c(&header[CHECKED]);
        if !intact || length > self.bytes || self.of.get(segment).is_none() {
            return Err(Damaged);
        }
        let entries = nvm.bytes(self.address(slot) + HEADER_BYTES, length);
        if crc32c::crc32c(entries) != word(16) && !SeededBug::NvmWithoutChecksum.is_active() {
            return Err(Damaged);
        }
        Ok(Some((segment, Header::decode(&header[NUMBERS_AT..]), entries)))
    }

    /// Reads every slot. Returns the number of damaged slots, and the largest version in the other
    /// slots.
    ///
    /// The newest copy of each segment is passed to `take`. If `take` returns `true`, the segment
    /// keeps the slot, because this copy is newer than any copy elsewhere.
    pub fn mount(
        &mut self,
        nvm: &Nvm,
        mut take: impl FnMut(Segment, Header, &[u8]) -> bool,
    ) -> (u32, u64) {
        let mut damaged = 0;
        let mut found: Vec<(Segment, u64, NvmSlot)> = Vec::new();
        for slot in (0..self.count).map(NvmSlot::new) {
            match self.read(nvm, slot) {
                Ok(None) => {}
                Ok(Some((segment, header, _))) => found.push((segment, header.version, slot)),
                Err(Damaged) => damaged += 1,
            }
        }
        found.sort_unstable();
        for (i, &(segment, _, slot)) in found.iter().enumerate() {
            let newest = found.get(i + 1).is_none_or(|next| next.0 != segment);
            let (_, header, entries) = self.read(nvm, slot).ok().flatten().expect("just read");
            if newest && take(segment, header, entries) {
                self.of[segment] = Some(slot);
                self.free.retain(|f| f.0 != slot);
            }
        }
        (damaged, found.iter().map(|&(_, version, _)| version).max().unwrap_or(0))
    }

    /// Returns the entries in the slot of a segment, or `None` if the segment has no slot.
    pub fn entries<'n>(&self, nvm: &'n Nvm, segment: Segment) -> Option<Result<&'n [u8], Damaged>> {
        let slot = self.of[segment]?;
        Some(
            self.read(nvm, slot)
                .and_then(|held| held.map(|(_, _, entries)| entries).ok_or(Damaged)),
        )
    }

    /// Returns the number of bytes that a mount loads: all headers, and the entries of all used
    /// slots.
    pub fn mount_bytes(&self) -> u64 {
        u64::from(self.count) * HEADER_BYTES + u64::from(self.count - self.free()) * self.bytes
    }

    /// Returns the total number of bytes of the slots.
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * slot_bytes(self.bytes)
    }
}
