//! The reference for LAST.

use super::area::Area;
use super::store::{BlockId, Shape, Store};
use super::{AreaSize, Reference};
use std::collections::VecDeque;

/// Settings of LAST.
#[derive(Clone, Copy, Debug)]
pub struct LastRules {
    pub sequential_pages: u32,
    pub sequential_blocks: usize,
    pub hot_blocks: usize,
    pub cold_blocks: usize,
    /// Log blocks that idle time keeps free.
    pub idle_blocks: usize,
    /// Zero stands for the number of pages in `hot_blocks` blocks.
    pub hot_window: usize,
    pub hot_window_adaptive: bool,
    pub t_read: u64,
    pub t_program: u64,
    pub t_erase: u64,
}

pub struct Last {
    rules: LastRules,
    store: Store,
    hot: Area,
    cold: Area,
    /// The page after the last sequential request.
    sequential_end: Option<u32>,
    /// The last pages that the host wrote to the random log. A page appears once for each write.
    recent: VecDeque<u32>,
    hot_window: usize,
}

impl Last {
    pub fn new(shape: Shape, rules: LastRules) -> Last {
        let hot_window = match rules.hot_window {
            0 => rules.hot_blocks * shape.block_pages as usize,
            pages => pages,
        };
        Last {
            rules,
            store: Store::new(shape, rules.sequential_blocks),
            hot: Area::new("hot", rules.hot_blocks),
            cold: Area::new("cold", rules.cold_blocks),
            sequential_end: None,
            recent: VecDeque::new(),
            hot_window,
        }
    }

    fn write_page(&mut self, page: u32, sequential: bool) {
        self.store.clock += 1;
        if self.store.write_in_place(page) {
            return;
        }
        if sequential {
            return self.write_sequential(page);
        }
        if self.recent.contains(&page) {
            self.make_hot_room();
            self.hot.append_host(&mut self.store, page);
        } else {
            make_cold_room(&mut self.cold, &mut self.store, &self.rules);
            self.cold.append_host(&mut self.store, page);
        }
        self.recent.push_back(page);
        while self.recent.len() > self.hot_window {
            self.recent.pop_front();
        }
    }

    fn write_sequential(&mut self, page: u32) {
        let (lbn, offset) = (self.store.lbn(page), self.store.offset(page));
        if let Some(log) = self.store.sequential_block(lbn) {
            if offset >= self.store.write_pointer(log) {
                return self.store.append_sequential(page);
            }
            self.store.merge_sequential(lbn, None);
        }
        self.store.begin_sequential(page);
    }

    fn make_hot_room(&mut self) {
        while self.hot.is_full(&self.store) {
            if self.hot.erase_dead(&mut self.store) {
                self.adapt_window(0);
                continue;
            }
            let oldest = self.hot.closed(&self.store)[0];
            self.adapt_window(self.store.valid(oldest).len());
            self.hot.remove(oldest);
            self.cold.take_pages(&mut self.store, oldest, |cold, store| {
                make_cold_room(cold, store, &self.rules)
            });
        }
    }

    /// Adapts the window when the hot area gives up a block with `valid` valid pages.
    fn adapt_window(&mut self, valid: usize) {
        if !self.rules.hot_window_adaptive {
            return;
        }
        let block = self.store.shape.block_pages as usize;
        if valid == 0 {
            self.hot_window = (self.hot_window + block).min(2 * self.rules.hot_blocks * block);
        } else if 2 * valid > block {
            self.hot_window = self.hot_window.saturating_sub(block).max(block);
        }
    }
}

fn make_cold_room(cold: &mut Area, store: &mut Store, rules: &LastRules) {
    while cold.is_full(store) {
        reclaim_cold(cold, store, rules);
    }
}

fn reclaim_cold(cold: &mut Area, store: &mut Store, rules: &LastRules) {
    if cold.erase_dead(store) {
        return;
    }
    // among blocks with the same cost, the first is taken
    let victim =
        cold.closed(store).into_iter().min_by_key(|&block| cost(store, rules, block)).unwrap();
    store.reclaim(victim);
    cold.remove(victim);
}

fn cost(store: &Store, rules: &LastRules, block: BlockId) -> u64 {
    let of_lbn = |lbn| {
        let erase = if store.has_data_block(lbn) { rules.t_erase } else { 0 };
        u64::from(store.live(lbn)) * (rules.t_read + rules.t_program) + erase
    };
    store.associated(block).into_iter().map(of_lbn).sum::<u64>() + rules.t_erase
}

impl Reference for Last {
    fn write(&mut self, first: u32, pages: u32) {
        let sequential = pages >= self.rules.sequential_pages || self.sequential_end == Some(first);
        if sequential {
            self.sequential_end = Some(first + pages);
        }
        for page in first..first + pages {
            self.write_page(page, sequential);
        }
    }

    fn idle(&mut self) {
        while self.cold.is_short(&self.store, self.rules.idle_blocks) {
            reclaim_cold(&mut self.cold, &mut self.store, &self.rules);
        }
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    fn areas(&self) -> Vec<AreaSize> {
        vec![self.store.sequential_size(), self.hot.size(), self.cold.size()]
    }
}
