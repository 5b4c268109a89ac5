//! The common rules of all demand-paged stores: the map, its part on flash, moves by collection,
//! and trims. They use plain vectors that are scanned completely.

use super::{Call, Counts, Shape};
use flashatlas_ftl::Reason;
use flashatlas_types::Ppn;
use std::collections::BTreeMap;

/// Common paths of all stores that every run must take.
pub const ALWAYS: &[&str] = &[
    "moved in memory",
    "moved elsewhere",
    "moves written before a load",
    "moves written before an erase",
    "a map page that was never written was wanted",
];

/// Common paths of all stores that some run must take.
pub const SOMETIMES: &[&str] = &["map pages copied"];

/// Paths that need trims.
pub const WITH_TRIMS: &[&str] = &[
    "trims written by a flush",
    "trims written before an erase",
    "trims that an erase did not touch",
];

/// The map, and its state on flash.
pub struct Rules {
    pub per_page: u32,
    pub map: Vec<Ppn>,
    slots_per_block: u32,
    /// Three flags for each map page: it was written at least once; moves of its entries are not
    /// written yet; it has trims that are not written yet.
    pub written: Vec<bool>,
    pub waiting: Vec<bool>,
    trimmed: Vec<bool>,
    /// The blocks of the pages that were trimmed since all trims were last written.
    trimmed_from: Vec<u32>,
    pub counts: Counts,
    /// The number of times that each path was taken.
    pub paths: BTreeMap<&'static str, u64>,
}

impl Rules {
    pub fn took(&mut self, path: &'static str) {
        *self.paths.entry(path).or_default() += 1;
    }

    pub fn page_of(&self, lpn: u32) -> usize {
        (lpn / self.per_page) as usize
    }

    /// Returns the logical pages whose entries a map page holds.
    pub fn pages_in(&self, page: usize) -> std::ops::Range<u32> {
        let from = page as u32 * self.per_page;
        from..(from + self.per_page).min(self.map.len() as u32)
    }

    /// Reads a map page to look up an entry.
    pub fn load(&mut self, page: usize) {
        if self.written[page] {
            self.counts.loads += 1;
        } else {
            self.took("a map page that was never written was wanted");
        }
    }

    /// Writes a map page with every change to it. `whole` is `true` if the whole page is in memory.
    pub fn write(&mut self, page: usize, reason: Reason, whole: bool) {
        self.counts.merges += u64::from(self.written[page] && !whole);
        self.counts.writes[reason as usize] += 1;
        (self.written[page], self.waiting[page], self.trimmed[page]) = (true, false, false);
        if !self.trimmed.contains(&true) {
            self.trimmed_from.clear();
        }
    }

    fn set(&mut self, lpn: u32, ppn: Ppn) -> Ppn {
        let old = std::mem::replace(&mut self.map[lpn as usize], ppn);
        if ppn == Ppn::NONE {
            let page = self.page_of(lpn);
            self.trimmed[page] = true;
            if old != Ppn::NONE {
                self.trimmed_from.push(old.0 / self.slots_per_block);
            }
        }
        old
    }
}

/// The memory of a store, with the store's own rules.
pub trait Memory {
    /// Returns whether an entry is in memory.
    fn holds(&self, rules: &Rules, lpn: u32) -> bool;

    /// Notes that the host uses an entry that is in memory.
    fn used(&mut self, rules: &mut Rules, lpn: u32);

    /// Fetches an entry that the host needs and that is not in memory, and the `ahead` entries
    /// after it.
    fn fetch(&mut self, rules: &mut Rules, lpn: u32, ahead: u32);

    /// Notes that an entry that is in memory has changed.
    fn changed(&mut self, rules: &mut Rules, lpn: u32);

    /// Ends the host's use of an entry.
    fn finish(&mut self, _: &mut Rules, _: u32) {}

    /// Returns whether the whole map page is in memory.
    fn whole(&self, rules: &Rules, page: usize) -> bool;

    /// Notes that a map page was written.
    fn cleaned(&mut self, rules: &mut Rules, page: usize);

