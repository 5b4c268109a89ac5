//! Miss-ratio curves compared with LRU caches that are simulated one size at a time.

use crate::common::*;
use flashatlas_types::HostOp::{Flush, Read, Trim, Write};
use flashatlas_types::Seed;
use flashatlas_workload::reuse::Distances;
use flashatlas_workload::{MapUnits, Reuse, generate};

/// Returns the pages that the requests of a generator touch.
fn pages(text: &str) -> Vec<u64> {
    let mut source = generate(text, 1 << 23, Seed(7)).unwrap();
    drain(&mut *source).0.iter().map(|record| record.request.lba.0 / 8).collect()
}

/// Returns the share of accesses that miss in an LRU cache. The cache is a list with the page used
/// last in front.
fn lru_miss_ratio(accesses: &[u64], size: usize) -> f64 {
    let (mut cache, mut misses) = (Vec::new(), 0);
    for access in accesses {
        match cache.iter().position(|held| held == access) {
            Some(at) => {
                cache.remove(at);
            }
            None => misses += 1,
        }
        cache.insert(0, *access);
        cache.truncate(size);
    }
    misses as f64 / accesses.len() as f64
}

fn followed(accesses: &[u64], limit: usize) -> Distances {
    let mut distances = Distances::new(limit);
    accesses.iter().for_each(|&page| distances.touch(0, page));
    distances
}

const LOADS: [&str; 3] = [
    "zipf:requests=20000,theta=0.9,range=0.02",
    "uniform:requests=20000,range=0.005",
    "sequential:requests=20000,range=0.003",
];

#[test]
fn few_units_have_the_miss_ratios_of_lru_exactly() {
    for load in LOADS {
        let accesses = pages(load);
        let distances = followed(&accesses, 1 << 18);
        assert_eq!(distances.sampled_share(), 1.0);
        for (size, ratio) in distances.miss_ratios() {
            let expected = lru_miss_ratio(&accesses, size as usize);
            assert!((ratio - expected).abs() < 1e-9, "{load}, {size}: {ratio}, LRU {expected}");
        }
    }
}

#[test]
fn a_sample_of_many_units_is_near_the_miss_ratios_of_lru() {
    for load in LOADS {
        let accesses = pages(load);
        let distances = followed(&accesses, 2000);
        assert!(distances.sampled_share() < 0.9, "{load}: nothing was left out");
        let (mut sum, mut sizes) = (0.0, 0.0);
        let mut curve = distances.miss_ratios();
        // the last size is the number of all units, which is an estimate
        curve.pop();
        for (size, ratio) in curve {
            // a cache that holds fewer than four units of the sample is too small to be measured
            if size as f64 * distances.sampled_share() >= 4.0 {
                sum += (ratio - lru_miss_ratio(&accesses, size as usize)).abs();
                sizes += 1.0;
            }
        }
        // the number of units is known to 1/sqrt(2000), 2.2 %; the error of a ratio is at most 2.2
        // %
        assert!(sum / sizes < 0.022, "{load}: mean error {}", sum / sizes);
    }
}

#[test]
fn a_hand_worked_trace() {
    let units = MapUnits { page_bytes: 4096, entries: 2 };
    let mut reuse = Reuse::new(units);
    // pages 0 to 3 in one request, page 0 again, and page 0 of another device; the trim and the
    // flush are not counted
    for record in [
        record(0, Write, 0, 32, 0),
        record(0, Write, 0, 8, 0),
        record(0, Trim, 0, 8, 0),
        record(0, Flush, 0, 0, 0),
        record(0, Read, 0, 1, 1),
    ] {
        reuse.add(&record);
    }
    let found = reuse.to_json();
    // map pages 0 and 1, then 0 again after 1, then map page 0 of the other device
    assert_eq!(found["map_pages"]["accesses"], 4);
    assert_eq!(found["map_pages"]["distinct"], 3.0);
    assert_eq!(found["map_pages"]["curve"].to_string(), "[[1,1.0],[2,0.75],[3,0.75]]");
    // entries 0 to 3, then 0 again after three others, then entry 0 of the other device
    assert_eq!(
        found["map_entries"]["curve"].to_string(),
        "[[1,1.0],[2,1.0],[4,0.8333333333333334],[5,0.8333333333333334]]"
    );
    // only page 0 is written again: the distance is four pages written
    assert_eq!(found["updates"]["intervals"].to_string(), "[[4,1.0]]");
    assert_eq!(found["updates"]["skew"][4].to_string(), "[0.5,0.6]");
}
