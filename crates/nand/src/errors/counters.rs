//! Counts of errors.

use super::{Ending, Outcome, STEPS_MAX};

/// Counts of reads by their ending, of corrected bits, and of failures at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounters {
    /// Reads of the parts of a frame on one die. The reads by their ending add up to this number.
    pub reads: u64,
    /// Reads that were corrected after 0, 1, 2, … retries.
    pub by_retries: [u64; STEPS_MAX + 1],
    /// Reads that soft decoding corrected.
    pub soft: u64,
    /// Reads that could not be corrected.
    pub uncorrectable: u64,
    /// Reads that could not be corrected, and whose data was rebuilt from the other dies.
    pub rebuilt: u64,
    /// Reads that could not be corrected, and whose frame is lost.
    pub lost: u64,
    /// Further reads of the flash: retries, and reads for soft decoding.
    pub further_reads: u64,
    /// Pages of planes that these further reads sensed.
    pub further_pages: u64,
    /// Bits that were corrected in the last read of a page.
    pub corrected_bits: u64,
    /// Frames that a mount found beyond correction.
    pub found_unreadable: u64,
    /// Programs that failed by `errors.program_failures`.
    pub program_failures: u64,
    /// Erases that failed by `errors.erase_failures`.
    pub erase_failures: u64,
    /// Reads that failed by `errors.unreadable`.
    pub failed_reads: u64,
}

impl ErrorCounters {
    /// Adds the counts of another medium.
    pub fn add(&mut self, other: &ErrorCounters) {
        let ErrorCounters { by_retries, .. } = other;
        self.by_retries.iter_mut().zip(by_retries).for_each(|(sum, n)| *sum += n);
        for (sum, n) in [
            (&mut self.reads, other.reads),
            (&mut self.soft, other.soft),
            (&mut self.uncorrectable, other.uncorrectable),
            (&mut self.rebuilt, other.rebuilt),
            (&mut self.lost, other.lost),
            (&mut self.further_reads, other.further_reads),
            (&mut self.further_pages, other.further_pages),
            (&mut self.corrected_bits, other.corrected_bits),
            (&mut self.found_unreadable, other.found_unreadable),
            (&mut self.program_failures, other.program_failures),
            (&mut self.erase_failures, other.erase_failures),
            (&mut self.failed_reads, other.failed_reads),
        ] {
            *sum += n;
        }
    }

    /// Counts a read of `pages` pages, and `further` further reads of them.
    pub(super) fn count(&mut self, outcome: Outcome, pages: u32, further: u32) {
        self.reads += 1;
        match outcome.ending {
            Ending::Corrected(retries) => self.by_retries[retries as usize] += 1,
            Ending::Soft => self.soft += 1,
            Ending::Uncorrectable => self.uncorrectable += 1,
        }
        self.corrected_bits += outcome.corrected;
        self.further_reads += u64::from(further);
        self.further_pages += u64::from(further) * u64::from(pages);
    }
}
