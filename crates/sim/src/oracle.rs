//! The oracle: the stamp that every mapping unit must hold. Every read is compared with it.

use flashatlas_types::{HostOp, Lpn, Request, Stamp, StampSum, Table, at_once, share};
use serde::Serialize;
use std::ops::Range;

/// Number of units with wrong content that are described, counted from the first.
const DESCRIBED: usize = 3;

/// Smallest number of units for a thread: fewer units take less time than starting a thread.
const WORTH_A_THREAD: usize = 1 << 18;

/// The ways in which units were compared after the last request, each with its number of units.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Swept {
    /// Units that were compared one by one.
    pub one_by_one: u64,
    /// Units whose contents were summed up, so that all were compared together.
    pub summed: u64,
    /// Units that nothing had changed since the drive was filled. Their content follows from the
    /// formula of the drive, so it was not looked at.
    pub by_base: u64,
}

impl Swept {
    /// Returns the number of units in all.
    pub fn units(&self) -> u64 {
        self.one_by_one + self.summed + self.by_base
    }
}

/// The expected content of a drive.
pub(crate) struct Oracle {
    /// The stamp of each unit. If the drive was filled, each is combined with the stamp after the
    /// fill (exclusive or), so that the units that were not changed since are zero.
    expected: Table,
    was_filled: bool,
    unit_sectors: u64,
    /// Number of units that reads of the workload compared.
    pub units_checked: u64,
    /// The units that were compared after the last request.
    pub swept: Swept,
    /// Number of units that could not be read any more after the last request.
    pub lost: u64,
    /// Number of units that held another stamp than expected.
    pub violations: u64,
    /// The first violations, in words.
    pub described: Vec<String>,
}

impl Oracle {
    pub fn new(units: u32, unit_sectors: u32) -> Oracle {
        Oracle::over(Table::new(units), unit_sectors)
    }

    /// Returns an oracle that expects `expected`, one stamp a unit.
    pub fn expecting(expected: Vec<Stamp>, unit_sectors: u32) -> Oracle {
        let words: Vec<u32> = expected.into_iter().map(|stamp| stamp.0).collect();
        Oracle::over(words.into(), unit_sectors)
    }

