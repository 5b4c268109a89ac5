//! Summary of a stream of records: counts, sizes, footprint, overwrites, alignment, order, and the
//! course of all these over time.

mod bursts;
mod intervals;
mod json;
mod pages;

pub use intervals::{Interval, IntervalUnit, Intervals, MAX_INTERVALS};

use crate::source::{JUMP, Record};
use bursts::Bursts;
use flashatlas_types::{Dur, HostOp, Ps, Request, SECTOR_BYTES};
use pages::PageSet;
use std::collections::BTreeMap;

/// Bytes of a page: the granularity of footprint, overwrites and alignment.
pub const PAGE_BYTES: u64 = 4096;

const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES as u64;

const OPS: usize = HostOp::ALL.len();

/// Number of classes of size: requests of at most 2^9, 2^10 … 2^41 bytes. A trim has less than
/// 2^41.
const SIZES: usize = 33;

/// Requests of each size.
#[derive(Clone, Copy, Debug)]
struct Sizes([u64; SIZES]);

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes([0; SIZES])
    }
}

/// Counts of the requests of one device.
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceCounts {
    /// Requests by kind, in the order of [`HostOp::ALL`].
    pub requests: [u64; OPS],
    /// Bytes by kind.
    pub bytes: [u64; OPS],
    /// One past the last sector of the latest request.
    end: Option<u64>,
    /// The latest request.
    last: Option<Request>,
}

/// Measurement of a stream, record by record.
///
/// Memory grows with the 2 MiB regions that the stream touches (about 150 bytes each) and its
/// devices (about 100 bytes each), not with its length. Every device is an address space of its
/// own: two devices never overwrite each other.
#[derive(Clone, Default, Debug)]
pub struct TraceSummary {
    counts: [u64; OPS],
    bytes: [u64; OPS],
    sizes: [Sizes; OPS],
    touched: PageSet,
    written: PageSet,
    pages_written: u64,
    highest_bytes: u64,
    unaligned: u64,
    sequential: u64,
    out_of_order: u64,
    jumps: u64,
    repeats: u64,
    last_at: Ps,
    duration: Dur,
    bursts: Bursts,
    intervals: Intervals,
    devices: BTreeMap<u32, DeviceCounts>,
}

/// Longest time between two equal records of a device for a repeat: 5 ms.
pub const REPEAT: Dur = Dur(5_000_000_000);

impl TraceSummary {
    /// Returns an empty summary.
    pub fn new() -> TraceSummary {
        TraceSummary::default()
    }

