//! Power failures of drives whose flash has errors: retries and read reclaim.

use crate::plans::{list, plan};
use flashatlas_crash::{CrashSpec, run};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_host::STANDARD;

/// Returns the settings of a drive that reads many pages again and reclaims blocks often.
///
/// A codeword has 8192 x 0.008 = 66 wrong bits in the mean, and 72 can be corrected: every fifth
/// read needs a soft decoding, which corrects 120.
pub fn reclaimed() -> Vec<String> {
    [
        "errors.model=tlc-72l",
        "errors.e=0.008",
        "errors.g=0",
        "errors.block_spread=0.1",
        "ecc.retry_steps=2",
        "ftl.read_reclaim=12",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn tried(set: Vec<String>, schemes: &[&str], stores: &[&str], depth: u32) -> u64 {
    let spec = CrashSpec {
        set,
        depth,
        geometries: if depth > 1 { list(&["square"]) } else { Vec::new() },
        steps: if depth > 1 { 60 } else { 160 },
        one_in: 4 * one_in() as u32,
        ..plan(schemes, stores)
    };
    let report = run(&STANDARD, &spec, &mut |_, _| true).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.violations(), 0, "{:?}: {:?}", spec.set, report.found);
    let lost: u64 = report.rows.iter().map(|row| row.tally.lost_units).sum();
    assert_eq!(lost, 0, "the code corrects all wrong bits");
    report.rows.iter().map(|row| row.cuts).sum()
}

#[test]
fn power_may_fail_between_retries_and_in_a_reclaim() {
    let cuts = tried(reclaimed(), &["page.1"], &["dram.1"], 1);
    let again = tried(reclaimed(), &["page.1"], &["dram.1"], 2);
    assert!(cuts > 50 && again > 10, "{cuts} {again}");
}

#[test]
fn every_scheme_takes_retries() {
    let mut set = reclaimed();
    set.retain(|setting| !setting.starts_with("ftl."));
    let mut schemes = Vec::new();
    for scheme in STANDARD.ftl.schemes.iter() {
        schemes
            .extend((0..scheme.small.len().max(1)).map(|n| format!("{}.{}", scheme.name, n + 1)));
    }
    let schemes: Vec<&str> = schemes.iter().map(String::as_str).collect();
    // the other variants of `dram` read no spare areas (map.roll_forward), which errors refuse
    let stores = ["-", "dram.1", "dram.2", "dram.3", "dram.6", "dftl"];
    assert!(tried(set, &schemes, &stores, 1) > 250);
}

/// Blocks of the cache are folded because of their reads, and the power fails in the folds. Pages
/// in SLC mode need as many retries as others.
#[test]
fn power_may_fail_in_a_fold_that_reads_have_caused() {
    let mut set = reclaimed();
    set.extend(["errors.slc_factor=1", "ftl.slc_keep=9", "ftl.refresh=0.99"].map(str::to_owned));
    assert!(tried(set, &["page.6", "page.7"], &["dram"], 1) > 50);
}

/// Every defence of lower pages, and every order, beside an SLC cache and errors. With kinds that
/// differ, soft decoding corrects more: the worst pages have 76 wrong bits in the mean, and one in
/// a million of their codewords has more than 120.
#[test]
fn defences_and_orders_stand_beside_errors_in_two_modes() {
    for more in [
        &["ftl.lower_pages=skip"][..],
        &["ftl.lower_pages=backup", "drive.page_order=shadow", "drive.pages=16"],
        &[
            "drive.page_order=shadow-even-odd",
            "drive.pages=16",
            "errors.page_spread=1.05",
            "ecc.soft_correctable=160",
        ],
    ] {
        let mut set = reclaimed();
        set.extend(more.iter().map(|&setting| setting.to_owned()));
        assert!(tried(set, &["page.6"], &["dram"], 1) > 20, "{more:?}");
    }
}
