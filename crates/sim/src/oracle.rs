//! The oracle: the stamp that every mapping unit must hold. Every read is compared with it.

use flashatlas_prefetch as prefetch;
use flashatlas_types::{HostOp, Lpn, Request, Stamp, StampSum, at_once, share};

/// Number of units with wrong content that are described, counted from the first.
const DESCRIBED: usize = 3;

/// Smallest number of units for a thread: fewer units take less time than starting a thread.
const WORTH_A_THREAD: usize = 1 << 18;

/// The expected content of a drive.
pub(crate) struct Oracle {
    expected: Vec<Stamp>,
    unit_sectors: u64,
    /// Number of units that reads of the workload compared.
    pub units_checked: u64,
    /// Number of units that were compared after the last request.
    pub units_swept: u64,
    /// Number of units that could not be read any more after the last request.
    pub lost: u64,
    /// Number of units that held another stamp than expected.
    pub violations: u64,
    /// The first violations, in words.
    pub described: Vec<String>,
}

impl Oracle {
    pub fn new(units: u32, unit_sectors: u32) -> Oracle {
        // zeroed words take no memory until they are written, and are turned into stamps in place
        let expected = vec![0; units as usize].into_iter().map(Stamp).collect();
        Oracle::expecting(expected, unit_sectors)
    }

    /// Returns an oracle that expects `expected`, one stamp a unit.
    pub fn expecting(expected: Vec<Stamp>, unit_sectors: u32) -> Oracle {
        Oracle {
            expected,
            unit_sectors: u64::from(unit_sectors),
            units_checked: 0,
            units_swept: 0,
            lost: 0,
            violations: 0,
            described: Vec::new(),
        }
    }

    /// Returns the content number of a filled page, as if a write of this page alone had filled it.
    #[inline]
    pub fn filling(lpn: Lpn) -> u64 {
        1 << 63 | u64::from(lpn.0)
    }

    /// Returns the stamp of a page after the drive was filled.
    #[inline]
    pub fn filled(lpn: Lpn) -> Stamp {
        Stamp::whole(Oracle::filling(lpn), 0)
    }

    pub fn fill(&mut self) {
        let share = share(self.expected.len(), WORTH_A_THREAD);
        let shares = (0..).step_by(share).zip(self.expected.chunks_mut(share));
        at_once(shares, |(first, expected)| {
            (first..).map(Lpn).zip(expected).for_each(|(lpn, e)| *e = Oracle::filled(lpn));
        });
    }

    /// Notes a write or trim of the host.
    #[inline]
    pub fn apply(&mut self, r: &Request, content: u64) {
        let (start, end) = (r.lba.0, r.lba.0 + u64::from(r.sectors));
        match r.op {
            HostOp::Write => {
                for unit in start / self.unit_sectors..end.div_ceil(self.unit_sectors) {
                    let (low, high) = (unit * self.unit_sectors, (unit + 1) * self.unit_sectors);
                    let expected = &mut self.expected[unit as usize];
                    *expected = if start <= low && high <= end {
                        Stamp::whole(content, (low - start) as u32)
                    } else {
                        let (from, to) = (start.max(low), end.min(high));
                        expected.overwritten(content, (from - low) as u32, (to - from) as u32)
                    };
                }
            }
            HostOp::Trim => {
                let whole = start.div_ceil(self.unit_sectors)..end / self.unit_sectors;
                if whole.start < whole.end {
                    self.expected[whole.start as usize..whole.end as usize].fill(Stamp::ZERO);
                }
            }
            HostOp::Read | HostOp::Flush => {}
        }
    }

    /// Notes a request that was carried out only in part; [`Oracle::apply`] notes a whole request.
    ///
    /// A unit that still holds its old version must keep it. `held` returns the stamp of a unit, if
    /// the unit can be read.
    pub fn apply_partly(&mut self, r: &Request, content: u64, held: impl Fn(Lpn) -> Option<Stamp>) {
        let units = r.lba.0 / self.unit_sectors
            ..(r.lba.0 + u64::from(r.sectors)).div_ceil(self.unit_sectors);
        let before = self.expected[units.start as usize..units.end as usize].to_vec();
        self.apply(r, content);
        for (unit, old) in units.zip(before) {
            if held(Lpn(unit as u32)) == Some(old) {
                self.expected[unit as usize] = old;
            }
        }
    }

    /// Expects `held` in a unit from now on. Returns the version that was expected before.
    pub fn accept(&mut self, unit: Lpn, held: Stamp) -> Stamp {
        std::mem::replace(&mut self.expected[unit.0 as usize], held)
    }

