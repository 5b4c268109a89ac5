//! Random: any closed block, uniformly.

use super::{Candidates, ClosedList, LaneShape, Moment, VictimDef, VictimPolicy};
use crate::steady::{Steady, best_of};
use flashatlas_types::{LocalBlock, Rng};

pub const DEF: VictimDef = VictimDef {
    name: "random",
    summary: "any closed block, uniformly",
    paper: "Van Houdt, A Mean Field Model for a Class of Garbage Collection Algorithms (SIGMETRICS \
            2013), d = 1",
    params: &[],
    build: &|_, lane, rng| Box::new(Choices::new(lane, 1, rng)),
    steady: Some(Steady::ByValid(|share, _, _| best_of(1, share))),
};

/// The best of `d` uniform draws. The policy `random` draws once.
pub struct Choices {
    list: ClosedList,
    slots: u32,
    d: u32,
    rng: Rng,
}

impl Choices {
    pub fn new(lane: LaneShape, d: u32, rng: Rng) -> Choices {
        Choices { list: ClosedList::new(lane), slots: lane.slots, d, rng }
    }
}

impl VictimPolicy for Choices {
    fn closed(&mut self, block: LocalBlock, valid: u32, _: Moment) {
        self.list.add(block);
        if valid < self.slots {
            self.list.mark(block);
        }
    }

    fn invalidated(&mut self, block: LocalBlock, _: u32, _: Moment) {
        self.list.mark(block);
    }

    fn removed(&mut self, block: LocalBlock) {
        self.list.remove(block);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        self.list.draw(self.d, &mut self.rng, lane.valid)
    }
}
