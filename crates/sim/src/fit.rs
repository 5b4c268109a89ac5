//! Mapping of trace addresses to a drive of another size.

use crate::{Fit, RunError};
use flashatlas_types::{HostOp, Lba, Request, SECTOR_BYTES};
use flashatlas_workload::Record;
use std::collections::BTreeSet;

/// Sectors of the smallest extent that `compact` packs.
pub(crate) const LEAST_EXTENT: u64 = 8;
/// Sectors of the largest extent that `compact` packs, and of extents in old checkpoints.
pub(crate) const LARGEST_EXTENT: u64 = 2048;

/// Maps records to the drive.
pub(crate) struct Mapper {
    fit: Fit,
    capacity: u64,
    /// Touched extents, sorted; the index of an extent is its place on the drive.
    extents: Vec<(u32, u64)>,
    /// Sectors of an extent.
    extent: u64,
    /// Number of requests that `wrap` moved because they would have crossed the end of the drive.
    pub crossed_end: u64,
}

/// The extents that a workload touches.
pub(crate) struct Extents {
    /// Size of an extent, in sectors.
    size: u64,
    touched: BTreeSet<(u32, u64)>,
}

impl Extents {
    /// Returns an empty set of extents of `size` sectors each.
    pub fn of(size: u64) -> Extents {
        Extents { size, touched: BTreeSet::new() }
    }

    /// Returns `true` if all extents fit `capacity` sectors.
    pub fn fit(&self, capacity: u64) -> bool {
        self.touched.len() as u64 * self.size <= capacity
    }

    /// Adds the extents that a record touches.
    ///
    /// Returns `false` if the extents no longer fit `capacity` sectors.
    pub fn add(&mut self, record: &Record, capacity: u64) -> bool {
        let r = &record.request;
        // an extent that only trims touch needs no place
        if matches!(r.op, HostOp::Read | HostOp::Write) {
            let last = r.lba.0.saturating_add(u64::from(r.sectors)).saturating_sub(1);
            (r.lba.0 / self.size..=last / self.size).for_each(|e| {
                self.touched.insert((record.device, e));
            });
        }
        self.fit(capacity)
    }

    /// Returns the bytes that the extents need when packed.
    pub fn bytes(&self) -> u64 {
        self.touched.len() as u64 * self.size * u64::from(SECTOR_BYTES)
    }
}

impl Mapper {
    /// Returns a mapper for a workload that touches `extents`; the extents must fit the drive.
    pub fn new(fit: Fit, capacity: u64, extents: Extents) -> Mapper {
        let extent = extents.size;
        let extents = extents.touched.into_iter().collect();
        Mapper { fit, capacity, extents, extent, crossed_end: 0 }
    }

    /// Returns the size of an extent in sectors.
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// Returns the extents in the order of their places, or no extents without `compact`.
    pub fn extents(&self) -> &[(u32, u64)] {
        &self.extents
    }

    /// Returns a mapper that places extents as they are placed in a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the workload touches an extent that is not in the checkpoint.
    pub fn packed_before(
        capacity: u64,
        packed: Vec<(u32, u64)>,
        touched: Extents,
    ) -> Result<Mapper, RunError> {
        let outside = touched.touched.iter().filter(|e| packed.binary_search(e).is_err()).count();
        if outside > 0 {
            return Err(RunError::Fit(format!(
                "the workload touches {outside} extents of {} KiB that have no place in the \
                 checkpoint: also give this workload when you make the checkpoint",
                touched.size / 2
            )));
        }
        let extent = touched.size;
        Ok(Mapper { fit: Fit::Compact, capacity, extents: packed, extent, crossed_end: 0 })
    }

    /// Returns the request at its place on the drive.
    ///
    /// Returns `Ok(None)` for a trim of which no sector is on the drive.
    pub fn map(&mut self, record: &Record, number: u64) -> Result<Option<Request>, RunError> {
        let r = record.request;
        if r.op == HostOp::Flush {
            return Ok(Some(r));
        }
        match self.fit {
            Fit::Error => self.must_fit(record, number).map(Some),
            Fit::Wrap => self.wrap(r, number).map(Some),
            Fit::Compact => Ok(self.compact(r, record.device)),
        }
    }

    fn must_fit(&self, record: &Record, number: u64) -> Result<Request, RunError> {
        let r = record.request;
        if record.device != 0 {
            return Err(RunError::Fit(format!(
                "request {number} goes to address space {} of the trace, but a drive has only one \
                 address space: use ‹fit=compact› to place the address spaces side by side (or \
                 ‹fit=wrap› to let them overlap)",
                record.device + 1
            )));
        }
        if r.end().is_none_or(|end| end > self.capacity) {
            return Err(RunError::Fit(format!(
                "request {number} ends at sector {}, but the drive has {} sectors: use \
                 ‹fit=compact› (packs the touched extents) or ‹fit=wrap› (addresses modulo the \
                 capacity), or a larger drive",
                r.lba.0.saturating_add(u64::from(r.sectors)),
                self.capacity
            )));
        }
        Ok(r)
    }

