//! What the swarm finds in our own parts: nothing but what is known.

use flashatlas_conformance::swarm::{Finding, Swarm};
use flashatlas_host::STANDARD;
use flashatlas_testing::proofs::one_in;

/// Findings that docs/RELIABILITY.md lists as open, under "What the swarm found".
fn is_known(finding: &Finding) -> bool {
    let without_roll_forward = finding.drive.contains("map.roll_forward=false")
        && finding.found.contains(" after a mount, allowed are ");
    let in_the_past =
        finding.drive.contains("layers=hard") && finding.found.contains("issued in the past");
    without_roll_forward || in_the_past
}

#[test]
fn cases_keep_their_promises() {
    let swarm = Swarm::over(&STANDARD);
    let count = 3000 / one_in() as u64;
    let (tally, found) = swarm.run_all(1..count + 1, &mut |_| true);
    let unknown: Vec<&Finding> = found.iter().filter(|finding| !is_known(finding)).collect();
    assert!(unknown.is_empty(), "{} of {count}: {unknown:#?}", unknown.len());
    assert!(tally.cases > count * 3 / 4, "{tally:?}");
    assert!(tally.mounts > count && tally.failed_operations > count / 10, "{tally:?}");
}

#[test]
fn a_number_draws_the_same_case_again() {
    let swarm = Swarm::over(&STANDARD);
    for id in 1..10 {
        assert_eq!(swarm.run(id), swarm.run(id));
    }
}
