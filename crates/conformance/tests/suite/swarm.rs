//! Checks that the swarm finds no fault in the project's own parts.

use flashatlas_conformance::swarm::{Feature, Swarm, run_on};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_host::STANDARD;

#[test]
fn cases_keep_their_promises() {
    let swarm = Swarm::over(&STANDARD);
    // this is a sample of `make test-full`, and `make swarm` takes an hour
    let count = if one_in() > 1 { 2_500 } else { 10_000 } / one_in() as u64;
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

/// Tries the drives and features with which long runs once found faults, with other seeds.
#[test]
fn what_was_found_once_is_not_found_again() {
    use Feature::{
        Classifier, Cuts, FailingErases, FailingPrograms, Flushes, Idle, Layers, Parameters, Parts,
        Trims, Wear,
    };
    let found: [(&str, &[Feature]); 5] = [
        // a power failure had interrupted a collection of map pages; the mount wrote map pages
        // before it repeated the collection, and had no room for them
        (
            "drive.blocks=54 drive.channels=1 drive.logical_pages=106 drive.pages=4 drive.ways=1 \
             cache.bytes=512 cache.mode=write-through ftl.low_water=7 map.store=nvm-hybrid \
             map.segment_bytes=128 map.full_share=1 map.dense_share=0.9 nvm.bytes=4096",
            &[Idle, Cuts, Flushes, Wear, Classifier, Parameters],
        ),
        // a mirror noticed a power failure while time passed, and treated it as the end of one
        // drive; only the blocks of this drive decided whether a drive may be worn out
        (
            "layers=mirror,hard drive.blocks=29 drive.channels=1 drive.logical_pages=64 \
             drive.pages=4 drive.ways=1 cache.mode=write-through hard.superpage=4096 \
             hard.page=2048 \
             hard.ring=8 hard.segment=6 hard.reserve=0.4 hard.low_water=3 mirror.reserve=32768 \
             mirror.resync=4096 map.store=demand map.page_bytes=64 map.cache_bytes=64 \
             nand.endurance=4 nand.spare_blocks=3",
            &[Layers, FailingErases, Wear, Parameters, Cuts, Flushes, Idle],
        ),
        // a fault of the harness: if the first drive of a mirror wears out before the other drives
        // hold the same versions, units that were not flushed may hold older versions again
        (
            "layers=mirror drive.blocks=34 drive.channels=1 drive.logical_pages=64 drive.pages=4 \
             drive.ways=1 cache.mode=write-through mirror.drives=3 mirror.reserve=32768 \
             mirror.resync=8192 mirror.read=first map.store=demand map.page_bytes=64 \
             map.cache_bytes=64 nand.endurance=7 nand.spare_blocks=3",
            &[Layers, Wear, Cuts, Flushes, FailingPrograms, Trims],
        ),
        (
            "layers=mirror drive.blocks=34 drive.channels=1 drive.logical_pages=64 drive.pages=4 \
             drive.ways=1 cache.mode=write-through mirror.drives=2 mirror.reserve=32768 \
             mirror.resync=4096 map.store=demand map.page_bytes=64 map.cache_bytes=64 \
             nand.endurance=6",
            &[Layers, Wear, Cuts, Parts, Idle, Flushes],
        ),
        // blocks of one frame: collection of map pages never packed the pages of several blocks,
        // although the blocks reserved for the map relied on it
        (
            "drive.blocks=40 drive.cell=qlc drive.channels=1 drive.logical_pages=64 drive.pages=4 \
             drive.program_unit=word-line drive.spare_bytes=512 drive.ways=1 \
             cache.mode=write-through ftl.gc_parallel=false map.store=demand map.page_bytes=64 \
             map.cache_bytes=64 nand.spare_blocks=3",
            &[Parameters, Trims, Idle, FailingPrograms],
        ),
    ];
    let mut older = 0;
    for (settings, features) in found {
        let settings: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
        let config = STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"));
        for id in 0..1000 / one_in() as u64 {
            let (tally, finding) = run_on(&config, features, id);
            assert_eq!(finding, None);
            older += tally.older;
        }
    }
    assert!(older > 0);
}
