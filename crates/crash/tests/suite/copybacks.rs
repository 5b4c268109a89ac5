//! Power failures in copies that stay inside their dies: in collection with and without an SLC
//! cache, beside a defence of lower pages, with map pages on flash, with bit errors, and in a row.

use crate::plans::{list, plan};
use flashatlas_crash::{CrashSpec, Report, run};
use flashatlas_host::STANDARD;

const COPYBACK: &[&str] = &["ftl.copyback=same-plane", "ftl.copyback_max=2"];

/// Frames of several units, of which only whole ones are copied back.
const UNITS: &[&str] = &["map.unit=1KiB"];

const MLC: &[&str] = &["drive.cell=mlc", "drive.pages=12"];

/// An SLC cache, whose data is folded. A frame of a native block is a whole word line.
const SLC: &[&str] = &[
    "drive.cell=tlc",
    "drive.pages=12",
    "drive.program_unit=word-line",
    "drive.spare_bytes=256",
    "cache.bytes=64KiB",
    "ftl.gc_pace=burst",
    "ftl.slc=hybrid",
    "ftl.slc_static=1",
    "timing.t_read_slc=20us",
    "timing.t_program_slc=75us",
];

const ERRORS: &[&str] = &[
    "drive.cell=tlc",
    "drive.pages=12",
    "ecc.codeword=1KiB",
    "errors.model=tlc-72l",
    "errors.cycles=100",
];

/// Lets the power fail in workloads on page-mapped drives.
pub fn cut(stores: &[&str], more: &[&[&str]], geometries: &[&str], depth: u32) -> Report {
    // later variants of the scheme are tried with the store that writes no map pages; the fourth
    // one is then plain page mapping, if it collects in bursts
    let scheme = if stores == ["dram"] { "page.4" } else { "page" };
    let burst = if stores == ["dram"] { &["ftl.gc_pace=burst"][..] } else { &[] };
    let all = COPYBACK.iter().chain(burst).chain(more.iter().copied().flatten());
    let spec = CrashSpec {
        geometries: list(geometries),
        workloads: list(&["random", "collect", "hot-cold", "trim"]),
        set: all.map(|&s| s.to_owned()).collect(),
        depth,
        ..plan(&[scheme], stores)
    };
    run(&STANDARD, &spec, &mut |_, _| true).unwrap_or_else(|e| panic!("{stores:?} {more:?}: {e}"))
}

#[test]
fn power_may_fail_in_a_copyback() {
    let backup: &[&str] = &["ftl.lower_pages=backup"];
    let all: [&[&[&str]]; 5] = [&[], &[UNITS], &[MLC, backup], &[SLC], &[ERRORS]];
    for more in all {
        let found = cut(&["dram"], more, &["mini", "square", "lanes"], 1);
        assert!(found.violations() == 0, "{more:?}: {:?}", found.found);
    }
}

#[test]
fn power_may_fail_in_a_copyback_beside_map_pages() {
    for store in ["demand", "dftl", "leaftl", "nvm-hybrid", "lpmt"] {
        let found = cut(&[store], &[], &["square"], 1);
        assert!(found.violations() == 0, "{store}: {:?}", found.found);
    }
}

#[test]
fn power_may_fail_in_a_copyback_twice() {
    for more in [&[][..], &[SLC]] {
        let found = cut(&["dram"], more, &["square"], 2);
        assert!(found.violations() == 0, "{more:?}: {:?}", found.found);
    }
}
