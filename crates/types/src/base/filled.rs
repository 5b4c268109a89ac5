//! A drive to which every page was written once, in ascending order.

use super::Held;
use crate::{BlockId, FrameId, LaneId, Layout, Lpn, Ppn, TiVec};
use std::sync::Arc;

/// The number in [`Filled::place`] of a block that is erased.
const ERASED: u32 = u32::MAX;

/// A blank drive to which every page was written in ascending order. The lanes got one frame each
/// in turn, and the last frame is padded.
#[derive(Clone, Debug)]
pub struct Filled {
    layout: Arc<Layout>,
    /// The blocks of each lane in the order of their programs, one lane after the other.
    order: Vec<BlockId>,
    /// The number of blocks of each lane in the order.
    blocks: u32,
    /// The place of each block in the order of its lane, or [`ERASED`].
    place: TiVec<BlockId, u32>,
}

impl Filled {
    /// Describes a filled drive. `order` lists the blocks of each lane in the order of their
    /// programs.
    ///
    /// # Panics
    /// Panics unless each lane has the same number of blocks, all blocks are in their lane, and the
    /// blocks have room for all pages.
    pub fn new(layout: &Arc<Layout>, order: &[Vec<BlockId>]) -> Filled {
        let blocks = order.first().map_or(0, Vec::len) as u32;
        let mut place = layout.per_block(ERASED);
        assert_eq!(order.len(), layout.lane_ids().len(), "one list for each lane");
        for (lane, order) in layout.lane_ids().zip(order) {
            assert_eq!(order.len() as u32, blocks, "lane {lane} has as many blocks as others");
            for (number, &block) in (0..).zip(order) {
                assert_eq!(layout.lane_of(block), lane, "block {block} is in its lane");
                place[block] = number;
            }
        }
        let slots = u64::from(blocks * layout.lanes) * u64::from(layout.slots_per_block);
        assert!(u64::from(layout.logical_units) <= slots, "all pages have room");
        Filled { layout: Arc::clone(layout), order: order.concat(), blocks, place }
    }

    /// Returns the blocks of each lane in the order of their programs, one lane after the other.
    pub(super) fn order(&self) -> &[BlockId] {
        &self.order
    }

    /// Returns the number of programs before a frame's program, or `None` if the frame is erased.
    #[inline]
    fn before(&self, frame: FrameId) -> Option<u64> {
        let layout = &self.layout;
        let block = layout.block_of_frame(frame);
        let place = Some(self.place[block]).filter(|&place| place != ERASED)?;
        let row = u64::from(place) * u64::from(layout.frames_per_block)
            + u64::from(layout.index_in(block, frame));
        let number = row * u64::from(layout.lanes) + u64::from(layout.lane_of(block).number());
        let first = number * u64::from(layout.slots_per_frame);
        (first < u64::from(layout.logical_units)).then_some(number)
    }

    /// Returns the content of a slot, or `None` if the slot is erased.
    #[inline]
    pub fn page_at(&self, slot: Ppn) -> Option<Held> {
        let layout = &self.layout;
        let frame = layout.frame_of(slot);
        let first = self.before(frame)? * u64::from(layout.slots_per_frame);
        let page = first + u64::from(slot.0 - layout.first_slot(frame).0);
        let held = page < u64::from(layout.logical_units);
        Some(if held { Held::Valid(Lpn(page as u32)) } else { Held::Padding })
    }

    /// Returns the number of valid slots of a block.
    pub fn valid(&self, block: BlockId) -> u32 {
        let Some(last) = self.programmed(block).checked_sub(1) else { return 0 };
        // only the last frame of the drive is padded, and it is the last of its block
        let first = self.layout.first_slot(self.layout.frame_in(block, last)).0;
        let slots = (first..first + self.layout.slots_per_frame).map(Ppn);
        let valid = slots.filter(|&slot| matches!(self.page_at(slot), Some(Held::Valid(_))));
        last * self.layout.slots_per_frame + valid.count() as u32
    }

    /// Returns the number of programmed frames of a block.
    pub fn programmed(&self, block: BlockId) -> u32 {
        let layout = &self.layout;
        let Some(place) = Some(self.place[block]).filter(|&place| place != ERASED) else {
            return 0;
        };
        let lane = u64::from(layout.lane_of(block).number());
        let lanes = u64::from(layout.lanes);
        let of_lane = (self.programs() + lanes - 1 - lane) / lanes;
        let before = u64::from(place) * u64::from(layout.frames_per_block);
        of_lane.saturating_sub(before).min(layout.frames_per_block.into()) as u32
    }

    /// Adds the content of the slots in the programmed frames of a block to `held`, in order.
    pub fn decode(&self, block: BlockId, held: &mut Vec<Held>) {
        let first = self.layout.block_slot(block).0;
        let slots = self.programmed(block) * self.layout.slots_per_frame;
        held.extend((first..first + slots).flat_map(|slot| self.page_at(Ppn(slot))));
    }

    /// Returns the pages in a block.
    pub fn pages(&self, block: BlockId) -> impl Iterator<Item = Lpn> {
        let first = self.layout.block_slot(block).0;
        let slots = self.programmed(block) * self.layout.slots_per_frame;
        (first..first + slots).filter_map(|slot| match self.page_at(Ppn(slot)) {
            Some(Held::Valid(page)) => Some(page),
            _ => None,
        })
    }

    /// Returns the number of programs that wrote the drive.
    pub fn programs(&self) -> u64 {
        u64::from(self.layout.logical_units.div_ceil(self.layout.slots_per_frame))
    }

    /// Returns the slot of a page.
    ///
    /// # Panics
    /// Panics beyond the last page.
    #[inline]
    pub fn slot_of(&self, page: Lpn) -> Ppn {
        let layout = &self.layout;
        assert!(page.0 < layout.logical_units, "page {page} is beyond the drive");
        let number = page.0 / layout.slots_per_frame;
        let (row, lane) = (number / layout.lanes, LaneId::new(number % layout.lanes));
        let place = lane.number() * self.blocks + row / layout.frames_per_block;
        let frame = layout.frame_in(self.order[place as usize], row % layout.frames_per_block);
        Ppn(layout.first_slot(frame).0 + page.0 % layout.slots_per_frame)
    }

    /// Returns the number of the program that wrote a frame, or `None` if the frame is erased.
    #[inline]
    pub fn sequence(&self, frame: FrameId) -> Option<u64> {
        Some(self.before(frame)? + 1)
    }
}
