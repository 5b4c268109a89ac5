//! Prefetching for requests that are about to be submitted.

use crate::oracle::Oracle;
use flashatlas_device::Stack;
use flashatlas_types::{HostOp, Lpn, Request};

/// Number of units of each request that are prefetched before the request is submitted. The table
/// entries of a long request's other units follow in memory.
const EXPECTED_UNITS: u32 = 4;

/// Units of the coming requests.
#[derive(Default)]
pub(super) struct Ahead {
    /// Units that are read next, and units that are written next; empty between calls.
    units: [Vec<Lpn>; 2],
}

impl Ahead {
    /// Prefetches table entries for the first units of each request, all together.
    ///
    /// The call changes nothing but the CPU's caches.
    pub fn prefetch<'a>(
        &mut self,
        drive: &Stack,
        oracle: &Oracle,
        requests: impl Iterator<Item = &'a Request>,
    ) {
        let (unit_sectors, end) = (u64::from(drive.unit_sectors()), oracle.units());
        for r in requests.filter(|r| matches!(r.op, HostOp::Read | HostOp::Write)) {
            let first = (r.lba.0 / unit_sectors) as u32;
            let last = ((r.lba.0 + u64::from(r.sectors)).div_ceil(unit_sectors) as u32).min(end);
            let first_units = (first..last.min(first + EXPECTED_UNITS)).map(Lpn);
            self.units[usize::from(r.op == HostOp::Write)].extend(first_units);
        }
        // a write changes the map much later, when it leaves the write cache
        drive.prefetch(&self.units[0]);
        for of_op in &mut self.units {
            oracle.prefetch(of_op);
            of_op.clear();
        }
    }
}
