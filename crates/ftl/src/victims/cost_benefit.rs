//! Cost-benefit: an old block is worth collecting even if it has more valid pages, because these
//! pages will stay valid for long.

use super::{Candidates, ClosedList, LaneShape, Moment, VictimDef, VictimPolicy};
use flashatlas_types::{LocalBlock, Param, Params, Text, TiVec};

pub const DEF: VictimDef = VictimDef {
    name: "cost-benefit",
    summary: "the block with the largest (1 - u) * age / 2u, where u is its share of valid pages",
    paper: "Rosenblum and Ousterhout, The Design and Implementation of a Log-Structured File \
            System (SOSP 1991)",
    params: &[AGE.or("invalidation").def],
    build: &|params, lane, _| Box::new(ByBenefit::new(params, lane, |valid, _| 2 * valid)),
    steady: None,
};

/// The event at which the age of a block begins.
pub(super) const AGE: Param<Text> = Param::choice(
    "ftl.age",
    &["invalidation", "program"],
    "event from which a block's age counts: its last invalidation, or its closing",
);

/// A policy that picks the block with the largest ratio of benefit to cost. The benefit is the
/// number of invalid slots times the age.
pub(super) struct ByBenefit {
    list: ClosedList,
    touched: TiVec<LocalBlock, u64>,
    by_invalidation: bool,
    /// A function that returns the cost of a block from its numbers of valid slots and of erases.
    cost: fn(u64, u64) -> u64,
}

impl ByBenefit {
    /// Builds the policy for a lane. `cost` returns the cost of a block from its numbers of valid
    /// slots and of erases. The age follows [`AGE`].
    pub(super) fn new(params: &Params, lane: LaneShape, cost: fn(u64, u64) -> u64) -> ByBenefit {
        ByBenefit {
            list: ClosedList::new(lane),
            touched: lane.per_block(0),
            by_invalidation: params.get(AGE) == "invalidation",
            cost,
        }
    }
}

impl VictimPolicy for ByBenefit {
    fn closed(&mut self, block: LocalBlock, _: u32, at: Moment) {
        self.list.add(block);
        self.touched[block] = at.clock;
    }

    fn invalidated(&mut self, block: LocalBlock, _: u32, at: Moment) {
        if self.by_invalidation {
            self.touched[block] = at.clock;
        }
    }

    fn removed(&mut self, block: LocalBlock) {
        self.list.remove(block);
    }

    /// Compares the ratios as fractions, without rounding. Among equals, picks the block with the
    /// smaller cost, then the block with the smaller number. The time is O(closed blocks of the
    /// lane).
    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        let mut best: Option<(u128, u128, LocalBlock)> = None;
        for &block in &self.list.blocks {
            let valid = lane.valid[block];
            if valid >= lane.slots {
                continue;
            }
            let age = lane.at.clock.saturating_sub(self.touched[block]) + 1;
            let cost = (self.cost)(valid.into(), lane.erases[block].into());
            let (benefit, cost) =
                (u128::from(lane.slots - valid) * u128::from(age), u128::from(cost));
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
