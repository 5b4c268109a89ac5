//! Checks that every part reports its tables that grow with the drive.
//!
//! A counting allocator counts the bytes.

use flashatlas_conformance::memory::{FREE_BYTES, beside_reports, countable};
use flashatlas_device::Part;
use flashatlas_ftl::MemoryUse;
use flashatlas_ftl::classifiers::{Classifier, ClassifierDef, Page};
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{AnyPart, Origin, Parts};
use flashatlas_types::{Entries, MemoryKind, StreamId};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the bytes of the heap in use.
fn live() -> usize {
    let stats = HEAP.stats();
    // `bytes_allocated` includes allocations that grow in place
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

fn standard() -> Parts {
    Parts {
        drives: flashatlas_host::STANDARD,
        workloads: flashatlas_workload::Registry::STANDARD,
        metrics: Entries::of(METRICS),
        added: &[],
    }
}

/// Parts with more unreported bytes than [`FREE_BYTES`], and their limits in bytes for each page.
const MORE: &[(&str, f64)] = &[
    // this store writes a map page for nearly every written page, and the heap contains these map
    // pages
    ("learnedftl", 600.0),
    // the drive below this layer is larger by the layer's reserve, and has a map of its own
    ("hard", 400.0),
    // each drive has tables of its own, and reports cover only the first drive
    ("mirror", 300.0),
];

/// Classifier with a table of `BYTES` bytes for each page; it reports the table if `REPORTS` is
/// set.
struct Hoards<const BYTES: usize, const REPORTS: bool>(Vec<[u8; BYTES]>);

impl<const BYTES: usize, const REPORTS: bool> Classifier for Hoards<BYTES, REPORTS> {
    fn written(&mut self, page: &Page) -> StreamId {
        self.0[page.lpn.0 as usize][0] = 1;
        StreamId::new(0)
    }

    fn moved(&mut self, _: &Page) -> StreamId {
        StreamId::new(0)
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bytes = if REPORTS { (BYTES * self.0.len()) as u64 } else { 0 };
        vec![MemoryUse { table: "a hoard", memory: MemoryKind::Dram, bytes }]
    }
}

macro_rules! hoards {
    ($name:ident, $text:literal, $reports:literal) => {
        const $name: ClassifierDef = ClassifierDef {
            name: $text,
            summary: "a classifier of these tests",
            paper: "none",
            params: &[],
            streams: None,
            history: false,
            build: &|_, units, _| Box::new(Hoards::<200, $reports>(vec![[0; 200]; units as usize])),
        };
    };
}

hoards!(SILENT, "silent", false);
hoards!(HONEST, "honest", true);

/// Counts the unreported bytes of each part.
///
/// This is the only test of the file, because other tests would allocate at the same time.
#[test]
fn tables_that_grow_are_reported() {
    let parts = standard();
    for part in countable(&parts) {
        let (kind, name) = part.named();
        let most = MORE.iter().find(|(of, _)| *of == name).map_or(FREE_BYTES, |&(_, most)| most);
        let beside = beside_reports(&parts, part, &live).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(
            beside <= most,
            "{kind} `{name}`: {beside:.0} unreported bytes for each page, {most} at most"
        );
    }
    let origin = Origin { distribution: "test".into(), version: "0".into(), digest: "none".into() };
    let beside = |def: &'static ClassifierDef| {
        let parts = parts.with(AnyPart::from(def), &origin).unwrap();
        beside_reports(&parts, Part::Classifier(def), &live).unwrap()
    };
    let (silent, honest) = (beside(&SILENT), beside(&HONEST));
    assert!(
        (silent - 200.0).abs() < 8.0,
        "an unreported table of 200 bytes a page was found as {silent}"
    );
    assert!(honest.abs() < 8.0, "a reported table was counted: {honest} bytes a page");
}
