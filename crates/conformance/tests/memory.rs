//! Tables that grow with the drive are reported: counted by an allocator, for every part.

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
    // what grows in place is among these
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

/// Parts for which more is on the heap that is no table of theirs, and how much at most.
const MORE: &[(&str, f64)] = &[
    // it writes a map page for nearly every page of the fill; their contents are the flash's
    ("learnedftl", 600.0),
    // its superpages go to a drive that is larger by what it keeps free, with a map of its own
    ("hard", 400.0),
    // the other drives with their own tables: reports are of the first
    ("mirror", 300.0),
];

/// Classifier with a table of `BYTES` bytes for each page, which it reports or does not.
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

/// One test: others would allocate beside it.
#[test]
fn tables_that_grow_are_reported() {
    let parts = standard();
    for part in countable(&parts) {
        let (kind, name) = part.named();
        let most = MORE.iter().find(|(of, _)| *of == name).map_or(FREE_BYTES, |&(_, most)| most);
        let beside = beside_reports(&parts, part, &live).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(
            beside <= most,
            "{kind} `{name}`: {beside:.0} bytes for each page that no report names, of {most}"
        );
    }
    let origin = Origin { distribution: "test".into(), version: "0".into(), digest: "none".into() };
    let beside = |def: &'static ClassifierDef| {
        let parts = parts.with(AnyPart::from(def), &origin).unwrap();
        beside_reports(&parts, Part::Classifier(def), &live).unwrap()
    };
    let (silent, honest) = (beside(&SILENT), beside(&HONEST));
    assert!((silent - 200.0).abs() < 8.0, "a table of 200 bytes a page is seen: {silent}");
    assert!(honest.abs() < 8.0, "what is reported is not: {honest}");
}
