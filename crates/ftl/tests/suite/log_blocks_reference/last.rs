//! Settings of LAST, and the comparison with its reference.

use super::{Rules, Summary, run_all};
use crate::naive::{Last, LastRules, Reference, Shape};

const LAST: LastRules = LastRules {
    sequential_pages: 4,
    sequential_blocks: 2,
    hot_blocks: 3,
    cold_blocks: 4,
    idle_blocks: 0,
    hot_window: 0,
    hot_window_adaptive: false,
    // times of the preset `tiny`, in microseconds
    t_read: 25,
    t_program: 200,
    t_erase: 1500,
};

const VARIANTS: &[LastRules] = &[
    LAST,
    LastRules { idle_blocks: 2, ..LAST },
    LastRules { sequential_pages: 2, sequential_blocks: 5, ..LAST },
    LastRules { sequential_pages: 1000, cold_blocks: 9, ..LAST },
    LastRules { sequential_blocks: 1, hot_blocks: 2, cold_blocks: 2, hot_window: 5, ..LAST },
    LastRules { hot_window: 70, ..LAST },
    LastRules { hot_window_adaptive: true, ..LAST },
    LastRules {
        hot_window_adaptive: true,
        hot_window: 7,
        hot_blocks: 4,
        sequential_pages: 1,
        ..LAST
    },
    LastRules {
        hot_window_adaptive: true,
        hot_blocks: 2,
        cold_blocks: 6,
        sequential_pages: 9,
        ..LAST
    },
];

impl Rules for LastRules {
    fn log_blocks(&self) -> usize {
        self.sequential_blocks + self.hot_blocks + self.cold_blocks
    }

    fn idle_blocks(&self) -> usize {
        self.idle_blocks
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ftl.scheme", "last".to_owned()),
            ("ftl.sequential_pages", self.sequential_pages.to_string()),
            ("ftl.sequential_blocks", self.sequential_blocks.to_string()),
            ("ftl.hot_blocks", self.hot_blocks.to_string()),
            ("ftl.cold_blocks", self.cold_blocks.to_string()),
            ("ftl.hot_window", self.hot_window.to_string()),
            ("ftl.hot_window_adaptive", self.hot_window_adaptive.to_string()),
        ]
    }

    fn reference(&self, shape: Shape) -> Box<dyn Reference> {
        Box::new(Last::new(shape, *self))
    }
}

#[test]
fn last_does_what_its_rules_say() {
    let Summary { mut counts, resized } = run_all(VARIANTS);
    assert_eq!(counts.remove("migrated"), Some(0), "LAST migrates nothing");
    assert!(counts.values().all(|&count| count > 0), "{counts:?}");
    assert!(resized.is_empty(), "the areas of LAST have fixed sizes");
}
