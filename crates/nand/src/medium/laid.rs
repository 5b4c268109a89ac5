//! A base under the cells of a drive.

use super::FrameState;
use super::cell::{Cell, Header, change_in};
use flashatlas_types::base::{Base, Held, OLD};
use flashatlas_types::{BlockId, FrameId, Layout, Lpn, Ppn, Stamp};
use std::sync::Arc;

/// A base, and the content of its pages.
#[derive(Debug)]
pub(crate) struct Laid {
    pub base: Arc<Base>,
    pub stamp: fn(Lpn) -> Stamp,
}

impl Laid {
    /// Returns the header of a frame.
    #[inline]
    pub fn header(&self, frame: FrameId) -> Header {
        let state = FrameState::Programmed as u8;
        let programmed = |sequence| Header { state, sequence, copied: 0 };
        self.base.sequence(frame).map_or(Header::default(), programmed)
    }

    /// Returns the content of a slot.
    #[inline]
    pub fn cell(&self, slot: Ppn) -> Cell {
        self.base.page_at(slot).map_or(Cell::default(), |held| self.of(held))
    }

    #[inline]
    fn of(&self, held: Held) -> Cell {
        match held {
            Held::Valid(lpn) => [lpn.0, (self.stamp)(lpn).0],
            Held::Old(lpn) => [lpn.0, OLD.0],
            Held::Padding => [Lpn::NONE.0, self.base.padding().0],
        }
    }

    /// Writes all words of a block. The words must be zeros before.
    pub fn decode(&self, layout: &Layout, block: BlockId, words: &mut [[u32; 2]]) {
        let mut held = Vec::with_capacity(layout.block_len());
        self.base.decode(block, &mut held);
        for (index, held) in (0..).zip(held.chunks(layout.frame_len())) {
            let (header, cells) = change_in(layout, words, index);
            *header = self.header(layout.frame_in(block, index)).words();
            cells.iter_mut().zip(held).for_each(|(cell, &held)| *cell = self.of(held));
        }
    }
}
