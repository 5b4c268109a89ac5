//! Tests that send random requests to random small drives and compare the drives with a plain
//! array. Every rule is checked after each request.

#[path = "../../../ftl/tests/suite/model/array.rs"]
mod array;

use array::{Model, step};
use flashatlas_device::Registry;
use flashatlas_fixtures::proofs;
use flashatlas_lpmt::{DEF, KINDS};
use proptest::prelude::*;

/// Drives with different shapes of the tables and different ways to search them.
const DRIVES: &[&[&str]] = &[
    &["map.store=lpmt", "lookup.ways=2", "lookup.banks=2", "dram.preset=table-1"],
    &[
        "map.store=lpmt",
        "lookup.policy=set-mod",
        "lookup.scan=pipelined",
        "lookup.hash=mixer",
        "cache.mode=write-through",
    ],
    // all pages in one chain of sets, and each page in an extent of its own
    &[
        "map.store=lpmt",
        "lookup.hash=division",
        "lookup.divisor=1",
        "lookup.ways=2",
        "lookup.banks=2",
        "lookup.extent_pages=1",
    ],
    &[
        "map.store=lpmt",
        "map.unit=1KiB",
        "lookup.secondary=apart",
        "lookup.block_tables=apart",
        "lookup.banks=2",
    ],
];

fn model(settings: &[&str], seed: u64) -> Model {
    let ftl = flashatlas_ftl::Registry { kinds: KINDS, ..Registry::DRIVES.ftl };
    let registry = Registry { ftl, ..Registry::DRIVES }.with(&DEF).unwrap();
    Model::of(&registry, settings, seed)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: proofs::cases(700) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_drive_is_an_array(
        drive in 0..DRIVES.len(),
        fill: bool,
        gap in 0u64..3,
        seed: u64,
        steps in prop::collection::vec(step(), 1..250),
    ) {
        model(DRIVES[drive], seed).run_drawn(fill, gap, steps);
    }
}

#[test]
fn long_runs_on_every_drive() {
    for settings in DRIVES {
        model(settings, 1).run_long();
    }
}

#[test]
fn a_mount_finds_what_was_flushed() {
    for settings in DRIVES {
        model(settings, 1).run_with_mounts();
    }
}
