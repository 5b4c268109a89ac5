//! The programs that superseded pages of a block. The erase of the block waits for these programs,
//! and for the copies of its valid pages. It need not wait for other operations in flight.

use flashatlas_prefetch as prefetch;
use flashatlas_types::{BlockId, Layout, OpId, TiVec};
use smallvec::SmallVec;

/// The programs that superseded pages of each block and may be unfinished. Most blocks have one or
/// two such programs, which need no allocation.
pub struct Superseded {
    programs: TiVec<BlockId, SmallVec<[OpId; 2]>>,
}

impl Superseded {
    /// Returns the lists of a drive with this layout, all empty.
    pub fn new(layout: &Layout) -> Superseded {
        Superseded { programs: layout.per_block(SmallVec::new()) }
    }

    /// Notes that `program` superseded a page of `block`. Operations before `oldest_unfinished` are
    /// complete.
    #[inline]
    pub fn add(&mut self, block: BlockId, program: OpId, oldest_unfinished: OpId) {
        let programs = &mut self.programs[block];
        if program == OpId::NONE || programs.last() == Some(&program) {
            return;
        }
        if programs.len() == programs.capacity() {
            programs.retain(|op| *op >= oldest_unfinished);
        }
        programs.push(program);
    }

    /// Prefetches a block's list of programs into the CPU cache, because a page of the block will
    /// soon be superseded.
    #[inline]
    pub fn prefetch(&self, block: BlockId) {
        prefetch::item_at(&self.programs.raw, block.into());
    }

    /// Returns the programs that superseded pages of `block` and may be unfinished.
    pub fn unfinished(
        &self,
        block: BlockId,
        oldest_unfinished: OpId,
    ) -> impl Iterator<Item = OpId> + '_ {
        self.programs[block].iter().copied().filter(move |&op| op >= oldest_unfinished)
    }

    /// Removes and returns the programs that the erase of `block` waits for.
    pub fn take(
        &mut self,
        block: BlockId,
        oldest_unfinished: OpId,
    ) -> impl Iterator<Item = OpId> + use<> {
        std::mem::take(&mut self.programs[block])
            .into_iter()
            .filter(move |&op| op >= oldest_unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_fixtures::layouts::lanes;

    #[test]
    fn an_erase_waits_for_the_programs_of_its_own_pages() {
        let mut superseded = Superseded::new(&lanes(1, [2, 1, 1], 1));
        let (a, b) = (BlockId::new(0), BlockId::new(1));
        for (block, program) in [(a, 3), (b, 4), (a, 5), (a, 5), (b, 6)] {
            superseded.add(block, OpId(program), OpId(1));
        }
        superseded.add(a, OpId::NONE, OpId(1));
        assert_eq!(superseded.take(a, OpId(4)).collect::<Vec<_>>(), [OpId(5)], "3 is complete");
        assert_eq!(superseded.take(a, OpId(1)).count(), 0, "the list was emptied");
        assert_eq!(superseded.take(b, OpId(1)).collect::<Vec<_>>(), [OpId(4), OpId(6)]);
    }

    #[test]
    fn what_is_complete_takes_no_room() {
        let mut superseded = Superseded::new(&lanes(1, [1, 1, 1], 1));
        for program in 1..100_000 {
            superseded.add(BlockId::new(0), OpId(program), OpId(program.saturating_sub(3)));
        }
        assert!(
            superseded.programs[BlockId::new(0)].capacity() <= 16,
            "three programs are unfinished at a time"
        );
    }
}
