//! Changes of the sizes of MAST's areas (papers/1, section 3).
//!
//! After every `ftl.resize_window` pages that the host writes, the shares of valid pages in HA and
//! in CA are measured. All pages of a block count, programmed or not. An area without blocks has no
//! share, and no rule applies to it. A trend is the change of a running mean in one window. The new
//! mean is half the old mean plus half the share of the window.
//!
//! 1. If CA is below `ftl.cold_utilisation`, or its trend was below −`ftl.resize_slope` in this
//!    window and in the previous window, hot pages die in CA: CA gives a block to LA.
//! 2. Otherwise, if HA is above `ftl.hot_utilisation` and its trend is above `ftl.resize_slope`,
//!    cold pages enter HA: LA gives a block to CA. (With `ftl.resize_hot=hot`, the other reading of
//!    the paper, LA gives it to HA.)
//! 3. Otherwise, if CA is above `ftl.cold_utilisation` by more than `ftl.resize_band`, LA returns a
//!    block that rule 1 gave it. The paper has no rule for this return. Without it, a workload that
//!    once lets pages die in CA leaves CA at its smallest size permanently ([ADR
//!    0019](../../../../../docs/adr/0019-mast-sizes-have-a-way-back.md)).
//!
//! After a window that changed a size, the next window changes none. A block of budget moves when
//! its area has fewer log blocks than its budget. If the area uses its whole budget, it first
//! erases a log block without a valid page. If there is no such block, `ftl.resize_by` decides:
//! with `free` nothing happens, and with `reclaim` a log block is reclaimed as for a write.

use crate::logblock::{Area, Core};
use flashatlas_types::{Param, ParamDef, Params, Text};

/// The smallest numbers of blocks of each area. CA has at least 16 blocks. In a log of fewer than
/// 64 blocks, it has at least a quarter of the log, but at least 2 blocks.
pub(super) const LEAST_LOCALITY: u32 = 2;
pub(super) const LEAST_HOT: u32 = 2;
const LEAST_COLD: u32 = 16;

const RESIZE_WINDOW: Param<u64> = Param::int(
    "ftl.resize_window",
    0,
    1 << 40,
    "number of pages that the host writes between two checks of the area sizes; 0: fixed sizes",
)
.or("4096");

const COLD_UTILISATION: Param<f64> = Param::ratio(
    "ftl.cold_utilisation",
    0.0,
    1.0,
    "share of valid pages below which the cold area gives a block to the locality area",
)
.or("0.6");

const HOT_UTILISATION: Param<f64> = Param::ratio(
    "ftl.hot_utilisation",
    0.0,
    1.0,
    "share of valid pages in the hot area; if the share is above this value and grows, the \
     locality area gives up a block",
)
.or("0.5");

const RESIZE_SLOPE: Param<f64> = Param::ratio(
    "ftl.resize_slope",
    0.0,
    1.0,
    "change of the running mean in a window that counts as growing or falling",
)
.or("0.01");

const RESIZE_HOT: Param<Text> = Param::choice(
    "ftl.resize_hot",
    &["cold", "hot"],
    "the area that gets the block that the locality area gives up",
)
.or("cold");

const RESIZE_BAND: Param<f64> = Param::ratio(
    "ftl.resize_band",
    0.0,
    1.0,
    "the cold area gets a block back from the locality area if the cold area's share of valid \
     pages exceeds ftl.cold_utilisation by more than this value; 1: never",
)
.or("0.2");

const RESIZE_BY: Param<Text> = Param::choice(
    "ftl.resize_by",
    &["reclaim", "free"],
    "an area that must give up a block and has no block to spare reclaims a block as for a write \
     (`reclaim`), or the sizes do not change (`free`)",
)
.or("reclaim");

pub(super) const PARAMS: &[ParamDef] = &[
    RESIZE_WINDOW.def,
    COLD_UTILISATION.def,
    HOT_UTILISATION.def,
    RESIZE_SLOPE.def,
    RESIZE_HOT.def,
    RESIZE_BAND.def,
    RESIZE_BY.def,
];

