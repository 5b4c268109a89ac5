//! The parts that all references share: blocks, data blocks, sequential log blocks, and merges.

use super::Counts;
use std::collections::{BTreeMap, BTreeSet};

/// Number of a block. Every block that is opened gets a new number.
pub type BlockId = u64;

/// Shape of the drive.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of logical pages.
    pub pages: u32,
    /// Number of pages in a block.
    pub block_pages: u32,
    /// `true` if the pages of a block must be programmed in ascending order.
    pub strict: bool,
}

struct Block {
    /// The logical page that was programmed at each index, valid or not.
    programmed: Vec<Option<u32>>,
    /// The clock of the last host write that appended to the block or updated a page in it.
    touched: u64,
}

struct Sequential {
    block: BlockId,
    /// The clock of the last host write to the block.
    written: u64,
}

/// The result of merging a log block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Dead,
    Switch,
    Partial,
    Full,
}

pub struct Store {
    pub shape: Shape,
    pub counts: Counts,
    /// Number of host pages so far, including the current page.
    pub clock: u64,
    /// Largest number of sequential log blocks.
    pub sequential_budget: usize,
    blocks: BTreeMap<BlockId, Block>,
    opened: BlockId,
    /// Place of the valid version of each page.
    places: BTreeMap<u32, (BlockId, u32)>,
    /// Data blocks, by logical block.
    data: BTreeMap<u32, BlockId>,
    sequential: BTreeMap<u32, Sequential>,
}

impl Store {
    pub fn new(shape: Shape, sequential_budget: usize) -> Store {
        Store {
            shape,
            counts: Counts::default(),
            clock: 0,
            sequential_budget,
            blocks: BTreeMap::new(),
            opened: 0,
            places: BTreeMap::new(),
            data: BTreeMap::new(),
            sequential: BTreeMap::new(),
        }
    }

    pub fn lbn(&self, page: u32) -> u32 {
        page / self.shape.block_pages
    }

    pub fn offset(&self, page: u32) -> u32 {
        page % self.shape.block_pages
    }

    /// Returns the pages of a logical block. The last logical block may have fewer pages.
    fn pages_of(&self, lbn: u32) -> std::ops::Range<u32> {
        let first = lbn * self.shape.block_pages;
        first..(first + self.shape.block_pages).min(self.shape.pages)
    }

    pub fn place(&self, page: u32) -> Option<(BlockId, u32)> {
        self.places.get(&page).copied()
    }

    /// Returns the number of mapped pages of a logical block.
    pub fn live(&self, lbn: u32) -> u32 {
        self.pages_of(lbn).filter(|page| self.places.contains_key(page)).count() as u32
    }

    pub fn has_data_block(&self, lbn: u32) -> bool {
        self.data.contains_key(&lbn)
    }

    // Blocks.

    pub fn open(&mut self) -> BlockId {
        self.opened += 1;
        let programmed = vec![None; self.shape.block_pages as usize];
        self.blocks.insert(self.opened, Block { programmed, touched: self.clock });
        self.opened
    }

    pub fn erase(&mut self, block: BlockId) {
        assert!(self.valid(block).is_empty(), "block {block} is erased with valid pages");
        self.blocks.remove(&block).expect("a block is erased once");
        self.counts.erases += 1;
    }

