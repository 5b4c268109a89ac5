//! The states of slots in memory: loads ahead of their use, and windows of slots that lie near each
//! other.

use crate::Medium;
use flashatlas_prefetch as prefetch;
use flashatlas_types::{Layout, Ppn};

/// Number of slots in a window ([`Medium::window`]).
const WINDOW: u32 = 1 << 16;

impl Medium {
    /// Loads the state of a slot into the processor's caches, because the slot is about to be read.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        let frame = self.layout.frame_of(ppn);
        let of_frame = (self.state[frame], self.sequence_low[frame], self.sequence_high[frame]);
        std::hint::black_box((of_frame, self.slots[ppn.0 as usize]));
    }

    /// Prefetches the state and the unit of a slot, without its program sequence.
    #[inline]
    pub fn prefetch_unit(&self, ppn: Ppn) {
        prefetch::item_at(&self.state.raw, self.layout.frame_of(ppn).into());
        prefetch::item_at(&self.slots, ppn.0 as usize);
    }

    /// Returns the number of windows into which the slots of a drive are divided. The state of a
    /// window's slots lies in few pages of memory.
    pub fn windows(layout: &Layout) -> usize {
        layout.slots().div_ceil(WINDOW) as usize
    }

    /// Returns the window of a slot.
    #[inline]
    pub fn window(ppn: Ppn) -> usize {
        (ppn.0 / WINDOW) as usize
    }
}
