//! Flash operations, counted by cause.

use crate::ErrorCounters;
use flashatlas_types::{BlockMode, Cause, Layout, STEPS_MAX};

/// Counts since the last reset, in physical pages and physical blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages read, by [`Cause`].
    pub reads: [u64; Cause::ALL.len()],
    /// Pages programmed, by [`Cause`].
    pub programs: [u64; Cause::ALL.len()],
    /// Blocks erased, by [`Cause`].
    pub erases: [u64; Cause::ALL.len()],
    /// Pages read, pages programmed and blocks erased in SLC mode. The tables count them as well.
    pub in_slc_mode: [u64; 3],
    /// Pages programmed by copybacks. The table of programs counts them as well.
    pub copybacks: u64,
    /// Pages programmed by step, if programs have several steps. The first step counts in the table
    /// of programs as well.
    pub steps: [u64; STEPS_MAX],
    /// Blocks that a spare block replaced.
    pub replaced_blocks: u64,
    /// Slots programmed without data, because their frame had to be programmed before it was full.
    pub padded_slots: u64,
    /// Reads by the kind of their correction, and failures at random.
    pub errors: ErrorCounters,
}

impl Counters {
    /// Counts pages that are read.
    #[inline]
    pub(crate) fn read(&mut self, cause: Cause, mode: BlockMode, pages: u32) {
        self.reads[cause as usize] += u64::from(pages);
        if mode == BlockMode::Slc {
            self.in_slc_mode[0] += u64::from(pages);
        }
    }

    /// Counts pages that are programmed.
    #[inline]
    pub(crate) fn program(&mut self, cause: Cause, mode: BlockMode, pages: u32) {
        self.programs[cause as usize] += u64::from(pages);
        if mode == BlockMode::Slc {
            self.in_slc_mode[1] += u64::from(pages);
        }
    }

    /// Counts the pages of a frame that is programmed. Its parity has a cause of its own.
    pub(crate) fn program_frame(&mut self, layout: &Layout, cause: Cause, mode: BlockMode) {
        self.program(cause, mode, layout.data_pages_in(mode));
        self.program(Cause::Parity, mode, layout.parity_pages_in(mode));
    }

    /// Counts blocks that are erased.
    #[inline]
    pub(crate) fn erase(&mut self, cause: Cause, mode: BlockMode, blocks: u32) {
        self.erases[cause as usize] += u64::from(blocks);
        if mode == BlockMode::Slc {
            self.in_slc_mode[2] += u64::from(blocks);
        }
    }

    /// Returns the counts of one table that are not zero, each with the name of its cause.
    pub fn by_cause(
        table: &[u64; Cause::ALL.len()],
    ) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Cause::ALL.iter().map(|&c| (c.name(), table[c as usize])).filter(|&(_, n)| n > 0)
    }

    /// Adds the counts of another medium.
    pub fn add(&mut self, other: &Counters) {
        let tables = [
            (&mut self.reads, &other.reads),
            (&mut self.programs, &other.programs),
            (&mut self.erases, &other.erases),
        ];
        for (table, other) in tables {
            table.iter_mut().zip(other).for_each(|(sum, n)| *sum += n);
        }
        self.in_slc_mode.iter_mut().zip(other.in_slc_mode).for_each(|(sum, n)| *sum += n);
        self.steps.iter_mut().zip(other.steps).for_each(|(sum, n)| *sum += n);
        self.copybacks += other.copybacks;
        self.replaced_blocks += other.replaced_blocks;
        self.padded_slots += other.padded_slots;
        self.errors.add(&other.errors);
    }

    /// Returns the sum of a table.
    pub fn total(table: &[u64; Cause::ALL.len()]) -> u64 {
        table.iter().sum()
    }
}