    /// Measures one record.
    pub fn add(&mut self, record: &Record) {
        let request = &record.request;
        let op = request.op as usize;
        self.add_time(request.at);
        self.counts[op] += 1;
        let (first, sectors) = (request.lba.0, u64::from(request.sectors));
        let (bytes, end) = (sectors * u64::from(SECTOR_BYTES), first.saturating_add(sectors));
        let timed = !self.zero_time();
        let device = self.devices.entry(record.device).or_default();
        device.requests[op] += 1;
        device.bytes[op] += bytes;
        let mut pages = 0..0;
        if request.op != HostOp::Flush {
            let again = device.last.replace(*request).is_some_and(|last| {
                let same =
                    (last.op, last.lba, last.sectors) == (request.op, request.lba, request.sectors);
                same && last.at.0.abs_diff(request.at.0) <= REPEAT.0
            });
            self.repeats += u64::from(again && timed);
            self.sequential += u64::from(device.end.replace(end) == Some(first));
            self.bytes[op] += bytes;
            self.sizes[op].0[size_class(sectors)] += 1;
            self.highest_bytes =
                self.highest_bytes.max(end.saturating_mul(u64::from(SECTOR_BYTES)));
            self.unaligned += u64::from(first % PAGE_SECTORS != 0 || end % PAGE_SECTORS != 0);
            pages = first / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS);
        }
        if request.op == HostOp::Write {
            self.pages_written += pages.end - pages.start;
            self.written.insert(record.device, pages.clone());
        }
        if request.op != HostOp::Trim {
            self.touched.insert(record.device, pages.clone());
        }
        self.intervals.add(request.at, request.op, bytes, record.device, pages, self.touched.len);
    }

    fn add_time(&mut self, at: Ps) {
        self.out_of_order += u64::from(at < self.last_at);
        self.jumps += u64::from(at.0.abs_diff(self.last_at.0) > JUMP.0);
        self.last_at = at;
        self.duration = self.duration.max(at.since(Ps::ZERO));
        self.bursts.add(at);
    }

    /// Returns the number of records that repeat, within [`REPEAT`], the operation, address and
    /// length of the previous record of the same device. Some tracers record a request twice.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    fn count(&self, op: HostOp) -> u64 {
        self.counts[op as usize]
    }

    /// Returns the number of requests of every kind.
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        self.count(HostOp::Read)
    }

    /// Returns the number of writes.
    pub fn writes(&self) -> u64 {
        self.count(HostOp::Write)
    }

    /// Returns the number of trims.
    pub fn trims(&self) -> u64 {
        self.count(HostOp::Trim)
    }

    /// Returns the number of flushes.
    pub fn flushes(&self) -> u64 {
        self.count(HostOp::Flush)
    }

    /// Returns the share of reads among reads and writes, 0 to 1; 0 if there are none.
    pub fn read_share(&self) -> f64 {
        share(self.reads(), self.reads() + self.writes())
    }

    /// Returns the mean number of bytes of a read or write; 0 if there are none.
    pub fn mean_bytes(&self) -> f64 {
        share(self.read_bytes() + self.written_bytes(), self.reads() + self.writes())
    }

    /// Returns the number of bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.bytes[HostOp::Read as usize]
    }

    /// Returns the number of bytes written.
    pub fn written_bytes(&self) -> u64 {
        self.bytes[HostOp::Write as usize]
    }

    /// Returns the number of bytes of the distinct pages of [`PAGE_BYTES`] that reads and writes
    /// touch.
    pub fn footprint_bytes(&self) -> u64 {
        self.touched.len * PAGE_BYTES
    }

    /// Returns the number of pages of [`PAGE_BYTES`] that writes touch. A page counts each time it
    /// is touched.
    pub fn pages_written(&self) -> u64 {
        self.pages_written
    }

    /// Returns the number of distinct pages of [`PAGE_BYTES`] that writes touch.
    pub fn distinct_pages_written(&self) -> u64 {
        self.written.len
    }

    /// Returns the mean number of times that a written page is written:
    /// [`pages_written`](Self::pages_written) over
    /// [`distinct_pages_written`](Self::distinct_pages_written). It is 0 if nothing is written.
    pub fn overwrite_ratio(&self) -> f64 {
        share(self.pages_written, self.written.len)
    }

    /// Returns one past the highest byte addressed on any device: the capacity that a drive must
    /// have.
    pub fn highest_bytes(&self) -> u64 {
        self.highest_bytes
    }

    /// Returns the number of devices seen.
    pub fn devices(&self) -> u32 {
        self.devices.len() as u32
    }

    /// Returns the latest time of a record, counted from the first record.
    pub fn duration(&self) -> Dur {
        self.duration
    }

    /// Returns the share of requests that start or end off a [`PAGE_BYTES`] boundary, among all but
    /// flushes, 0 to 1.
    pub fn unaligned_share(&self) -> f64 {
        share(self.unaligned, self.requests() - self.flushes())
    }

    /// Returns the share of requests that start where the previous request of the same device
    /// ended, among all but flushes, 0 to 1.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.requests() - self.flushes())
    }

    /// Returns the number of records with an earlier time than the record before them.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns the number of steps of time from one record to the next of more than a day
    /// ([`JUMP`]), forward or backward.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Returns the index of dispersion of counts: the variance of the counts over their mean.
    ///
    /// Requests are counted in windows of a second from the first record to the window of the
    /// latest, empty windows included. The index is 0 if every second has the same number of
    /// requests, 1 for a Poisson process, and more for bursts. A record with an earlier time than
    /// one before it counts in the latest window.
    pub fn dispersion(&self) -> f64 {
        self.bursts.dispersion()
    }

    /// Returns the number of requests in the busiest window of [`dispersion`](Self::dispersion)
    /// over the mean number in a window.
    pub fn peak_to_mean(&self) -> f64 {
        self.bursts.peak_to_mean()
    }

    /// Returns pairs of a size in bytes and a number of requests of kind `op`: requests of at most
    /// that size, and of more than half of it. Sizes are powers of two, at least a sector; sizes
    /// without requests are left out.
    pub fn sizes(&self, op: HostOp) -> impl Iterator<Item = (u64, u64)> {
        let Sizes(sizes) = self.sizes[op as usize];
        (0..SIZES)
            .map(move |class| (u64::from(SECTOR_BYTES) << class, sizes[class]))
            .filter(|&(_, count)| count > 0)
    }

    /// Returns the devices in order of their numbers.
    pub fn device_counts(&self) -> impl Iterator<Item = (u32, &DeviceCounts)> {
        self.devices.iter().map(|(&device, counts)| (device, counts))
    }

    /// Returns the course of the trace in intervals.
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// Returns `true` if every record is at time zero, and so the stream does not show its pace.
    pub fn zero_time(&self) -> bool {
        self.duration == Dur::ZERO
    }
}

/// Returns the class of a size: the least power of two of sectors that holds `sectors`.
fn size_class(sectors: u64) -> usize {
    sectors.next_power_of_two().trailing_zeros() as usize
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::Lba;

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
        assert_eq!(
            (s.pages_written(), s.distinct_pages_written(), s.overwrite_ratio()),
            (5, 4, 1.25)
        );
        assert_eq!((s.highest_bytes(), s.devices(), s.duration()), (808 * 512, 3, Dur(80)));
        assert_eq!(
            (s.unaligned_share(), s.sequential_share(), s.out_of_order()),
            (1.0 / 6.0, 2.0 / 6.0, 1)
        );
        assert!(!s.zero_time());
    }

    #[test]
    fn an_empty_stream_divides_by_nothing() {
        let s = TraceSummary::new();
        assert_eq!(
            (s.read_share(), s.mean_bytes(), s.overwrite_ratio(), s.unaligned_share()),
            (0.0, 0.0, 0.0, 0.0)
        );
        assert!(s.zero_time());
    }
}
