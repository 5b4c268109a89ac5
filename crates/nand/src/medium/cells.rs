//! The cells of a drive.
//!
//! A drive without a base has arrays of all frames and slots from its first program on. Over a base
//! ([`super::base`]), an erased block has no memory, and neither has a block whose content the base
//! computes. The first change of such a block gives it memory of its own, and its erase returns
//! that memory. So the memory of such a drive grows with the blocks that change. An erased frame
//! shows nothing of its old content.

use super::FrameState;
use super::cell::{Cell, EMPTY, Header, change_in};
use super::laid::Laid;
use super::map_pages::MapsOfBase;
use flashatlas_types::{BlockId, FrameId, Layout, Ppn, TiVec};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

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
    layout: Arc<Layout>,
    /// The headers of all frames of a drive without a base. The vector is empty before the first
    /// program, and over a base.
    headers: Vec<[u32; 2]>,
    /// The content of all slots, where `headers` has elements. The system provides large arrays of
    /// zeros without writing them, so what is never written takes no memory.
    cells: Vec<Cell>,
    /// The blocks of a drive over a base.
    blocks: Option<TiVec<BlockId, BlockCells>>,
    /// The base, if some blocks are as it says.
    pub base: Option<Arc<Laid>>,
    /// Map pages whose entries are as the base says, but for some.
    pub maps: Option<Box<MapsOfBase>>,
}

impl Cells {
    /// Returns the cells of an erased drive.
    pub fn new(layout: &Arc<Layout>) -> Cells {
        Cells {
            layout: Arc::clone(layout),
            headers: Vec::new(),
            cells: Vec::new(),
            blocks: None,
            base: None,
            maps: None,
        }
    }

    /// Makes an erased drive one whose blocks are as a base says, if `is_programmed` of them.
    pub fn lay(&mut self, base: Laid, is_programmed: impl Fn(BlockId) -> bool) {
        let mut blocks = self.layout.per_block(BlockCells::Erased);
        let programmed = |&block: &BlockId| is_programmed(block);
        self.layout.block_ids().filter(programmed).for_each(|b| blocks[b] = BlockCells::Base);
        (self.blocks, self.base) = (Some(blocks), Some(Arc::new(base)));
        (self.headers, self.cells) = (Vec::new(), Vec::new());
    }

    /// Returns the arrays of a drive without a base: headers, and the content of slots.
    ///
    /// # Panics
    /// Panics if the drive has a base.
    #[inline]
    pub fn arrays(&mut self) -> (&mut [[u32; 2]], &mut [Cell]) {
        assert!(self.blocks.is_none(), "the drive has no base");
        if self.headers.is_empty() {
            self.allocate();
        }
        (&mut self.headers, &mut self.cells)
    }

    /// Makes the arrays of a drive to which nothing was programmed yet.
    #[cold]
    #[inline(never)]
    fn allocate(&mut self) {
        self.headers = vec![EMPTY; self.layout.frames() as usize];
        self.cells = vec![EMPTY; self.layout.slots() as usize];
    }

