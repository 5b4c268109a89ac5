//! The parameters of MAST, and the check that the areas have enough blocks. The module
//! `sizes` has the parameters of resizing.

use super::sizes;
use crate::logblock::{fits_budget, fits_parts, share};
use flashatlas_types::{ConfigError, Layout, Param, ParamDef, Params, Text};

/// The smallest number of blocks of the cold area: one to fill, and one to reclaim.
pub(super) const LEAST_COLD: u32 = 2;

pub(super) const SEQUENTIAL_BLOCKS: Param<u64> = Param::int(
    "ftl.sequential_blocks",
    0,
    1 << 24,
    "sequential log blocks of the locality area; 0: 1/32 of the log",
)
.or("0");

pub(super) const LOCALITY_BLOCKS: Param<u64> = Param::int(
    "ftl.locality_blocks",
    0,
    1 << 24,
    "initial number of random log blocks of the locality area; 0: 3/32 of the log",
)
.or("0");

pub(super) const HOT_BLOCKS: Param<u64> = Param::int(
    "ftl.hot_blocks",
    0,
    1 << 24,
    "initial number of log blocks of the hot area; 0: a quarter of the log",
)
.or("0");

pub(super) const COLD_BLOCKS: Param<u64> = Param::int(
    "ftl.cold_blocks",
    0,
    1 << 24,
    "initial number of log blocks of the cold area; 0: the rest of the log",
)
.or("0");

pub(super) const MIGRATE_VALID: Param<f64> = Param::ratio(
    "ftl.migrate_valid",
    0.0,
    1.0,
    "smallest share of valid pages at which a block of the locality area moves to the cold area \
     without a copy",
)
.or("0.75");

pub(super) const MIGRATE: Param<Text> = Param::choice(
    "ftl.migrate",
    &["relabel", "copy"],
    "`relabel`: ftl.migrate_valid decides; `copy`: valid pages are always copied",
)
.or("relabel");

pub(super) const RECENCY: Param<Text> = Param::choice(
    "ftl.recency",
    &["lru", "fifo"],
    "the block that leaves the locality area or the hot area: the block that the host touched \
     least recently (`lru`), or the oldest block (`fifo`), which needs no list and has the least \
     recently used page (MAST, section 2.2, orders pages by recency)",
)
.or("lru");

pub(super) const COLD_VICTIM: Param<Text> = Param::choice(
    "ftl.cold_victim",
    &["associated", "valid", "ratio"],
    "the log block that a merge takes: the block with the fewest associated logical blocks, then \
     with the most valid pages (`associated`); with the most valid pages, then with the fewest \
     associated logical blocks (`valid`); or with the most valid pages for each associated logical \
     block (`ratio`)",
)
.or("associated");

pub(super) const COLD_UPDATE: Param<Text> = Param::choice(
    "ftl.cold_update",
    &["locality", "hot"],
    "the area to which an update of a page in the cold area is written",
)
.or("locality");

pub(super) const SEQUENTIAL_HIT: Param<Text> = Param::choice(
    "ftl.sequential_hit",
    &["locality", "hot"],
    "the area to which an update of a page in a sequential log block is written",
)
.or("locality");

pub(super) const IDLE_LOG_BLOCKS: Param<u32> = Param::int(
    "ftl.idle_log_blocks",
    0,
    1 << 24,
    "number of log blocks that merges in idle time keep free for the cold area; 0: no merges in \
     idle time",
)
.or("4");

pub(super) const PARAMS: &[ParamDef] = &[
    SEQUENTIAL_BLOCKS.def,
    LOCALITY_BLOCKS.def,
    HOT_BLOCKS.def,
    COLD_BLOCKS.def,
    MIGRATE_VALID.def,
    MIGRATE.def,
    RECENCY.def,
    COLD_VICTIM.def,
    COLD_UPDATE.def,
    SEQUENTIAL_HIT.def,
    IDLE_LOG_BLOCKS.def,
];

/// Returns the numbers of blocks of the sequential log, the locality area, the hot and the cold
/// area.
pub(super) fn parts(params: &Params, budget: u64) -> [u64; 4] {
    let sequential = share(params.get(SEQUENTIAL_BLOCKS), budget, (1, 32), 1);
    let locality =
        share(params.get(LOCALITY_BLOCKS), budget, (3, 32), sizes::LEAST_LOCALITY.into());
    let hot = share(params.get(HOT_BLOCKS), budget, (1, 4), sizes::LEAST_HOT.into());
    let cold = match params.get(COLD_BLOCKS) {
        0 => budget.saturating_sub(sequential + locality + hot),
        given => given,
    };
    [sequential, locality, hot, cold]
}

pub(super) fn fits(params: &Params, layout: &Layout) -> Result<(), ConfigError> {
    let budget = fits_budget(params, layout, 7)?;
    let [sequential, locality, hot, cold] = parts(params, budget);
    fits_parts(
        budget,
        &[
            ("ftl.sequential_blocks", sequential, 1),
            ("ftl.locality_blocks", locality, sizes::LEAST_LOCALITY.into()),
            ("ftl.hot_blocks", hot, sizes::LEAST_HOT.into()),
            ("ftl.cold_blocks", cold, LEAST_COLD.into()),
        ],
    )
}
