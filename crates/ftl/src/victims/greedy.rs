//! Greedy: the closed block with the fewest valid pages.

use super::tournament::Tournament;
use super::{Candidates, Moment, VictimDef, VictimPolicy};
use crate::steady::{Steady, best_of};
use flashatlas_types::{LocalBlock, Param, Text};

pub const DEF: VictimDef = VictimDef {
    name: "greedy",
    summary: "the block with the fewest valid pages",
    paper: "Desnoyers, Analytic Modeling of SSD Write Performance (SYSTOR 2012)",
    params: &[GREEDY_TIE.def],
    build: &|params, lane, _| {
        let by_index = params.get(GREEDY_TIE) == "index";
        Box::new(Greedy { tree: Tournament::new(lane), closings: 0, by_index })
    },
    steady: Some(Steady::ByValid(|share, _, blocks| best_of(blocks, share))),
};

const GREEDY_TIE: Param<Text> = Param::choice(
    "ftl.greedy_tie",
    &["oldest", "index"],
    "choice among blocks with equally few valid pages: the block that was closed first, or the \
     block with the lowest number",
)
.or("oldest");

/// Closed blocks with a key: the number of valid pages, then 40 bits for the number of the closing
/// or of the block.
struct Greedy {
    tree: Tournament,
    closings: u64,
    by_index: bool,
}

impl VictimPolicy for Greedy {
    fn closed(&mut self, block: LocalBlock, valid: u32, _: Moment) {
        self.closings += 1;
        assert!(self.closings < 1 << 40, "the 40-bit closing sequence is used up");
        let tie = if self.by_index { u64::from(block.number()) } else { self.closings };
        self.tree.set(block, u64::from(valid) << 40 | tie);
    }

    #[inline]
    fn invalidated(&mut self, block: LocalBlock, valid: u32, _: Moment) {
        let key = self.tree.key(block).expect("only closed blocks are reported");
        self.tree.set(block, u64::from(valid) << 40 | key & ((1 << 40) - 1));
    }

    fn removed(&mut self, block: LocalBlock) {
        self.tree.set(block, u64::MAX);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        self.tree
            .first()
            .filter(|&(_, key)| key >> 40 < u64::from(lane.slots))
            .map(|(block, _)| block)
    }
}
