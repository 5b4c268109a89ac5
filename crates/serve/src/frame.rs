//! A frame as it lies in an image: what its spare area says, its content, and a checksum.

use flashatlas_nand::{OobRole, Unit};
use flashatlas_types::{FrameId, Lpn, Stamp};
use std::sync::Arc;

/// Bytes before what is said of each slot.
pub const HEAD_BYTES: usize = 24;
/// Bytes for a slot, before its content; and what a map page has beside its entries at most.
pub const SLOT_BYTES: usize = 12;
pub const EXTRA_BYTES: usize = 64;
/// The length of a slot without bytes.
const NO_BYTES: u32 = u32::MAX;

/// What a frame is.
pub const PROGRAMMED: u8 = 1;
pub const TORN: u8 = 2;
pub const ERASED: u8 = 3;

/// What is said of a frame.
#[derive(Clone, Copy)]
pub struct Head {
    /// [`PROGRAMMED`], [`TORN`] or [`ERASED`].
    pub kind: u8,
    /// What its block was opened for.
    pub role: OobRole,
    /// Erases of its block when it was written.
    pub erases: u32,
    /// Number of its program.
    pub sequence: u64,
}

/// A frame that was read.
pub struct Frame<'a> {
    pub head: Head,
    slots: &'a [u8],
}

pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The checksum of a frame: of what it says, and of its place.
fn sum(bytes: &[u8], frame: FrameId) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame.0.to_le_bytes()), &bytes[4..])
}

impl Head {
    /// The frame as bytes: `slots` slots, of which `units` are the first and the others padding.
    pub fn encode(self, frame: FrameId, slots: usize, units: &[Unit], out: &mut Vec<u8>) {
        let padding = Unit { lpn: Lpn::NONE, stamp: Stamp::ZERO, bytes: None };
        out.clear();
        out.extend([0; 8]);
        out.extend([self.kind, self.role.0, 0, 0]);
        out.extend(self.erases.to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        for slot in 0..slots {
            let unit = units.get(slot).unwrap_or(&padding);
            out.extend(unit.lpn.0.to_le_bytes());
            out.extend(unit.stamp.0.to_le_bytes());
            let length = unit.bytes.as_ref().map_or(NO_BYTES, |bytes| bytes.len() as u32);
            out.extend(length.to_le_bytes());
        }
        units.iter().filter_map(|unit| unit.bytes.as_ref()).for_each(|b| out.extend(&b[..]));
        let length = out.len() as u32;
        out[4..8].copy_from_slice(&length.to_le_bytes());
        let sum = sum(out, frame);
        out[..4].copy_from_slice(&sum.to_le_bytes());
    }
}

impl<'a> Frame<'a> {
    /// The frame at the beginning of `bytes`; `None`: what does not match its checksum.
    pub fn decode(bytes: &'a [u8], frame: FrameId) -> Option<Frame<'a>> {
        let length = word(bytes, 4) as usize;
        if length == 0 && bytes[..HEAD_BYTES].iter().all(|&b| b == 0) {
            let head = Head { kind: ERASED, role: OobRole(0), erases: 0, sequence: 0 };
            return Some(Frame { head, slots: &[] }); // a hole of the file
        }
        let bytes = bytes.get(..length).filter(|b| b.len() >= HEAD_BYTES)?;
        let head = Head {
            kind: bytes[8],
            role: OobRole(bytes[9]),
            erases: word(bytes, 12),
            sequence: long(bytes, 16),
        };
        (word(bytes, 0) == sum(bytes, frame)).then(|| Frame { head, slots: &bytes[HEAD_BYTES..] })
    }

    /// What its slots hold; `None`: not so many slots, or lengths that lead beyond it.
    pub fn units(&self, count: usize) -> Option<Vec<Unit>> {
        let mut at = count * SLOT_BYTES;
        (0..count)
            .map(|slot| {
                let head = self.slots.get(slot * SLOT_BYTES..(slot + 1) * SLOT_BYTES)?;
                let bytes = match word(head, 8) {
                    NO_BYTES => None,
                    length => {
                        let bytes = self.slots.get(at..at + length as usize)?;
                        at += length as usize;
                        Some(Arc::from(bytes))
                    }
                };
                Some(Unit { lpn: Lpn(word(head, 0)), stamp: Stamp(word(head, 4)), bytes })
            })
            .collect()
    }
}
