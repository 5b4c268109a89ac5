//! d-choices: the fewest valid pages among `d` blocks drawn at random.

use super::VictimDef;
use super::random::Choices;
use crate::steady::{Steady, best_of};
use flashatlas_types::Param;

pub const DEF: VictimDef = VictimDef {
    name: "d-choices",
    summary: "the block with the fewest valid pages among ftl.d blocks drawn with replacement",
    paper: "Van Houdt, A Mean Field Model for a Class of Garbage Collection Algorithms (SIGMETRICS \
            2013)",
    params: &[D.def],
    build: &|params, lane, rng| Box::new(Choices::new(lane, params.get(D), rng)),
    steady: Some(Steady::ByValid(|share, params, _| best_of(params.get(D), share))),
};

const D: Param<u32> = Param::int("ftl.d", 1, 1_000_000, "blocks drawn for each choice").or("10");
