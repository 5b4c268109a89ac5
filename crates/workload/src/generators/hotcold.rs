//! A hot part at the start of the range and a cold rest, uniform within each (Rosenblum and
//! Ousterhout's hot-and-cold).

use super::GeneratorDef;
use super::common::{Pattern, SIZE, Slots, source, with_common};
use flashatlas_types::{ConfigError, Param, Params, Rng};

const HOT_SPACE: Param<f64> = Param::ratio(
    "hot_space",
    0.0,
    1.0,
    "share of the range that is hot, from the start of the range; rounded down to whole requests, \
     but at least one",
)
.or("0.1");

const HOT_SHARE: Param<f64> =
    Param::ratio("hot_share", 0.0, 1.0, "share of the requests that go to the hot part").or("0.9");

pub(super) const GENERATOR: GeneratorDef = GeneratorDef {
    name: "hotcold",
    summary: "most requests go to a small hot part, the others to the rest; requests are uniform \
              within each part",
    params: &with_common::<3, 9>([SIZE.def, HOT_SPACE.def, HOT_SHARE.def]),
    serial: false,
    build: |params, capacity, seed| {
        source(HotCold::new(params, Slots::of(params, capacity)?)?, params, seed)
    },
};

struct HotCold {
    slots: Slots,
    hot: u64,
    hot_share: f64,
}

impl HotCold {
    fn new(params: &Params, slots: Slots) -> Result<HotCold, ConfigError> {
        let (hot_space, hot_share) = (params.get(HOT_SPACE), params.get(HOT_SHARE));
        let hot = ((slots.count as f64 * hot_space) as u64).clamp(1, slots.count);
        if hot == slots.count && hot_share < 1.0 {
            return Err(ConfigError::new(
                "hot_space",
                "hot_share is below 1, but the range has no room beside the hot part",
            ));
        }
        Ok(HotCold { slots, hot, hot_share })
    }
}

impl Pattern for HotCold {
    fn next(&mut self, rng: &mut Rng) -> (u64, u32) {
        let slot = if rng.unit() < self.hot_share {
            rng.below(self.hot)
        } else {
            self.hot + rng.below(self.slots.count - self.hot)
        };
        self.slots.place(slot)
    }
}
