//! Table of the units whose content is known to be equal on all drives of a mirror (*alike*).

use std::ops::Range;

/// One bit for each unit, which is set if the unit is known to be alike.
pub(super) struct Alike {
    words: Vec<u64>,
    units: u32,
    /// Number of units that may differ between drives (*unsure* units).
    unsure: u32,
    /// Unit before which no unit is unsure.
    from: u32,
}

impl Alike {
    /// Returns a table of `units` units, all alike or all unsure.
    pub fn new(units: u32, alike: bool) -> Alike {
        let words = vec![if alike { u64::MAX } else { 0 }; units.div_ceil(64) as usize];
        Alike { words, units, unsure: if alike { 0 } else { units }, from: 0 }
    }

    /// Returns the number of units that are unsure.
    pub fn unsure(&self) -> u32 {
        self.unsure
    }

    /// Returns `true` if a unit is known to be alike.
    #[inline]
    pub fn is(&self, unit: u32) -> bool {
        self.words[unit as usize / 64] >> (unit % 64) & 1 == 1
    }

    /// Returns `true` if all of these units are known to be alike.
    #[inline]
    pub fn are(&self, mut units: Range<u32>) -> bool {
        self.unsure == 0 || units.all(|unit| self.is(unit))
    }

    /// Notes that these units are alike from now on.
    #[inline]
    pub fn note(&mut self, units: Range<u32>) {
        if self.unsure == 0 {
            return;
        }
        for unit in units {
            let word = &mut self.words[unit as usize / 64];
            self.unsure -= u32::from(*word >> (unit % 64) & 1 == 0);
            *word |= 1 << (unit % 64);
        }
    }

    /// Returns the first run of unsure units at or after `least`, of at most `most` units.
    ///
    /// Returns `None` if no unit at or after `least` is unsure.
    pub fn next_unsure(&mut self, least: u32, most: u32) -> Option<Range<u32>> {
        if self.unsure == 0 {
            return None;
        }
        let first = (self.from.max(least)..self.units).find(|&unit| !self.is(unit))?;
        if least <= self.from {
            self.from = first;
        }
        let end = (first..self.units.min(first + most)).find(|&unit| self.is(unit));
        Some(first..end.unwrap_or(self.units.min(first + most)))
    }

    /// Returns the number of bytes of the table.
    pub fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_unsure_units_are_found_in_order() {
        let mut alike = Alike::new(130, false);
        assert_eq!(alike.next_unsure(0, 64), Some(0..64));
        alike.note(0..64);
        alike.note(70..129);
        assert_eq!((alike.next_unsure(0, 64), alike.unsure()), (Some(64..70), 7));
        assert!(alike.are(3..64) && !alike.are(63..65) && alike.are(70..129));
        alike.note(60..80);
        assert_eq!((alike.next_unsure(0, 64), alike.unsure()), (Some(129..130), 1));
        assert_eq!(alike.next_unsure(70, 64), Some(129..130));
        alike.note(129..130);
        assert_eq!((alike.next_unsure(0, 64), alike.unsure()), (None, 0));
        assert!(Alike::new(5, true).are(0..5));
    }
}
