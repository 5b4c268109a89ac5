//! Tests of R7 of RELIABILITY.md: a read with any entries returns the same data as a read without
//! entries.
//!
//! The tests also check how the two sides of HPB keep this promise, and how much time they save.

mod bad_input;
mod forger;
mod host;
mod races;

use flashatlas_device::{Cmd, DriveConfig, Stack};
use flashatlas_host::STANDARD;
use flashatlas_types::{Lba, Seed};

/// Settings of a drive with 496 pages of 2 KiB in 31 subregions of 16 pages.
///
/// Its map pages have 16 entries each, and 3 of them fit into memory.
const DRIVE: &[&str] = &[
    "drive.blocks=24",
    "map.unit=2KiB",
    "drive.logical_pages=496",
    "map.store=demand",
    "map.page_bytes=64",
    "map.cache_bytes=200",
    "layers=hpb-host",
    "hpb.region=64KiB",
    "hpb.subregion=32KiB",
    "hpb.max_read=8KiB",
    "hpb.host_bytes=64KiB",
];
const PAGES: u32 = 496;
const SUBREGION: u32 = 16;

fn config(more: &[&str]) -> Result<DriveConfig, String> {
    let settings: Vec<String> = DRIVE.iter().chain(more).map(|&s| s.to_owned()).collect();
    STANDARD.load("tiny", None, &settings).map_err(|e| e.to_string())
}

fn stack(more: &[&str]) -> Stack {
    config(more).unwrap_or_else(|e| panic!("{e}")).build_stack(Seed(1)).unwrap()
}

fn counter(stack: &Stack, name: &str) -> u64 {
    let report = stack.top().reports().into_iter().find(|r| r.layer == "hpb-host").unwrap();
    report
        .counters
        .iter()
        .find(|(key, _)| *key == name)
        .unwrap_or_else(|| panic!("no counter {name}"))
        .1
}

fn lba(page: u32) -> Lba {
    Lba(u64::from(page) * 4)
}

fn write(page: u32, content: u64) -> Cmd<'static> {
    Cmd::Write { lba: lba(page), sectors: 4, fua: false, content, data: None }
}
