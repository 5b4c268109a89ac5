//! fio's random map: the blocks of a file that a pass has used, as a bitmap with summaries.

/// Bitmap with one bit for each block.
///
/// In each higher level, a bit is set if the word below it is full.
#[derive(Clone, Debug)]
pub(super) struct BlockMap {
    blocks: u64,
    levels: Vec<Vec<u64>>,
}

impl BlockMap {
    /// Returns a map of `blocks` unused blocks. The caller must bound `blocks`.
    pub fn new(blocks: u64) -> BlockMap {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(64).max(1);
            let mut level = vec![0u64; words as usize];
            // bits past the end count as used, so that no search finds them
            for bit in bits..words * 64 {
                level[(bit / 64) as usize] |= 1 << (bit % 64);
            }
            levels.push(level);
            if words == 1 {
                return BlockMap { blocks, levels };
            }
            bits = words;
        }
    }

    /// Returns `true` if `block` is used; a block beyond the end counts as unused.
    pub fn used(&self, block: u64) -> bool {
        block < self.blocks && self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// Marks `block` and the blocks after it up to the first used block, at most `count` blocks.
    ///
    /// Returns the number of marked blocks, or 1 if `block` itself was used.
    pub fn mark(&mut self, block: u64, count: u64) -> u64 {
        let mut marked = 0;
        while marked < count && block + marked < self.blocks && !self.used(block + marked) {
            self.set(block + marked);
            marked += 1;
        }
        marked.max(1)
    }

    fn set(&mut self, mut bit: u64) {
        for level in &mut self.levels {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                break;
            }
            bit /= 64;
        }
    }

    /// Returns the first free block after `block`, or else the first free block of the file.
    ///
    /// Returns `None` if all blocks are used.
    pub fn next_free(&self, block: u64) -> Option<u64> {
        self.free_from(block + 1).or_else(|| self.free_from(0))
    }

    fn free_from(&self, start: u64) -> Option<u64> {
        let (mut bit, mut level) = (start, 0);
        loop {
            let words = self.levels.get(level)?;
            let word = words.get((bit / 64) as usize)?;
            let free = !word & (u64::MAX << (bit % 64));
            if free != 0 {
                bit = bit / 64 * 64 + u64::from(free.trailing_zeros());
                break;
            }
            (bit, level) = (bit / 64 + 1, level + 1);
        }
        while level > 0 {
            level -= 1;
            bit = bit * 64 + u64::from((!self.levels[level][bit as usize]).trailing_zeros());
        }
        Some(bit)
    }

    /// Marks all blocks as free.
    pub fn reset(&mut self) {
        *self = BlockMap::new(self.blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_find_what_a_plain_list_finds() {
        for blocks in [1u64, 2, 63, 64, 65, 4096, 4097, 10_000] {
            let mut map = BlockMap::new(blocks);
            let mut used = vec![false; blocks as usize];
            let mut at = 0u64;
            for turn in 0..blocks {
                at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041 + turn)
                    % blocks;
                let expected = (at + 1..blocks).chain(0..=at).find(|&b| !used[b as usize]);
                assert_eq!(map.next_free(at), expected, "{blocks} {at}");
                let block = expected.unwrap();
                assert!(!map.used(block));
                assert_eq!(map.mark(block, 1), 1);
                used[block as usize] = true;
                assert!(map.used(block));
            }
            assert_eq!(map.next_free(0), None);
            map.reset();
            assert_eq!(map.next_free(blocks - 1), Some(0));
        }
    }

    #[test]
    fn a_run_of_blocks_ends_at_the_first_used_one() {
        let mut map = BlockMap::new(100);
        map.mark(70, 1);
        assert_eq!(map.mark(60, 16), 10);
        assert_eq!(map.mark(98, 16), 2);
        assert_eq!(map.next_free(59), Some(71));
    }
}
