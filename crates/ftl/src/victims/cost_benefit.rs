//! Cost-benefit: old blocks are worth collecting even with more valid pages, because the rest of
//! them stays.

use super::{Candidates, ClosedList, VictimDef, VictimPolicy};
use flashatlas_types::{Param, Text};

pub const DEF: VictimDef = VictimDef {
    name: "cost-benefit",
    summary: "the largest (1 - u) * age / 2u, u the share of valid pages",
    paper: "Rosenblum and Ousterhout, The Design and Implementation of a Log-Structured File \
            System (SOSP 1991)",
    params: &[AGE.def],
    build: |params, lane, _| {
        Box::new(CostBenefit {
            list: ClosedList::new(lane.blocks),
            touched: vec![0; lane.blocks as usize],
            by_invalidation: params.get(AGE) == "invalidation",
        })
    },
    steady: None,
};

const AGE: Param<Text> = Param::choice(
    "ftl.age",
    &["invalidation", "program"],
    "a block's age counts from its last invalidation, or from its closing",
)
.or("invalidation");

struct CostBenefit {
    list: ClosedList,
    touched: Vec<u64>,
    by_invalidation: bool,
}

impl VictimPolicy for CostBenefit {
    fn closed(&mut self, block: u32, _: u32, clock: u64) {
        self.list.add(block);
        self.touched[block as usize] = clock;
    }

    fn invalidated(&mut self, block: u32, _: u32, clock: u64) {
        if self.by_invalidation {
            self.touched[block as usize] = clock;
        }
    }

    fn removed(&mut self, block: u32) {
        self.list.remove(block);
    }

    /// Compares benefits as fractions, without rounding; of equals, the smaller number. O(closed
    /// blocks of the lane).
    fn pick(&mut self, lane: &Candidates<'_>) -> Option<u32> {
        let mut best: Option<(u128, u128, u32)> = None;
        for &block in &self.list.blocks {
            let valid = lane.valid[block as usize];
            if valid >= lane.slots {
                continue;
            }
            let age = lane.clock.saturating_sub(self.touched[block as usize]) + 1;
            let (benefit, cost) =
                (u128::from(lane.slots - valid) * u128::from(age), u128::from(valid) * 2);
            let better = match best {
                None => true,
                Some((b, c, other)) => {
                    let (mine, theirs) = (benefit * c, b * cost);
                    mine > theirs || (mine == theirs && (cost < c || (cost == c && block < other)))
                }
            };
            if better {
                best = Some((benefit, cost, block));
            }
        }
        best.map(|(_, _, block)| block)
    }
}