    /// Returns the highest programmed index plus one.
    pub fn write_pointer(&self, block: BlockId) -> u32 {
        self.blocks[&block]
            .programmed
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |last| last as u32 + 1)
    }

    pub fn touched(&self, block: BlockId) -> u64 {
        self.blocks[&block].touched
    }

    fn is_programmed(&self, block: BlockId, index: u32) -> bool {
        self.blocks[&block].programmed[index as usize].is_some()
    }

    /// Returns the valid pages of a block, in their order in the block.
    pub fn valid(&self, block: BlockId) -> Vec<u32> {
        let stands = |&(index, page): &(u32, u32)| self.place(page) == Some((block, index));
        self.programmed(block).into_iter().filter(stands).map(|(_, page)| page).collect()
    }

    /// Returns the index and the page of everything that was programmed in a block.
    pub fn programmed(&self, block: BlockId) -> Vec<(u32, u32)> {
        let pages = self.blocks[&block].programmed.iter().zip(0..);
        pages.filter_map(|(page, index)| page.map(|page| (index, page))).collect()
    }

    /// Returns the logical blocks with a valid page in a block.
    pub fn associated(&self, block: BlockId) -> BTreeSet<u32> {
        self.valid(block).into_iter().map(|page| self.lbn(page)).collect()
    }

    /// Returns a logical block if only its pages were programmed in the block, each at its offset.
    /// Otherwise returns `None`.
    pub fn only_lbn(&self, block: BlockId) -> Option<u32> {
        let programmed = self.programmed(block);
        let lbn = self.lbn(programmed.first()?.1);
        programmed
            .iter()
            .all(|&(index, page)| self.lbn(page) == lbn && self.offset(page) == index)
            .then_some(lbn)
    }

    pub fn program(&mut self, block: BlockId, index: u32, page: u32) {
        assert!(
            !self.is_programmed(block, index),
            "block {block} index {index} is programmed twice"
        );
        assert!(
            !self.shape.strict || index >= self.write_pointer(block),
            "block {block} index {index} is out of order"
        );
        self.blocks.get_mut(&block).unwrap().programmed[index as usize] = Some(page);
        self.places.insert(page, (block, index));
        self.counts.programs += 1;
    }

    pub fn program_host(&mut self, block: BlockId, index: u32, page: u32) {
        let old = self.place(page).map(|(old, _)| old);
        for touched in old.into_iter().chain([block]) {
            self.blocks.get_mut(&touched).unwrap().touched = self.clock;
        }
        self.program(block, index, page);
    }

    // Data blocks.

    /// Applies rule 1. Returns `true` if the page was written.
    pub fn write_in_place(&mut self, page: u32) -> bool {
        let (lbn, offset) = (self.lbn(page), self.offset(page));
        let block = match self.data.get(&lbn) {
            Some(&block) => block,
            None => {
                let block = self.open();
                self.data.insert(lbn, block);
                block
            }
        };
        if self.is_programmed(block, offset) {
            return false;
        }
        if self.shape.strict && offset < self.write_pointer(block) {
            self.counts.order_detours += 1;
            return false;
        }
        self.program_host(block, offset, page);
        self.counts.in_place += 1;
        true
    }

    /// Removes the place of a page.
    pub fn forget(&mut self, page: u32) {
        self.places.remove(&page);
    }

    pub fn trim(&mut self, page: u32) {
        self.forget(page);
        let lbn = self.lbn(page);
        if self.live(lbn) == 0
            && let Some(block) = self.data.remove(&lbn)
        {
            self.erase(block);
        }
    }

    fn becomes_data(&mut self, block: BlockId, lbn: u32) {
        if let Some(old) = self.data.insert(lbn, block) {
            self.erase(old);
        }
    }

    // Merges.

    fn full_merge(&mut self, lbn: u32, host: Option<u32>) {
        let block = self.open();
        self.bring_in(block, lbn, host);
        self.becomes_data(block, lbn);
        self.counts.data_full += 1;
    }

    /// Programs the host's page, and copies the pages of the logical block that are in other
    /// blocks.
    fn bring_in(&mut self, block: BlockId, lbn: u32, host: Option<u32>) {
        for page in self.pages_of(lbn) {
            let offset = self.offset(page);
            if host == Some(page) {
                self.program_host(block, offset, page);
            } else if self.place(page).is_some_and(|(at, _)| at != block) {
                self.program(block, offset, page);
                self.counts.copies += 1;
            }
        }
    }

    fn class_of(&mut self, log: BlockId, lbn: u32, host: Option<u32>) -> Class {
        let (valid, programmed) = (self.valid(log), self.programmed(log));
        if host.is_none() && valid.is_empty() {
            return Class::Dead;
        }
        if self.only_lbn(log) != Some(lbn) || valid.len() < programmed.len() {
            return Class::Full;
        }
        if host.is_none() && programmed.len() == self.pages_of(lbn).len() {
            return Class::Switch;
        }
        if host.is_some_and(|page| self.is_programmed(log, self.offset(page))) {
            return Class::Full;
        }
        let elsewhere = |&page: &u32| self.place(page).is_some_and(|(at, _)| at != log);
        let comes_in = |page: &u32| host == Some(*page) || elsewhere(page);
        let first = self.pages_of(lbn).find(comes_in).map(|page| self.offset(page));
        if self.shape.strict && first.is_some_and(|offset| offset < self.write_pointer(log)) {
            self.counts.order_detours += 1;
            return Class::Full;
        }
        Class::Partial
    }

    fn merge(&mut self, log: BlockId, lbn: u32, host: Option<u32>) -> Class {
        let class = self.class_of(log, lbn, host);
        match class {
            Class::Dead => {
                self.erase(log);
                self.counts.log_dead += 1;
            }
            Class::Switch => {
                self.becomes_data(log, lbn);
                self.counts.data_switch += 1;
                self.counts.log_switch += 1;
            }
            Class::Partial => {
                self.bring_in(log, lbn, host);
                self.becomes_data(log, lbn);
                self.counts.data_partial += 1;
                self.counts.log_partial += 1;
            }
            Class::Full => {
                self.full_merge(lbn, host);
                self.erase(log);
                self.counts.log_full += 1;
            }
        }
        class
    }

    /// Merges a log block of the random log that contains only pages of one logical block, each at
    /// its offset.
    pub fn merge_ordered(&mut self, log: BlockId, lbn: u32) {
        self.merge(log, lbn, None);
    }

    /// Merges all logical blocks with pages in a log block of the random log, and erases the log
    /// block.
    pub fn reclaim(&mut self, log: BlockId) {
        let dead = self.valid(log).is_empty();
        while let Some(&page) = self.valid(log).first() {
            self.merge_newest(self.lbn(page));
        }
        self.erase(log);
        *if dead { &mut self.counts.log_dead } else { &mut self.counts.log_full } += 1;
    }

    /// Brings a logical block with pages in the random log up to date. If it has a sequential log
    /// block, that block is merged.
    pub fn merge_newest(&mut self, lbn: u32) {
        let through_sequential =
            self.sequential.get(&lbn).is_some_and(|s| !self.valid(s.block).is_empty());
        if self.sequential.contains_key(&lbn) {
            self.merge_sequential(lbn, None);
        }
        if !through_sequential {
            self.full_merge(lbn, None);
        }
    }

    // The sequential log.

    pub fn sequential_block(&self, lbn: u32) -> Option<BlockId> {
        self.sequential.get(&lbn).map(|s| s.block)
    }

    fn is_complete(&self, log: BlockId, lbn: u32) -> bool {
        self.programmed(log).len() == self.pages_of(lbn).len()
    }

    pub fn merge_sequential(&mut self, lbn: u32, host: Option<u32>) {
        let log = self.sequential.remove(&lbn).expect("there is a log block to merge").block;
        if self.merge(log, lbn, host) == Class::Full {
            self.counts.sequential_full += 1;
        }
    }

    /// Applies FAST's rule. Returns `true` if the page was written to the sequential log.
    pub fn write_sequential(&mut self, page: u32) -> bool {
        let (lbn, offset) = (self.lbn(page), self.offset(page));
        let log = self.sequential_block(lbn);
        if offset == 0 {
            if log.is_some() {
                self.merge_sequential(lbn, None);
            }
            self.begin_sequential(page);
            return true;
        }
        let Some(log) = log else { return false };
        if offset == self.write_pointer(log) {
            self.append_sequential(page);
            return true;
        }
        let complete = self.is_complete(log, lbn);
        self.merge_sequential(lbn, (!complete).then_some(page));
        !complete
    }

    /// Opens a sequential log block for a page whose logical block has none. Copies the pages
    /// before this page in its logical block, and programs the page.
    pub fn begin_sequential_amid(&mut self, page: u32) {
        let block = self.open_sequential(page);
        let before = self.pages_of(self.lbn(page)).take_while(|&other| other < page);
        for other in before.filter(|&other| self.places.contains_key(&other)).collect::<Vec<_>>() {
            self.program(block, self.offset(other), other);
            self.counts.copies += 1;
        }
        self.append_sequential(page);
    }

    /// Opens a sequential log block for a page whose logical block has none, and programs the page.
    pub fn begin_sequential(&mut self, page: u32) {
        self.open_sequential(page);
        self.append_sequential(page);
    }

    fn open_sequential(&mut self, page: u32) -> BlockId {
        if self.sequential.len() >= self.sequential_budget {
            let (&oldest, _) = self
                .sequential
                .iter()
                .min_by_key(|(_, s)| s.written)
                .expect("the budget is not zero");
            self.merge_sequential(oldest, None);
        }
        let block = self.open();
        self.sequential.insert(self.lbn(page), Sequential { block, written: self.clock });
        block
    }

    pub fn append_sequential(&mut self, page: u32) {
        let log = self.sequential.get_mut(&(page / self.shape.block_pages)).expect("it was opened");
        log.written = self.clock;
        let block = log.block;
        self.program_host(block, self.offset(page), page);
    }

    pub fn sequential_size(&self) -> super::AreaSize {
        ("sequential", self.sequential_budget, self.sequential.len())
    }
}
