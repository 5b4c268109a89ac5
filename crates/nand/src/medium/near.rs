//! The states of slots in memory: loads ahead of their use, and windows of slots that lie near each
//! other.

use crate::Medium;
use flashatlas_types::{Layout, Ppn};

/// Number of slots in a window ([`Medium::window`]).
const WINDOW: u32 = 1 << 16;

impl Medium {
    /// Loads the state of a slot into the processor's caches, because the slot is about to be read.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        let header = self.cells.header(self.layout.frame_of(ppn));
        std::hint::black_box((header, self.cells.cell(ppn)));
    }

    /// Prefetches the state and the unit of a slot.
    #[inline]
    pub fn prefetch_unit(&self, ppn: Ppn) {
        self.cells.prefetch(ppn);
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
