//! Checks that each seeded bug is found, and that the same runs find nothing without the bug.
//!
//! If a seeded bug were missed, a similar real bug would be missed, too.

use crate::lower_pages::{ORDERS, cut};
use crate::plans::separated;
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
    (SeededBug::ReclaimErasesEarly, "page.1", "dram.1", "mini", "random,collect", 1, 160),
    (SeededBug::CopyTwice, "block", "-", "mini,square", "collect,random", 1, 60),
    (SeededBug::ReuseVacated, "hard/page", "dram", "mini", "random,collect", 1, 160),
    (SeededBug::RecordBeforeData, "hard/page", "dram", "square", "random", 1, 160),
    (SeededBug::CheckpointBeforeChunks, "hard/page", "dram", "square", "random,collect", 1, 160),
    (SeededBug::DropTrims, "hard/page", "dram", "mini", "trim", 1, 160),
    (SeededBug::DropTrimRecord, "hard/page", "dram", "mini", "trim", 1, 160),
    (SeededBug::EraseSourceEarly, "page.6,page.7", "dram", "mini", "collect,hot-cold", 1, 60),
    (SeededBug::ForgetMode, "page.6", "dram", "mini,square", "random", 1, 60),
    (SeededBug::CopyLostAsZeros, "page.1", "dram.1", "mini,square", "collect,hot-cold", 1, 160),
    (SeededBug::TakenForAlike, "mirror/page", "dram", "mini", "random", 1, 160),
];

/// A bug of a controller, the store, geometry and workload that must find it under the scheme
/// `page`, and the promise that it breaks.
type NvmeCase = (SeededBug, &'static str, &'static str, &'static str, &'static str);

const NVME_CASES: &[NvmeCase] = &[
    (SeededBug::FuaNotPassed, "dram", "square", "nvme-cache", "N1"),
    (SeededBug::FlushNotPassed, "dram", "square", "nvme-cache", "N2"),
    (SeededBug::ShutdownWithoutFlush, "dram", "square", "nvme-record", "N2"),
    (SeededBug::CacheOffIgnored, "dram", "square", "nvme-switch", "N3"),
    (SeededBug::SwitchWithoutFlush, "dram", "square", "nvme-switch", "N3"),
    (SeededBug::SwitchOvertakes, "dram", "square", "nvme-switch", "N3"),
    (SeededBug::SwitchTooLate, "dram", "square", "nvme-switch", "N3"),
    (SeededBug::ZeroesForgotten, "lpmt", "mini", "nvme-zeroes", "N4"),
    (SeededBug::ZeroesNotDurable, "demand", "mini", "nvme-zeroes", "N4"),
    (SeededBug::TrimNotDurable, "demand", "square", "nvme-switch", "N4"),
    (SeededBug::UnitInPieces, "dram", "mini", "nvme-cache", "N5"),
    (SeededBug::SaveTooLate, "dram", "mini", "nvme-record", "N6"),
    (SeededBug::RecordInPlace, "dram", "mini", "nvme-record", "N7"),
    (SeededBug::UseNotNoted, "dram", "mini", "nvme-record", "N7"),
    (SeededBug::UseStaysNoted, "dram", "mini", "nvme-record", "N7"),
    (SeededBug::SeenNotKept, "dram", "mini", "nvme-record", "N7"),
    (SeededBug::CompareFirstBlock, "dram", "square", "nvme-cache", "N8"),
    (SeededBug::ReadFuaIgnored, "dram", "square", "nvme-cache", "N8"),
];

fn plan(&(bug, schemes, stores, geometries, workloads, depth, steps): &Case) -> CrashSpec {
    let (layers, schemes) = schemes.split_once('/').unwrap_or(("-", schemes));
    CrashSpec {
        layers: separated(layers),
        schemes: separated(schemes),
        stores: separated(stores),
        geometries: separated(geometries),
        workloads: separated(workloads),
        depth,
        steps,
        one_in: proofs::one_in() as u32,
        minimise: false,
        set: match bug {
            SeededBug::ReclaimErasesEarly => crate::bit_errors::reclaimed(),
            SeededBug::CopyLostAsZeros => crate::at_random::weak(),
            _ => Vec::new(),
        },
        ..CrashSpec::default()
    }
}

