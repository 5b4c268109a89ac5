//! What the swarm finds in our own parts: nothing.

use flashatlas_conformance::swarm::Swarm;
use flashatlas_host::STANDARD;
use flashatlas_testing::proofs::one_in;

#[test]
fn cases_keep_their_promises() {
    let swarm = Swarm::over(&STANDARD);
    // on two cores half a minute of `make test`; `make swarm` goes on for an hour
    let count = 10_000 / one_in() as u64;
    let (tally, found) = swarm.run_all(1..count + 1, &mut |_| true);
    assert!(found.is_empty(), "{} of {count}: {found:#?}", found.len());
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