    /// Returns additional counters with their names in the run record.
    fn details(&self, rules: &Rules) -> Vec<(&'static str, u64)>;
}

/// A store that follows the rules: the common rules, and its own rules for memory.
pub struct Reference {
    pub rules: Rules,
    memory: Box<dyn Memory>,
}

impl Reference {
    pub fn new(shape: &Shape, slots_per_block: u32, memory: Box<dyn Memory>) -> Reference {
        let per_page = shape.per_page();
        let pages = shape.logical_pages.div_ceil(per_page) as usize;
        let rules = Rules {
            per_page,
            map: vec![Ppn::NONE; shape.logical_pages as usize],
            slots_per_block,
            written: vec![false; pages],
            waiting: vec![false; pages],
            trimmed: vec![false; pages],
            trimmed_from: Vec::new(),
            counts: Counts::default(),
            paths: BTreeMap::new(),
        };
        Reference { rules, memory }
    }

    /// Makes a call and returns the answer that the store must give: the old entry.
    pub fn call(&mut self, call: Call, ahead: u32) -> Option<Ppn> {
        match call {
            Call::Get(lpn) => {
                let hit = self.use_entry(lpn, ahead);
                self.memory.finish(&mut self.rules, lpn);
                let counts = &mut self.rules.counts;
                *(if hit { &mut counts.hits } else { &mut counts.misses }) += 1;
                Some(self.rules.map[lpn as usize])
            }
            Call::Set(lpn, ppn) => Some(self.update(lpn, ppn, ahead)),
            Call::Trim(lpn) => Some(self.update(lpn, Ppn::NONE, ahead)),
            Call::Moved(lpn, ppn) => Some(self.moved(lpn, ppn)),
            Call::Flush => {
                self.write_trims("trims written by a flush");
                None
            }
            Call::BeforeErase(block) => {
                self.before_erase(block);
                None
            }
        }
    }

    /// Returns additional counters with their names in the run record.
    pub fn details(&self) -> Vec<(&'static str, u64)> {
        self.memory.details(&self.rules)
    }

    /// Loads an entry that the host needs into memory. Returns `true` if it was already there.
    fn use_entry(&mut self, lpn: u32, ahead: u32) -> bool {
        if self.memory.holds(&self.rules, lpn) {
            self.memory.used(&mut self.rules, lpn);
            return true;
        }
        let page = self.rules.page_of(lpn);
        if self.rules.waiting[page] {
            self.write(page, Reason::Moved);
            self.rules.took("moves written before a load");
        }
        self.memory.fetch(&mut self.rules, lpn, ahead);
        false
    }

    fn update(&mut self, lpn: u32, ppn: Ppn, ahead: u32) -> Ppn {
        let hit = self.use_entry(lpn, ahead);
        let counts = &mut self.rules.counts;
        *(if hit { &mut counts.update_hits } else { &mut counts.update_misses }) += 1;
        let old = self.rules.set(lpn, ppn);
        self.memory.changed(&mut self.rules, lpn);
        self.memory.finish(&mut self.rules, lpn);
        old
    }

    fn moved(&mut self, lpn: u32, ppn: Ppn) -> Ppn {
        let old = self.rules.set(lpn, ppn);
        if self.memory.holds(&self.rules, lpn) {
            self.memory.changed(&mut self.rules, lpn);
            self.rules.took("moved in memory");
        } else {
            let page = self.rules.page_of(lpn);
            self.rules.waiting[page] = true;
            self.rules.took("moved elsewhere");
        }
        old
    }

    fn before_erase(&mut self, block: u32) {
        for page in 0..self.rules.waiting.len() {
            if self.rules.waiting[page] {
                self.write(page, Reason::Moved);
                self.rules.took("moves written before an erase");
            }
        }
        if self.rules.trimmed_from.contains(&block) {
            self.write_trims("trims written before an erase");
        } else if self.rules.trimmed.contains(&true) {
            self.rules.took("trims that an erase did not touch");
        }
    }

    fn write_trims(&mut self, path: &'static str) {
        for page in 0..self.rules.trimmed.len() {
            if self.rules.trimmed[page] {
                self.write(page, Reason::Trim);
                self.rules.took(path);
            }
        }
    }

    fn write(&mut self, page: usize, reason: Reason) {
        let whole = self.memory.whole(&self.rules, page);
        self.rules.write(page, reason, whole);
        self.memory.cleaned(&mut self.rules, page);
    }
}
