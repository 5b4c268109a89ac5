//! Reuse in a trace: the miss ratio of a cache of map pages or map entries over its size, the
//! intervals between writes of a page, and the skew of writes.
//!
//! These measures show how large a CMT a trace needs, before any drive is simulated.

mod distances;
mod log_bins;

pub use distances::Distances;
pub use log_bins::LogBins;

use crate::source::Record;
use flashatlas_types::{HostOp, SECTOR_BYTES};
use serde_json::{Value, json};

/// Maximum number of units that are followed exactly. If there are more, a sample is followed.
pub const FOLLOWED: usize = 1 << 18;

/// Units of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapUnits {
    /// Bytes that an entry maps, a multiple of 512.
    pub page_bytes: u64,
    /// Entries in a map page.
    pub entries: u64,
}

/// Measurement of reuse in a stream, record by record. Every device is an address space of its own;
/// trims and flushes are not counted as accesses.
#[derive(Debug)]
pub struct Reuse {
    units: MapUnits,
    /// Map pages, once for each request that touches them.
    map_pages: Distances,
    /// Entries, once for each page of each request.
    entries: Distances,
    /// Pages written.
    written: Distances,
}

impl Reuse {
    /// Returns an empty measurement.
    pub fn new(units: MapUnits) -> Reuse {
        let [map_pages, entries, written] = [(); 3].map(|()| Distances::new(FOLLOWED));
        Reuse { units, map_pages, entries, written }
    }

    /// Measures one record.
    pub fn add(&mut self, record: &Record) {
        let request = &record.request;
        if !matches!(request.op, HostOp::Read | HostOp::Write) {
            return;
        }
        let sectors = self.units.page_bytes / u64::from(SECTOR_BYTES);
        let end = request.lba.0.saturating_add(u64::from(request.sectors));
        let pages = request.lba.0 / sectors..end.div_ceil(sectors);
        let first = pages.start / self.units.entries;
        for map_page in first..=(pages.end - 1) / self.units.entries {
            self.map_pages.touch(record.device, map_page);
        }
        for page in pages {
            self.entries.touch(record.device, page);
            if request.op == HostOp::Write {
                self.written.touch(record.device, page);
            }
        }
    }

    /// Returns the measurements as a JSON object. Shares are 0 to 1.
    ///
    /// | Key | Meaning |
    /// |---|---|
    /// | `page_bytes`, `entries` | bytes that an entry maps, entries in a map page |
    /// | `map_pages`, `map_entries` | LRU caches of them: `accesses`, `distinct`, `sampled_share` (1: exact), `curve`: list of `[size, miss ratio]`, sizes in map pages or entries |
    /// | `updates.intervals` | list of `[at most, share]`: number of pages written from one write of a page to its next, and share of all writes except the first of each page |
    /// | `updates.skew` | list of `[share of the pages written, share of their writes]`, the pages
    /// written most often first |
    pub fn to_json(&self) -> Value {
        json!({
            "page_bytes": self.units.page_bytes, "entries": self.units.entries,
            "map_pages": cache(&self.map_pages), "map_entries": cache(&self.entries),
            "updates": {
                "sampled_share": self.written.sampled_share(),
                "intervals": self.written.intervals(), "skew": self.written.skew(),
            },
        })
    }
}

fn cache(distances: &Distances) -> Value {
    json!({
        "accesses": distances.accesses(), "distinct": distances.distinct().round(),
        "sampled_share": distances.sampled_share(), "curve": distances.miss_ratios(),
    })
}
