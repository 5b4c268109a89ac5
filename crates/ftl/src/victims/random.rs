//! Random: any closed block, uniformly.

use super::{Candidates, ClosedList, VictimDef, VictimPolicy};
use flashatlas_types::Rng;

pub const DEF: VictimDef = VictimDef {
    name: "random",
    summary: "any closed block, uniformly",
    paper: "Van Houdt, A Mean Field Model for a Class of Garbage Collection Algorithms (SIGMETRICS 2013), d = 1",
    params: &[],
    build: |_, blocks, rng| Box::new(Choices { list: ClosedList::new(blocks), d: 1, rng }),
};

/// The best of `d` uniform draws; `random` has one.
pub struct Choices {
    pub list: ClosedList,
    pub d: u32,
    pub rng: Rng,
}

impl VictimPolicy for Choices {
    fn closed(&mut self, block: u32, _: u32, _: u64) {
        self.list.add(block);
    }

    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        self.list.remove(block);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<u32> {
        self.list.draw(self.d, &mut self.rng, lane)
    }
}
