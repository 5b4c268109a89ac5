//! The reference for MAST.

use super::area::Area;
use super::store::{BlockId, Shape, Store};
use super::{AreaSize, Reference};

/// Settings of MAST. Shares are in millionths.
#[derive(Clone, Copy, Debug)]
pub struct MastRules {
    pub sequential_blocks: usize,
    pub locality_blocks: usize,
    pub hot_blocks: usize,
    pub cold_blocks: usize,
    /// Number of log blocks that work in idle time keeps free.
    pub idle_blocks: usize,
    pub migrate_valid: u64,
    /// `true` for `ftl.migrate=copy`.
    pub never_migrate: bool,
    /// `true` for `ftl.recency=fifo`.
    pub fifo: bool,
    pub cold_victim: ColdVictim,
    /// `true` for `ftl.cold_update=hot`.
    pub cold_update_is_hot: bool,
    /// `true` for `ftl.sequential_hit=hot`.
    pub sequential_hit_is_hot: bool,
    pub resize_window: u64,
    pub cold_utilisation: i64,
    pub hot_utilisation: i64,
    pub resize_slope: i64,
    /// `true` for `ftl.resize_hot=hot`.
    pub resize_hot_is_hot: bool,
    pub resize_band: i64,
    /// `true` for `ftl.resize_by=reclaim`.
    pub resize_reclaims: bool,
}

/// The rule that selects the block to reclaim in the cold area (CA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColdVictim {
    Associated,
    Valid,
    Ratio,
}

pub struct Mast {
    rules: MastRules,
    store: Store,
    locality: Area,
    hot: Area,
    cold: Area,
    hot_trend: Trend,
    cold_trend: Trend,
    /// State of the previous window. `fell` is `true` if the trend of CA fell, `resized` if a size
    /// changed.
    fell: bool,
    resized: bool,
    /// Number of blocks that CA gave to LA and has not received back.
    lent: u32,
}

/// A running mean of a share.
#[derive(Default)]
struct Trend {
    mean: Option<i64>,
}

impl Trend {
    /// Adds the share of a window, unless it is `None`, and returns the slope of the mean.
    fn follow(&mut self, share: Option<i64>) -> i64 {
        let Some(share) = share else { return 0 };
        let old = self.mean.unwrap_or(share);
        let new = if self.mean.is_none() { share } else { (old + share) / 2 };
        self.mean = Some(new);
        new - old
    }
}

impl Mast {
    pub fn new(shape: Shape, rules: MastRules) -> Mast {
        Mast {
            rules,
            store: Store::new(shape, rules.sequential_blocks),
            locality: Area::new("locality", rules.locality_blocks),
            hot: Area::new("hot", rules.hot_blocks),
            cold: Area::new("cold", rules.cold_blocks),
            hot_trend: Trend::default(),
            cold_trend: Trend::default(),
            fell: false,
            resized: false,
            lent: 0,
        }
    }

    fn write_page(&mut self, page: u32) {
        // the test comes before the write: the write may merge the sequential log block in which
        // the test looks for the page
        let is_hot = self.is_hot(page);
        if self.store.write_in_place(page) || self.store.write_sequential(page) {
            return;
        }
        if is_hot {
            self.make_hot_room();
            self.hot.append_host(&mut self.store, page);
        } else {
            self.make_locality_room();
            self.locality.append_host(&mut self.store, page);
        }
    }

    fn is_hot(&self, page: u32) -> bool {
        let Some((block, _)) = self.store.place(page) else { return false };
        self.hot.blocks.contains(&block)
            || self.locality.blocks.contains(&block)
            || self.rules.cold_update_is_hot && self.cold.blocks.contains(&block)
            || self.rules.sequential_hit_is_hot
                && self.store.sequential_block(self.store.lbn(page)) == Some(block)
    }

    // Room.

    fn make_locality_room(&mut self) {
        while self.locality.is_full(&self.store) {
            self.free_locality();
        }
    }

    fn free_locality(&mut self) {
        if self.locality.erase_dead(&mut self.store) {
            return;
        }
        let victim = self.least_recent(&self.locality);
        if !self.migrates(victim) {
            self.locality.remove(victim);
            self.move_to_cold(victim);
        } else if self.cold.may_open() {
            self.locality.remove(victim);
            self.cold.blocks.push(victim);
            self.store.counts.migrated += 1;
        } else {
            reclaim_cold(&mut self.cold, &mut self.store, self.rules.cold_victim);
        }
    }

    fn migrates(&self, victim: BlockId) -> bool {
        let share = self.rules.migrate_valid * u64::from(self.store.shape.block_pages);
        let least = share.div_ceil(1_000_000).max(1);
        !self.rules.never_migrate && self.store.valid(victim).len() as u64 >= least
    }

    fn make_hot_room(&mut self) {
        while self.hot.is_full(&self.store) {
            if !self.hot.erase_dead(&mut self.store) {
                let victim = self.least_recent(&self.hot);
                self.hot.remove(victim);
                self.move_to_cold(victim);
            }
        }
    }

