//! d-choices: the fewest valid pages among `d` blocks drawn at random.

use super::VictimDef;
use super::random::Choices;
use crate::steady::{Steady, best_of};
use flashatlas_types::{ParamDef, ParamKind};

pub const DEF: VictimDef = VictimDef {
    name: "d-choices",
    summary: "the fewest valid pages among ftl.d blocks drawn with replacement",
    paper: "Van Houdt, A Mean Field Model for a Class of Garbage Collection Algorithms (SIGMETRICS \
            2013)",
    params: &[ParamDef {
        key: "ftl.d",
        kind: ParamKind::Int(1, 1_000_000),
        default: Some("10"),
        doc: "blocks drawn for each choice",
    }],
    build: |params, lane, rng| Box::new(Choices::new(lane, params.u32("ftl.d"), rng)),
    steady: Some(Steady::ByValid(|share, params, _| best_of(params.u32("ftl.d"), share))),
};
