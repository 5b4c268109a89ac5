//! The defences of lower pages: flushed data survives power failures in programs that destroy
//! earlier pages of the same cells. Without a defence, flushed data is lost.

use crate::plans::{list, plan};
use flashatlas_crash::{CrashSpec, Report, run};
use flashatlas_host::STANDARD;

/// Orders of pages, with the cells and the pages of a block that they need.
pub const ORDERS: [[&str; 3]; 4] = [
    ["drive.cell=mlc", "drive.page_order=consecutive", "drive.pages=16"],
    ["drive.cell=mlc", "drive.page_order=shadow", "drive.pages=16"],
    ["drive.cell=mlc", "drive.page_order=shadow-even-odd", "drive.pages=16"],
    ["drive.cell=tlc", "drive.page_order=shadow-even-odd", "drive.pages=36"],
];

/// Settings of an SLC cache.
const SLC: [&str; 4] =
    ["ftl.slc=hybrid", "ftl.slc_static=1", "timing.t_read_slc=20us", "timing.t_program_slc=75us"];

/// Runs workloads on page-mapped drives without map pages, and lets the power fail.
pub fn cut(order: &[&str], defence: &str) -> Report {
    // later variants of the scheme are tried with the store that writes no map pages; the fourth
    // variant is then plain page mapping
    cut_of(&["page.3", "page.4"], order, &[defence, "ftl.gc_pace=burst"])
}

fn cut_of(schemes: &[&str], order: &[&str], more: &[&str]) -> Report {
    let set = order.iter().chain(more).map(|&setting| setting.to_owned()).collect();
    let spec = CrashSpec {
        geometries: list(&["square", "lanes"]),
        workloads: list(&["random", "collect", "hot-cold"]),
        faults: "torn-garbage,torn-once,torn-erase,paired-pages".to_owned(),
        set,
        ..plan(schemes, &["dram"])
    };
    run(&STANDARD, &spec, &mut |_, _| true).unwrap_or_else(|e| panic!("{order:?} {more:?}: {e}"))
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

#[test]
fn flushed_data_survives_beside_an_slc_cache() {
    for order in ORDERS {
        for defence in ["ftl.lower_pages=skip", "ftl.lower_pages=backup"] {
            let more: Vec<&str> = SLC.into_iter().chain([defence, "ftl.gc_pace=burst"]).collect();
            let found = cut_of(&["page.4"], &order, &more);
            assert!(found.violations() == 0, "{order:?} {defence}: {:?}", found.found);
        }
    }
}
