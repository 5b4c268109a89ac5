//! Settings of SAST, and the comparison with its reference.

use super::{Rules, Summary, run_all};
use crate::naive::{Reference, Sast, SastRules, Shape};

const SAST: SastRules =
    SastRules { log_blocks: 7, group_blocks: 4, group_log_blocks: 2, idle_blocks: 0 };

const VARIANTS: &[SastRules] = &[
    SAST,
    // the settings of BAST
    SastRules { group_blocks: 1, group_log_blocks: 1, ..SAST },
    SastRules { group_blocks: 1, group_log_blocks: 3, ..SAST },
    SastRules { group_blocks: 3, group_log_blocks: 1, ..SAST },
    SastRules { log_blocks: 12, group_blocks: 5, group_log_blocks: 4, ..SAST },
    // a single group may use all log blocks
    SastRules { log_blocks: 5, group_blocks: 2, group_log_blocks: 5, ..SAST },
    // all logical blocks are in one group
    SastRules { log_blocks: 9, group_blocks: 64, group_log_blocks: 9, ..SAST },
    SastRules { log_blocks: 9, group_blocks: 64, group_log_blocks: 4, ..SAST },
    SastRules { log_blocks: 1, group_blocks: 2, group_log_blocks: 1, ..SAST },
    SastRules { idle_blocks: 3, ..SAST },
    SastRules { idle_blocks: 7, ..SAST },
];

impl Rules for SastRules {
    fn log_blocks(&self) -> usize {
        self.log_blocks
    }

    fn idle_blocks(&self) -> usize {
        self.idle_blocks
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ftl.scheme", "sast".to_owned()),
            ("ftl.group_blocks", self.group_blocks.to_string()),
            ("ftl.group_log_blocks", self.group_log_blocks.to_string()),
        ]
    }

    fn reference(&self, shape: Shape) -> Box<dyn Reference> {
        Box::new(Sast::new(shape, *self))
    }
}

#[test]
fn sast_does_what_its_rules_say() {
    let Summary { mut counts, resized } = run_all(VARIANTS);
    for none in ["log_moved", "moved_pages", "migrated", "sequential_full"] {
        assert_eq!(counts.remove(none), Some(0), "{none} of SAST");
    }
    assert!(counts.values().all(|&count| count > 0), "{counts:?}");
    assert!(resized.is_empty(), "the log of SAST has a fixed size");
}
