//! The reference for Superblock FTL.

use super::store::{BlockId, Shape, Store};
use super::{AreaSize, Reference};
use std::cmp::Reverse;

/// Settings of Superblock FTL.
#[derive(Clone, Copy, Debug)]
pub struct SuperblockRules {
    /// Number of blocks in the pool.
    pub log_blocks: usize,
    /// The parameter D.
    pub superblock_blocks: u32,
    /// Number of blocks of the pool that work in idle time keeps free.
    pub idle_blocks: usize,
}

/// The purpose for which a block was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Updates,
    Hot,
}

#[derive(Default)]
struct Superblock {
    /// Blocks of the superblock, oldest first.
    blocks: Vec<(BlockId, Kind)>,
    /// The block for pages that are not hot, and the block for hot pages.
    frontiers: [Option<BlockId>; 2],
    /// Number of logical blocks of the superblock.
    size: usize,
    /// The clock of the last host write to the superblock.
    written: u64,
}

impl Superblock {
    fn of_pool(&self) -> usize {
        self.blocks.len().saturating_sub(self.size)
    }

    fn kind_of(&self, block: BlockId) -> Kind {
        self.blocks.iter().find(|(b, _)| *b == block).expect("the block is in its superblock").1
    }
}

pub struct Superblocks {
    rules: SuperblockRules,
    store: Store,
    all: Vec<Superblock>,
}

impl Superblocks {
    pub fn new(shape: Shape, rules: SuperblockRules) -> Superblocks {
        let mut all = Vec::new();
        let mut left = shape.pages.div_ceil(shape.block_pages);
        while left > 0 {
            let size = left.min(rules.superblock_blocks);
            all.push(Superblock { size: size as usize, ..Superblock::default() });
            left -= size;
        }
        Superblocks { rules, store: Store::new(shape, 0), all }
    }

    fn of_pool(&self) -> usize {
        self.all.iter().map(Superblock::of_pool).sum()
    }

    /// Returns the frontier of a superblock, or `None` if it has no room.
    fn frontier(&self, own: usize, hot: bool) -> Option<BlockId> {
        self.all[own].frontiers[usize::from(hot)]
            .filter(|&block| self.store.write_pointer(block) < self.store.shape.block_pages)
    }

    fn may_open(&self, own: usize) -> bool {
        let Superblock { blocks, size, .. } = &self.all[own];
        blocks.len() < *size || self.of_pool() < self.rules.log_blocks
    }

    fn open(&mut self, own: usize, kind: Kind) -> BlockId {
        let block = self.store.open();
        self.all[own].blocks.push((block, kind));
        self.all[own].frontiers[usize::from(kind == Kind::Hot)] = Some(block);
        block
    }

    fn write_page(&mut self, page: u32) {
        self.store.clock += 1;
        let own = (self.store.lbn(page) / self.rules.superblock_blocks) as usize;
        self.all[own].written = self.store.clock;
        let hot = self
            .store
            .place(page)
            .is_some_and(|(block, _)| self.all[own].kind_of(block) != Kind::Data);
        let block = self.room(own, hot);
        self.store.program_host(block, self.store.write_pointer(block), page);
    }

    /// Returns the block for the next page.
    fn room(&mut self, own: usize, hot: bool) -> BlockId {
        loop {
            if let Some(block) = self.frontier(own, hot) {
                return block;
            }
            if self.may_open(own) {
                let is_data = self.all[own].blocks.len() < self.all[own].size;
                let kind = match (hot, is_data) {
                    (true, _) => Kind::Hot,
                    (false, true) => Kind::Data,
                    (false, false) => Kind::Updates,
                };
                return self.open(own, kind);
            }
            if let Some(block) = self.frontier(own, !hot) {
                return block;
            }
            if self.victim(own).is_some() {
                self.collect(own);
                continue;
            }
            let other = self.richest();
            let before = self.all[other].of_pool();
            while self.all[other].of_pool() == before {
                self.collect(other);
            }
        }
    }

    /// Returns the superblock with the most blocks of the pool. Among equals, the least recently
    /// written is returned.
    fn richest(&self) -> usize {
        let rank = |&own: &usize| (self.all[own].of_pool(), Reverse(self.all[own].written));
        (0..self.all.len()).max_by_key(rank).unwrap()
    }

    /// Returns the full block with the fewest valid pages, or `None` if all pages of full blocks
    /// are valid. Among equals, the oldest is returned.
    fn victim(&self, own: usize) -> Option<BlockId> {
        let open = [false, true].map(|hot| self.frontier(own, hot));
        let valid = |&block: &BlockId| self.store.valid(block).len();
        let blocks = self.all[own].blocks.iter().map(|&(block, _)| block);
        blocks
            .filter(|&block| !open.contains(&Some(block)))
            .min_by_key(valid)
            .filter(|block| valid(block) < self.store.shape.block_pages as usize)
    }

    /// Closes an open block and returns it, for a superblock whose closed blocks have only valid
    /// pages. If the open block for cold pages has an invalid page, that block is closed. Otherwise
    /// the open block for hot pages is closed.
    fn close(&mut self, own: usize) -> BlockId {
        let wasted = self.frontier(own, false).is_some_and(|block| {
            self.store.valid(block).len() < self.store.programmed(block).len()
        });
        self.all[own].frontiers[usize::from(!wasted)].take().expect("one of them has room")
    }

    fn collect(&mut self, own: usize) {
        let victim = self.victim(own).unwrap_or_else(|| self.close(own));
        let valid = self.store.valid(victim);
        for &page in &valid {
            let target = match self.frontier(own, false) {
                Some(block) => block,
                // the block comes from the reserve
                None => self.open(own, Kind::Data),
            };
            self.store.program(target, self.store.write_pointer(target), page);
            self.store.counts.moved_pages += 1;
        }
        let superblock = &mut self.all[own];
        superblock.blocks.retain(|&(block, _)| block != victim);
        superblock.frontiers.iter_mut().filter(|f| **f == Some(victim)).for_each(|f| *f = None);
        self.store.erase(victim);
        let counts = &mut self.store.counts;
        *if valid.is_empty() { &mut counts.log_dead } else { &mut counts.log_moved } += 1;
    }
}

impl Reference for Superblocks {
    fn write(&mut self, first: u32, pages: u32) {
        (first..first + pages).for_each(|page| self.write_page(page));
    }

    fn trim(&mut self, page: u32) {
        self.store.forget(page);
    }

    fn idle(&mut self) {
        while self.of_pool() > 0 && self.rules.log_blocks - self.of_pool() < self.rules.idle_blocks
        {
            self.collect(self.richest());
        }
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    fn areas(&self) -> Vec<AreaSize> {
        let data = |s: &Superblock| s.blocks.len() - s.of_pool();
        vec![
            ("data", self.all.iter().map(|s| s.size).sum(), self.all.iter().map(data).sum()),
            ("update", self.rules.log_blocks, self.of_pool()),
        ]
    }
}