    /// Returns whether a block is as the base says.
    #[inline]
    pub fn is_base(&self, block: BlockId) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| matches!(blocks[block], BlockCells::Base))
    }

    /// Returns whether every block is erased as the base says, or is of the base. Blocks that the
    /// base has erased may have content of their own if they are `free` to have it.
    pub fn is_untouched(
        &self,
        is_programmed: impl Fn(BlockId) -> bool,
        free: impl Fn(BlockId) -> bool,
    ) -> bool {
        let Some(blocks) = &self.blocks else { return false };
        blocks.iter_enumerated().all(|(block, cells)| match cells {
            BlockCells::Erased => !is_programmed(block),
            BlockCells::Base => true,
            BlockCells::Own(_) => free(block) && !is_programmed(block),
        })
    }

    /// Returns the number of blocks that have memory of their own.
    #[cfg(test)]
    pub fn own_blocks(&self) -> usize {
        let Some(blocks) = &self.blocks else { return self.layout.blocks() as usize };
        blocks.iter().filter(|cells| matches!(cells, BlockCells::Own(_))).count()
    }

    /// Returns the base, of which some blocks are.
    fn base(&self) -> &Laid {
        self.base.as_deref().expect("a block of the base has a base")
    }

    /// Gives a block memory of its own, if it is as the base says.
    pub fn take_from_base(&mut self, block: BlockId) {
        if !self.is_base(block) {
            return;
        }
        let mut decoded = BlockCells::blank(&self.layout);
        self.base().decode(&self.layout, block, decoded.own(&self.layout));
        if let Some(blocks) = &mut self.blocks {
            blocks[block] = decoded;
        }
    }

    /// Returns the header of a frame.
    #[inline]
    pub fn header(&self, frame: FrameId) -> Header {
        match self.headers.get(usize::from(frame)) {
            Some(&words) => Header::of(words),
            None => self.header_over_base(frame),
        }
    }

    #[inline(never)]
    fn header_over_base(&self, frame: FrameId) -> Header {
        let Some(blocks) = &self.blocks else { return Header::default() };
        let block = self.layout.block_of_frame(frame);
        match &blocks[block] {
            BlockCells::Erased => Header::default(),
            BlockCells::Base => self.base().header(frame),
            BlockCells::Own(words) => {
                Header::of(words[self.layout.index_in(block, frame) as usize])
            }
        }
    }

    /// Returns whether a frame has a state, if the drive has no base.
    #[inline]
    pub fn is_plainly(&self, frame: FrameId, state: FrameState) -> bool {
        let words = self.headers.get(usize::from(frame));
        words.is_some_and(|&words| Header::of(words).state == state as u8)
    }

    /// Returns the headers of frames, if the drive has no base.
    #[inline]
    pub fn plain_headers(&self, frames: Range<u32>) -> Option<impl Iterator<Item = Header>> {
        let headers = self.headers.get(frames.start as usize..frames.end as usize)?;
        Some(headers.iter().map(|&words| Header::of(words)))
    }

    /// Returns the content of a slot of a frame that is programmed, if the drive has no base.
    #[inline]
    pub fn plain_cell(&self, frame: FrameId, slot: Ppn) -> Option<Cell> {
        let is_programmed = self.is_plainly(frame, FrameState::Programmed);
        self.cells.get(slot.0 as usize).filter(|_| is_programmed).copied()
    }

    /// Returns the state of a frame.
    #[inline]
    pub fn state(&self, frame: FrameId) -> FrameState {
        match self.header(frame).state {
            0 => FrameState::Erased,
            1 => FrameState::Programmed,
            2 => FrameState::Torn,
            3 => FrameState::Lost,
            _ => FrameState::Unfinished,
        }
    }

    /// Returns the content of a slot, whatever the state of its frame is.
    #[inline]
    pub fn cell(&self, slot: Ppn) -> Cell {
        match self.cells.get(slot.0 as usize) {
            Some(&cell) => cell,
            None => self.cell_over_base(slot),
        }
    }

    #[inline(never)]
    fn cell_over_base(&self, slot: Ppn) -> Cell {
        let Some(blocks) = &self.blocks else { return EMPTY };
        let block = self.layout.block_of(slot);
        match &blocks[block] {
            BlockCells::Erased => EMPTY,
            BlockCells::Base => self.base().cell(slot),
            BlockCells::Own(words) => {
                let index = slot.0 - self.layout.block_slot(block).0;
                words[(self.layout.frames_per_block + index) as usize]
            }
        }
    }

    /// Returns the content of the slots of a frame that is not erased, in order. What the base
    /// computes is written to new memory.
    #[inline]
    pub fn of_frame(&self, frame: FrameId) -> Cow<'_, [Cell]> {
        let first = self.layout.first_slot(frame).0 as usize;
        match self.cells.get(first..first + self.layout.frame_len()) {
            Some(cells) => Cow::Borrowed(cells),
            None => self.of_frame_over_base(frame),
        }
    }

    #[inline(never)]
    fn of_frame_over_base(&self, frame: FrameId) -> Cow<'_, [Cell]> {
        let first = self.layout.first_slot(frame).0;
        let slots = first..first + self.layout.frame_len() as u32;
        Cow::Owned(slots.map(|slot| self.cell_over_base(Ppn(slot))).collect())
    }

    /// Prefetches the header of a slot's frame and the content of the slot.
    #[inline]
    pub fn prefetch(&self, slot: Ppn) {
        let Some(blocks) = &self.blocks else {
            let frame = usize::from(self.layout.frame_of(slot));
            flashatlas_prefetch::item_at(&self.headers, frame);
            return flashatlas_prefetch::item_at(&self.cells, slot.0 as usize);
        };
        let block = self.layout.block_of(slot);
        if let BlockCells::Own(words) = &blocks[block] {
            let index = slot.0 - self.layout.block_slot(block).0;
            let frame = self.layout.index_in(block, self.layout.frame_of(slot));
            flashatlas_prefetch::item_at(words, frame as usize);
            let slot = self.layout.frames_per_block + index;
            flashatlas_prefetch::item_at(words, slot as usize);
        }
    }

    /// Returns a frame's header and the content of its slots for a change.
    #[inline]
    pub fn change(&mut self, frame: FrameId) -> (&mut [u32; 2], &mut [Cell]) {
        if self.headers.is_empty() {
            return self.change_elsewhere(frame);
        }
        let first = self.layout.first_slot(frame).0 as usize;
        let cells = &mut self.cells[first..first + self.layout.frame_len()];
        (&mut self.headers[usize::from(frame)], cells)
    }

    #[inline(never)]
    fn change_elsewhere(&mut self, frame: FrameId) -> (&mut [u32; 2], &mut [Cell]) {
        if self.blocks.is_none() {
            self.allocate();
            return self.change(frame);
        }
        let layout = Arc::clone(&self.layout);
        let block = layout.block_of_frame(frame);
        self.take_from_base(block);
        let Some(blocks) = &mut self.blocks else { unreachable!("the drive has a base") };
        change_in(&layout, blocks[block].own(&layout), layout.index_in(block, frame))
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

    /// Notes the copybacks that have brought the data of a frame here.
    pub fn set_copied(&mut self, frame: FrameId, copied: u8) {
        let (header, _) = self.change(frame);
        *header = Header { copied, ..Header::of(*header) }.words();
    }

    /// Changes the number of a frame's program.
    pub fn set_number(&mut self, frame: FrameId, sequence: u64) {
        let (header, _) = self.change(frame);
        *header = Header { sequence, ..Header::of(*header) }.words();
    }

    fn set_value(&mut self, frame: FrameId, state: u8) {
        let (header, _) = self.change(frame);
        *header = Header { state, ..Header::of(*header) }.words();
    }

    /// Erases a block. A block over a base returns its memory.
    #[inline]
    pub fn wipe(&mut self, block: BlockId) {
        if let Some(blocks) = &mut self.blocks {
            blocks[block] = BlockCells::Erased;
        } else if !self.headers.is_empty() {
            let frames = self.layout.frames_of(block);
            self.headers[usize::from(frames.start)..usize::from(frames.end)].fill(EMPTY);
            let first = self.layout.block_slot(block).0 as usize;
            self.cells[first..][..self.layout.block_len()].fill(EMPTY);
        }
    }
}
