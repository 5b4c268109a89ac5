//! Power failures between the steps of programs, with and without an SLC cache, for both kinds of
//! FLUSH, and in a row.

use crate::plans::{list, plan};
use flashatlas_crash::{CrashSpec, Report, run};
use flashatlas_host::STANDARD;

/// Settings of programs in two steps.
pub const TWO: &[&str] = &[
    "drive.cell=tlc",
    "drive.pages=12",
    "drive.program_unit=word-line",
    "drive.spare_bytes=256",
    "cache.bytes=64KiB",
    "ftl.gc_pace=burst",
    "ftl.program_steps=2",
    "timing.t_program_first=200us",
    "timing.t_program_second=300us",
];

const THREE: &[&str] = &["ftl.program_steps=3", "timing.t_program_third=400us"];

const PLP: &[&str] = &["ftl.flush=plp", "nand.plp_bytes=1MiB"];

/// Settings of a FLUSH that copies data to blocks in SLC mode: of its own, or of an SLC cache.
pub const COPIES: &[&str] =
    &["ftl.flush=slc", "ftl.flush_blocks=1", "timing.t_read_slc=20us", "timing.t_program_slc=75us"];

const COPIES_TO_CACHE: &[&str] = &["ftl.flush=slc"];

/// Every fault but failing programs: without a spare block, these stop the drive, and what is
/// between steps is lost.
const PLP_FAULTS: &str = "torn-garbage,torn-part,torn-once,torn-erase,paired-pages,erase-failure,\
                          grown-bad,factory-bad,unreadable";

/// Settings of an SLC cache, whose data is folded to word lines in steps.
pub const SLC: &[&str] =
    &["ftl.slc=hybrid", "ftl.slc_static=1", "timing.t_read_slc=20us", "timing.t_program_slc=75us"];

/// Runs workloads on page-mapped drives without map pages, and lets the power fail.
pub fn cut(more: &[&[&str]], geometries: &[&str], depth: u32) -> Report {
    // later variants of the scheme are tried with the store that writes no map pages; the fourth
    // one is then plain page mapping
    cut_under(("-", "page.4"), more, geometries, depth)
}

fn cut_under(
    (layer, scheme): (&str, &str),
    more: &[&[&str]],
    geometries: &[&str],
    depth: u32,
) -> Report {
    let set = TWO.iter().chain(more.iter().copied().flatten()).map(|&s| s.to_owned()).collect();
    let spec = CrashSpec {
        layers: list(&[layer]),
        geometries: list(geometries),
        workloads: list(&["random", "collect", "hot-cold", "trim"]),
        set,
        depth,
        faults: if more.contains(&PLP) { PLP_FAULTS.into() } else { "all".into() },
        ..plan(&[scheme], &["dram"])
    };
    run(&STANDARD, &spec, &mut |_, _| true).unwrap_or_else(|e| panic!("{more:?}: {e}"))
}

#[test]
fn power_may_fail_between_steps() {
    for steps in [&[][..], THREE] {
        for slc in [&[][..], SLC] {
            for (flush, geometries) in
                [(&[][..], &["mini", "square", "lanes"][..]), (PLP, &["square", "lanes"])]
            {
                let found = cut(&[steps, slc, flush], geometries, 1);
                assert!(found.violations() == 0, "{steps:?} {slc:?} {flush:?}: {:?}", found.found);
            }
        }
    }
}

#[test]
fn power_may_fail_between_steps_twice() {
    for slc in [&[][..], SLC] {
        for flush in [&[][..], PLP] {
            let found = cut(&[slc, flush], &["square"], 2);
            assert!(found.violations() == 0, "{slc:?} {flush:?}: {:?}", found.found);
        }
    }
}

#[test]
fn power_may_fail_with_copies_for_a_flush() {
    for steps in [&[][..], THREE] {
        for copies in [&[COPIES][..], &[SLC, COPIES_TO_CACHE]] {
            for (geometries, depth) in [(&["square", "lanes"][..], 1), (&["square"], 2)] {
                let all: Vec<_> = [steps].iter().chain(copies).copied().collect();
                let found = cut(&all, geometries, depth);
                assert!(found.violations() == 0, "{all:?} {depth}: {:?}", found.found);
            }
        }
    }
}

#[test]
fn power_may_fail_between_steps_under_a_layer() {
    for layer in ["hard", "mirror"] {
        let found = cut_under((layer, "page"), &[&["map.flush=none"]], &["lanes"], 1);
        assert!(found.violations() == 0, "{layer}: {:?}", found.found);
    }
}
