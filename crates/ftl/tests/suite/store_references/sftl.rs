//! The reference for S-FTL.
//!
//! The rules leave some points open, and the reference interprets them as follows. Unmapped entries
//! also follow one another. When a page leaves, its changes stay in the buffer if they fill at most
//! half of the buffer. An entry in the buffer is found there, and its page is not loaded. When the
//! page is loaded for another entry, its buffered entries return to the page after room was made.
//! Among pages with the same number of buffered entries, the first is written.

use super::rules::{Memory, Rules};
use super::{DEFAULT, Shape, Subject, run};
use flashatlas_ftl::Reason;
use flashatlas_types::Ppn;

const SUBJECT: Subject = Subject {
    name: "sftl",
    memory: |shape| Box::new(Sftl::new(shape)),
    shapes: SHAPES,
    always: &["an unchanged page left"],
    sometimes: &[
        "a changed page left and was written",
        "a changed page left, and its changes stayed",
        "a page was written for the room of its changes",
        "changes that had stayed came back into their page",
        "changes that had stayed were used",
        "a page left because another grew",
    ],
};

const fn shape(
    logical_pages: u32,
    map_page_bytes: u32,
    cache_bytes: u32,
    settings: &'static [(&'static str, &'static str)],
    hot: u32,
    stride: u32,
    longest: u32,
) -> Shape {
    Shape { logical_pages, map_page_bytes, cache_bytes, settings, hot, stride, longest, ..DEFAULT }
}

const NO_BUFFER: &[(&str, &str)] = &[("map.buffer_share", "0")];
const USUAL: &[(&str, &str)] = &[("map.buffer_share", "0.1")];
const LARGE: &[(&str, &str)] = &[("map.buffer_share", "0.4")];

const SHAPES: &[Shape] = &[
    // memory for one page, even if it has no runs
    shape(90, 64, 80, USUAL, 30, 1, 8),
    shape(90, 64, 200, NO_BUFFER, 70, 1, 8),
    shape(90, 64, 240, LARGE, 70, 1, 8),
    shape(200, 64, 300, LARGE, 40, 5, 16),
    shape(500, 128, 400, LARGE, 60, 7, 24),
    shape(1000, 256, 1000, USUAL, 100, 9, 30),
    shape(2000, 512, 1500, USUAL, 200, 9, 40),
    // several map pages share a frame, on several lanes
    Shape { lanes: 2, frame_bytes: 2048, ..shape(1000, 64, 700, USUAL, 300, 3, 40) },
    Shape { lanes: 2, frame_bytes: 2048, pack: false, ..shape(900, 128, 900, LARGE, 90, 9, 9) },
    // entries of eight bytes; map pages of two slots
    Shape { lanes: 3, entry_bytes: 8, ..shape(777, 512, 1600, USUAL, 60, 11, 12) },
    Shape { frame_bytes: 2048, entry_bytes: 8, ..shape(900, 1024, 2600, LARGE, 90, 9, 20) },
];

struct Sftl {
    /// Bytes for whole pages.
    room: u32,
    /// Changed entries that may stay in memory without their page.
    buffer_room: usize,
    entry_bytes: u32,
    /// Map pages in memory, least recently used first.
    pages: Vec<usize>,
    /// Changed entries of pages in memory.
    changed: Vec<u32>,
    /// Changed entries without their page.
    buffer: Vec<u32>,
    /// Number of pages that left with changes and were not written.
    spared: u64,
}

/// Returns the number of entries that belong to a map page.
fn count(rules: &Rules, entries: &[u32], page: usize) -> usize {
    entries.iter().filter(|&&lpn| rules.page_of(lpn) == page).count()
}

/// Removes the entries of a map page from a list and returns them.
fn take(rules: &Rules, entries: &mut Vec<u32>, page: usize) -> Vec<u32> {
    let (taken, left) = entries.drain(..).partition(|&lpn| rules.page_of(lpn) == page);
    *entries = left;
    taken
}

impl Sftl {
    fn new(shape: &Shape) -> Sftl {
        let share = shape.number("map.buffer_share");
        let buffer_room = (f64::from(shape.cache_bytes) * share / 8.0).floor() as u32;
        Sftl {
            room: shape.cache_bytes - 8 * buffer_room,
            buffer_room: buffer_room as usize,
            entry_bytes: shape.entry_bytes,
            pages: Vec::new(),
            changed: Vec::new(),
            buffer: Vec::new(),
            spared: 0,
        }
    }

