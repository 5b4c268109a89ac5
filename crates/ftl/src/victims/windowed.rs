//! Windowed greedy: the fewest valid pages among the blocks that were closed first.

use super::fifo::ByAge;
use super::{Candidates, Moment, VictimDef, VictimPolicy};
use flashatlas_types::{LocalBlock, Param};

pub const DEF: VictimDef = VictimDef {
    name: "windowed",
    summary: "the block with the fewest valid pages among the ftl.window blocks that were closed \
              first",
    paper: "Hu et al., Write Amplification Analysis in Flash-Based SSDs (SYSTOR 2009)",
    params: &[WINDOW.def],
    build: &|params, lane, _| {
        Box::new(Windowed { by_age: ByAge::new(lane), window: params.get(WINDOW) as usize })
    },
    steady: None,
};

const WINDOW: Param<u32> =
    Param::int("ftl.window", 1, u32::MAX as u64, "blocks in the window, for each lane").or("32");

struct Windowed {
    by_age: ByAge,
    window: usize,
}

impl VictimPolicy for Windowed {
    fn closed(&mut self, block: LocalBlock, _: u32, _: Moment) {
        self.by_age.add(block);
    }

    fn invalidated(&mut self, _: LocalBlock, _: u32, _: Moment) {}

    fn removed(&mut self, block: LocalBlock) {
        self.by_age.remove(block);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        let frees = |&b: &LocalBlock| lane.valid[b] < lane.slots;
        let in_window =
            self.by_age.iter().take(self.window).filter(frees).min_by_key(|&b| lane.valid[b]);
        // if all blocks of the window are fully valid, a block behind the window is picked
        in_window.or_else(|| self.by_age.iter().find(frees))
    }
}
