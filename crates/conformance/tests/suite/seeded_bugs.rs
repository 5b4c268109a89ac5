//! Checks that the swarm finds seeded bugs, and that the same cases find nothing without a bug.

use flashatlas_conformance::swarm::Swarm;
use flashatlas_host::STANDARD;
use flashatlas_types::SeededBug;

/// Bugs, each with a number of cases that is enough to find the bug.
const CASES: &[(SeededBug, u64)] = &[
    (SeededBug::SkipSequence, 40),
    (SeededBug::FlushWithoutCache, 40),
    (SeededBug::FuaIgnored, 40),
    (SeededBug::DropTrims, 120),
    (SeededBug::ReuseBadBlock, 40),
    (SeededBug::TakenForAlike, 40),
];

#[test]
fn the_swarm_finds_seeded_bugs() {
    let swarm = Swarm::over(&STANDARD);
    let found = |bug: Option<SeededBug>, cases: u64| {
        SeededBug::activate(bug);
        let (_, found) = swarm.run_all(1..cases + 1, &mut |_| true);
        SeededBug::activate(None);
        (found.len(), found.first().map(|finding| finding.id))
    };
    // a bug may cause panics, whose messages are not printed because the swarm reports them
    std::panic::set_hook(Box::new(|_| {}));
    assert_eq!(found(None, 40), (0, None));
    let unseen: Vec<String> = CASES
        .iter()
        .map(|&(bug, cases)| (bug, cases, found(Some(bug), cases)))
        .inspect(|(bug, cases, found)| println!("{bug:?}: {found:?} of {cases}"))
        .filter(|(_, _, (findings, _))| *findings == 0)
        .map(|(bug, cases, _)| format!("{bug:?} in {cases} cases"))
        .collect();
    assert!(unseen.is_empty(), "unseen: {unseen:?}");
}
