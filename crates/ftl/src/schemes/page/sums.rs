//! Sums over whole tables, each computed in memory order. Two sums show whether entries and slots
//! agree, without a random memory access for each page.

use super::PageMapped;
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{BlockId, Lpn, PairSum, Ppn, Stamp, StampSum, at_once, share};
use std::iter::Sum;

/// The number of blocks below which a scan takes less time than the start of a thread.
const WORTH_A_THREAD: usize = 1 << 10;

impl PageMapped {
    /// Returns the number of mapped entries, and the sum of their pairs of page and slot.
    pub(super) fn entries(&self) -> (u64, PairSum) {
        let (mut count, mut sum) = (0, PairSum::default());
        for lpn in (0..self.layout.logical_units).map(Lpn) {
            if let Some(ppn) = self.map.peek(lpn).mapped() {
                count += 1;
                sum.add(lpn.0, ppn.0);
            }
        }
        (count, sum)
    }

    /// Returns the sum of the pairs of page and slot that the spare areas of valid slots name.
    /// Slots with map pages are skipped. An unreadable slot is paired with no page.
    pub(super) fn valid_slots(&self, medium: &Medium) -> PairSum {
        self.sum_slots(medium, |sum: &mut PairSum, ppn| {
            sum.add(medium.named(ppn).unwrap_or(Lpn::NONE).0, ppn.0);
        })
    }

    /// Returns the sum of the stamps of all pages, on flash and in buffers.
    pub(super) fn stamps(&self, medium: &Medium) -> StampSum {
        let mut sum = self.sum_slots(medium, |sum: &mut StampSum, ppn| {
            if let Ok(unit) = medium.unit_by_stamp(ppn) {
                sum.add(unit.lpn, unit.stamp);
            }
        });
        let between = self.older_in_steps().map(|p| p.unit.lpn);
        for lpn in self.buffered.keys().copied().chain(between) {
            // the version on flash is valid until the buffered version is programmed
            let old = self.map.peek(lpn).mapped().and_then(|ppn| medium.unit_by_stamp(ppn).ok());
            let old = old.map_or(Stamp::ZERO, |unit| unit.stamp);
            sum.replace(lpn, old, self.in_buffer(lpn).map_or(old, |pending| pending.unit.stamp));
        }
        sum
    }

    /// Returns a sum over all valid slots without map pages, computed on all cores. `add` adds a
    /// slot to the sum.
    fn sum_slots<S: Sum + Default + Send>(
        &self,
        medium: &Medium,
        add: impl Fn(&mut S, Ppn) + Sync,
    ) -> S {
        let (layout, valid) = (&self.layout, &self.pool.blocks);
        let share = share(layout.blocks() as usize, WORTH_A_THREAD);
        let sums = at_once((0..layout.blocks()).step_by(share), |first| {
            let mut sum = S::default();
            let blocks = (first..layout.blocks()).take(share).map(BlockId::new);
            for block in blocks.filter(|&block| medium.oob_role(block) != OobRole::MAP) {
                valid.for_each_valid(layout, block, |ppn| add(&mut sum, ppn));
            }
            sum
        });
        sums.into_iter().sum()
    }
}