    /// Returns the least recently touched closed block. Among equals, the oldest is returned.
    fn least_recent(&self, area: &Area) -> BlockId {
        let touched =
            |&block: &BlockId| if self.rules.fifo { 0 } else { self.store.touched(block) };
        area.closed(&self.store)
            .into_iter()
            .min_by_key(touched)
            .expect("a full area has closed blocks")
    }

    fn move_to_cold(&mut self, log: BlockId) {
        let by = self.rules.cold_victim;
        self.cold.take_pages(&mut self.store, log, |cold, store| {
            while cold.is_full(store) {
                reclaim_cold(cold, store, by);
            }
        });
    }

    // Sizes.

    fn look_at_sizes(&mut self) {
        let (share_cold, share_hot) = (self.share(&self.cold), self.share(&self.hot));
        let slope_cold = self.cold_trend.follow(share_cold);
        let slope_hot = self.hot_trend.follow(share_hot);
        let falls = slope_cold < -self.rules.resize_slope;
        let fell_twice = falls && self.fell;
        self.fell = falls;
        if std::mem::take(&mut self.resized) {
            return;
        }
        let log_blocks = self.store.sequential_budget
            + self.locality.budget
            + self.hot.budget
            + self.cold.budget;
        let above = |share: Option<i64>, bound: i64| share.is_some_and(|share| share > bound);
        if share_cold.is_some_and(|share| share < self.rules.cold_utilisation || fell_twice) {
            let least = (log_blocks / 4).clamp(2, 16);
            if self.cold.budget > least && self.cold_can_do_without() {
                self.cold.budget -= 1;
                self.locality.budget += 1;
                self.lent += 1;
                self.resized = true;
            }
        } else if above(share_hot, self.rules.hot_utilisation)
            && slope_hot > self.rules.resize_slope
        {
            self.locality_gives(self.rules.resize_hot_is_hot);
        } else if self.lent > 0
            && above(share_cold, self.rules.cold_utilisation + self.rules.resize_band)
        {
            self.locality_gives(false);
        }
    }

    fn cold_can_do_without(&mut self) -> bool {
        if !self.cold.may_open() && !self.cold.erase_dead(&mut self.store) {
            if !self.rules.resize_reclaims {
                return false;
            }
            while !self.cold.may_open() {
                reclaim_cold(&mut self.cold, &mut self.store, self.rules.cold_victim);
            }
        }
        true
    }

    fn locality_gives(&mut self, to_hot: bool) {
        if self.locality.budget <= 2 {
            return;
        }
        if !self.locality.may_open() && !self.locality.erase_dead(&mut self.store) {
            if !self.rules.resize_reclaims {
                return;
            }
            while !self.locality.may_open() {
                self.free_locality();
            }
        }
        self.locality.budget -= 1;
        if to_hot {
            self.hot.budget += 1;
        } else {
            self.cold.budget += 1;
            self.lent = self.lent.saturating_sub(1);
        }
        self.resized = true;
    }

    /// Returns the share of valid pages among all pages of the area's blocks, in millionths.
    fn share(&self, area: &Area) -> Option<i64> {
        let valid: usize = area.blocks.iter().map(|&block| self.store.valid(block).len()).sum();
        let pages = area.blocks.len() * self.store.shape.block_pages as usize;
        (pages > 0).then(|| (valid * 1_000_000 / pages) as i64)
    }
}

fn reclaim_cold(cold: &mut Area, store: &mut Store, by: ColdVictim) {
    if cold.erase_dead(store) {
        return;
    }
    // among equal blocks, the first is taken
    let victim = cold.closed(store).into_iter().min_by_key(|&block| {
        let (valid, associated) =
            (store.valid(block).len() as i64, store.associated(block).len() as i64);
        match by {
            ColdVictim::Associated => (associated, -valid),
            ColdVictim::Valid => (-valid, associated),
            ColdVictim::Ratio => (-((valid << 32) / associated), 0),
        }
    });
    let victim = victim.expect("CA has at least two blocks");
    match store.only_lbn(victim) {
        Some(lbn) if store.sequential_block(lbn).is_none() => store.merge_ordered(victim, lbn),
        _ => store.reclaim(victim),
    }
    cold.remove(victim);
}

impl Reference for Mast {
    fn write(&mut self, first: u32, pages: u32) {
        for page in first..first + pages {
            self.store.clock += 1;
            self.write_page(page);
            if self.rules.resize_window != 0 && self.store.clock % self.rules.resize_window == 0 {
                self.look_at_sizes();
            }
        }
    }

    fn idle(&mut self) {
        while self.cold.is_short(&self.store, self.rules.idle_blocks) {
            reclaim_cold(&mut self.cold, &mut self.store, self.rules.cold_victim);
        }
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    fn areas(&self) -> Vec<AreaSize> {
        vec![self.store.sequential_size(), self.locality.size(), self.hot.size(), self.cold.size()]
    }
}