    /// Returns the number of runs: entries that follow one another on flash, or that are all
    /// unmapped.
    fn runs(rules: &Rules, page: usize) -> u32 {
        let entries: Vec<Ppn> = rules.pages_in(page).map(|lpn| rules.map[lpn as usize]).collect();
        let follows = |a: Ppn, b: Ppn| match (a == Ppn::NONE, b == Ppn::NONE) {
            (false, false) => b.0 == a.0 + 1,
            (a, b) => a && b,
        };
        1 + entries.windows(2).filter(|pair| !follows(pair[0], pair[1])).count() as u32
    }

    fn bytes(&self, rules: &Rules, page: usize) -> u32 {
        rules.per_page.div_ceil(8) + Sftl::runs(rules, page) * self.entry_bytes
    }

    fn all_bytes(&self, rules: &Rules) -> u32 {
        self.pages.iter().map(|&page| self.bytes(rules, page)).sum()
    }

    fn write(&mut self, rules: &mut Rules, page: usize) {
        let whole = self.whole(rules, page);
        rules.write(page, Reason::Evict, whole);
        self.cleaned(rules, page);
    }

    /// Evicts the least recently used page.
    fn evict(&mut self, rules: &mut Rules) {
        let page = self.pages[0];
        let changes = count(rules, &self.changed, page);
        if changes == 0 {
            rules.took("an unchanged page left");
        } else if 2 * changes > self.buffer_room {
            self.write(rules, page);
            rules.took("a changed page left and was written");
        } else {
            while self.buffer.len() + changes > self.buffer_room {
                self.make_room(rules);
            }
            let stay = take(rules, &mut self.changed, page);
            self.buffer.extend(stay);
            self.spared += 1;
            rules.took("a changed page left, and its changes stayed");
        }
        self.pages.remove(0);
    }

    /// Writes the page with the most entries in the buffer. Among equals, the first is written.
    fn make_room(&mut self, rules: &mut Rules) {
        let pages = 0..rules.written.len();
        let fullest = pages
            .rev()
            .max_by_key(|&page| count(rules, &self.buffer, page))
            .expect("there are map pages");
        self.write(rules, fullest);
        rules.took("a page was written for the room of its changes");
    }
}

impl Memory for Sftl {
    fn holds(&self, rules: &Rules, lpn: u32) -> bool {
        self.pages.contains(&rules.page_of(lpn)) || self.buffer.contains(&lpn)
    }

    fn used(&mut self, rules: &mut Rules, lpn: u32) {
        let page = rules.page_of(lpn);
        if let Some(at) = self.pages.iter().position(|&p| p == page) {
            self.pages.remove(at);
            self.pages.push(page);
        } else {
            rules.took("changes that had stayed were used");
        }
    }

    fn fetch(&mut self, rules: &mut Rules, lpn: u32, _: u32) {
        let page = rules.page_of(lpn);
        while self.all_bytes(rules) + self.bytes(rules, page) > self.room {
            self.evict(rules);
        }
        rules.load(page);
        let back = take(rules, &mut self.buffer, page);
        if !back.is_empty() {
            rules.took("changes that had stayed came back into their page");
        }
        self.changed.extend(back);
        self.pages.push(page);
    }

    fn changed(&mut self, rules: &mut Rules, lpn: u32) {
        if !self.pages.contains(&rules.page_of(lpn)) {
            return;
        }
        if !self.changed.contains(&lpn) {
            self.changed.push(lpn);
        }
        while self.all_bytes(rules) > self.room {
            self.evict(rules);
            rules.took("a page left because another grew");
        }
    }

    fn whole(&self, _: &Rules, page: usize) -> bool {
        self.pages.contains(&page)
    }

    fn cleaned(&mut self, rules: &mut Rules, page: usize) {
        take(rules, &mut self.changed, page);
        take(rules, &mut self.buffer, page);
    }

    fn details(&self, rules: &Rules) -> Vec<(&'static str, u64)> {
        let runs: u32 = self.pages.iter().map(|&page| Sftl::runs(rules, page)).sum();
        vec![
            ("pages_spared", self.spared),
            ("pages_in_memory", self.pages.len() as u64),
            ("runs_in_memory", runs.into()),
        ]
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
