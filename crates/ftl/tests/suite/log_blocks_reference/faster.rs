//! Settings of FASTer, and the comparison with its reference.

use super::{Rules, Summary, run_all};
use crate::naive::{Faster, FasterRules, Reference, Shape};

const FASTER: FasterRules = FasterRules {
    log_blocks: 9,
    isolation_blocks: 3,
    isolation_interval: 4,
    sequential_pages: 4,
    idle_blocks: 0,
};

const VARIANTS: &[FasterRules] = &[
    FASTER,
    FasterRules { isolation_interval: 1, ..FASTER },
    FasterRules { isolation_interval: 30, ..FASTER },
    FasterRules { isolation_blocks: 5, ..FASTER },
    FasterRules { sequential_pages: 1, ..FASTER },
    FasterRules { sequential_pages: 9, ..FASTER },
    FasterRules { sequential_pages: 1000, isolation_interval: 2, ..FASTER },
    FasterRules { idle_blocks: 3, ..FASTER },
    // the isolation area has a fifth of all log blocks, including the sequential log block
    FasterRules { log_blocks: 20, isolation_blocks: 0, isolation_interval: 7, ..FASTER },
];

impl Rules for FasterRules {
    fn log_blocks(&self) -> usize {
        self.log_blocks
    }

    fn idle_blocks(&self) -> usize {
        self.idle_blocks
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ftl.scheme", "faster".to_owned()),
            ("ftl.isolation_blocks", self.isolation_blocks.to_string()),
            ("ftl.isolation_interval", self.isolation_interval.to_string()),
            ("ftl.sequential_pages", self.sequential_pages.to_string()),
        ]
    }

    fn reference(&self, shape: Shape) -> Box<dyn Reference> {
        Box::new(Faster::new(shape, *self))
    }
}

#[test]
fn faster_does_what_its_rules_say() {
    let Summary { mut counts, resized } = run_all(VARIANTS);
    assert_eq!(counts.remove("migrated"), Some(0), "FASTer migrates nothing");
    assert!(counts.values().all(|&count| count > 0), "{counts:?}");
    assert!(resized.is_empty(), "the areas of FASTer have fixed sizes");
}
