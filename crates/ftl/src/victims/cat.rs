//! Cost, age, times: cost-benefit collection that spares blocks with many erases.

use super::VictimDef;
use super::cost_benefit::{AGE, ByBenefit};

pub const DEF: VictimDef = VictimDef {
    name: "cat",
    summary: "the block with the least u / (1 - u) * erases / age, where u is its share of valid \
              pages",
    paper: "Chiang, Lee and Chang, Using data clustering to improve cleaning performance for flash \
            memory (Software: Practice and Experience 29, 1999)",
    params: &[AGE.or("program").def],
    // the factor is one more than the erases, so that a block without erases has a cost too
    build: &|params, lane, _| {
        Box::new(ByBenefit::new(params, lane, |valid, erases| valid * (erases + 1)))
    },
    steady: None,
};