    /// Loads the expected stamps of units that are about to be read or written into the CPU's
    /// caches.
    #[inline]
    pub fn prefetch(&self, units: &[Lpn]) {
        for unit in units {
            prefetch::item_at(&self.expected, unit.0 as usize);
        }
    }

    /// Compares the stamps that a read returned with the expected stamps.
    #[inline]
    pub fn compare(&mut self, r: &Request, stamps: &[Stamp], request: u64) {
        let first = (r.lba.0 / self.unit_sectors) as usize;
        let count = ((r.lba.0 + u64::from(r.sectors)).div_ceil(self.unit_sectors)) as usize - first;
        self.units_checked += count as u64;
        assert!(stamps.len() == count, "a read of {count} units returned {} units", stamps.len());
        if &self.expected[first..first + count] != stamps {
            self.violated(first, stamps, request);
        }
    }

    #[cold]
    fn violated(&mut self, first: usize, stamps: &[Stamp], request: u64) {
        for (i, &found) in stamps.iter().enumerate() {
            let expected = self.expected[first + i];
            if found != expected {
                self.note(first + i, expected, found, &format!("request {request}"));
            }
        }
    }

    fn note(&mut self, lpn: usize, expected: Stamp, found: Stamp, when: &str) {
        self.violations += 1;
        if self.described.len() < DESCRIBED {
            self.described.push(format!(
                "{when}: page {lpn} holds {:#010x} instead of {:#010x}",
                found.0, expected.0
            ));
        }
    }

    /// Returns the units that must be empty.
    pub fn empty(&self) -> impl Iterator<Item = Lpn> + '_ {
        self.expected.iter().zip(0..).filter(|(e, _)| **e == Stamp::ZERO).map(|(_, lpn)| Lpn(lpn))
    }

    /// Returns the stamps that the units must hold.
    pub fn into_expected(self) -> Vec<Stamp> {
        self.expected
    }

    pub fn units(&self) -> u32 {
        self.expected.len() as u32
    }

    /// Returns `true` if `found` is the sum of the stamps of all pages after the last request.
    ///
    /// All pages then count as swept.
    pub fn sweep_at_once(&mut self, found: StampSum) -> bool {
        let share = share(self.expected.len(), WORTH_A_THREAD);
        let shares = (0..).step_by(share).zip(self.expected.chunks(share));
        let sums = at_once(shares, |(first, expected)| {
            (first..).map(Lpn).zip(expected.iter().copied()).collect::<StampSum>()
        });
        let same = found == sums.into_iter().sum();
        if same {
            self.units_swept += self.expected.len() as u64;
        }
        same
    }

    /// Compares one page after the last request.
    pub fn sweep(&mut self, lpn: u32, found: Stamp) {
        self.units_swept += 1;
        let expected = self.expected[lpn as usize];
        if found != expected {
            self.note(lpn as usize, expected, found, "after the run");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Lba, Ps};

    fn request(op: HostOp, lba: u64, sectors: u32) -> Request {
        Request { at: Ps::ZERO, op, lba: Lba(lba), sectors, fua: false }
    }

    #[test]
    fn a_stale_page_is_a_violation() {
        let mut oracle = Oracle::new(4, 8);
        oracle.apply(&request(HostOp::Write, 0, 16), 1);
        let old = [Stamp::whole(1, 0), Stamp::whole(1, 8)];
        oracle.compare(&request(HostOp::Read, 0, 16), &old, 2);
        assert_eq!((oracle.units_checked, oracle.violations), (2, 0));
        oracle.apply(&request(HostOp::Write, 9, 1), 3);
        oracle.compare(&request(HostOp::Read, 0, 16), &old, 4);
        assert_eq!(oracle.violations, 1, "{:?}", oracle.described);
        oracle.compare(&request(HostOp::Read, 8, 8), &[old[1].overwritten(3, 1, 1)], 5);
        assert_eq!(oracle.violations, 1);
        oracle.apply(&request(HostOp::Trim, 7, 9), 6);
        oracle.compare(&request(HostOp::Read, 0, 16), &[old[0], Stamp::ZERO], 7);
        assert_eq!(oracle.violations, 1, "a trim empties only the units that it covers whole");
        let mut held = StampSum::default();
        held.add(Lpn(0), old[0]);
        assert!(oracle.sweep_at_once(held));
        assert_eq!((oracle.violations, oracle.units_swept), (1, 4));
        held.add(Lpn(1), old[0]);
        assert!(!oracle.sweep_at_once(held), "page 1 was trimmed");
        oracle.units_swept = 0;
        oracle.sweep(0, Stamp::ZERO);
        assert_eq!((oracle.violations, oracle.units_swept), (2, 1));
        assert_eq!(oracle.described.len(), 2);
    }
}
