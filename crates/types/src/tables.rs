//! Conversions between kinds of numbers, and tables with such numbers as their index.

use crate::{BlockId, DieBlock, FrameId, LaneId, Layout, LocalBlock, Lpn, TiSlice, TiVec, ti_vec};

impl Layout {
    /// Returns the lane of a block, and the number of the block in that lane.
    #[inline]
    pub fn in_lane(&self, block: BlockId) -> (LaneId, LocalBlock) {
        let lane = self.lane_of(block);
        (lane, LocalBlock(block.0 - lane.0 * self.blocks_per_lane))
    }

    /// Returns the block that has this number in its lane.
    #[inline]
    pub fn block_in(&self, lane: LaneId, local: LocalBlock) -> BlockId {
        BlockId(lane.0 * self.blocks_per_lane + local.0)
    }

    /// Returns the entries of a lane's blocks, indexed by the blocks' numbers in the lane.
    #[inline]
    pub fn part_of<'a, T>(
        &self,
        lane: LaneId,
        table: &'a TiSlice<BlockId, T>,
    ) -> &'a TiSlice<LocalBlock, T> {
        let first = lane.0 * self.blocks_per_lane;
        let part = &table[BlockId(first)..BlockId(first + self.blocks_per_lane)];
        TiSlice::from_ref(&part.raw)
    }

    /// Returns the lanes of the drive.
    pub fn lane_ids(&self) -> impl DoubleEndedIterator<Item = LaneId> + ExactSizeIterator + use<> {
        (0..self.lanes).map(LaneId)
    }

    /// Returns the lane that follows another lane in the order of turns.
    #[inline]
    pub fn lane_after(&self, lane: LaneId) -> LaneId {
        self.lane_in_turn(lane.0 + 1)
    }

    /// Returns the lane whose turn comes after `turns` turns of other lanes.
    #[inline]
    pub fn lane_in_turn(&self, turns: u32) -> LaneId {
        LaneId(turns % self.lanes)
    }

    /// Returns every lane once, in the order of turns, beginning with `first`.
    #[inline]
    pub fn lanes_from(&self, first: LaneId) -> impl Iterator<Item = LaneId> + use<> {
        let lanes = self.lanes;
        (0..lanes).map(move |i| LaneId((first.0 + i) % lanes))
    }

    /// Returns the number of slots of a frame, as the length of a list with one entry for each
    /// slot.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.slots_per_frame as usize
    }

    /// Returns the number of slots of a block, as the length of a list with one entry for each
    /// slot.
    #[inline]
    pub fn block_len(&self) -> usize {
        self.slots_per_block as usize
    }

    /// Returns a table with the same entry for each lane.
    pub fn per_lane<T: Clone>(&self, entry: T) -> TiVec<LaneId, T> {
        ti_vec![entry; self.lanes as usize]
    }

    /// Returns a table with the same entry for each block of the drive.
    pub fn per_block<T: Clone>(&self, entry: T) -> TiVec<BlockId, T> {
        ti_vec![entry; self.blocks() as usize]
    }

    /// Returns a table with the same entry for each logical page.
    pub fn per_page<T: Clone>(&self, entry: T) -> TiVec<Lpn, T> {
        ti_vec![entry; self.logical_units as usize]
    }

    /// Returns the blocks of the drive, good and bad.
    pub fn block_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + use<> {
        (0..self.blocks()).map(BlockId)
    }

    /// Returns the part of a block that is on the `index`-th die under its frames.
    #[inline]
    pub fn on_die(&self, block: BlockId, index: u32) -> DieBlock {
        DieBlock(block.0 * self.dies_per_frame + index)
    }

    /// Returns the parts of a block, one for each die under its frames.
    pub fn on_dies(&self, block: BlockId) -> impl Iterator<Item = DieBlock> + use<> {
        let first = block.0 * self.dies_per_frame;
        (first..first + self.dies_per_frame).map(DieBlock)
    }

    /// Returns the block to which a part on a die belongs.
    pub fn block_on_die(&self, part: DieBlock) -> BlockId {
        BlockId(part.0 / self.dies_per_frame)
    }

    /// Returns the range of the frames of a block.
    #[inline]
    pub fn frames_of(&self, block: BlockId) -> std::ops::Range<FrameId> {
        let first = block.0 * self.frames_per_block;
        FrameId(first)..FrameId(first + self.frames_per_block)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        AllocationOrder, BlockId, Cell, DieBlock, Geometry, LaneId, Layout, LocalBlock, Span, TiVec,
    };

    fn board() -> Geometry {
        Geometry {
            channels: 4,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 3,
            pages: 2,
            page_bytes: 4096,
            spare_bytes: 64,
            cell: Cell::Slc,
        }
    }

    fn order() -> AllocationOrder {
        AllocationOrder::parse("CWDP").unwrap()
    }

    /// Returns the layout of four lanes with three blocks each. A block has two frames.
    fn layout() -> Layout {
        Layout::new(board(), Span::ONE, 4096, order(), 10).unwrap()
    }

    #[test]
    fn a_block_has_a_number_over_the_drive_and_one_in_its_lane() {
        let layout = layout();
        let (lane, local) = layout.in_lane(BlockId::new(7));
        assert_eq!((lane.number(), local.number()), (2, 1));
        for block in layout.block_ids() {
            let (lane, local) = layout.in_lane(block);
            assert_eq!(layout.block_in(lane, local), block);
            assert!(layout.lane_blocks(lane).nth(usize::from(local)) == Some(block));
        }
    }

    #[test]
    fn a_part_of_a_table_is_a_lane_s() {
        let layout = layout();
        let table: TiVec<BlockId, u32> = (100..112).collect();
        let part = layout.part_of(LaneId::new(3), &table);
        assert_eq!((part.len(), part[LocalBlock::new(2)]), (3, 111));
        let (frames, tables) = (layout.frames_of(BlockId::new(5)), layout.per_block(0));
        assert_eq!((frames.start.0, frames.end.0, tables.len()), (10, 12, 12));
        assert_eq!((layout.per_lane(()).len(), layout.per_page(()).len()), (4, 10));
    }

    #[test]
    fn a_block_has_a_part_on_each_die_of_its_frames() {
        let span = Span { channels: 2, ..Span::ONE };
        let layout = Layout::new(board(), span, 8192, order(), 4).unwrap();
        let parts: Vec<u32> = layout.on_dies(BlockId::new(2)).map(DieBlock::number).collect();
        assert_eq!(parts, [4, 5]);
        for (part, index) in layout.on_dies(BlockId::new(2)).zip(0..) {
            assert_eq!(layout.on_die(BlockId::new(2), index), part);
            assert_eq!(layout.block_on_die(part), BlockId::new(2));
        }
    }

    #[test]
    fn lanes_take_turns() {
        let layout = layout();
        let from = |first| layout.lanes_from(LaneId::new(first)).map(LaneId::number);
        assert!(from(2).eq([2, 3, 0, 1]) && layout.lane_ids().map(LaneId::number).eq(0..4));
        assert_eq!(layout.lane_after(LaneId::new(3)), LaneId::new(0));
        assert_eq!(layout.lane_in_turn(6), LaneId::new(2));
    }
}
