//! The cells of a drive. A block has memory of its own only if it was changed and is not erased.
//!
//! An erased block has no memory, and neither has a block of the base ([`super::base`]), whose
//! content is computed. The first change of such a block gives it memory of its own, and its erase
//! returns that memory. So the memory of a drive grows with what is changed, and an erased frame
//! shows nothing of its old content.

use super::FrameState;
use super::base::Laid;
use flashatlas_types::{BlockId, FrameId, Layout, Lpn, Ppn, TiVec};
use std::sync::Arc;

/// The state of a frame, and the sequence of its program, which has 40 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Header {
    /// The value of a [`FrameState`], with the steps of an unfinished program.
    pub state: u8,
    pub sequence: u64,
}

impl Header {
    #[inline]
    fn of([low, rest]: [u32; 2]) -> Header {
        Header { state: (rest >> 8) as u8, sequence: u64::from(low) | u64::from(rest & 0xff) << 32 }
    }

    #[inline]
    pub fn words(self) -> [u32; 2] {
        [self.sequence as u32, (self.sequence >> 32) as u32 | u32::from(self.state) << 8]
    }
}

/// The content of a slot: its logical page and its stamp, which most readers need together.
pub(crate) type Cell = [u32; 2];

/// The content of an erased slot.
const EMPTY: Cell = [0; 2];

/// The cells of a block.
#[derive(Clone, Debug, Default)]
pub(crate) enum BlockCells {
    /// All frames are erased.
    #[default]
    Erased,
    /// The block is as the base says.
    Base,
    /// The headers of the frames, then the content of all slots. The elements are arrays because
    /// the system provides large arrays of zeros without writing them.
    Own(Box<[[u32; 2]]>),
}

impl BlockCells {
    /// Returns the words of a block for a change. An erased block gets memory of its own.
    ///
    /// # Panics
    /// Panics if the block is as the base says.
    #[inline]
    pub fn own(&mut self, layout: &Layout) -> &mut [[u32; 2]] {
        if let BlockCells::Erased = self {
            *self = BlockCells::blank(layout);
        }
        match self {
            BlockCells::Own(words) => words,
            _ => unreachable!("the block has memory of its own"),
        }
    }

    #[cold]
    pub fn blank(layout: &Layout) -> BlockCells {
        let words = layout.frames_per_block as usize + layout.block_len();
        BlockCells::Own(vec![EMPTY; words].into_boxed_slice())
    }
}

/// The cells of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    pub layout: Arc<Layout>,
    pub blocks: TiVec<BlockId, BlockCells>,
    /// The base, if some blocks are as it says.
    pub base: Option<Arc<Laid>>,
}

impl Cells {
    /// Returns the cells of an erased drive.
    pub fn new(layout: &Arc<Layout>) -> Cells {
        let blocks = layout.per_block(BlockCells::Erased);
        Cells { blocks, layout: Arc::clone(layout), base: None }
    }

    /// Returns whether a block is as the base says.
    #[inline]
    pub fn is_base(&self, block: BlockId) -> bool {
        matches!(self.blocks[block], BlockCells::Base)
    }

    /// Returns the base, of which some blocks are.
    fn base(&self) -> &Laid {
        self.base.as_deref().expect("a block of the base has a base")
    }

    /// Gives a block memory of its own, if it is as the base says.
    pub fn take_from_base(&mut self, block: BlockId) {
        if self.is_base(block) {
            self.blocks[block] = self.base().decoded(&self.layout, block);
        }
    }

    /// Returns the header of a frame.
    #[inline]
    pub fn header(&self, frame: FrameId) -> Header {
        let block = self.layout.block_of_frame(frame);
        match &self.blocks[block] {
            BlockCells::Erased => Header::default(),
            BlockCells::Base => self.base().header(frame),
            BlockCells::Own(words) => {
                Header::of(words[self.layout.index_in(block, frame) as usize])
            }
        }
    }

    /// Returns the state of a frame.
    #[inline]
    pub fn state(&self, frame: FrameId) -> FrameState {
        match self.header(frame).state {
            0 => FrameState::Erased,
            1 => FrameState::Programmed,
            2 => FrameState::Torn,
            _ => FrameState::Unfinished,
        }
    }

    /// Returns the content of a slot, whatever the state of its frame is.
    #[inline]
    pub fn cell(&self, slot: Ppn) -> Cell {
        let block = self.layout.block_of(slot);
        match &self.blocks[block] {
            BlockCells::Erased => EMPTY,
            BlockCells::Base => self.base().cell(slot),
            BlockCells::Own(words) => {
                let index = slot.0 - self.layout.block_slot(block).0;
                words[(self.layout.frames_per_block + index) as usize]
            }
        }
    }

    /// Returns the content of the slots of a frame that is not erased, in order.
    #[inline]
    pub fn of_frame(&self, frame: FrameId) -> impl Iterator<Item = Cell> {
        let block = self.layout.block_of_frame(frame);
        let slots = self.layout.frame_len();
        let (own, computed): (&[Cell], usize) = match &self.blocks[block] {
            BlockCells::Own(words) => {
                let index = self.layout.index_in(block, frame) as usize;
                let first = self.layout.frames_per_block as usize + index * slots;
                (&words[first..first + slots], 0)
            }
            _ => (&[], slots),
        };
        let first = self.layout.first_slot(frame).0;
        own.iter().copied().chain((first..).take(computed).map(|slot| self.cell(Ppn(slot))))
    }

    /// Prefetches the header of a slot's frame and the content of the slot.
    #[inline]
    pub fn prefetch(&self, slot: Ppn) {
        let block = self.layout.block_of(slot);
        if let BlockCells::Own(words) = &self.blocks[block] {
            let index = slot.0 - self.layout.block_slot(block).0;
            let frame = self.layout.index_in(block, self.layout.frame_of(slot));
            flashatlas_prefetch::item_at(words, frame as usize);
            flashatlas_prefetch::item_at(words, (self.layout.frames_per_block + index) as usize);
        }
    }

    /// Returns a frame's header and the content of its slots for a change.
    #[inline]
    pub fn change(&mut self, frame: FrameId) -> (&mut [u32; 2], &mut [Cell]) {
        let block = self.layout.block_of_frame(frame);
        self.take_from_base(block);
        let layout = &*self.layout;
        change_in(layout, self.blocks[block].own(layout), layout.index_in(block, frame))
    }

    /// Changes the state of a frame.
    pub fn set_state(&mut self, frame: FrameId, state: FrameState) {
        self.set_value(frame, state as u8);
    }

    /// Notes the steps of a program that a frame has had, if its program needs further ones.
    pub fn set_steps(&mut self, frame: FrameId, done: u8) {
        self.set_value(frame, FrameState::Unfinished as u8 + done - 1);
    }

    /// Returns the steps of a program that a frame has had, or 0 unless its program needs further
    /// ones.
    pub fn steps(&self, frame: FrameId) -> u8 {
        (self.header(frame).state + 1).saturating_sub(FrameState::Unfinished as u8)
    }

    fn set_value(&mut self, frame: FrameId, state: u8) {
        let (header, _) = self.change(frame);
        *header = Header { state, ..Header::of(*header) }.words();
    }

    /// Erases a block and returns its memory.
    #[inline]
    pub fn wipe(&mut self, block: BlockId) {
        self.blocks[block] = BlockCells::Erased;
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
