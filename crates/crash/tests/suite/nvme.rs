//! Power failures behind an NVMe controller.

use crate::plans::separated;
use flashatlas_crash::{CrashError, CrashSpec, Report, rerun, run};
use flashatlas_fixtures::proofs;
use flashatlas_host::STANDARD;

fn plan(stores: &str, geometry: &str) -> CrashSpec {
    CrashSpec {
        interface: "nvme".into(),
        layers: separated("-"),
        schemes: separated("page,bast"),
        stores: separated(stores),
        geometries: separated(geometry),
        ..CrashSpec::default()
    }
}

fn report(plan: &CrashSpec) -> Report {
    run(&STANDARD, plan, &mut |_, _| true).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn no_promise_of_a_controller_is_broken() {
    let one_in = proofs::one_in() as u32;
    let report = report(&CrashSpec { one_in, ..plan("dram,lpmt,-", "mini,square,lanes") });
    assert!(report.found.is_empty(), "{:#?}", report.found);
    let sum = |of: fn(&flashatlas_crash::Tally) -> u64| -> u64 {
        report.rows.iter().map(|row| of(&row.tally)).sum()
    };
    // hundreds of operations in each of 4 workloads on 3 drives of 8 variants
    assert!(sum(|t| t.cuts()) > 50_000 / u64::from(one_in), "{}", sum(|t| t.cuts()));
    assert!(sum(|t| t.torn) * 2 > sum(|t| t.cuts()) && sum(|t| t.acknowledged) > 0);
    assert_eq!(sum(|t| t.mounts), 2 * sum(|t| t.cuts()), "each drive is mounted twice");
    assert_eq!(sum(|t| t.failed_parts) + sum(|t| t.reordered), 0, "the drive's own tests");
}

#[test]
fn mounts_are_cut_behind_a_controller_too() {
    let one_in = proofs::one_in() as u32;
    let deep = CrashSpec { depth: 2, steps: 30, one_in, ..plan("-", "square") };
    let report = report(&deep);
    assert!(report.found.is_empty(), "{:#?}", report.found);
    assert!(report.rows[0].tally.deeper > 100, "{:?}", report.rows[0].tally);
}

#[test]
fn what_is_not_there_behind_a_controller_is_refused_by_name() {
    let refused = |plan: CrashSpec| {
        let error: CrashError = run(&STANDARD, &plan, &mut |_, _| true).unwrap_err();
        error.to_string()
    };
    let usual = || plan("dram", "mini");
    let error = refused(CrashSpec { interface: "nvm".into(), ..usual() });
    assert!(error.contains("`nvm`") && error.contains("device, nvme"), "{error}");
    let error = refused(CrashSpec { workloads: separated("random"), ..usual() });
    assert!(error.contains("`random`") && error.contains("nvme-switch"), "{error}");
    let nvme_alone = CrashSpec { interface: "device".into(), ..usual() };
    let error = refused(CrashSpec { workloads: separated("nvme-switch"), ..nvme_alone });
    assert!(error.contains("`nvme-switch`") && error.contains("map-pages"), "{error}");
    let error = refused(CrashSpec { faults: "torn-erase,paired-pages".into(), ..usual() });
    assert!(error.contains("`paired-pages`") && error.contains("nvm-lines"), "{error}");
}

#[test]
fn an_identity_names_a_cut_behind_a_controller() {
    // operation 0 is the first record of the controller, which the power-on keeps
    for there in ["0", "0g", "0p", "1a", "40"] {
        let id = format!("page:dram:nvme-switch@mini:1:{there}");
        assert!(rerun(&STANDARD, &id, &[]).unwrap_or_else(|e| panic!("{id}: {e}")).is_none());
    }
    for absent in ["0e", "100000", "3fp", "40m"] {
        let id = format!("page:dram:nvme-switch@mini:1:{absent}");
        let error = rerun(&STANDARD, &id, &[]).unwrap_err().to_string();
        assert!(error.contains("no such failure or cut"), "{error}");
    }
}
