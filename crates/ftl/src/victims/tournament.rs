//! A tournament tree that tracks the block with the smallest key.

use super::LaneShape;
use flashatlas_types::{Index, LocalBlock, TiVec, ti_vec};

/// A tree of blocks with keys. Its root is the block with the smallest key. A block without a key
/// has `u64::MAX`.
#[derive(Debug)]
pub struct Tournament {
    keys: TiVec<LocalBlock, u64>,
    /// The winner of each match, in heap order from element 1 on, without the leaves.
    winners: Vec<LocalBlock>,
}

impl Tournament {
    /// Builds a tree for the blocks of a lane. No block has a key.
    pub fn new(lane: LaneShape) -> Tournament {
        let leaves = lane.blocks.max(2).index().next_power_of_two();
        let mut winners = vec![LocalBlock::default(); leaves];
        for node in (1..leaves).rev() {
            winners[node] =
                if 2 * node >= leaves { (2 * node - leaves).into() } else { winners[2 * node] };
        }
        Tournament { keys: ti_vec![u64::MAX; leaves], winners }
    }

    /// Changes the key of a block. The update stops at the first match that the block neither won
    /// before nor wins now.
    #[inline]
    pub fn set(&mut self, block: LocalBlock, key: u64) {
        let leaves = self.keys.len();
        self.keys[block] = key;
        let mut node = (block.index() + leaves) / 2;
        while node > 0 {
            let child = |c: usize| if c >= leaves { (c - leaves).into() } else { self.winners[c] };
            let (left, right) = (child(2 * node), child(2 * node + 1));
            let winner = if self.keys[right] < self.keys[left] { right } else { left };
            let before = std::mem::replace(&mut self.winners[node], winner);
            if before != block && winner != block {
                return;
            }
            node /= 2;
        }
    }

    /// Returns the block with the smallest key and this key, or `None` if no block has a key.
    pub fn first(&self) -> Option<(LocalBlock, u64)> {
        let winner = self.winners[1];
        let key = self.keys[winner];
        (key != u64::MAX).then_some((winner, key))
    }

    /// Returns the key of a block, or `None` if it has none.
    pub fn key(&self, block: LocalBlock) -> Option<u64> {
        Some(self.keys[block]).filter(|&k| k != u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Rng, Seed};

    #[test]
    fn agrees_with_a_scan() {
        for blocks in [1, 2, 3, 7, 8, 33] {
            let mut tree = Tournament::new(LaneShape { blocks, slots: 1 });
            let mut keys: TiVec<LocalBlock, u64> = ti_vec![u64::MAX; blocks.index()];
            let mut rng = Rng::stream(Seed(9), "tournament");
            assert_eq!(tree.first(), None);
            for _ in 0..if cfg!(miri) { 40 } else { 2000 } {
                let block = LocalBlock::new(rng.below(u64::from(blocks)) as u32);
                let key = if rng.chance(200_000) { u64::MAX } else { rng.below(50) };
                tree.set(block, key);
                keys[block] = key;
                let best = keys.iter().copied().min().filter(|&k| k != u64::MAX);
                assert_eq!(tree.first().map(|(_, k)| k), best);
                assert!(tree.first().is_none_or(|(b, k)| keys[b] == k));
            }
        }
    }
}
