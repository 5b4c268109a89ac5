//! Every slot of the range equally likely.

use super::GeneratorDef;
use super::common::{Pattern, SIZE, Slots, source, with_common};
use flashatlas_types::Rng;

pub(super) const GENERATOR: GeneratorDef = GeneratorDef {
    name: "uniform",
    summary: "random requests; every address of the range is equally likely",
    params: &with_common::<1, 7>([SIZE.def]),
    serial: false,
    build: |params, capacity, seed| {
        source(Uniform { slots: Slots::of(params, capacity)? }, params, seed)
    },
};

struct Uniform {
    slots: Slots,
}

impl Pattern for Uniform {
    fn next(&mut self, rng: &mut Rng) -> (u64, u32) {
        self.slots.place(rng.below(self.slots.count))
    }
}
