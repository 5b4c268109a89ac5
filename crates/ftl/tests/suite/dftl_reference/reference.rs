//! DFTL by its rules: plain vectors, scanned from end to end.

use super::{Call, Counts, Shape};
use flashatlas_ftl::Reason;
use flashatlas_types::Ppn;
use std::collections::BTreeMap;

/// Paths that every run must take.
pub const ALWAYS: &[&str] = &[
    "an unchanged entry left",
    "a changed entry left",
    "others of its map page were written with it",
    "moved in memory",
    "moved elsewhere",
    "moves written before a load",
    "moves written before an erase",
    "a map page that was never written was wanted",
];

/// Paths that some run must take; the last three need trims.
pub const SOMETIMES: &[&str] = &[
    "moves written with an entry that left",
    "protected",
    "no longer protected",
    "map pages copied",
    "trims written by a flush",
    "trims written before an erase",
    "trims that an erase did not touch",
];

#[derive(Clone, Copy, Debug)]
struct Cached {
    lpn: u32,
    changed: bool,
}

/// DFTL from its rules.
pub struct Reference {
    pub per_page: u32,
    pub room: usize,
    pub protected_room: usize,
    pub slots_per_block: u32,
    pub map: Vec<Ppn>,
    /// Entries in memory, least recently used first.
    probation: Vec<Cached>,
    protected: Vec<Cached>,
    /// Of each map page: whether it was ever written, has moves waiting, has trims that are not
    /// written.
    pub written: Vec<bool>,
    pub waiting: Vec<bool>,
    pub trimmed: Vec<bool>,
    /// Blocks to which trimmed entries pointed, since all trims were last written.
    pub trimmed_from: Vec<u32>,
    pub counts: Counts,
    /// How often each path was taken.
    pub paths: BTreeMap<&'static str, u64>,
}

impl Reference {
    pub fn new(shape: &Shape, slots_per_block: u32) -> Reference {
        let per_page = shape.map_page_bytes / shape.entry_bytes;
        let pages = shape.logical_pages.div_ceil(per_page) as usize;
        Reference {
            per_page,
            room: shape.room as usize,
            protected_room: (shape.room * shape.protected_tenths / 10) as usize,
            slots_per_block,
            map: vec![Ppn::NONE; shape.logical_pages as usize],
            probation: Vec::new(),
            protected: Vec::new(),
            written: vec![false; pages],
            waiting: vec![false; pages],
            trimmed: vec![false; pages],
            trimmed_from: Vec::new(),
            counts: Counts::default(),
            paths: BTreeMap::new(),
        }
    }

    /// Returns what the store must answer: the entry as it was.
    pub fn call(&mut self, call: Call) -> Option<Ppn> {
        match call {
            Call::Get(lpn) => {
                let hit = self.use_entry(lpn);
                *(if hit { &mut self.counts.hits } else { &mut self.counts.misses }) += 1;
                Some(self.map[lpn as usize])
            }
            Call::Set(lpn, ppn) => Some(self.update(lpn, ppn)),
            Call::Trim(lpn) => Some(self.update(lpn, Ppn::NONE)),
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

    fn took(&mut self, path: &'static str) {
        *self.paths.entry(path).or_default() += 1;
    }

    fn page_of(&self, lpn: u32) -> usize {
        (lpn / self.per_page) as usize
    }

    fn cached(&mut self, lpn: u32) -> Option<&mut Cached> {
        self.probation.iter_mut().chain(&mut self.protected).find(|e| e.lpn == lpn)
    }

    fn is_full(&self) -> bool {
        self.probation.len() + self.protected.len() == self.room
    }

    /// What leaves next.
    fn victim(&self) -> Option<Cached> {
        self.probation.first().or(self.protected.first()).copied()
    }

    /// The host uses an entry, which is in memory then; returns whether it was before.
    fn use_entry(&mut self, lpn: u32) -> bool {
        if let Some(at) = self.protected.iter().position(|e| e.lpn == lpn) {
            let entry = self.protected.remove(at);
            self.protected.push(entry);
        } else if let Some(at) = self.probation.iter().position(|e| e.lpn == lpn) {
            let entry = self.probation.remove(at);
            self.promote(entry);
        } else {
            self.fetch(lpn);
            return false;
        }
        true
    }

    fn promote(&mut self, entry: Cached) {
        if self.protected_room == 0 {
            self.probation.push(entry);
            return;
        }
        if self.protected.len() == self.protected_room {
            let demoted = self.protected.remove(0);
            self.probation.push(demoted);
            self.took("no longer protected");
        }
        self.protected.push(entry);
        self.took("protected");
    }

    fn fetch(&mut self, lpn: u32) {
        let page = self.page_of(lpn);
        if self.waiting[page] {
            self.write(page, Reason::Moved);
            self.took("moves written before a load");
        }
        if self.is_full() {
            self.evict();
        }
        if self.written[page] {
            self.counts.loads += 1;
        } else {
            self.took("a map page that was never written was wanted");
        }
        self.probation.push(Cached { lpn, changed: false });
    }

    fn evict(&mut self) {
        let victim = self.victim().expect("memory is full");
        if victim.changed {
            let page = self.page_of(victim.lpn);
            if self.waiting[page] {
                self.took("moves written with an entry that left");
            }
            if self.write(page, Reason::Evict) > 1 {
                self.took("others of its map page were written with it");
            }
            self.took("a changed entry left");
        } else {
            self.took("an unchanged entry left");
        }
        self.probation.retain(|e| e.lpn != victim.lpn);
        self.protected.retain(|e| e.lpn != victim.lpn);
    }

    fn update(&mut self, lpn: u32, ppn: Ppn) -> Ppn {
        let hit = self.use_entry(lpn);
        *(if hit { &mut self.counts.update_hits } else { &mut self.counts.update_misses }) += 1;
        self.cached(lpn).expect("it was just used").changed = true;
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

    fn moved(&mut self, lpn: u32, ppn: Ppn) -> Ppn {
        if let Some(entry) = self.cached(lpn) {
            entry.changed = true;
            self.took("moved in memory");
        } else {
            let page = self.page_of(lpn);
            self.waiting[page] = true;
            self.took("moved elsewhere");
        }
        std::mem::replace(&mut self.map[lpn as usize], ppn)
    }

    fn before_erase(&mut self, block: u32) {
        for page in 0..self.waiting.len() {
            if self.waiting[page] {
                self.write(page, Reason::Moved);
                self.took("moves written before an erase");
            }
        }
        if self.trimmed_from.contains(&block) {
            self.write_trims("trims written before an erase");
        } else if self.trimmed.contains(&true) {
            self.took("trims that an erase did not touch");
        }
    }

    fn write_trims(&mut self, path: &'static str) {
        for page in 0..self.trimmed.len() {
            if self.trimmed[page] {
                self.write(page, Reason::Trim);
                self.took(path);
            }
        }
    }

    /// Write a map page with every change to it; returns how many entries in memory were changed.
    fn write(&mut self, page: usize, reason: Reason) -> u64 {
        self.counts.merges += u64::from(self.written[page]);
        self.counts.writes[reason as usize] += 1;
        (self.written[page], self.waiting[page], self.trimmed[page]) = (true, false, false);
        if !self.trimmed.contains(&true) {
            self.trimmed_from.clear();
        }
        let mut cleaned = 0;
        for entry in self.probation.iter_mut().chain(&mut self.protected) {
            if (entry.lpn / self.per_page) as usize == page && entry.changed {
                entry.changed = false;
                cleaned += 1;
            }
        }
        cleaned
    }
}