/// Returns a plan behind a controller. Its cuts are few, so all of them are tried.
fn nvme_plan(&(_, store, geometry, workload, _): &NvmeCase) -> CrashSpec {
    CrashSpec {
        interface: "nvme".into(),
        layers: separated("-"),
        schemes: separated("page.1"),
        stores: separated(&format!("{store}.1")),
        geometries: separated(geometry),
        workloads: separated(workload),
        seeds: 4,
        minimise: false,
        ..CrashSpec::default()
    }
}

/// Runs a plan without a bug, which must find nothing, and with it. Returns the failures.
fn found(bug: SeededBug, plan: &CrashSpec) -> Vec<String> {
    let run_plan =
        || run(&STANDARD, plan, &mut |_, _| true).unwrap_or_else(|e| panic!("{bug:?}: {e}"));
    SeededBug::activate(None);
    let clean = run_plan();
    assert_eq!(clean.violations(), 0, "{bug:?}: without the bug: {:?}", clean.found);
    SeededBug::activate(Some(bug));
    let broken = run_plan();
    if let Some(first) = broken.found.first() {
        println!("{bug:?}: {} {}", first.id, first.failure);
    }
    broken.found.into_iter().map(|finding| finding.failure).collect()
}

/// Looks for all bugs in a single test, because a bug is active in the whole process.
#[test]
fn every_seeded_bug_is_found_and_nothing_else() {
    let mut unseen = Vec::new();
    for case in CASES {
        if found(case.0, &plan(case)).is_empty() {
            unseen.push(case.0);
        }
    }
    for case in NVME_CASES {
        let failures = found(case.0, &nvme_plan(case));
        if !failures.iter().any(|failure| failure.starts_with(case.4)) {
            println!("{:?}: {failures:?}", case.0);
            unseen.push(case.0);
        }
    }
    let mut failures = Vec::new();
    SeededBug::activate(Some(SeededBug::HalfTrimRecord));
    enumerate(&mut failures);
    SeededBug::activate(None);
    if !failures.iter().any(|(_, f)| f.promise == "R3") {
        unseen.push(SeededBug::HalfTrimRecord);
    }
    SeededBug::activate(Some(SeededBug::RelyOnLowerPages));
    if cut(&ORDERS[0], "ftl.lower_pages=skip").violations() == 0 {
        unseen.push(SeededBug::RelyOnLowerPages);
    }
    SeededBug::activate(None);
    let folds = [crate::program_steps::SLC];
    for more in [&[][..], &folds] {
        assert_eq!(crate::program_steps::cut(more, &["square"], 1).violations(), 0, "{more:?}");
        SeededBug::activate(Some(SeededBug::ReleaseAtFirstStep));
        if crate::program_steps::cut(more, &["square"], 1).violations() == 0 {
            unseen.push(SeededBug::ReleaseAtFirstStep);
        }
        SeededBug::activate(None);
    }
    let copies = || crate::program_steps::cut(&[crate::program_steps::COPIES], &["square"], 1);
    assert_eq!(copies().violations(), 0);
    SeededBug::activate(Some(SeededBug::EraseFlushCopies));
    if copies().violations() == 0 {
        unseen.push(SeededBug::EraseFlushCopies);
    }
    SeededBug::activate(None);
    for bug in [SeededBug::ParityOfOldData, SeededBug::RebuildOfLost] {
        let stack: (&[&str], &[&str]) = (&["page.1"], &["dram.1"]);
        let parity = || crate::parity::cut(stack, &["square"], &[], 1).violations();
        SeededBug::activate(None);
        assert_eq!(parity(), 0);
        SeededBug::activate(Some(bug));
        if parity() == 0 {
            unseen.push(bug);
        }
        SeededBug::activate(None);
    }
    // a mount with map pages on flash reads the spare areas of later programs alone
    let copybacks = || crate::copybacks::cut(&["demand"], &[], &["square"], 1).violations();
    assert_eq!(copybacks(), 0);
    SeededBug::activate(Some(SeededBug::CopybackKeepsNumber));
    if copybacks() == 0 {
        unseen.push(SeededBug::CopybackKeepsNumber);
    }
    SeededBug::activate(None);
    assert!(unseen.is_empty(), "unseen: {unseen:?}");
}
