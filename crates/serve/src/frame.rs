//! A frame in an image. Its spare area and its content are in different places of the file, and
//! each has its own checksums.

use flashatlas_nand::{OobRole, Unit};
use flashatlas_types::{BlockMode, FrameId, Lpn, Stamp};

/// Bytes of a head before the descriptions of the slots.
pub const HEAD_BYTES: usize = 24;
/// Bytes of the description of a slot.
pub const SLOT_BYTES: usize = 16;
/// Largest number of bytes that a map page stores in addition to its entries.
pub const EXTRA_BYTES: usize = 64;
/// Length that marks a slot without bytes.
const NO_BYTES: u32 = u32::MAX;

/// States of a frame.
pub const PROGRAMMED: u8 = 1;
pub const TORN: u8 = 2;
pub const ERASED: u8 = 3;
/// State of a frame whose data cannot be read any more.
pub const LOST: u8 = 4;

/// Head of a frame.
#[derive(Clone, Copy)]
pub struct Head {
    /// [`PROGRAMMED`], [`TORN`], [`ERASED`] or [`LOST`].
    pub kind: u8,
    /// The role for which the frame's block was opened.
    pub role: OobRole,
    /// The mode in which the frame's block was opened; native in images from before modes.
    pub mode: BlockMode,
    /// Number of erases of its block at the time when the frame was written.
    pub erases: u32,
    /// Number of the program that wrote the frame.
    pub sequence: u64,
}

/// Description of a slot.
#[derive(Clone, Copy)]
pub struct Slot {
    pub lpn: Lpn,
    pub stamp: Stamp,
    /// Place and length of its bytes in the content of the frame, if it has any.
    pub bytes: Option<(u64, u32)>,
    sum: u32,
}

impl Slot {
    /// Returns `true` if `bytes` match the checksum of the slot.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        crc32c::crc32c(bytes) == self.sum
    }
}

/// A frame's decoded head, with the encoded descriptions of its slots.
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

/// Returns the checksum of a head and of the number of its frame.
fn sum(bytes: &[u8], frame: FrameId) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame.0.to_le_bytes()), &bytes[4..])
}

impl Head {
    /// Encodes the head and the descriptions of `slots` slots into `out`.
    ///
    /// The first slots describe `units`; the others are padding.
    pub fn encode(self, frame: FrameId, slots: usize, units: &[Unit], out: &mut Vec<u8>) {
        let padding = Unit { lpn: Lpn::NONE, stamp: Stamp::ZERO, bytes: None };
        out.clear();
        out.extend([0; 4]);
        out.extend([self.kind, self.role.0, self.mode as u8, 0]);
        out.extend(self.erases.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.sequence.to_le_bytes());
        for slot in 0..slots {
            let unit = units.get(slot).unwrap_or(&padding);
            let bytes = unit.bytes.as_deref();
            out.extend(unit.lpn.0.to_le_bytes());
            out.extend(unit.stamp.0.to_le_bytes());
            out.extend(bytes.map_or(NO_BYTES, |bytes| bytes.len() as u32).to_le_bytes());
            out.extend(bytes.map_or(0, crc32c::crc32c).to_le_bytes());
        }
        let sum = sum(out, frame);
        out[..4].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Marks the data of a frame as lost in the bytes of its head, unless nothing is programmed there.
pub fn mark_lost(bytes: &mut [u8], frame: FrameId) {
    if bytes[4] == PROGRAMMED {
        bytes[4] = LOST;
        let sum = sum(bytes, frame);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
    }
}

impl<'a> Frame<'a> {
    /// Decodes the head of a frame, or returns `None` if the bytes do not match their checksum.
    pub fn decode(bytes: &'a [u8], frame: FrameId) -> Option<Frame<'a>> {
        if bytes.iter().all(|&b| b == 0) {
            let mode = BlockMode::Native;
            let head = Head { kind: ERASED, role: OobRole(0), mode, erases: 0, sequence: 0 };
            return Some(Frame { head, slots: &[] }); // a hole of the file
        }
        let head = Head {
            kind: bytes[4],
            role: OobRole(bytes[5]),
            mode: BlockMode::from_number(bytes[6])?,
            erases: word(bytes, 8),
            sequence: long(bytes, 16),
        };
        (word(bytes, 0) == sum(bytes, frame)).then(|| Frame { head, slots: &bytes[HEAD_BYTES..] })
    }

    /// Returns the descriptions of the frame's slots, in order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<'a> {
        let mut end = 0;
        self.slots.chunks_exact(SLOT_BYTES).map(move |slot| {
            let length = word(slot, 8);
            let bytes = (length != NO_BYTES).then_some((end, length));
            end += bytes.map_or(0, |(_, length)| u64::from(length));
            Slot {
                lpn: Lpn(word(slot, 0)),
                stamp: Stamp(word(slot, 4)),
                bytes,
                sum: word(slot, 12),
            }
        })
    }

    /// Returns `true` if the frame holds a part of a map rather than data.
    pub fn holds_map(&self) -> bool {
        let names_none = || self.slots.len() >= SLOT_BYTES && word(self.slots, 0) == Lpn::NONE.0;
        self.head.role == OobRole::MAP || self.head.role == OobRole::MIXED && names_none()
    }
}
