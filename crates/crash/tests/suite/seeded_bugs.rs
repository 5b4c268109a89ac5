//! Checks that each seeded bug is found, and that the same runs find nothing without the bug.
//!
//! If a seeded bug were missed, a similar real bug would be missed, too.

use crate::trim_records::enumerate;
use flashatlas_crash::{CrashSpec, run};
use flashatlas_fixtures::proofs;
use flashatlas_host::STANDARD;
use flashatlas_types::SeededBug;

/// A bug, and the plan that must find it.
///
/// The plan consists of schemes (with layers before a `/`), stores, geometries, workloads, depth
/// and steps.
type Case = (SeededBug, &'static str, &'static str, &'static str, &'static str, u32, u32);

const CASES: &[Case] = &[
    (SeededBug::EraseBeforeLastCopy, "page", "dram", "mini", "collect", 1, 60),
    (SeededBug::SkipSequence, "page,bast", "dram,-", "mini", "random", 1, 60),
    (SeededBug::AcceptTorn, "page", "dram", "mini", "random", 1, 60),
    (SeededBug::ReadOnce, "page", "dftl", "mini", "random", 1, 60),
    (SeededBug::MapBeforeData, "page", "dftl", "square", "random", 1, 60),
    (SeededBug::TrustStaleMap, "page", "dftl", "square", "random", 1, 60),
    (SeededBug::ReplayTooLate, "page", "demand,dram", "square", "random", 1, 60),
    (SeededBug::DropTrims, "page", "sftl", "square", "trim", 1, 60),
    (
        SeededBug::EraseBeforeMap,
        "page",
        "nvm-hybrid.5,dram.4,dftl",
        "square",
        "collect,trim",
        1,
        60,
    ),
    (SeededBug::DropTrimRecord, "fast,block", "-", "mini", "trim", 1, 60),
    (SeededBug::NvmInPlace, "page", "nvm-hybrid", "square", "trim,map-pages", 1, 60),
    (SeededBug::NvmWithoutFence, "page", "nvm-hybrid", "square", "trim,map-pages", 1, 60),
    (SeededBug::NvmWithoutChecksum, "page", "nvm-hybrid", "square", "trim,map-pages", 1, 60),
    (
        SeededBug::NumbersBeginAgain,
        "page",
        "nvm-hybrid",
        "mini,square",
        "trim,map-pages,random",
        1,
        60,
    ),
    (SeededBug::CloseOpenBlocks, "page", "dram", "square", "collect", 1, 60),
    (SeededBug::KeepUnreadable, "page", "demand", "square", "random,collect", 2, 160),
    (SeededBug::WithoutSeal, "block,bast", "-", "mini", "random", 1, 60),
    (SeededBug::FlushWithoutCache, "page", "dram", "square", "random", 1, 60),
    (SeededBug::FuaIgnored, "page", "dram", "square", "random", 1, 60),
    (SeededBug::ReuseBadBlock, "page", "dram", "mini", "random", 1, 60),
    (SeededBug::SpareWithoutCopy, "page,mast", "dftl,-", "mini", "random", 1, 60),
    (SeededBug::HideDamage, "page,fast", "dram,-", "mini", "random", 1, 60),
    (SeededBug::CopyTwice, "block", "-", "mini,square", "collect,random", 1, 60),
    (SeededBug::ReuseVacated, "hard/page", "dram", "mini", "random,collect", 1, 160),
    (SeededBug::RecordBeforeData, "hard/page", "dram", "square", "random", 1, 160),
    (SeededBug::CheckpointBeforeChunks, "hard/page", "dram", "square", "random,collect", 1, 160),
    (SeededBug::DropTrims, "hard/page", "dram", "mini", "trim", 1, 160),
    (SeededBug::DropTrimRecord, "hard/page", "dram", "mini", "trim", 1, 160),
    (SeededBug::TakenForAlike, "mirror/page", "dram", "mini", "random", 1, 160),
];

fn list(names: &str) -> Vec<String> {
    names.split(',').map(str::to_owned).collect()
}

fn plan(&(_, schemes, stores, geometries, workloads, depth, steps): &Case) -> CrashSpec {
    let (layers, schemes) = schemes.split_once('/').unwrap_or(("-", schemes));
    CrashSpec {
        layers: list(layers),
        schemes: list(schemes),
        stores: list(stores),
        geometries: list(geometries),
        workloads: list(workloads),
        depth,
        steps,
        one_in: proofs::one_in() as u32,
        minimise: false,
        ..CrashSpec::default()
    }
}

/// Looks for all bugs in a single test, because a bug is active in the whole process.
#[test]
fn every_seeded_bug_is_found_and_nothing_else() {
    let mut unseen = Vec::new();
    for case in CASES {
        let run_plan = || {
            run(&STANDARD, &plan(case), &mut |_, _| true)
                .unwrap_or_else(|e| panic!("{:?}: {e}", case.0))
        };
        SeededBug::activate(None);
        let clean = run_plan();
        assert_eq!(clean.violations(), 0, "{:?}: without the bug: {:?}", case.0, clean.found);
        SeededBug::activate(Some(case.0));
        let broken = run_plan();
        match broken.found.first() {
            Some(first) => println!("{:?}: {} {}", case.0, first.id, first.failure),
            None => unseen.push(case.0),
        }
    }
    let mut failures = Vec::new();
    SeededBug::activate(Some(SeededBug::HalfTrimRecord));
    enumerate(&mut failures);
    SeededBug::activate(None);
    if !failures.iter().any(|(_, f)| f.promise == "R3") {
        unseen.push(SeededBug::HalfTrimRecord);
    }
    assert!(unseen.is_empty(), "unseen: {unseen:?}");
}