    fn over(expected: Table, unit_sectors: u32) -> Oracle {
        Oracle {
            expected,
            was_filled: false,
            unit_sectors: u64::from(unit_sectors),
            units_checked: 0,
            swept: Swept::default(),
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

    /// Expects the content of a filled drive. This takes no memory.
    pub fn fill(&mut self) {
        (self.expected, self.was_filled) = (Table::growing(self.units()), true);
    }

    /// Returns the stamp for which zero stands in the table.
    #[inline]
    fn zero(&self, unit: Lpn) -> Stamp {
        if self.was_filled { Oracle::filled(unit) } else { Stamp::ZERO }
    }

    /// Returns the expected stamp of a unit.
    #[inline]
    fn get(&self, unit: Lpn) -> Stamp {
        Stamp(self.expected.get(unit.0) ^ self.zero(unit).0)
    }

    /// Expects a stamp. Returns the stamp that was expected before.
    #[inline]
    fn replace(&mut self, unit: Lpn, stamp: Stamp) -> Stamp {
        let zero = self.zero(unit).0;
        Stamp(self.expected.replace(unit.0, stamp.0 ^ zero) ^ zero)
    }

    /// Returns the stamps of all units, in order.
    fn all(&self) -> impl Iterator<Item = Stamp> {
        (0..self.units()).map(|unit| self.get(Lpn(unit)))
    }

    /// Notes a write or trim of the host.
    #[inline]
    pub fn apply(&mut self, r: &Request, content: u64) {
        let (start, end) = (r.lba.0, r.lba.0 + u64::from(r.sectors));
        match r.op {
            HostOp::Write => {
                for unit in start / self.unit_sectors..end.div_ceil(self.unit_sectors) {
                    let (low, high) = (unit * self.unit_sectors, (unit + 1) * self.unit_sectors);
                    let lpn = Lpn(unit as u32);
                    let stamp = if start <= low && high <= end {
                        Stamp::whole(content, (low - start) as u32)
                    } else {
                        let (from, to) = (start.max(low), end.min(high));
                        let old = self.get(lpn);
                        old.overwritten(content, (from - low) as u32, (to - from) as u32)
                    };
                    self.replace(lpn, stamp);
                }
            }
            HostOp::Trim => {
                for unit in start.div_ceil(self.unit_sectors)..end / self.unit_sectors {
                    self.replace(Lpn(unit as u32), Stamp::ZERO);
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
        let units = self.units_of(r);
        let before: Vec<Stamp> = units.clone().map(|unit| self.get(Lpn(unit))).collect();
        self.apply(r, content);
        for (unit, old) in units.map(Lpn).zip(before) {
            if held(unit) == Some(old) {
                self.replace(unit, old);
            }
        }
    }

    /// Returns the units that a request touches.
    #[inline]
    fn units_of(&self, r: &Request) -> Range<u32> {
        let end = (r.lba.0 + u64::from(r.sectors)).div_ceil(self.unit_sectors);
        (r.lba.0 / self.unit_sectors) as u32..end as u32
    }

    /// Expects `held` in a unit from now on. Returns the version that was expected before.
    pub fn accept(&mut self, unit: Lpn, held: Stamp) -> Stamp {
        self.replace(unit, held)
    }

    /// Loads the expected stamps of units that are about to be read or written into the CPU's
    /// caches.
    #[inline]
    pub fn prefetch(&self, units: &[Lpn]) {
        for unit in units {
            self.expected.prefetch(unit.0);
        }
    }

    /// Compares the stamps that a read returned with the expected stamps.
    #[inline]
    pub fn compare(&mut self, r: &Request, stamps: &[Stamp], request: u64) {
        let units = self.units_of(r);
        let count = units.len();
        self.units_checked += count as u64;
        assert!(stamps.len() == count, "a read of {count} units returned {} units", stamps.len());
        if units.clone().zip(stamps).any(|(unit, &stamp)| self.get(Lpn(unit)) != stamp) {
            self.violated(units, stamps, request);
        }
    }

    #[cold]
    fn violated(&mut self, units: Range<u32>, stamps: &[Stamp], request: u64) {
        for (unit, &found) in units.map(Lpn).zip(stamps) {
            let expected = self.get(unit);
            if found != expected {
                self.note(unit, expected, found, &format!("request {request}"));
            }
        }
    }

    fn note(&mut self, lpn: Lpn, expected: Stamp, found: Stamp, when: &str) {
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
        let empty = (0..self.units()).zip(self.all()).filter(|&(_, stamp)| stamp == Stamp::ZERO);
        empty.map(|(unit, _)| Lpn(unit))
    }

    /// Returns the stamps that the units must hold.
    pub fn into_expected(self) -> Vec<Stamp> {
        self.all().collect()
    }

    pub fn units(&self) -> u32 {
        self.expected.len()
    }

    /// Returns `true` if `found` is the sum of the stamps of all pages after the last request. If
    /// it is a sum of changes, they are the changes since a fill.
    ///
    /// All pages then count as swept. Pages that a sum of changes leaves out count as compared by
    /// the base.
    pub fn sweep_at_once(&mut self, found: StampSum) -> bool {
        let all = u64::from(self.units());
        let (expected, summed) = if found.has_changes_alone() {
            (self.sum_of_changes(), self.expected.changed().count() as u64)
        } else {
            (self.sum_of_all(), all)
        };
        let same = found == expected;
        if same {
            self.swept.summed += summed;
            self.swept.by_base += all - summed;
        }
        same
    }

    fn sum_of_all(&self) -> StampSum {
        let share = share(self.units() as usize, WORTH_A_THREAD) as u32;
        let sums = at_once((0..self.units()).step_by(share as usize), |first| {
            let units = (first..self.units()).take(share as usize).map(Lpn);
            units.map(|unit| (unit, self.get(unit))).collect::<StampSum>()
        });
        sums.into_iter().sum()
    }

    /// Returns the sum of the changes since the drive was filled.
    fn sum_of_changes(&self) -> StampSum {
        let mut sum = StampSum::default();
        for unit in self.expected.changed().map(|(unit, _)| Lpn(unit)) {
            sum.replace(unit, self.zero(unit), self.get(unit));
        }
        sum.count_changes_alone();
        sum
    }

    /// Compares one page after the last request.
    pub fn sweep(&mut self, lpn: u32, found: Stamp) {
        self.swept.one_by_one += 1;
        let expected = self.get(Lpn(lpn));
        if found != expected {
            self.note(Lpn(lpn), expected, found, "after the run");
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
        assert_eq!((oracle.violations, oracle.swept.summed), (1, 4));
        held.add(Lpn(1), old[0]);
        assert!(!oracle.sweep_at_once(held), "page 1 was trimmed");
        oracle.sweep(0, Stamp::ZERO);
        assert_eq!((oracle.violations, oracle.swept.one_by_one), (2, 1));
        assert_eq!(oracle.described.len(), 2);
    }

    #[test]
    fn a_filled_oracle_expects_changes_over_the_fill() {
        let mut filled = Oracle::new(4, 8);
        filled.fill();
        let stamps = (0..4).map(|unit| Oracle::filled(Lpn(unit))).collect();
        let mut listed = Oracle::expecting(stamps, 8);
        for r in [
            request(HostOp::Write, 8, 8),
            request(HostOp::Write, 17, 2),
            request(HostOp::Trim, 24, 8),
        ] {
            filled.apply(&r, 7);
            listed.apply(&r, 7);
        }
        let [zero, one, two] = [0, 1, 2].map(|unit| Oracle::filled(Lpn(unit)));
        let now = [zero, Stamp::whole(7, 0), two.overwritten(7, 1, 2), Stamp::ZERO];
        assert!(filled.empty().eq([Lpn(3)]) && listed.empty().eq([Lpn(3)]));
        let all: StampSum = (0..).map(Lpn).zip(now).collect();
        assert!(filled.sweep_at_once(all) && listed.sweep_at_once(all));
        let mut changes = StampSum::default();
        changes.add(Lpn(1), now[1]);
        changes.add(Lpn(2), now[2]);
        [(1, one), (2, two), (3, Oracle::filled(Lpn(3)))]
            .into_iter()
            .for_each(|(unit, stamp)| changes.remove(Lpn(unit), stamp));
        assert!(!filled.sweep_at_once(changes), "these are not all pages");
        changes.count_changes_alone();
        filled.swept = Swept::default();
        assert!(filled.sweep_at_once(changes) && !listed.sweep_at_once(changes));
        // units 1, 2 and 3 changed
        assert_eq!((filled.swept.summed, filled.swept.by_base), (3, 1));
        assert_eq!(filled.into_expected(), now);
        assert_eq!(listed.into_expected(), now);
    }
}
