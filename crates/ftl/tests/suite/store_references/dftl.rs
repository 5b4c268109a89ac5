//! The reference for DFTL.

use super::rules::{Memory, Rules};
use super::{Call, DEFAULT, Shape, Subject, by_hand, run};
use flashatlas_ftl::Reason;
use flashatlas_types::Ppn;

const SUBJECT: Subject = Subject {
    name: "dftl",
    memory: |shape| Box::new(Dftl::new(shape)),
    shapes: SHAPES,
    always: &[
        "an unchanged entry left",
        "a changed entry left",
        "others of its map page were written with it",
    ],
    sometimes: &["moves written with an entry that left", "protected", "no longer protected"],
};

/// Returns a shape with memory for `room` entries, of which a share may be protected.
const fn shape(
    logical_pages: u32,
    map_page_bytes: u32,
    room: u32,
    settings: &'static [(&'static str, &'static str)],
    stride: u32,
) -> Shape {
    Shape {
        logical_pages,
        map_page_bytes,
        // less than one entry is left over
        cache_bytes: 8 * room + 7,
        settings,
        hot: room + 3,
        stride,
        ..DEFAULT
    }
}

const ONE_LIST: &[(&str, &str)] = &[("map.protected_share", "0")];
const HALF: &[(&str, &str)] = &[("map.protected_share", "0.5")];
const MOST: &[(&str, &str)] = &[("map.protected_share", "0.8")];

const SHAPES: &[Shape] = &[
    shape(90, 64, 2, ONE_LIST, 1),
    shape(90, 64, 3, HALF, 1),
    shape(90, 64, 64, MOST, 1),
    shape(200, 64, 5, MOST, 7),
    shape(256, 128, 9, ONE_LIST, 1),
    shape(300, 128, 16, HALF, 3),
    shape(500, 256, 24, ONE_LIST, 11),
    shape(1000, 512, 40, MOST, 1),
    shape(2000, 512, 64, MOST, 13),
    // several map pages share a frame, on several lanes
    Shape { lanes: 2, frame_bytes: 2048, ..shape(2000, 64, 64, HALF, 1) },
    Shape { lanes: 2, frame_bytes: 2048, pack: false, ..shape(1200, 128, 30, MOST, 31) },
    // entries of eight bytes; map pages of two slots
    Shape { lanes: 3, entry_bytes: 8, ..shape(777, 512, 33, HALF, 5) },
    Shape { lanes: 2, frame_bytes: 2048, entry_bytes: 8, ..shape(640, 1024, 12, MOST, 1) },
];

#[derive(Clone, Copy, Debug)]
struct Cached {
    lpn: u32,
    changed: bool,
}

struct Dftl {
    room: usize,
    protected_room: usize,
    /// Entries in memory, least recently used first.
    probation: Vec<Cached>,
    protected: Vec<Cached>,
    /// Number of changed entries that were written.
    written: u64,
}

impl Dftl {
    fn new(shape: &Shape) -> Dftl {
        let tenths = (shape.number("map.protected_share") * 10.0).round() as u32;
        let room = shape.cache_bytes / 8;
        Dftl {
            room: room as usize,
            protected_room: (room * tenths / 10) as usize,
            probation: Vec::new(),
            protected: Vec::new(),
            written: 0,
        }
    }

    fn promote(&mut self, rules: &mut Rules, entry: Cached) {
        if self.protected_room == 0 {
            self.probation.push(entry);
            return;
        }
        if self.protected.len() == self.protected_room {
            let demoted = self.protected.remove(0);
            self.probation.push(demoted);
            rules.took("no longer protected");
        }
        self.protected.push(entry);
        rules.took("protected");
    }

    fn evict(&mut self, rules: &mut Rules) {
        let victim = *self.probation.first().or(self.protected.first()).expect("memory is full");
        if victim.changed {
            let page = rules.page_of(victim.lpn);
            if rules.waiting[page] {
                rules.took("moves written with an entry that left");
            }
            rules.write(page, Reason::Evict, false);
            let before = self.written;
            self.cleaned(rules, page);
            if self.written > before + 1 {
                rules.took("others of its map page were written with it");
            }
            rules.took("a changed entry left");
        } else {
            rules.took("an unchanged entry left");
        }
        self.probation.retain(|e| e.lpn != victim.lpn);
        self.protected.retain(|e| e.lpn != victim.lpn);
    }
}

impl Memory for Dftl {
    fn holds(&self, _: &Rules, lpn: u32) -> bool {
        self.probation.iter().chain(&self.protected).any(|e| e.lpn == lpn)
    }

    fn used(&mut self, rules: &mut Rules, lpn: u32) {
        if let Some(at) = self.protected.iter().position(|e| e.lpn == lpn) {
            let entry = self.protected.remove(at);
            self.protected.push(entry);
        } else {
            let at =
                self.probation.iter().position(|e| e.lpn == lpn).expect("the entry is in memory");
            let entry = self.probation.remove(at);
            self.promote(rules, entry);
        }
    }

    fn fetch(&mut self, rules: &mut Rules, lpn: u32, _: u32) {
        if self.probation.len() + self.protected.len() == self.room {
            self.evict(rules);
        }
        rules.load(rules.page_of(lpn));
        self.probation.push(Cached { lpn, changed: false });
    }

    fn changed(&mut self, _: &mut Rules, lpn: u32) {
        let mut entries = self.probation.iter_mut().chain(&mut self.protected);
        entries.find(|e| e.lpn == lpn).expect("the entry is in memory").changed = true;
    }

    fn whole(&self, _: &Rules, _: usize) -> bool {
        false
    }

    fn cleaned(&mut self, rules: &mut Rules, page: usize) {
        for entry in self.probation.iter_mut().chain(&mut self.protected) {
            if rules.page_of(entry.lpn) == page && entry.changed {
                entry.changed = false;
                self.written += 1;
            }
        }
    }

    fn details(&self, _: &Rules) -> Vec<(&'static str, u64)> {
        vec![("entries_written", self.written)]
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

/// The memory has room for two entries in one list. Map pages have 16 entries.
const SMALLEST: Shape = shape(90, 64, 2, ONE_LIST, 1);

/// By the rules, the entry is trimmed after another entry has left memory to make room, so the
/// flush must write a trim.
#[test]
fn a_trim_comes_after_the_eviction_that_wrote_its_map_page() {
    let calls = [Call::Set(0, Ppn(0)), Call::Set(1, Ppn(1)), Call::Trim(2), Call::Flush];
    by_hand(&SUBJECT, &SMALLEST, &calls);
}

/// By the rules, the trim of page 0 is written before page 16 is trimmed, so the erase of block 0
/// waits for no trim.
#[test]
fn a_trim_comes_after_the_eviction_that_wrote_all_trims_before_it() {
    let calls =
        [Call::Set(0, Ppn(0)), Call::Trim(0), Call::Get(32), Call::Trim(16), Call::BeforeErase(0)];
    by_hand(&SUBJECT, &SMALLEST, &calls);
}
