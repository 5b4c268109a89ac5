//! Failures at random while the power fails: programs, erases and pages, several in one run, in the
//! workload, in the mounts after cuts, and while the drive is written on.

use crate::plans::{list, plan};
use flashatlas_crash::{CrashError, CrashSpec, Report, run};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_host::STANDARD;

/// Settings of a drive whose programs, erases and reads fail at random. A spare block takes the
/// place of most blocks that fail.
const FAILING: &[&str] = &[
    "errors.program_failures=2000",
    "errors.erase_failures=10000",
    "errors.unreadable=4000",
    "nand.spare_blocks=4",
];

/// Settings of a drive whose code corrects 72 of 8,192 bits and no more, after one retry. Of the
/// codewords, which have 55 wrong bits in the mean (and 7.4 as the deviation), one in a hundred has
/// more: such a page is lost as soon as it is programmed.
const WEAK: &[&str] = &[
    "errors.model=tlc-72l",
    "errors.e=0.0067",
    "errors.g=0",
    "errors.block_spread=0",
    "ecc.code=ldpc",
    "ecc.retry_steps=1",
];

/// Stores in memory and on flash, without the variants that read no spare areas, which errors
/// refuse (`map.roll_forward = false`).
const STORES: &[&str] =
    &["-", "dram.1", "dram.2", "dram.3", "dram.6", "demand", "nvm-hybrid.1", "nvm-hybrid.2"];

/// Returns [`WEAK`] for the tests of seeded bugs.
#[cfg(feature = "seeded-bugs")]
pub fn weak() -> Vec<String> {
    WEAK.iter().map(|&setting| setting.to_owned()).collect()
}

fn spec(set: &[&str], schemes: &[&str], stores: &[&str], every: u32) -> CrashSpec {
    let all = one_in() == 1;
    CrashSpec {
        geometries: if all { Vec::new() } else { list(&["square"]) },
        workloads: if all { Vec::new() } else { list(&["random", "hot-cold", "trim"]) },
        steps: 80,
        set: list(set),
        one_in: every * one_in() as u32,
        ..plan(schemes, stores)
    }
}

fn tried(set: &[&str], schemes: &[&str], stores: &[&str], every: u32) -> Report {
    let spec = spec(set, schemes, stores, every);
    let report = run(&STANDARD, &spec, &mut |_, _| true).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.violations(), 0, "{set:?}: {:?}", report.found);
    report
}

fn cuts(report: &Report) -> u64 {
    report.rows.iter().map(|row| row.cuts).sum()
}

fn lost(report: &Report) -> u64 {
    report.rows.iter().map(|row| row.tally.lost_units).sum()
}

#[test]
fn parts_that_fail_at_random_keep_the_promises_in_every_scheme() {
    let schemes: Vec<&str> = STANDARD.ftl.schemes.iter().map(|scheme| scheme.name).collect();
    let report = tried(FAILING, &schemes, STORES, 3);
    assert!(cuts(&report) > 200 && lost(&report) > 50, "{} {}", cuts(&report), lost(&report));
}

#[test]
fn what_no_code_corrects_reads_as_an_error_across_mounts_in_every_scheme() {
    let schemes: Vec<&str> = STANDARD.ftl.schemes.iter().map(|scheme| scheme.name).collect();
    let report = tried(WEAK, &schemes, STORES, 3);
    assert!(cuts(&report) > 200 && lost(&report) > 50, "{} {}", cuts(&report), lost(&report));
}

#[test]
fn failures_at_random_are_refused_by_name_where_nothing_is_promised() {
    let refused = |plan: CrashSpec| match run(&STANDARD, &plan, &mut |_, _| true) {
        Err(error @ CrashError::AtRandom { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for key in ["errors.program_failures", "errors.erase_failures", "errors.unreadable"] {
        let on = format!("{key}=100");
        let spec = spec(&[&on], &["page"], &["dram"], 1);
        let all = CrashSpec { layers: Vec::new(), workloads: Vec::new(), ..spec };
        let text = refused(all.clone());
        assert!(text.starts_with(key) && text.ends_with("use --layers -"), "{text}");
        let text = refused(CrashSpec { interface: "nvme".into(), ..all });
        assert!(text.starts_with(key) && text.ends_with("use --interface device"), "{text}");
    }
}

/// A program of the map fails in the further writes, and a read on the way to the spare block takes
/// another page of the map.
#[test]
fn a_map_page_may_be_lost_on_the_way_to_a_spare_block() {
    let case = "page:demand.2:sequential*80@square:1:117p";
    let found = flashatlas_crash::rerun(&STANDARD, case, &list(FAILING)).unwrap();
    assert!(found.is_none(), "{}", found.unwrap().failure);
}
