//! The controller's DRAM, if its commands are timed one by one. The DRAM serves operations in the
//! order in which they become ready.

use crate::statistics::DramStatistics;
use flashatlas_dram::{Device, Dram, Rules, Timings};
use flashatlas_types::{DramAccess, Ps};

/// The accesses of an operation that has not started.
#[derive(Debug, Default)]
struct Waiting {
    accesses: Vec<DramAccess>,
    update: bool,
}

#[derive(Debug)]
pub(crate) struct Memory {
    dram: Dram,
    tck_ps: u64,
    waiting: Vec<Waiting>,
    free: Vec<u32>,
}

impl Memory {
    pub fn new((device, timings, rules): &(Device, Timings, Rules)) -> Memory {
        Memory {
            dram: Dram::new(device, timings, *rules),
            tck_ps: timings.tck_ps.into(),
            waiting: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Keeps the accesses of an operation until it starts. Returns their number for
    /// [`Memory::begin`].
    pub fn keep(&mut self, accesses: &[DramAccess], update: bool) -> u32 {
        let n = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(Waiting::default());
            (self.waiting.len() - 1) as u32
        });
        let waiting = &mut self.waiting[n as usize];
        waiting.accesses.clear();
        waiting.accesses.extend_from_slice(accesses);
        waiting.update = update;
        n
    }

    /// Starts the accesses that were stored under number `n`. Returns the time at which all their
    /// data has arrived.
    pub fn begin(&mut self, n: u32, now: Ps, statistics: &mut DramStatistics) -> Ps {
        let waiting = &self.waiting[n as usize];
        let before = [self.dram.bursts, self.dram.activations, self.dram.refreshes];
        let served =
            self.dram.serve_all(&waiting.accesses, now.0.div_ceil(self.tck_ps) as i64, &mut |_| {});
        let end = (served.data as u64)
            .checked_mul(self.tck_ps)
            .expect("simulated time passed 2^64 ps (213 days)");
        let end = Ps(end).max(now);
        let times = if waiting.update { &mut statistics.updates } else { &mut statistics.lookups };
        times.add(end.since(now).0);
        statistics.bursts += self.dram.bursts - before[0];
        statistics.activations += self.dram.activations - before[1];
        statistics.refreshes += self.dram.refreshes - before[2];
        self.free.push(n);
        end
    }
}
