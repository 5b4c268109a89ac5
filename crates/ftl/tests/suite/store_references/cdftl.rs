//! The reference for CDFTL.
//!
//! The rules leave some points open, and the reference interprets them as follows. An entry that is
//! found in the second level is a hit. A use of an entry is also a use of its page. An entry that
//! the host uses is copied to the first level and changed there. Memory that is not used by whole
//! pages is for entries.

use super::rules::{Memory, Rules};
use super::{DEFAULT, Shape, Subject, run};
use flashatlas_ftl::Reason;

const SUBJECT: Subject = Subject {
    name: "cdftl",
    memory: |shape| Box::new(Cdftl::new(shape)),
    shapes: SHAPES,
    always: &[
        "an unchanged page left",
        "a changed page left",
        "an unchanged entry left",
        "an entry was taken from a page in memory",
    ],
    sometimes: &[
        "a changed entry left into its page",
        "a changed entry was written",
        "an entry left before an older one",
        "an older entry left because the search ended",
        "changed entries were written with their page",
    ],
};

const fn shape(
    logical_pages: u32,
    map_page_bytes: u32,
    cache_bytes: u32,
    settings: &'static [(&'static str, &'static str)],
    hot: u32,
    stride: u32,
) -> Shape {
    Shape {
        logical_pages,
        map_page_bytes,
        cache_bytes,
        settings,
        hot,
        stride,
        longest: 6,
        ..DEFAULT
    }
}

const USUAL: &[(&str, &str)] = &[("map.pages_share", "0.5"), ("map.victim_search", "64")];
const SHORT: &[(&str, &str)] = &[("map.pages_share", "0.5"), ("map.victim_search", "3")];
const NO_SEARCH: &[(&str, &str)] = &[("map.pages_share", "0.3"), ("map.victim_search", "1")];
const PAGES: &[(&str, &str)] = &[("map.pages_share", "1"), ("map.victim_search", "64")];
const ENTRIES: &[(&str, &str)] = &[("map.pages_share", "0"), ("map.victim_search", "5")];

const SHAPES: &[Shape] = &[
    // memory for a page and two entries, and for a page and a few more entries
    shape(90, 64, 80, USUAL, 8, 3),
    shape(90, 64, 127, ENTRIES, 12, 5),
    shape(90, 64, 300, SHORT, 30, 3),
    shape(300, 64, 500, USUAL, 50, 7),
    shape(300, 64, 500, NO_SEARCH, 50, 7),
    shape(500, 128, 600, PAGES, 50, 11),
    shape(800, 128, 1500, ENTRIES, 200, 3),
    shape(1000, 256, 2000, USUAL, 150, 7),
    shape(2000, 512, 3000, SHORT, 250, 9),
    // several map pages share a frame, on several lanes
    Shape { lanes: 2, frame_bytes: 2048, ..shape(1000, 64, 900, USUAL, 80, 13) },
    Shape { lanes: 2, frame_bytes: 2048, pack: false, ..shape(900, 128, 900, SHORT, 70, 17) },
    // entries of eight bytes; map pages of two slots
    Shape { lanes: 3, entry_bytes: 8, ..shape(777, 512, 1600, NO_SEARCH, 90, 8) },
    Shape { frame_bytes: 2048, entry_bytes: 8, ..shape(900, 1024, 2600, SHORT, 100, 9) },
];

/// An entry or a map page in memory.
#[derive(Clone, Copy, Debug)]
struct Cached {
    number: u32,
    changed: bool,
}

struct Cdftl {
    entry_room: usize,
    page_room: usize,
    search: usize,
    /// Entries and pages, each least recently used first.
    entries: Vec<Cached>,
    pages: Vec<Cached>,
    second_level_hits: u64,
    /// `true` while the host uses an entry.
    in_use: bool,
}

/// Makes one entry the most recently used.
fn touch(list: &mut Vec<Cached>, number: u32) {
    let at = list.iter().position(|c| c.number == number).expect("the entry is in memory");
    let cached = list.remove(at);
    list.push(cached);
}

impl Cdftl {
    fn new(shape: &Shape) -> Cdftl {
        let (bytes, page_bytes) = (shape.cache_bytes, shape.map_page_bytes);
        let share = f64::from(bytes) * shape.number("map.pages_share");
        let pages = (share.floor() as u32 / page_bytes).clamp(1, (bytes - 16) / page_bytes);
        Cdftl {
            entry_room: ((bytes - pages * page_bytes) / 8) as usize,
            page_room: pages as usize,
            search: shape.number("map.victim_search") as usize,
            entries: Vec::new(),
            pages: Vec::new(),
            second_level_hits: 0,
            in_use: false,
        }
    }

