//! The defences of lower pages: flushed data survives power failures in programs that destroy
//! earlier pages of the same cells. Without a defence, flushed data is lost.

use flashatlas_crash::{CrashSpec, Report, run};
use flashatlas_fixtures::proofs;
use flashatlas_host::STANDARD;

/// Orders of pages, with the cells and the pages of a block that they need.
pub const ORDERS: [[&str; 3]; 4] = [
    ["drive.cell=mlc", "drive.page_order=consecutive", "drive.pages=16"],
    ["drive.cell=mlc", "drive.page_order=shadow", "drive.pages=16"],
    ["drive.cell=mlc", "drive.page_order=shadow-even-odd", "drive.pages=16"],
    ["drive.cell=tlc", "drive.page_order=shadow-even-odd", "drive.pages=36"],
];

/// Runs workloads on page-mapped drives without map pages, and lets the power fail.
pub fn cut(order: &[&str], defence: &str) -> Report {
    // later variants of the scheme are tried with the store that writes no map pages; the fourth
    // variant is then plain page mapping
    let more = [defence, "ftl.gc_pace=burst"];
    let set = order.iter().copied().chain(more).map(str::to_owned).collect();
    let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let spec = CrashSpec {
        layers: list(&["-"]),
        schemes: list(&["page.3", "page.4"]),
        stores: list(&["dram"]),
        geometries: list(&["square", "lanes"]),
        workloads: list(&["random", "collect", "hot-cold"]),
        faults: "torn-garbage,torn-once,torn-erase,paired-pages".to_owned(),
        set,
        one_in: proofs::one_in() as u32,
        minimise: false,
        ..CrashSpec::default()
    };
    run(&STANDARD, &spec, &mut |_, _| true).unwrap_or_else(|e| panic!("{order:?} {defence}: {e}"))
}

#[test]
fn flushed_data_survives_with_each_defence() {
    for order in ORDERS {
        for defence in ["ftl.lower_pages=skip", "ftl.lower_pages=backup", "nand.plp_bytes=1MiB"] {
            let found = cut(&order, defence);
            assert!(found.violations() == 0, "{order:?} {defence}: {:?}", found.found);
        }
    }
}
