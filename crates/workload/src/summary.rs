//! What a stream of records is like: counts, footprint, overwrites, alignment, order.

use crate::source::Record;
use flashatlas_types::{Dur, HostOp, Ps, SECTOR_BYTES};
use rustc_hash::FxHashMap;

/// Bytes of a page: the granularity of footprint, overwrites and alignment.
pub const PAGE_BYTES: u64 = 4096;

const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES as u64;

/// Measures a stream as it passes. Memory grows with the 2 MiB regions that the stream touches (about 150 bytes each),
/// not with its length. Every device is an address space of its own: two devices never overwrite each other.
#[derive(Clone, Default, Debug)]
pub struct TraceSummary {
    counts: [u64; HostOp::ALL.len()],
    bytes: [u64; HostOp::ALL.len()],
    touched: PageSet,
    written: PageSet,
    pages_written: u64,
    highest_bytes: u64,
    unaligned: u64,
    sequential: u64,
    out_of_order: u64,
    last_at: Ps,
    duration: Dur,
    /// One past the last sector of each device's latest request.
    ends: FxHashMap<u32, u64>,
}

impl TraceSummary {
    /// Nothing measured yet.
    pub fn new() -> TraceSummary {
        TraceSummary::default()
    }

    /// Measure one record.
    pub fn add(&mut self, record: &Record) {
        let request = &record.request;
        let at = request.at;
        self.out_of_order += u64::from(at < self.last_at);
        self.last_at = at;
        self.duration = self.duration.max(at.since(Ps::ZERO));
        self.counts[request.op as usize] += 1;
        let last_end = self.ends.entry(record.device);
        if request.op == HostOp::Flush {
            last_end.or_default();
            return;
        }
        let (first, sectors) = (request.lba.0, u64::from(request.sectors));
        let end = first.saturating_add(sectors);
        self.bytes[request.op as usize] += sectors * u64::from(SECTOR_BYTES);
        self.highest_bytes = self.highest_bytes.max(end.saturating_mul(u64::from(SECTOR_BYTES)));
        self.unaligned += u64::from(first % PAGE_SECTORS != 0 || end % PAGE_SECTORS != 0);
        let starts_at_end =
            matches!(&last_end, std::collections::hash_map::Entry::Occupied(last) if *last.get() == first);
        self.sequential += u64::from(starts_at_end);
        last_end.insert_entry(end);
        let pages = first / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS);
        if request.op == HostOp::Write {
            self.pages_written += pages.end - pages.start;
            self.written.insert(record.device, pages.clone());
        }
        if request.op != HostOp::Trim {
            self.touched.insert(record.device, pages);
        }
    }

    fn count(&self, op: HostOp) -> u64 {
        self.counts[op as usize]
    }

    /// Requests of every kind.
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Reads.
    pub fn reads(&self) -> u64 {
        self.count(HostOp::Read)
    }

    /// Writes.
    pub fn writes(&self) -> u64 {
        self.count(HostOp::Write)
    }

    /// Trims.
    pub fn trims(&self) -> u64 {
        self.count(HostOp::Trim)
    }

    /// Flushes.
    pub fn flushes(&self) -> u64 {
        self.count(HostOp::Flush)
    }

    /// Reads among reads and writes, 0 to 1; 0 when there are none.
    pub fn read_share(&self) -> f64 {
        share(self.reads(), self.reads() + self.writes())
    }

    /// Bytes of the mean read or write; 0 when there are none.
    pub fn mean_bytes(&self) -> f64 {
        share(self.read_bytes() + self.written_bytes(), self.reads() + self.writes())
    }

    /// Bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.bytes[HostOp::Read as usize]
    }

    /// Bytes written.
    pub fn written_bytes(&self) -> u64 {
        self.bytes[HostOp::Write as usize]
    }

    /// Bytes of the distinct pages of [`PAGE_BYTES`] that reads and writes touch.
    pub fn footprint_bytes(&self) -> u64 {
        self.touched.len * PAGE_BYTES
    }

    /// Pages of [`PAGE_BYTES`] that writes touch, each as often as it is touched.
    pub fn pages_written(&self) -> u64 {
        self.pages_written
    }

    /// Distinct pages of [`PAGE_BYTES`] that writes touch.
    pub fn distinct_pages_written(&self) -> u64 {
        self.written.len
    }

    /// How often the mean written page is written: [`pages_written`](Self::pages_written) over
    /// [`distinct_pages_written`](Self::distinct_pages_written); 0 when nothing is written.
    pub fn overwrite_ratio(&self) -> f64 {
        share(self.pages_written, self.written.len)
    }

    /// One past the highest byte addressed, on any device: the capacity that a drive must have.
    pub fn highest_bytes(&self) -> u64 {
        self.highest_bytes
    }

    /// Devices seen.
    pub fn devices(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The latest time of a record, from the first.
    pub fn duration(&self) -> Dur {
        self.duration
    }

    /// Requests that start or end off a [`PAGE_BYTES`] boundary, among all but flushes, 0 to 1.
    pub fn unaligned_share(&self) -> f64 {
        share(self.unaligned, self.requests() - self.flushes())
    }

    /// Requests that start where the one before on the same device ended, among all but flushes, 0 to 1.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.requests() - self.flushes())
    }

    /// Records with an earlier time than the record before them.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Whether every record is at time zero: the stream says nothing about pace.
    pub fn zero_time(&self) -> bool {
        self.duration == Dur::ZERO
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Bits of a chunk: 512 pages, 2 MiB.
const CHUNK_PAGES: u64 = 512;
const WORD_PAGES: u64 = 64;

/// A set of pages as bitmaps of the chunks that hold any.
#[derive(Clone, Default, Debug)]
struct PageSet {
    chunks: FxHashMap<(u32, u64), [u64; (CHUNK_PAGES / WORD_PAGES) as usize]>,
    len: u64,
}

impl PageSet {
    /// Add `pages` of `device`.
    fn insert(&mut self, device: u32, pages: std::ops::Range<u64>) {
        let mut page = pages.start;
        while page < pages.end {
            let chunk = page / CHUNK_PAGES;
            let words = self.chunks.entry((device, chunk)).or_default();
            let stop = pages.end.min((chunk + 1) * CHUNK_PAGES);
            while page < stop {
                let bit = page % WORD_PAGES;
                let count = (WORD_PAGES - bit).min(stop - page);
                let mask = (u64::MAX >> (WORD_PAGES - count)) << bit;
                let word = &mut words[(page % CHUNK_PAGES / WORD_PAGES) as usize];
                self.len += u64::from((mask & !*word).count_ones());
                *word |= mask;
                page += count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Lba, Request};
    use std::collections::BTreeSet;

    fn record(at: u64, op: HostOp, lba: u64, sectors: u32, device: u32) -> Record {
        Record { request: Request { at: Ps(at), op, lba: Lba(lba), sectors, fua: false }, device }
    }

    #[test]
    fn a_hand_made_stream() {
        let mut s = TraceSummary::new();
        s.add(&record(0, HostOp::Write, 0, 8, 0)); // page 0
        s.add(&record(50, HostOp::Write, 8, 9, 0)); // sequential, pages 1 and 2, unaligned
        s.add(&record(20, HostOp::Write, 0, 8, 0)); // out of order, overwrites page 0
        s.add(&record(60, HostOp::Read, 8, 8, 0)); // sequential, touches page 1 again
        s.add(&record(60, HostOp::Write, 16, 8, 1)); // page 2 of another device, not sequential
        s.add(&record(70, HostOp::Trim, 800, 8, 1)); // not in the footprint
        s.add(&record(80, HostOp::Flush, 0, 0, 2));
        assert_eq!((s.requests(), s.reads(), s.writes(), s.trims(), s.flushes()), (7, 1, 4, 1, 1));
        assert_eq!((s.read_bytes(), s.written_bytes()), (4096, 33 * 512));
        assert_eq!((s.read_share(), s.mean_bytes()), (0.2, 41.0 * 512.0 / 5.0));
        assert_eq!(s.footprint_bytes(), 4 * 4096);
        assert_eq!((s.pages_written(), s.distinct_pages_written(), s.overwrite_ratio()), (5, 4, 1.25));
        assert_eq!((s.highest_bytes(), s.devices(), s.duration()), (808 * 512, 3, Dur(80)));
        assert_eq!((s.unaligned_share(), s.sequential_share(), s.out_of_order()), (1.0 / 6.0, 2.0 / 6.0, 1));
        assert!(!s.zero_time());
    }

    #[test]
    fn an_empty_stream_divides_by_nothing() {
        let s = TraceSummary::new();
        assert_eq!((s.read_share(), s.mean_bytes(), s.overwrite_ratio(), s.unaligned_share()), (0.0, 0.0, 0.0, 0.0));
        assert!(s.zero_time());
    }

    #[test]
    fn the_page_set_agrees_with_a_plain_one() {
        let mut rng = flashatlas_types::Rng::stream(flashatlas_types::Seed(1), "pages");
        let (mut set, mut plain) = (PageSet::default(), BTreeSet::new());
        for _ in 0..2000 {
            let (device, first) = (rng.below(2) as u32, rng.below(4000));
            let longest = [3, 70, 1200][rng.below(3) as usize];
            let len = rng.below(longest);
            set.insert(device, first..first + len);
            plain.extend((first..first + len).map(|page| (device, page)));
            assert_eq!(set.len, plain.len() as u64);
            if set.len > 6000 {
                (set, plain) = (PageSet::default(), BTreeSet::new());
            }
        }
    }
}
