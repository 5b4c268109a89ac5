//! Flash operations, counted by cause.

use flashatlas_types::Cause;

/// Counts since the last reset, in physical pages and physical blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages read, by [`Cause`].
    pub reads: [u64; Cause::ALL.len()],
    /// Pages programmed, by [`Cause`].
    pub programs: [u64; Cause::ALL.len()],
    /// Blocks erased, by [`Cause`].
    pub erases: [u64; Cause::ALL.len()],
    /// Blocks that a spare block replaced.
    pub replaced_blocks: u64,
    /// Slots programmed without data, because their frame had to be programmed before it was full.
    pub padded_slots: u64,
}

impl Counters {
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
        self.replaced_blocks += other.replaced_blocks;
        self.padded_slots += other.padded_slots;
    }

    /// Returns the sum of a table.
    pub fn total(table: &[u64; Cause::ALL.len()]) -> u64 {
        table.iter().sum()
    }
}
