//! The order in which a stream of writes fills places: frame after frame over all lanes. Learned
//! maps fit their lines to this order (a *virtual* physical page number).

use flashatlas_types::{LaneId, Layout, LocalBlock, Ppn};

/// The places of a drive, in the order in which a stream of writes fills them.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    layout: Layout,
}

impl Order {
    /// Returns the order on a drive of this layout.
    pub fn new(layout: &Layout) -> Order {
        Order { layout: layout.clone() }
    }

    /// Returns the number of a slot in that order.
    pub fn of(&self, ppn: Ppn) -> u32 {
        let l = &self.layout;
        let block = l.block_of(ppn);
        let (lane, local) = l.in_lane(block);
        let in_block = ppn.0 - l.block_slot(block).0;
        let (frame, slot) = (in_block / l.slots_per_frame, in_block % l.slots_per_frame);
        let row = local.number() * l.frames_per_block + frame;
        (row * l.lanes + lane.number()) * l.slots_per_frame + slot
    }

    /// Returns the slot with this number, or `None` if the drive has no such slot.
    pub fn slot(&self, number: u32) -> Option<Ppn> {
        let l = &self.layout;
        if number >= l.slots() {
            return None;
        }
        let (frame, slot) = (number / l.slots_per_frame, number % l.slots_per_frame);
        let (row, lane) = (frame / l.lanes, LaneId::new(frame % l.lanes));
        let block = l.block_in(lane, LocalBlock::new(row / l.frames_per_block));
        let in_block = row % l.frames_per_block * l.slots_per_frame + slot;
        Some(Ppn(l.block_slot(block).0 + in_block))
    }
}
