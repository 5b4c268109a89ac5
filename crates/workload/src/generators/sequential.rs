//! Requests to one slot after the other. The first slot of the range follows the last.

use super::GeneratorDef;
use super::common::{Pattern, SIZE, Slots, source, with_common};
use flashatlas_types::Rng;

pub(super) const GENERATOR: GeneratorDef = GeneratorDef {
    name: "sequential",
    summary: "sequential requests through the range, again and again",
    params: &with_common::<1, 7>([SIZE.def]),
    serial: false,
    build: |params, capacity, seed| {
        source(Sequential { slots: Slots::of(params, capacity)?, next: 0 }, params, seed)
    },
};

struct Sequential {
    slots: Slots,
    next: u64,
}

impl Pattern for Sequential {
    fn next(&mut self, _: &mut Rng) -> (u64, u32) {
        let slot = self.next;
        self.next = (slot + 1) % self.slots.count;
        self.slots.place(slot)
    }
}
