//! Settings of MAST, and the comparison with its reference.

use super::{Rules, Summary, run_all};
use crate::naive::{ColdVictim, Mast, MastRules, Reference, Shape};

const MAST: MastRules = MastRules {
    sequential_blocks: 2,
    locality_blocks: 3,
    hot_blocks: 3,
    cold_blocks: 4,
    idle_blocks: 0,
    migrate_valid: 750_000,
    never_migrate: false,
    fifo: false,
    cold_victim: ColdVictim::Associated,
    cold_update_is_hot: false,
    sequential_hit_is_hot: false,
    resize_window: 256,
    cold_utilisation: 600_000,
    hot_utilisation: 500_000,
    resize_slope: 10_000,
    resize_hot_is_hot: false,
    resize_band: 200_000,
    resize_reclaims: true,
};

/// Settings with which the sizes can change often.
const RESIZED: MastRules = MastRules {
    locality_blocks: 4,
    cold_blocks: 6,
    resize_window: 16,
    hot_utilisation: 300_000,
    ..MAST
};

const VARIANTS: &[MastRules] = &[
    MAST,
    MastRules { idle_blocks: 2, ..MAST },
    MastRules { sequential_blocks: 1, locality_blocks: 2, hot_blocks: 2, cold_blocks: 2, ..MAST },
    MastRules { sequential_blocks: 5, cold_blocks: 7, migrate_valid: 300_000, ..MAST },
    MastRules { migrate_valid: 0, ..MAST },
    MastRules { migrate_valid: 1_000_000, ..MAST },
    MastRules { never_migrate: true, ..MAST },
    MastRules { fifo: true, ..MAST },
    MastRules { cold_victim: ColdVictim::Valid, ..MAST },
    MastRules { cold_victim: ColdVictim::Ratio, migrate_valid: 400_000, ..MAST },
    MastRules { cold_update_is_hot: true, ..MAST },
    MastRules { sequential_hit_is_hot: true, ..MAST },
    MastRules {
        cold_update_is_hot: true,
        sequential_hit_is_hot: true,
        fifo: true,
        never_migrate: true,
        ..MAST
    },
    MastRules { resize_window: 0, ..MAST },
    RESIZED,
    MastRules { resize_reclaims: false, ..RESIZED },
    MastRules { resize_band: 1_000_000, resize_reclaims: false, ..RESIZED },
    MastRules { resize_band: 20_000, cold_utilisation: 700_000, resize_slope: 50_000, ..RESIZED },
    MastRules { resize_window: 64, cold_utilisation: 300_000, ..RESIZED },
    MastRules { resize_hot_is_hot: true, cold_utilisation: 200_000, resize_slope: 0, ..RESIZED },
    MastRules { resize_slope: 100_000, cold_utilisation: 900_000, never_migrate: true, ..RESIZED },
    MastRules {
        cold_utilisation: 0,
        hot_utilisation: 0,
        cold_victim: ColdVictim::Ratio,
        ..RESIZED
    },
];

impl Rules for MastRules {
    fn log_blocks(&self) -> usize {
        self.sequential_blocks + self.locality_blocks + self.hot_blocks + self.cold_blocks
    }

    fn idle_blocks(&self) -> usize {
        self.idle_blocks
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let share = |millionths: f64| (millionths / 1e6).to_string();
        let hot_or = |hot: bool, other: &str| if hot { "hot" } else { other }.to_owned();
        vec![
            ("ftl.scheme", "mast".to_owned()),
            ("ftl.sequential_blocks", self.sequential_blocks.to_string()),
            ("ftl.locality_blocks", self.locality_blocks.to_string()),
            ("ftl.hot_blocks", self.hot_blocks.to_string()),
            ("ftl.cold_blocks", self.cold_blocks.to_string()),
            ("ftl.migrate_valid", share(self.migrate_valid as f64)),
            ("ftl.migrate", if self.never_migrate { "copy" } else { "relabel" }.to_owned()),
            ("ftl.recency", if self.fifo { "fifo" } else { "lru" }.to_owned()),
            ("ftl.cold_victim", format!("{:?}", self.cold_victim).to_lowercase()),
            ("ftl.cold_update", hot_or(self.cold_update_is_hot, "locality")),
            ("ftl.sequential_hit", hot_or(self.sequential_hit_is_hot, "locality")),
            ("ftl.resize_window", self.resize_window.to_string()),
            ("ftl.cold_utilisation", share(self.cold_utilisation as f64)),
            ("ftl.hot_utilisation", share(self.hot_utilisation as f64)),
            ("ftl.resize_slope", share(self.resize_slope as f64)),
            ("ftl.resize_hot", hot_or(self.resize_hot_is_hot, "cold")),
            ("ftl.resize_band", share(self.resize_band as f64)),
            ("ftl.resize_by", if self.resize_reclaims { "reclaim" } else { "free" }.to_owned()),
        ]
    }

    fn reference(&self, shape: Shape) -> Box<dyn Reference> {
        Box::new(Mast::new(shape, *self))
    }
}

#[test]
fn mast_does_what_its_rules_say() {
    let Summary { counts, resized } = run_all(VARIANTS);
    assert!(counts.values().all(|&count| count > 0), "{counts:?}");
    // area 0 is the sequential log; areas 1 to 3 are locality, hot and cold
    let grown =
        [1, 2, 3].map(|area| resized.iter().filter(|(old, new)| new[area] > old[area]).count());
    assert!(grown.iter().all(|&times| times > 0), "the budget of each area grows: {grown:?} times");
}
