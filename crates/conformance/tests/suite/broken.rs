//! Parts that break one promise each.
//!
//! The suite must name the broken promise, and a command that shows the fault.

use crate::standard;
use flashatlas_conformance::{Effort, Outcome, check};
use flashatlas_ftl::victims::{Candidates, Moment, VictimDef, VictimPolicy};
use flashatlas_sim::{AnyPart, Origin};
use flashatlas_types::LocalBlock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Fault of a policy of these tests.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// The policy picks blocks that are not closed.
    Astray,
    /// The policy picks no block although collecting a block would free space.
    Stingy,
    /// The policy's picks depend on earlier runs.
    Fickle,
}

struct Policy {
    closed: Vec<LocalBlock>,
    wrong: Wrong,
}

static ASKED: AtomicU32 = AtomicU32::new(0);

impl VictimPolicy for Policy {
    fn closed(&mut self, block: LocalBlock, _: u32, _: Moment) {
        self.closed.push(block);
    }

    fn invalidated(&mut self, _: LocalBlock, _: u32, _: Moment) {}

    fn removed(&mut self, block: LocalBlock) {
        self.closed.retain(|&b| b != block);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        let frees = |b: &&LocalBlock| lane.valid[**b] < lane.slots;
        let freeing: Vec<LocalBlock> = self.closed.iter().filter(frees).copied().collect();
        match self.wrong {
            Wrong::Nothing => freeing.first().copied(),
            Wrong::Astray => (0..).map(LocalBlock::new).find(|b| !self.closed.contains(b)),
            Wrong::Stingy => None,
            Wrong::Fickle => {
                let n = ASKED.fetch_add(7919, Relaxed) as usize;
                freeing.get(n % freeing.len().max(1)).copied()
            }
        }
    }
}

macro_rules! policy {
    ($name:ident, $text:literal, $wrong:expr) => {
        const $name: VictimDef = VictimDef {
            name: $text,
            summary: "a policy of these tests",
            paper: "none",
            params: &[],
            build: &|_, _, _| Box::new(Policy { closed: Vec::new(), wrong: $wrong }),
            steady: None,
        };
    };
}

policy!(RIGHT, "right", Wrong::Nothing);
policy!(ASTRAY, "astray", Wrong::Astray);
policy!(STINGY, "stingy", Wrong::Stingy);
policy!(FICKLE, "fickle", Wrong::Fickle);
const NAMELESS: VictimDef = VictimDef { name: "No Name", summary: "", ..RIGHT };

/// Returns the name, finding and command of each broken promise of a policy.
fn broken(def: &'static VictimDef) -> Vec<(&'static str, String, String)> {
    let origin = Origin { distribution: "test".into(), version: "0".into(), digest: "none".into() };
    let parts = standard().with(AnyPart::from(def), &origin).unwrap();
    let report =
        check(&parts, def.name, &Effort { one_in: 200, ..Effort::default() }, &mut |_| true)
            .unwrap();
    let found = report.promises.into_iter().filter_map(|p| match p.outcome {
        Outcome::Broken { found, rerun } => Some((p.promise, found, rerun)),
        _ => None,
    });
    found.collect()
}

#[test]
fn a_policy_that_is_right_breaks_nothing() {
    assert_eq!(broken(&RIGHT), []);
}

#[test]
fn what_is_broken_is_named() {
    let astray = broken(&ASTRAY);
    assert!(astray[0].1.contains("victim policy `astray`: picked block "), "{astray:?}");
    let stingy = broken(&STINGY);
    assert!(stingy.iter().any(|(_, found, _)| found.contains("no space")), "{stingy:?}");
    let (promise, found, rerun) = &broken(&FICKLE)[0];
    assert_eq!(*promise, "the same answers twice");
    assert!(found.starts_with("two runs of one seed differ in `"), "{found}");
    assert!(rerun.starts_with("flashatlas run -d tiny ") && rerun.contains("=fickle"), "{rerun}");
    let (promise, found, _) = &broken(&NAMELESS)[0];
    assert_eq!(*promise, "declared");
    assert!(found.contains("the name of victim policy `No Name`"), "{found}");
}

#[test]
fn an_unknown_name_has_a_near_one() {
    let error = check(&standard(), "gredy", &Effort::default(), &mut |_| true).unwrap_err();
    assert_eq!(error.to_string(), "check: no part is called `gredy`; did you mean `greedy`?");
}