    /// Maps a request to its address modulo the capacity, so that address spaces overlap.
    ///
    /// A request that would cross the end of the drive starts in the first 4 KiB page instead, at
    /// the same offset within the page.
    fn wrap(&mut self, r: Request, number: u64) -> Result<Request, RunError> {
        let sectors = u64::from(r.sectors);
        let mut lba = r.lba.0 % self.capacity;
        if lba + sectors > self.capacity {
            lba %= 8;
            self.crossed_end += 1;
        }
        if lba + sectors > self.capacity {
            return Err(RunError::Fit(format!(
                "request {number} has {sectors} sectors, which is more than the whole drive has \
                 ({})",
                self.capacity
            )));
        }
        Ok(Request { lba: Lba(lba), ..r })
    }

    /// Returns the request at the places of its packed extents.
    ///
    /// Returns `None` for a trim of which no sector is on the drive.
    ///
    /// Consecutive extents stay consecutive, so a request stays in one piece. A trim is cut to its
    /// first consecutive extents that reads or writes touch.
    fn compact(&self, r: Request, device: u32) -> Option<Request> {
        let extent = self.extent;
        let place = |e: u64| self.extents.binary_search(&(device, e)).ok();
        let (mut lba, end) = (r.lba.0, r.lba.0.saturating_add(u64::from(r.sectors)));
        let first = match place(lba / extent) {
            Some(first) => first,
            None => {
                // only a trim can touch an extent that is not listed: begin at the next listed
                // extent
                let next = self.extents.partition_point(|&e| e < (device, lba / extent));
                let &(d, e) = self.extents.get(next)?;
                if d != device || e * extent >= end {
                    return None;
                }
                lba = e * extent;
                next
            }
        };
        let run = (0..)
            .take_while(|i| {
                lba / extent + i <= (end - 1) / extent && place(lba / extent + i).is_some()
            })
            .count() as u64;
        let end = end.min((lba / extent + run) * extent);
        Some(Request {
            lba: Lba(first as u64 * extent + lba % extent),
            sectors: (end - lba) as u32,
            ..r
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: u64 = LARGEST_EXTENT;
    use flashatlas_types::Ps;

    fn record(op: HostOp, device: u32, lba: u64, sectors: u32) -> Record {
        Record { request: Request { at: Ps::ZERO, op, lba: Lba(lba), sectors, fua: false }, device }
    }

    fn place(mapper: &mut Mapper, r: Record) -> Option<(u64, u32)> {
        mapper.map(&r, 1).unwrap().map(|r| (r.lba.0, r.sectors))
    }

    #[test]
    fn compact_packs_extents_in_order_and_keeps_alignment() {
        let far = record(HostOp::Write, 0, 10 * EXTENT + 7, 16);
        let across = record(HostOp::Read, 0, 5 * EXTENT - 8, 16);
        let other = record(HostOp::Write, 1, 3, 1);
        let mut extents = Extents::of(EXTENT);
        assert!([far, across, other].iter().all(|r| extents.add(r, 4 * EXTENT)));
        let mut m = Mapper::new(Fit::Compact, 4 * EXTENT, extents);
        // extents 4, 5 and 10 of device 0, then extent 0 of device 1
        assert_eq!(place(&mut m, across), Some((EXTENT - 8, 16)));
        assert_eq!(place(&mut m, far), Some((2 * EXTENT + 7, 16)));
        assert_eq!(place(&mut m, other), Some((3 * EXTENT + 3, 1)));
        // the trim covers extents 3 to 6, and only 4 and 5 are listed
        assert_eq!(
            place(&mut m, record(HostOp::Trim, 0, 3 * EXTENT, 4 * 2048)),
            Some((0, 2 * 2048))
        );
        assert_eq!(place(&mut m, record(HostOp::Trim, 0, 7 * EXTENT, 2048)), None);
    }

    #[test]
    fn a_workload_that_is_too_large_is_an_error_that_names_the_ways_out() {
        let mut m = Mapper::new(Fit::Error, 100, Extents::of(EXTENT));
        assert_eq!(place(&mut m, record(HostOp::Write, 0, 90, 10)), Some((90, 10)));
        let error = |m: &mut Mapper, r| m.map(&r, 7).unwrap_err().to_string();
        assert!(error(&mut m, record(HostOp::Write, 0, 91, 10)).starts_with(
            "request 7 ends at sector 101, but the drive has 100 sectors: use `fit=compact`"
        ));
        assert!(error(&mut m, record(HostOp::Write, 0, u64::MAX, 10)).contains("`fit=wrap`"));
        assert!(error(&mut m, record(HostOp::Write, 1, 0, 1)).contains("address space 2"));
        let mut extents = Extents::of(EXTENT);
        assert!(
            !extents.add(&record(HostOp::Write, 0, 0, 1), 100),
            "an extent is larger than the drive"
        );
    }

    #[test]
    fn wrap_is_modulo_and_never_crosses_the_end() {
        let mut m = Mapper::new(Fit::Wrap, 100, Extents::of(EXTENT));
        assert_eq!(place(&mut m, record(HostOp::Write, 0, 250, 8)), Some((50, 8)));
        assert_eq!(place(&mut m, record(HostOp::Write, 3, 195, 8)), Some((7, 8)), "95 modulo 8");
        assert_eq!(m.crossed_end, 1);
        assert!(m.map(&record(HostOp::Write, 0, 0, 101), 1).is_err());
    }
}
