//! Where copies came from whose programs may not be complete.
//!
//! The map names the new place of a page as soon as its copy is planned. Until that is programmed a
//! controller still has the old one: it is erased only after the program of every copy from it. So
//! a host that asks for the page meanwhile need not wait for the collection.

use flashatlas_types::{FrameId, OpId, Ppn};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A frame of copies: its program is one of the operations from `first` to `last`.
#[derive(Debug)]
struct Copied {
    first: OpId,
    last: OpId,
    /// Of each slot: where the copy came from, and the operation that read it there.
    from: SmallVec<[(Ppn, OpId); 4]>,
}

/// Frames that were programmed with copies, by their number: a hash table, so that looking one up
/// costs the same whatever is in flight. It holds at most twice as many as are.
#[derive(Debug)]
pub struct Copies {
    frames: FxHashMap<FrameId, Copied>,
    limit: usize,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies { frames: FxHashMap::default(), limit: FEW }
    }
}

/// Frames that are kept without looking whether they are complete.
const FEW: usize = 1024;

impl Copies {
    /// A frame is programmed by an operation from `first` to `last`, its slots with copies of what
    /// was at `from` when those operations read it, or with data of the host
    /// ([`Ppn::NONE`]). Nothing is noted where time does not pass.
    pub fn note(
        &mut self,
        frame: FrameId,
        (first, last): (OpId, OpId),
        from: impl Iterator<Item = (Ppn, OpId)>,
        oldest_unfinished: OpId,
    ) {
        if last == OpId::NONE {
            return;
        }
        if self.frames.len() >= self.limit {
            self.frames.retain(|_, copied| copied.last >= oldest_unfinished);
            self.limit = (2 * self.frames.len()).max(FEW);
        }
        self.frames.insert(frame, Copied { first, last, from: from.collect() });
    }

    /// Where the unit in a slot of a frame came from, and what read it there, if operation
    /// `program` brought copies to the frame.
    pub fn source(&self, frame: FrameId, slot: u32, program: OpId) -> Option<(Ppn, OpId)> {
        let copied = self.frames.get(&frame)?;
        let &(from, read) = copied.from.get(slot as usize)?;
        ((copied.first..=copied.last).contains(&program) && from != Ppn::NONE)
            .then_some((from, read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_that_of_the_program_that_is_asked_for() {
        let mut copies = Copies::default();
        let (from, host) = ((Ppn(7), OpId(10)), (Ppn::NONE, OpId(11)));
        copies.note(FrameId(3), (OpId(12), OpId(13)), [from, host].into_iter(), OpId(1));
        assert_eq!(copies.source(FrameId(3), 0, OpId(12)), Some(from));
        assert_eq!(copies.source(FrameId(3), 0, OpId(13)), Some(from));
        for (frame, slot, program) in [(3, 0, 11), (3, 0, 14), (3, 1, 12), (3, 2, 12), (4, 0, 12)] {
            assert_eq!(copies.source(FrameId(frame), slot, OpId(program)), None);
        }
        copies.note(FrameId(4), (OpId::NONE, OpId::NONE), [from].into_iter(), OpId(1));
        assert_eq!(copies.source(FrameId(4), 0, OpId::NONE), None);
    }

    #[test]
    fn what_is_complete_is_forgotten() {
        let mut copies = Copies::default();
        for n in 1..=100_000_u64 {
            // the last hundred are in flight
            let oldest = OpId(n.saturating_sub(100).max(1));
            let from = std::iter::once((Ppn(n as u32), OpId(n)));
            copies.note(FrameId(n as u32), (OpId(n), OpId(n)), from, oldest);
            assert!(copies.frames.len() <= FEW);
        }
        assert!(copies.source(FrameId(100_000 - 99), 0, OpId(100_000 - 99)).is_some());
    }
}
