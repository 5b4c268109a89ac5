//! Sums over whole tables, each computed in memory order. Two sums show whether entries and slots
//! agree, without a random memory access for each page.
//!
//! If the tables lie over a base, the sums are of what has changed: pairs of today are added, and
//! pairs of the base that are there no more are removed. In the base itself, entries and slots
//! agree by its formula. So blocks and entries that are as the base says are not looked at. For the
//! same reason a page alone names its pair in the base: a pair with no slot stands for it, and no
//! place has to be computed.

use super::PageMapped;
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::base::{Base, Held};
use flashatlas_types::{BlockId, Lpn, PairSum, Ppn, PpnTable, Stamp, StampSum, at_once, share};
use std::iter::Sum;

/// The number of blocks below which a scan takes less time than the start of a thread.
const WORTH_A_THREAD: usize = 1 << 10;

/// A slot that a sum counts.
enum Slot {
    /// A slot that is valid.
    Valid(Ppn),
    /// A slot that is valid, in a block that was taken from the base and may still hold pages of
    /// the base.
    Taken(Ppn),
    /// A slot that was valid in the base, by the page that it held.
    OfBase(Lpn),
}

/// Returns whether a slot of a block that was taken from the base still holds its page, because the
/// block was not erased since.
fn stayed(medium: &Medium, base: &Base, ppn: Ppn, lpn: Lpn) -> bool {
    let sequence = medium.frame_sequence(medium.layout().frame_of(ppn));
    sequence.is_ok_and(|sequence| sequence <= base.programs())
        && base.page_at(ppn) == Some(Held::Valid(lpn))
}

impl PageMapped {
    /// Returns the number of mapped entries, and the sum of their pairs of page and slot.
    pub(super) fn entries(&self) -> (u64, PairSum) {
        let (mut count, mut sum) = (0, PairSum::default());
        if let Some(moved) = self.map.whole_table().and_then(PpnTable::moved) {
            count = self.layout.logical_units.into();
            for (lpn, now) in moved {
                sum.remove(lpn.0, Ppn::NONE.0);
                match now.mapped() {
                    Some(now) => sum.add(lpn.0, now.0),
                    None => count -= 1,
                }
            }
            return (count, sum);
        }
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
        let base = self.pool.blocks.base();
        self.sum_slots(medium, |sum: &mut PairSum, slot| match slot {
            Slot::Valid(ppn) => sum.add(medium.named(ppn).unwrap_or(Lpn::NONE).0, ppn.0),
            Slot::Taken(ppn) => {
                let lpn = medium.named(ppn).unwrap_or(Lpn::NONE);
                let stayed = base.is_some_and(|base| stayed(medium, base, ppn, lpn));
                sum.add(lpn.0, if stayed { Ppn::NONE.0 } else { ppn.0 });
            }
            Slot::OfBase(lpn) => sum.remove(lpn.0, Ppn::NONE.0),
        })
    }

    /// Returns the sum of the stamps of all pages, on flash and in buffers.
    pub(super) fn stamps(&self, medium: &Medium) -> StampSum {
        let mut sum = self.sum_slots(medium, |sum: &mut StampSum, slot| match slot {
            Slot::Valid(ppn) | Slot::Taken(ppn) => {
                if let Ok(unit) = medium.unit_by_stamp(ppn) {
                    sum.add(unit.lpn, unit.stamp);
                }
            }
            Slot::OfBase(lpn) => sum.remove(lpn, medium.stamp_in_base(lpn)),
        });
        if self.map.whole_table().is_some_and(PpnTable::lies_over_base) {
            sum.count_changes_alone();
        }
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
    /// slot to the sum. Over a base, the slots are those that changed.
    fn sum_slots<S: Sum + Default + Send>(
        &self,
        medium: &Medium,
        add: impl Fn(&mut S, Slot) + Sync,
    ) -> S {
        let (layout, valid) = (&self.layout, &self.pool.blocks);
        let share = share(layout.blocks() as usize, WORTH_A_THREAD);
        let sums = at_once((0..layout.blocks()).step_by(share), |first| {
            let mut sum = S::default();
            let blocks = (first..layout.blocks()).take(share).map(BlockId::new);
            for block in blocks {
                if medium.oob_role(block) == OobRole::MAP {
                    if let Some(base) = valid.base() {
                        base.for_each_page(block, |lpn| add(&mut sum, Slot::OfBase(lpn)));
                    }
                    continue;
                }
                if let Some(base) = valid.base_of(block).filter(|_| medium.is_base(block)) {
                    if valid.valid(block) == base.valid(block) {
                        continue; // a rule says that the count is the number of valid bits
                    }
                    for ppn in valid.gone(layout, block) {
                        if let Some(Held::Valid(lpn)) = base.page_at(ppn) {
                            add(&mut sum, Slot::OfBase(lpn));
                        }
                    }
                    continue;
                }
                let mut of_slot: fn(Ppn) -> Slot = Slot::Valid;
                if let Some(base) = valid.base() {
                    base.for_each_page(block, |lpn| add(&mut sum, Slot::OfBase(lpn)));
                    let first = medium.frame_sequence(layout.frame_in(block, 0));
                    if !first.is_ok_and(|first| first > base.programs()) {
                        of_slot = Slot::Taken; // it was not erased since
                    }
                }
                valid.for_each_valid(layout, block, |ppn| add(&mut sum, of_slot(ppn)));
            }
            sum
        });
        sums.into_iter().sum()
    }
}
