//! Sums that represent large sets of pairs. Two sets are compared by comparing two numbers.

use crate::content::mix;
use crate::{Lpn, Stamp};
use std::iter::Sum;

/// A set of pairs of numbers, represented by the sum of one pseudo-random number for each pair.
///
/// Pairs can be added and removed in any order. The sums of two different sets are equal with a
/// probability of 1 in 2^64.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PairSum(u64);

impl PairSum {
    /// Adds a pair.
    #[inline]
    pub fn add(&mut self, a: u32, b: u32) {
        self.0 = self.0.wrapping_add(of_pair(a, b));
    }

    /// Removes a pair.
    #[inline]
    pub fn remove(&mut self, a: u32, b: u32) {
        self.0 = self.0.wrapping_sub(of_pair(a, b));
    }
}

/// The sum of sets: all their pairs together.
impl Sum for PairSum {
    fn sum<I: Iterator<Item = PairSum>>(sets: I) -> PairSum {
        PairSum(sets.fold(0, |all, set| all.wrapping_add(set.0)))
    }
}

/// The contents of pages, as a [`PairSum`] of pages and stamps. Pages whose stamp is
/// [`Stamp::ZERO`] are left out, and so are pages that were never written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StampSum {
    pairs: PairSum,
    /// `true` if the sum counts changes since a base alone. It then adds the contents of changed
    /// pages, and subtracts the contents that these pages had in the base. A sum of changes never
    /// equals a sum of all pages.
    of_changes: bool,
}

impl StampSum {
    /// Adds a page with its stamp.
    #[inline]
    pub fn add(&mut self, lpn: Lpn, stamp: Stamp) {
        if stamp != Stamp::ZERO {
            self.pairs.add(lpn.0, stamp.0);
        }
    }

    /// Removes a page with its stamp.
    #[inline]
    pub fn remove(&mut self, lpn: Lpn, stamp: Stamp) {
        if stamp != Stamp::ZERO {
            self.pairs.remove(lpn.0, stamp.0);
        }
    }

    /// Makes this a sum of the changes since a base.
    pub fn count_changes_alone(&mut self) {
        self.of_changes = true;
    }

    /// Returns whether this is a sum of the changes since a base.
    pub fn has_changes_alone(self) -> bool {
        self.of_changes
    }

    /// Replaces the stamp of a page that was added before.
    pub fn replace(&mut self, lpn: Lpn, old: Stamp, new: Stamp) {
        self.remove(lpn, old);
        self.add(lpn, new);
    }
}

/// The sum of sets: the contents of all their pages.
impl Sum for StampSum {
    fn sum<I: Iterator<Item = StampSum>>(sets: I) -> StampSum {
        sets.fold(StampSum::default(), |all, set| StampSum {
            pairs: [all.pairs, set.pairs].into_iter().sum(),
            of_changes: all.of_changes || set.of_changes,
        })
    }
}

impl FromIterator<(Lpn, Stamp)> for StampSum {
    fn from_iter<I: IntoIterator<Item = (Lpn, Stamp)>>(pages: I) -> StampSum {
        let mut sum = StampSum::default();
        pages.into_iter().for_each(|(lpn, stamp)| sum.add(lpn, stamp));
        sum
    }
}

#[inline]
fn of_pair(a: u32, b: u32) -> u64 {
    mix(u64::from(a) << 32 | u64::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_hold_nothing_are_in_no_sum() {
        let (mut sum, mut other) = (StampSum::default(), StampSum::default());
        sum.add(Lpn(1), Stamp(7));
        sum.add(Lpn(2), Stamp::ZERO);
        assert_ne!(sum, other);
        other.add(Lpn(1), Stamp(3));
        other.replace(Lpn(1), Stamp(3), Stamp(7));
        assert_eq!(sum, other);
        sum.replace(Lpn(1), Stamp(7), Stamp::ZERO);
        sum.replace(Lpn(3), Stamp::ZERO, Stamp(7));
        other.replace(Lpn(1), Stamp(7), Stamp::ZERO);
        other.add(Lpn(3), Stamp(7));
        assert_eq!(sum, other);
        let parts = [vec![(Lpn(1), Stamp::ZERO)], vec![(Lpn(3), Stamp(7))]];
        assert_eq!(parts.into_iter().map(StampSum::from_iter).sum::<StampSum>(), sum);
    }

    #[test]
    fn a_sum_is_of_pairs_in_any_order() {
        let of = |pairs: &[(u32, u32)]| {
            let mut sum = PairSum::default();
            pairs.iter().for_each(|&(a, b)| sum.add(a, b));
            sum
        };
        let all = of(&[(0, 7), (1, 7), (2, 9)]);
        assert_eq!(all, of(&[(2, 9), (0, 7), (1, 7)]));
        for others in [
            &[(0, 7), (1, 9), (2, 7)][..], // the same numbers in other pairs
            &[(7, 0), (7, 1), (9, 2)],
            &[(0, 8), (1, 6), (2, 9)],
            &[(0, 7), (1, 7), (2, 9), (0, 0)],
            &[(0, 7), (1, 7), (1, 7), (2, 9)],
        ] {
            assert_ne!(all, of(others), "{others:?}");
        }
        let mut sum = of(&[(3, 3), (0, 7), (1, 7)]);
        sum.remove(3, 3);
        assert_eq!([sum, of(&[(2, 9)])].into_iter().sum::<PairSum>(), all);
    }
}
