//! The reference for FASTer.

use super::area::Area;
use super::store::{BlockId, Shape, Store};
use super::{AreaSize, Reference};
use std::collections::BTreeSet;

/// Number of blocks that the isolation area should always be able to open.
const READY: usize = 2;

/// Settings of FASTer.
#[derive(Clone, Copy, Debug)]
pub struct FasterRules {
    pub log_blocks: usize,
    /// Zero stands for a fifth of the log blocks.
    pub isolation_blocks: usize,
    pub isolation_interval: u64,
    pub sequential_pages: u32,
    /// Log blocks that idle time keeps free in the isolation area.
    pub idle_blocks: usize,
}

pub struct Faster {
    rules: FasterRules,
    store: Store,
    /// The circle, oldest block first.
    random: Area,
    isolation: Area,
    /// Pages on their second chance.
    second_chance: BTreeSet<u32>,
    /// Pages that the host wrote to the circle since the last step of draining the isolation area.
    entered: u64,
    /// The block of the isolation area whose logical block was merged last.
    draining: Option<BlockId>,
    /// The page that would continue the host's run, and the length of the run so far.
    next: u32,
    run: u32,
}

impl Faster {
    pub fn new(shape: Shape, rules: FasterRules) -> Faster {
        let isolation = match rules.isolation_blocks {
            0 => rules.log_blocks / 5,
            blocks => blocks,
        };
        Faster {
            rules,
            store: Store::new(shape, 1),
            random: Area::new("random", rules.log_blocks - 1 - isolation),
            isolation: Area::new("isolation", isolation),
            second_chance: BTreeSet::new(),
            entered: 0,
            draining: None,
            next: 0,
            run: 0,
        }
    }

    fn write_page(&mut self, page: u32) {
        self.store.clock += 1;
        self.run = if page == self.next { self.run + 1 } else { 1 };
        self.next = page + 1;
        self.second_chance.remove(&page);
        if self.store.write_in_place(page) || self.store.write_sequential(page) {
            return;
        }
        if self.run > self.rules.sequential_pages {
            return self.store.begin_sequential_amid(page);
        }
        self.make_room();
        self.random.append_host(&mut self.store, page);
        // `make_room` may have put the old version on its second chance
        self.second_chance.remove(&page);
        self.entered += 1;
        if self.entered >= self.rules.isolation_interval
            && self.isolation.is_short(&self.store, READY)
        {
            self.drain();
            self.entered = 0;
        }
    }

    fn make_room(&mut self) {
        if self.random.filling(&self.store).is_some() {
            return;
        }
        self.random.ready(&mut self.store);
        while !self.random.may_open() {
            let victim = self.random.closed(&self.store)[0];
            let valid = self.store.valid(victim);
            let second = |page: &u32| self.second_chance.contains(page);
            if valid.is_empty() {
                self.random.erase_dead(&mut self.store);
            } else if valid.len() as u32 == self.store.shape.block_pages
                && !valid.iter().any(second)
            {
                self.second_chance.extend(valid);
                self.random.blocks.retain(|&block| block != victim);
                self.random.blocks.push(victim);
            } else {
                self.empty(victim);
            }
        }
    }

    /// Copies the valid pages of the oldest block to the head of the circle or to the isolation
    /// area.
    fn empty(&mut self, victim: BlockId) {
        let valid = self.store.valid(victim);
        let few = 2 * valid.len() < self.store.shape.block_pages as usize;
        for page in valid {
            let is_cold = !few && self.second_chance.contains(&page);
            if is_cold {
                self.make_isolation_room();
                // a block is opened even if a merge has taken the page
                self.isolation.ready(&mut self.store);
            }
            // a merge may have taken the page
            if self.store.place(page).is_none_or(|(block, _)| block != victim) {
                continue;
            }
            let target = if is_cold { &mut self.isolation } else { &mut self.random };
            target.append_moved(&mut self.store, page);
            self.second_chance.insert(page);
        }
        self.random.remove(victim);
        self.store.erase(victim);
        self.store.counts.log_moved += 1;
    }

    fn make_isolation_room(&mut self) {
        while self.isolation.is_full(&self.store) {
            self.drain();
        }
    }

    /// Does one step to empty a block of the isolation area: merges a logical block of the oldest
    /// block, or erases that block if it has no valid page left.
    fn drain(&mut self) {
        let log = self.isolation.closed(&self.store)[0];
        if let Some(&page) = self.store.valid(log).first() {
            self.draining = Some(log);
            return self.store.merge_newest(self.store.lbn(page));
        }
        self.isolation.remove(log);
        self.store.erase(log);
        let counts = &mut self.store.counts;
        let merged = self.draining == Some(log);
        *if merged { &mut counts.log_full } else { &mut counts.log_dead } += 1;
    }
}

impl Reference for Faster {
    fn write(&mut self, first: u32, pages: u32) {
        (first..first + pages).for_each(|page| self.write_page(page));
    }

    fn idle(&mut self) {
        while self.isolation.is_short(&self.store, self.rules.idle_blocks) {
            self.drain();
        }
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    fn areas(&self) -> Vec<AreaSize> {
        vec![self.store.sequential_size(), self.random.size(), self.isolation.size()]
    }
}
