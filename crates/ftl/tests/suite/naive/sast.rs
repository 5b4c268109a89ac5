//! The reference for SAST.

use super::store::{BlockId, Shape, Store};
use super::{AreaSize, Reference};
use std::collections::BTreeMap;

/// Settings of SAST.
#[derive(Clone, Copy, Debug)]
pub struct SastRules {
    pub log_blocks: usize,
    /// The parameter N.
    pub group_blocks: u32,
    /// The parameter K.
    pub group_log_blocks: usize,
    /// Log blocks that idle time keeps free.
    pub idle_blocks: usize,
}

#[derive(Default)]
struct Group {
    /// Log blocks, oldest first. The next page is written to the newest.
    logs: Vec<BlockId>,
    /// The clock of the last host write to the group's log blocks.
    written: u64,
}

pub struct Sast {
    rules: SastRules,
    store: Store,
    groups: BTreeMap<u32, Group>,
}

impl Sast {
    pub fn new(shape: Shape, rules: SastRules) -> Sast {
        Sast { rules, store: Store::new(shape, 0), groups: BTreeMap::new() }
    }

    fn in_use(&self) -> usize {
        self.groups.values().map(|group| group.logs.len()).sum()
    }

    fn write_page(&mut self, page: u32) {
        self.store.clock += 1;
        if self.store.write_in_place(page) {
            return;
        }
        let number = self.store.lbn(page) / self.rules.group_blocks;
        let log = self.room(number);
        self.groups.get_mut(&number).unwrap().written = self.store.clock;
        self.store.program_host(log, self.store.write_pointer(log), page);
    }

    /// Returns the log block for the next page of a group.
    fn room(&mut self, number: u32) -> BlockId {
        let logs = &self.groups.entry(number).or_default().logs;
        let has_room =
            |&&log: &&BlockId| self.store.write_pointer(log) < self.store.shape.block_pages;
        if let Some(&log) = logs.last().filter(has_room) {
            return log;
        }
        if logs.len() == self.rules.group_log_blocks {
            self.give_up_oldest(number);
        } else if self.in_use() == self.rules.log_blocks {
            self.give_up_least_recent();
        }
        let log = self.store.open();
        self.groups.get_mut(&number).unwrap().logs.push(log);
        log
    }

    fn give_up_least_recent(&mut self) {
        let with_logs = self.groups.iter().filter(|(_, group)| !group.logs.is_empty());
        let (&victim, _) = with_logs.min_by_key(|(_, group)| group.written).unwrap();
        self.give_up_oldest(victim);
    }

    fn give_up_oldest(&mut self, number: u32) {
        let log = self.groups.get_mut(&number).unwrap().logs.remove(0);
        match self.store.only_lbn(log) {
            Some(lbn) => self.store.merge_ordered(log, lbn),
            None => self.store.reclaim(log),
        }
    }
}

impl Reference for Sast {
    fn write(&mut self, first: u32, pages: u32) {
        (first..first + pages).for_each(|page| self.write_page(page));
    }

    fn idle(&mut self) {
        while self.in_use() > 0 && self.rules.log_blocks - self.in_use() < self.rules.idle_blocks {
            self.give_up_least_recent();
        }
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    fn areas(&self) -> Vec<AreaSize> {
        vec![("log", self.rules.log_blocks, self.in_use())]
    }
}
