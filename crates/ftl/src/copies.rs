//! Where copies came from whose programs may not be complete.
//!
//! The map names the new place of a page as soon as its copy is planned. Until that is programmed a
//! controller still has the old one: it is erased only after the program of every copy from it. So
//! a host that asks for the page meanwhile need not wait for the collection.

use flashatlas_types::{OpId, Ppn};
use std::collections::VecDeque;

/// A frame of copies: its program is one of the operations from `first` to `last`.
#[derive(Debug)]
struct Copied {
    first: OpId,
    last: OpId,
    /// How many slots were noted before, since there was none, and how many it has.
    start: u64,
    slots: u32,
}

/// Frames that were programmed with copies, in the order of their programs, since the oldest
/// operation that is not complete. To note one costs as much as it has slots; to look one up, the
/// logarithm of their count.
#[derive(Debug, Default)]
pub struct Copies {
    frames: VecDeque<Copied>,
    /// Of each slot of each frame: where the copy came from, and the operation that read it there.
    slots: VecDeque<(Ppn, OpId)>,
}

impl Copies {
    /// A frame is programmed by an operation from `first` to `last`, later than all before, its
    /// slots with copies of what was at `from` when those operations read it, or with data of the
    /// host ([`Ppn::NONE`]). Nothing is noted where time does not pass.
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
        while let Some(done) = self.frames.front().filter(|frame| frame.last < oldest_unfinished) {
            self.slots.drain(..done.slots as usize);
            self.frames.pop_front();
        }
        let start = self.frames.back().map_or(0, |frame| frame.start + u64::from(frame.slots));
        let before = self.slots.len();
        self.slots.extend(from);
        let slots = (self.slots.len() - before) as u32;
        self.frames.push_back(Copied { first, last, start, slots });
    }

    /// Where the unit in a slot of the frame of `program` came from, and what read it there, if it
    /// is a copy.
    pub fn source(&self, slot: u32, program: OpId) -> Option<(Ppn, OpId)> {
        let at = self.frames.partition_point(|frame| frame.last < program);
        let frame = self.frames.get(at).filter(|frame| frame.first <= program)?;
        if slot >= frame.slots {
            return None;
        }
        let gone = self.frames[0].start;
        let (from, read) = self.slots[(frame.start - gone) as usize + slot as usize];
        (from != Ppn::NONE).then_some((from, read))
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
        // the first is complete: its slots go, and those of the second are found all the same
        copies.note((OpId(30), OpId(30)), [from].into_iter(), OpId(14));
        assert_eq!((copies.source(0, OpId(12)), copies.source(0, OpId(22))), (None, Some(other)));
    }

    #[test]
    fn what_is_complete_is_forgotten() {
        let mut copies = Copies::default();
        for n in 1..=100_000_u64 {
            // the last hundred are in flight
            let oldest = OpId(n.saturating_sub(100).max(1));
            let from = [(Ppn(n as u32), OpId(n)); 2];
            copies.note((OpId(n), OpId(n)), from.into_iter(), oldest);
            assert!(copies.frames.len() <= 101 && copies.slots.len() <= 202);
        }
        assert!(copies.source(1, OpId(100_000 - 99)).is_some());
    }
}
