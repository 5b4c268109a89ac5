//! Power failures of drives whose flash has errors: retries and read reclaim.

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
    let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let plan = CrashSpec {
        layers: list(&["-"]),
        schemes: list(schemes),
        stores: list(stores),
        set,
        depth,
        geometries: if depth > 1 { list(&["square"]) } else { Vec::new() },
        steps: if depth > 1 { 60 } else { 160 },
        one_in: 4 * one_in() as u32,
        minimise: false,
        ..CrashSpec::default()
    };
    let report = run(&STANDARD, &plan, &mut |_, _| true).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.violations(), 0, "{:?}", report.found);
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
    let is_refused = |setting: &&str| {
        ["ftl.slc=", "drive.program_unit=", "drive.page_order="]
            .iter()
            .any(|k| setting.starts_with(k))
    };
    let mut schemes = Vec::new();
    for scheme in STANDARD.ftl.schemes.iter() {
        for (variant, settings) in (0..).zip(scheme.small) {
            let name = scheme.name;
            if !settings.iter().any(is_refused) {
                schemes.push(format!("{name}.{variant}"));
            }
        }
    }
    let schemes: Vec<&str> = schemes.iter().map(String::as_str).collect();
    assert!(tried(set, &schemes, &["-", "dram", "dftl"], 1) > 250);
}