    fn page(&mut self, page: usize) -> Option<&mut Cached> {
        self.pages.iter_mut().find(|c| c.number == page as u32)
    }

    fn has(&self, lpn: u32) -> bool {
        self.entries.iter().any(|e| e.number == lpn)
    }

    fn evict_entry(&mut self, rules: &mut Rules) {
        let looked_at = &self.entries[..self.search.min(self.entries.len())];
        let free =
            looked_at.iter().position(|e| !e.changed || self.whole(rules, rules.page_of(e.number)));
        if free.is_some_and(|at| at > 0) {
            rules.took("an entry left before an older one");
        }
        let victim = self.entries[free.unwrap_or(0)];
        let page = rules.page_of(victim.number);
        if !victim.changed {
            rules.took("an unchanged entry left");
        } else if let Some(page) = self.page(page) {
            page.changed = true;
            rules.took("a changed entry left into its page");
        } else {
            if self.search < self.entries.len() {
                rules.took("an older entry left because the search ended");
            }
            rules.write(page, Reason::Evict, false);
            self.cleaned(rules, page);
            rules.took("a changed entry was written");
        }
        self.entries.retain(|e| e.number != victim.number);
    }

    fn evict_page(&mut self, rules: &mut Rules) {
        let victim = self.pages[0];
        if victim.changed {
            let page = victim.number as usize;
            rules.write(page, Reason::Evict, true);
            let changed = self.entries.iter().filter(|e| e.changed).count();
            self.cleaned(rules, page);
            if self.entries.iter().filter(|e| e.changed).count() < changed {
                rules.took("changed entries were written with their page");
            }
            rules.took("a changed page left");
        } else {
            rules.took("an unchanged page left");
        }
        self.pages.remove(0);
    }
}

impl Memory for Cdftl {
    fn holds(&self, rules: &Rules, lpn: u32) -> bool {
        self.has(lpn) || self.whole(rules, rules.page_of(lpn))
    }

    fn used(&mut self, rules: &mut Rules, lpn: u32) {
        self.in_use = true;
        let page = rules.page_of(lpn);
        if self.whole(rules, page) {
            touch(&mut self.pages, page as u32);
        }
        if self.has(lpn) {
            touch(&mut self.entries, lpn);
        } else {
            self.second_level_hits += 1;
            rules.took("an entry was taken from a page in memory");
        }
    }

    fn fetch(&mut self, rules: &mut Rules, lpn: u32, _: u32) {
        self.in_use = true;
        if self.pages.len() == self.page_room {
            self.evict_page(rules);
        }
        let page = rules.page_of(lpn);
        rules.load(page);
        self.pages.push(Cached { number: page as u32, changed: false });
    }

    fn changed(&mut self, rules: &mut Rules, lpn: u32) {
        if self.in_use {
            self.finish(rules, lpn);
        }
        let page = rules.page_of(lpn);
        match self.entries.iter_mut().find(|e| e.number == lpn) {
            Some(entry) => entry.changed = true,
            None => self.page(page).expect("the page is in memory").changed = true,
        }
    }

    /// Copies the entry from its page to the first level.
    fn finish(&mut self, rules: &mut Rules, lpn: u32) {
        self.in_use = false;
        if !self.has(lpn) {
            if self.entries.len() == self.entry_room {
                self.evict_entry(rules);
            }
            self.entries.push(Cached { number: lpn, changed: false });
        }
    }

    fn whole(&self, _: &Rules, page: usize) -> bool {
        self.pages.iter().any(|c| c.number == page as u32)
    }

    fn cleaned(&mut self, rules: &mut Rules, page: usize) {
        let of_page = |e: &&mut Cached| rules.page_of(e.number) == page;
        self.entries.iter_mut().filter(of_page).for_each(|e| e.changed = false);
        if let Some(page) = self.page(page) {
            page.changed = false;
        }
    }

    fn details(&self, _: &Rules) -> Vec<(&'static str, u64)> {
        vec![("second_level_hits", self.second_level_hits)]
    }
}

#[test]
fn as_many_map_pages_are_read_and_written_as_the_rules_say() {
    run(&SUBJECT, false);
}

#[test]
fn trims_are_written_when_the_rules_say() {
    run(&SUBJECT, true);
}
