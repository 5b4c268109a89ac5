//! Settings of Superblock FTL, and the comparison with its reference.

use super::{Rules, Summary, run_all};
use crate::naive::{Reference, Shape, SuperblockRules, Superblocks};

const SUPERBLOCK: SuperblockRules =
    SuperblockRules { log_blocks: 6, superblock_blocks: 8, idle_blocks: 0 };

const VARIANTS: &[SuperblockRules] = &[
    SUPERBLOCK,
    SuperblockRules { superblock_blocks: 1, ..SUPERBLOCK },
    SuperblockRules { superblock_blocks: 3, ..SUPERBLOCK },
    SuperblockRules { log_blocks: 12, superblock_blocks: 2, ..SUPERBLOCK },
    SuperblockRules { log_blocks: 12, superblock_blocks: 5, ..SUPERBLOCK },
    SuperblockRules { log_blocks: 1, superblock_blocks: 4, ..SUPERBLOCK },
    SuperblockRules { log_blocks: 2, superblock_blocks: 1, ..SUPERBLOCK },
    // all logical blocks are in one superblock
    SuperblockRules { log_blocks: 4, superblock_blocks: 64, ..SUPERBLOCK },
    SuperblockRules { idle_blocks: 2, ..SUPERBLOCK },
    SuperblockRules { idle_blocks: 6, superblock_blocks: 3, ..SUPERBLOCK },
];

impl Rules for SuperblockRules {
    fn log_blocks(&self) -> usize {
        self.log_blocks
    }

    fn idle_blocks(&self) -> usize {
        self.idle_blocks
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ftl.scheme", "superblock".to_owned()),
            ("ftl.superblock_blocks", self.superblock_blocks.to_string()),
        ]
    }

    fn reference(&self, shape: Shape) -> Box<dyn Reference> {
        Box::new(Superblocks::new(shape, *self))
    }
}

#[test]
fn superblock_does_what_its_rules_say() {
    let Summary { counts, resized } = run_all(VARIANTS);
    for (name, count) in counts {
        let some = ["log_dead", "log_moved", "moved_pages", "erases", "programs"].contains(&name);
        assert_eq!(count > 0, some, "{name} of Superblock: {count}");
    }
    assert!(resized.is_empty(), "the pool has a fixed size");
}
