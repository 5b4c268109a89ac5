//! Sources of copies whose programs may be unfinished.
//!
//! The map points to the new place of a page as soon as its copy is planned. Until the copy is
//! programmed, the page can still be read at its old place, because a block is erased only after
//! the programs of all copies from it. So a host read need not wait for the collection.

use flashatlas_types::{OpId, Ppn};
use std::collections::VecDeque;

/// A slot of a frame that was programmed with copies.
#[derive(Debug)]
struct Copied {
    /// The last operation that programs the frame, and the number of such operations before it.
    last: OpId,
    before: u32,
    /// The slot from which the unit was copied; [`Ppn::NONE`] for host data.
    from: Ppn,
    /// The operation that read the unit from that slot.
    read: OpId,
}

/// The slots of frames that were programmed with copies, in program order. The list starts at the
/// oldest operation that is not complete.
///
/// The time to note a frame is proportional to its slots. The time to look a slot up is
/// proportional to the logarithm of the number of noted slots.
#[derive(Debug, Default)]
pub struct Copies {
    slots: VecDeque<Copied>,
}

impl Copies {
    /// Notes a frame that operations `first` to `last` program. These operations come after the
    /// operations of all frames noted before.
    ///
    /// For each slot, `from` has the place of the original and the operation that read it;
    /// [`Ppn::NONE`] stands for host data. If `last` is [`OpId::NONE`], no time passes, and the
    /// frame is not noted.
    #[inline]
    pub fn note(
        &mut self,
        (first, last): (OpId, OpId),
        from: impl Iterator<Item = (Ppn, OpId)>,
        oldest_unfinished: OpId,
    ) {
        if last == OpId::NONE {
            return;
        }
        while self.slots.front().is_some_and(|slot| slot.last < oldest_unfinished) {
            self.slots.pop_front();
        }
        let before = (last.0 - first.0) as u32; // the operations of one frame
        from.for_each(|(from, read)| self.slots.push_back(Copied { last, before, from, read }));
    }

    /// Returns the source of a unit and the operation that read the unit there. Returns `None` if
    /// the unit is not a copy. The unit is in slot `slot` of the frame that `program` programs.
    pub fn source(&self, slot: u32, program: OpId) -> Option<(Ppn, OpId)> {
        let of_frame = self.slots.partition_point(|slot| slot.last < program);
        let last = self.slots.get(of_frame)?.last;
        let slot = self.slots.get(of_frame + slot as usize).filter(|slot| slot.last == last)?;
        let is_its = last.0 - u64::from(slot.before) <= program.0;
        (is_its && slot.from != Ppn::NONE).then_some((slot.from, slot.read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_that_of_the_program_that_is_asked_for() {
        let mut copies = Copies::default();
        let (from, host, other) = ((Ppn(7), OpId(10)), (Ppn::NONE, OpId(11)), (Ppn(9), OpId(20)));
        copies.note((OpId(12), OpId(13)), [from, host].into_iter(), OpId(1));
        copies.note((OpId(22), OpId(22)), [other].into_iter(), OpId(1));
        assert_eq!(copies.source(0, OpId(12)), Some(from));
        assert_eq!(copies.source(0, OpId(13)), Some(from));
        assert_eq!(copies.source(0, OpId(22)), Some(other));
        for (slot, program) in [(0, 11), (0, 14), (1, 12), (2, 12), (1, 22), (0, 23)] {
            assert_eq!(copies.source(slot, OpId(program)), None, "slot {slot} of {program}");
        }
        copies.note((OpId::NONE, OpId::NONE), [from].into_iter(), OpId(1));
        assert_eq!(copies.source(0, OpId::NONE), None);
        // the first frame is complete and its slots are removed; the slots of the second frame are
        // still found
        copies.note((OpId(30), OpId(30)), [from].into_iter(), OpId(14));
        assert_eq!((copies.source(0, OpId(12)), copies.source(0, OpId(22))), (None, Some(other)));
    }

    #[test]
    fn what_is_complete_is_forgotten() {
        let mut copies = Copies::default();
        for n in 1..=100_000_u64 {
            // the last hundred frames are in flight
            let oldest = OpId(n.saturating_sub(100).max(1));
            let from = [(Ppn(n as u32), OpId(n)); 2];
            copies.note((OpId(n), OpId(n)), from.into_iter(), oldest);
            assert!(copies.slots.len() <= 202);
        }
        assert!(copies.source(1, OpId(100_000 - 99)).is_some());
    }
}
