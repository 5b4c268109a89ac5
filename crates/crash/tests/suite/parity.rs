//! Power failures of drives with parity over the dies of a frame, and frames that lose one or two
//! of their parts.

use crate::plans::{list, plan};
use flashatlas_crash::{CrashSpec, Report, run};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_host::STANDARD;

/// Settings of a drive whose frames are on four dies, one of them with parity. Its code corrects
/// the wrong bits of new flash, so nothing is lost by itself.
const PARITY: &[&str] = &[
    "drive.channels=2",
    "drive.ways=2",
    "drive.frame_channels=2",
    "drive.frame_ways=2",
    "ecc.parity=die",
    "errors.model=tlc-72l",
];

/// Runs a plan with parity and more settings. It tries one power failure in `one_in`.
pub fn cut(
    (schemes, stores): (&[&str], &[&str]),
    geometries: &[&str],
    more: &[&str],
    one_in: u32,
) -> Report {
    let set = PARITY.iter().chain(more).map(|&setting| setting.to_owned()).collect();
    let geometries = list(geometries);
    let spec = CrashSpec { set, geometries, one_in, steps: 100, ..plan(schemes, stores) };
    run(&STANDARD, &spec, &mut |_, _| true).unwrap_or_else(|e| panic!("{e}"))
}

fn sample() -> u32 {
    4 * one_in() as u32
}

fn sound(report: &Report) -> (u64, u64) {
    assert_eq!(report.violations(), 0, "{:?}", report.found);
    let cuts = report.rows.iter().map(|row| row.cuts).sum();
    (cuts, report.rows.iter().map(|row| row.tally.failed_parts).sum())
}

const WHOLE: &str = "map.unit=6KiB";

#[test]
fn a_lost_die_of_a_frame_loses_nothing_under_page_mapping() {
    let stores = ["dram.1", "dram.2", "dram.6", "demand", "nvm-hybrid.1"];
    let (cuts, failed) = sound(&cut((&["page.1"], &stores), &["mini", "square"], &[], sample()));
    assert!(cuts > 30 && failed > 10, "{cuts} {failed}");
}

#[test]
fn a_lost_die_of_a_frame_loses_nothing_under_any_scheme() {
    let schemes: Vec<&str> = STANDARD.ftl.schemes.iter().map(|scheme| scheme.name).collect();
    let more = [WHOLE, "cache.mode=write-through"];
    let (cuts, failed) = sound(&cut((&schemes, &["-", "dram.1"]), &["square"], &more, sample()));
    assert!(cuts > 50 && failed > 20, "{cuts} {failed}");
}

/// Reads fail at random, so that pages are rebuilt in the workload, in mounts and in collection. A
/// frame with two failures is lost.
#[test]
fn reads_may_fail_at_random_beside_parity() {
    let more = ["errors.unreadable=20000"];
    let (cuts, _) = sound(&cut((&["page.1", "page.6"], &["dram.1"]), &["square"], &more, sample()));
    assert!(cuts > 5, "{cuts}");
}