/// A move of one block of budget between two areas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sizes {
    ColdToLocality,
    LocalityToCold,
    LocalityToHot,
    BackToCold,
}

impl Sizes {
    /// Names of the counters, in the order of the values.
    pub const COUNTERS: [&'static str; 4] =
        ["resized_to_locality", "resized_to_cold", "resized_to_hot", "resized_back_to_cold"];
}

/// A share of 1, in millionths, because the model uses no floating point.
const WHOLE: i64 = 1_000_000;

#[derive(Default)]
struct Trend {
    mean: Option<i64>,
    slope: i64,
}

impl Trend {
    /// Adds the share of the next window; `None` for an area without blocks.
    fn next(&mut self, share: Option<i64>) {
        let Some(share) = share else { return self.slope = 0 };
        let mean = self.mean.map_or(share, |mean| (mean + share) / 2);
        self.slope = mean - self.mean.unwrap_or(mean);
        self.mean = Some(mean);
    }
}

pub(super) struct Resize {
    window: u64,
    low_cold: i64,
    high_hot: i64,
    slope: i64,
    band: i64,
    to_hot: bool,
    /// `true` if a block is reclaimed when there is no block to spare.
    pub reclaims: bool,
    pub least_cold: u32,
    cold: Trend,
    hot: Trend,
    cold_was_falling: bool,
    just_changed: bool,
}

impl Resize {
    pub fn new(params: &Params, budget: u32) -> Resize {
        let millionths = |share: Param<f64>| (params.get(share) * WHOLE as f64).round() as i64;
        Resize {
            window: params.get(RESIZE_WINDOW),
            low_cold: millionths(COLD_UTILISATION),
            high_hot: millionths(HOT_UTILISATION),
            slope: millionths(RESIZE_SLOPE),
            band: millionths(RESIZE_BAND),
            reclaims: params.get(RESIZE_BY) == "reclaim",
            to_hot: params.get(RESIZE_HOT) == "hot",
            least_cold: LEAST_COLD.min(budget / 4).max(2),
            cold: Trend::default(),
            hot: Trend::default(),
            cold_was_falling: false,
            just_changed: false,
        }
    }

    /// Notes that a size was changed in this window.
    pub fn changed(&mut self) {
        self.just_changed = true;
    }

    /// Returns the change of sizes that is due after a page was written. Returns `None` if no
    /// change is due or the page does not end a window. `lent` is `true` if LA has blocks of CA.
    pub fn after_write(
        &mut self,
        core: &Core,
        hot: &Area,
        cold: &Area,
        lent: bool,
    ) -> Option<Sizes> {
        if self.window == 0 || core.clock % self.window != 0 {
            return None;
        }
        let share = |area: &Area| {
            let used = area.usage(core);
            (used.pages > 0).then(|| used.valid as i64 * WHOLE / used.pages as i64)
        };
        let (u_cold, u_hot) = (share(cold), share(hot));
        self.cold.next(u_cold);
        self.hot.next(u_hot);
        let falling = self.cold.slope < -self.slope;
        let fell_twice = std::mem::replace(&mut self.cold_was_falling, falling) && falling;
        if std::mem::take(&mut self.just_changed) {
            return None;
        }
        if u_cold.is_some_and(|u| u < self.low_cold) || (u_cold.is_some() && fell_twice) {
            return Some(Sizes::ColdToLocality);
        }
        if u_hot.is_some_and(|u| u > self.high_hot) && self.hot.slope > self.slope {
            return Some(if self.to_hot { Sizes::LocalityToHot } else { Sizes::LocalityToCold });
        }
        let high = self.low_cold + self.band;
        (lent && u_cold.is_some_and(|u| u > high)).then_some(Sizes::BackToCold)
    }
}
