//! Each canary, let loose, is found; without one, the same runs find nothing. If a canary goes
//! unseen, so would a bug like it.

use flashatlas_crash::{Plan, run};
use flashatlas_types::Canary;

/// A bug, and where it is looked for: schemes (after the layers over them), stores, geometries,
/// workloads, depth, steps.
type Case = (Canary, &'static str, &'static str, &'static str, &'static str, u32, u32);

const CASES: &[Case] = &[
    (Canary::EraseBeforeLastCopy, "page", "dram", "mini", "collect", 1, 60),
    (Canary::SkipSequence, "page,bast", "dram,-", "mini", "random", 1, 60),
    (Canary::AcceptTorn, "page", "dram", "mini", "random", 1, 60),
    (Canary::ReadOnce, "page", "dftl", "mini", "random", 1, 60),
    (Canary::MapBeforeData, "page", "dftl", "square", "random", 1, 60),
    (Canary::TrustStaleMap, "page", "dftl", "square", "random", 1, 60),
    (Canary::ReplayTooLate, "page", "demand,dram", "square", "random", 1, 60),
    (Canary::DropTrims, "page", "sftl", "square", "trim", 1, 60),
    (Canary::EraseBeforeMap, "page", "nvm-hybrid.5,dram.4,dftl", "square", "collect,trim", 1, 60),
    (Canary::DropTrimRecord, "fast,block", "-", "mini", "trim", 1, 60),
    (Canary::NvmInPlace, "page", "nvm-hybrid", "square", "trim,map-pages", 1, 60),
    (Canary::NvmWithoutFence, "page", "nvm-hybrid", "square", "trim,map-pages", 1, 60),
    (Canary::NvmWithoutChecksum, "page", "nvm-hybrid", "square", "trim,map-pages", 1, 60),
    (
        Canary::NumbersBeginAgain,
        "page",
        "nvm-hybrid",
        "mini,square",
        "trim,map-pages,random",
        1,
        60,
    ),
    (Canary::CloseOpenBlocks, "page", "dram", "square", "collect", 1, 60),
    (Canary::KeepUnreadable, "page", "demand", "square", "random,collect", 2, 160),
    (Canary::WithoutSeal, "block,bast", "-", "mini", "random", 1, 60),
    (Canary::FlushWithoutCache, "page", "dram", "square", "random", 1, 60),
    (Canary::FuaIgnored, "page", "dram", "square", "random", 1, 60),
    (Canary::ReuseBadBlock, "page", "dram", "mini", "random", 1, 60),
    (Canary::SpareWithoutCopy, "page,mast", "dftl,-", "mini", "random", 1, 60),
    (Canary::HideDamage, "page,fast", "dram,-", "mini", "random", 1, 60),
    (Canary::CopyTwice, "block", "-", "mini,square", "collect,random", 1, 60),
    (Canary::ReuseVacated, "hard/page", "dram", "mini", "random,collect", 1, 160),
    (Canary::RecordBeforeData, "hard/page", "dram", "square", "random", 1, 160),
    (Canary::CheckpointBeforeChunks, "hard/page", "dram", "square", "random,collect", 1, 160),
    (Canary::DropTrims, "hard/page", "dram", "mini", "trim", 1, 160),
    (Canary::DropTrimRecord, "hard/page", "dram", "mini", "trim", 1, 160),
];

fn list(names: &str) -> Vec<String> {
    names.split(',').map(str::to_owned).collect()
}

fn plan(&(_, schemes, stores, geometries, workloads, depth, steps): &Case) -> Plan {
    let (layers, schemes) = schemes.split_once('/').unwrap_or(("-", schemes));
    Plan {
        layers: list(layers),
        schemes: list(schemes),
        stores: list(stores),
        geometries: list(geometries),
        workloads: list(workloads),
        depth,
        steps,
        minimise: false,
        ..Plan::default()
    }
}

#[test]
fn every_canary_is_found_and_nothing_else() {
    let mut unseen = Vec::new();
    for case in CASES {
        Canary::choose(None);
        let clean =
            run(&plan(case), &mut |_, _| true).unwrap_or_else(|e| panic!("{:?}: {e}", case.0));
        assert_eq!(clean.violations(), 0, "{:?}: without the canary: {:?}", case.0, clean.found);
        Canary::choose(Some(case.0));
        let sung =
            run(&plan(case), &mut |_, _| true).unwrap_or_else(|e| panic!("{:?}: {e}", case.0));
        Canary::choose(None);
        match sung.found.first() {
            Some(first) => println!("{:?}: {} {}", case.0, first.id, first.failure),
            None => unseen.push(case.0),
        }
    }
    assert!(unseen.is_empty(), "unseen: {unseen:?}");
    assert!(CASES.len() >= 12);
}
