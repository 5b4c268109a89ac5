//! Areas of the random log in the references.

use super::AreaSize;
use super::store::{BlockId, Store};

/// An area of the random log.
pub struct Area {
    name: &'static str,
    pub budget: usize,
    /// Blocks in the order in which they entered the area.
    pub blocks: Vec<BlockId>,
    /// The block that was opened last, while it is in the area.
    frontier: Option<BlockId>,
}

impl Area {
    pub fn new(name: &'static str, budget: usize) -> Area {
        Area { name, budget, blocks: Vec::new(), frontier: None }
    }

    pub fn size(&self) -> AreaSize {
        (self.name, self.budget, self.blocks.len())
    }

    /// Returns the block for the next page, or `None` if no block has room.
    pub fn filling(&self, store: &Store) -> Option<BlockId> {
        self.frontier.filter(|&block| store.write_pointer(block) < store.shape.block_pages)
    }

    pub fn may_open(&self) -> bool {
        self.blocks.len() < self.budget
    }

    /// Returns `true` if no block has room for a page, and no block may be opened.
    pub fn is_full(&self, store: &Store) -> bool {
        self.filling(store).is_none() && !self.may_open()
    }

    /// Returns the closed blocks, oldest first.
    pub fn closed(&self, store: &Store) -> Vec<BlockId> {
        let filling = self.filling(store);
        self.blocks.iter().copied().filter(|&block| Some(block) != filling).collect()
    }

    /// Returns `true` if fewer than `ready` blocks can be opened and a closed block can be
    /// reclaimed.
    pub fn is_short(&self, store: &Store, ready: usize) -> bool {
        self.budget - self.blocks.len() < ready && !self.closed(store).is_empty()
    }

    pub fn remove(&mut self, block: BlockId) {
        self.blocks.retain(|&b| b != block);
        if self.frontier == Some(block) {
            self.frontier = None;
        }
    }

    /// Erases the oldest closed block without valid pages. Returns `true` if there was such a
    /// block.
    pub fn erase_dead(&mut self, store: &mut Store) -> bool {
        let Some(dead) =
            self.closed(store).into_iter().find(|&block| store.valid(block).is_empty())
        else {
            return false;
        };
        self.remove(dead);
        store.erase(dead);
        store.counts.log_dead += 1;
        true
    }

    /// Returns the block for the next page. The area must not be full.
    pub fn ready(&mut self, store: &mut Store) -> BlockId {
        self.filling(store).unwrap_or_else(|| {
            assert!(self.may_open(), "{} has no room", self.name);
            let block = store.open();
            self.blocks.push(block);
            self.frontier = Some(block);
            block
        })
    }

    pub fn append_host(&mut self, store: &mut Store, page: u32) {
        let block = self.ready(store);
        store.program_host(block, store.write_pointer(block), page);
    }

    /// Copies a page to this area.
    pub fn append_moved(&mut self, store: &mut Store, page: u32) {
        let block = self.ready(store);
        store.program(block, store.write_pointer(block), page);
        store.counts.moved_pages += 1;
    }

    /// Copies the valid pages of `log` to this area and erases `log`. `make_room` must make room in
    /// this area; it may merge pages of `log`.
    pub fn take_pages(
        &mut self,
        store: &mut Store,
        log: BlockId,
        mut make_room: impl FnMut(&mut Area, &mut Store),
    ) {
        let dead = store.valid(log).is_empty();
        while let Some(&page) = store.valid(log).first() {
            make_room(self, store);
            // a block is opened even if `make_room` has merged the page
            self.ready(store);
            if store.place(page).is_some_and(|(at, _)| at == log) {
                self.append_moved(store, page);
            }
        }
        store.erase(log);
        *if dead { &mut store.counts.log_dead } else { &mut store.counts.log_moved } += 1;
    }
}
