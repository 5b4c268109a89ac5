//! The words of a frame: its header, and the content of its slots.

use super::FrameState;
use flashatlas_types::{Layout, Lpn, SeededBug};
use std::borrow::Cow;

/// The state of a frame, the sequence of its program, which has 40 bits, and the copybacks of its
/// data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Header {
    /// The value of a [`FrameState`], with the steps of an unfinished program.
    pub state: u8,
    pub sequence: u64,
    /// Number of copybacks since the data was last corrected.
    pub copied: u8,
}

impl Header {
    #[inline]
    pub fn of([low, rest]: [u32; 2]) -> Header {
        Header {
            state: (rest >> 8) as u8,
            sequence: u64::from(low) | u64::from(rest & 0xff) << 32,
            copied: (rest >> 16) as u8,
        }
    }

    #[inline]
    pub fn words(self) -> [u32; 2] {
        let rest = u32::from(self.state) << 8 | u32::from(self.copied) << 16;
        [self.sequence as u32, (self.sequence >> 32) as u32 | rest]
    }
}

/// The content of a slot: its logical page and its stamp, which most readers need together.
pub(crate) type Cell = [u32; 2];

/// The spare areas of a frame that can be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Spare<'a> {
    /// The sequence number of the program that wrote the frame.
    pub sequence: u64,
    pub(super) cells: Cow<'a, [Cell]>,
}

impl Spare<'_> {
    /// Returns the logical pages of the frame's slots, in order. [`Lpn::NONE`] stands for padding.
    #[inline]
    pub fn lpns(&self) -> impl Iterator<Item = Lpn> {
        self.cells.iter().map(|&[lpn, _]| Lpn(lpn))
    }
}

/// The content of an erased slot.
pub(crate) const EMPTY: Cell = [0; 2];

/// Returns whether a torn frame is treated as programmed, which is only the case with a seeded bug.
#[inline(always)]
pub(super) fn believed(state: FrameState) -> bool {
    SeededBug::AcceptTorn.is_active() && state == FrameState::Torn
}

/// Returns whether the spare area of a frame that is not programmed counts as readable.
#[inline(always)]
pub(super) fn has_name(state: FrameState) -> bool {
    state == FrameState::Lost || believed(state)
}

impl FrameState {
    /// Returns whether the spare area of the frame can be read.
    #[inline]
    pub fn has_spare(self) -> bool {
        matches!(self, FrameState::Programmed | FrameState::Lost)
    }
}

/// Returns the header of frame `index` of a block and the content of its slots, of the block's
/// words.
#[inline]
pub(crate) fn change_in<'a>(
    layout: &Layout,
    words: &'a mut [[u32; 2]],
    index: u32,
) -> (&'a mut [u32; 2], &'a mut [Cell]) {
    let (headers, cells) = words.split_at_mut(layout.frames_per_block as usize);
    let slots = layout.frame_len();
    (&mut headers[index as usize], &mut cells[index as usize * slots..][..slots])
}

/// Returns the content of a slot that belongs to no page.
pub(crate) const PADDING: Cell = [Lpn::NONE.0, 0];
