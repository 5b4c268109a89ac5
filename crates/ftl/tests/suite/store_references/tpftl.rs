//! The reference for TPFTL.
//!
//! The rules leave some points open, and the reference interprets them as follows. The hotness of
//! an entry is the time of its last use, in steps (uses, loads, changes, departures). Averages are
//! whole numbers, and among equally hot nodes the first gives up entries. Entries that are loaded
//! together count as used one after another. Room for the host's entry is always made as if it
//! needed a new node. If both kinds of prefetching want entries, the larger number counts. The node
//! that gave up entries last gives up more until it is empty. A node gives up no entries for the
//! prefetching of its own entries. After each switch of the mode, nodes are counted from zero. A
//! map page is read before it is written even if all its entries are in memory.

use super::rules::{Memory, Rules};
use super::{DEFAULT, Shape, Subject, run};
use flashatlas_ftl::Reason;

const SUBJECT: Subject = Subject {
    name: "tpftl",
    memory: |shape| Box::new(Tpftl::new(shape)),
    shapes: SHAPES,
    always: &[
        "an unchanged entry left",
        "a changed entry left",
        "others of its map page were written with it",
        "a node left",
    ],
    sometimes: &[
        "an unchanged entry left before an older one",
        "loaded for the request",
        "loaded for a sequential reader",
        "less was loaded for want of room",
        "sequential",
        "no longer sequential",
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

const USUAL: &[(&str, &str)] = &[("map.prefetch_request", "true"), ("map.prefetch_threshold", "3")];
const EAGER: &[(&str, &str)] = &[("map.prefetch_request", "true"), ("map.prefetch_threshold", "1")];
const SEQUENCES: &[(&str, &str)] =
    &[("map.prefetch_request", "false"), ("map.prefetch_threshold", "2")];
const REQUESTS: &[(&str, &str)] =
    &[("map.prefetch_request", "true"), ("map.prefetch_threshold", "0")];
const NOTHING: &[(&str, &str)] =
    &[("map.prefetch_request", "false"), ("map.prefetch_threshold", "0")];

const SHAPES: &[Shape] = &[
    // memory for two entries and their nodes, and for a few more
    shape(90, 64, 44, USUAL, 5, 1, 8),
    shape(90, 64, 70, EAGER, 12, 3, 8),
    shape(90, 64, 250, EAGER, 40, 1, 12),
    shape(200, 64, 300, NOTHING, 40, 7, 12),
    shape(300, 64, 400, REQUESTS, 60, 3, 20),
    shape(500, 128, 400, SEQUENCES, 60, 5, 30),
    shape(500, 128, 600, USUAL, 90, 1, 30),
    shape(1000, 256, 500, EAGER, 90, 7, 40),
    shape(2000, 512, 900, USUAL, 150, 1, 40),
    // several map pages share a frame, on several lanes
    Shape { lanes: 2, frame_bytes: 2048, ..shape(1000, 64, 700, USUAL, 90, 3, 40) },
    Shape { lanes: 2, frame_bytes: 2048, pack: false, ..shape(900, 128, 500, EAGER, 70, 9, 9) },
    // entries of eight bytes; map pages of two slots
    Shape { lanes: 3, entry_bytes: 8, ..shape(777, 512, 400, SEQUENCES, 60, 2, 40) },
    Shape { frame_bytes: 2048, entry_bytes: 8, ..shape(900, 1024, 700, USUAL, 120, 3, 50) },
];

#[derive(Clone, Copy, Debug)]
struct Cached {
    lpn: u32,
    changed: bool,
    /// The step of the last use.
    at: u64,
}

struct Tpftl {
    room: u32,
    request: bool,
    threshold: i64,
    /// Entries in memory, least recently used first.
    entries: Vec<Cached>,
    clock: u64,
    /// The number of nodes that entered minus the number of nodes that left, since the mode last
    /// changed.
    balance: i64,
    sequential: bool,
    /// The number of entries that were prefetched for the request, and for a sequential reader.
    prefetched: [u64; 2],
    written: u64,
}

impl Tpftl {
    fn new(shape: &Shape) -> Tpftl {
        Tpftl {
            room: shape.cache_bytes,
            request: shape.setting("map.prefetch_request") == "true",
            threshold: shape.number("map.prefetch_threshold") as i64,
            entries: Vec::new(),
            clock: 0,
            balance: 0,
            sequential: false,
            prefetched: [0; 2],
            written: 0,
        }
    }

    fn of_node(&self, rules: &Rules, page: usize) -> Vec<Cached> {
        self.entries.iter().filter(|e| rules.page_of(e.lpn) == page).copied().collect()
    }

    fn has(&self, lpn: u32) -> bool {
        self.entries.iter().any(|e| e.lpn == lpn)
    }

    /// Returns, for each map page, the number of its entries in memory and the sum of their times.
    fn nodes(&self, rules: &Rules) -> Vec<(u64, u64)> {
        let mut nodes = vec![(0, 0); rules.written.len()];
        for entry in &self.entries {
            let (count, sum) = &mut nodes[rules.page_of(entry.lpn)];
            (*count, *sum) = (*count + 1, *sum + entry.at);
        }
        nodes
    }

    fn bytes(&self, rules: &Rules) -> u32 {
        let nodes = self.nodes(rules).iter().filter(|(count, _)| *count > 0).count();
        16 * nodes as u32 + 6 * self.entries.len() as u32
    }

    /// Returns the node whose entries have the oldest average time of last use. Among equals, the
    /// first is returned.
    fn coldest(&self, rules: &Rules) -> usize {
        let nodes = self.nodes(rules);
        let there = (0..nodes.len()).filter(|&page| nodes[page].0 > 0);
        there.min_by_key(|&page| nodes[page].1 / nodes[page].0).expect("memory is full")
    }

    fn node_came_or_left(&mut self, rules: &mut Rules, by: i64) {
        self.balance += by;
        if self.threshold == 0 {
            return;
        }
        if self.balance <= -self.threshold {
            (self.sequential, self.balance) = (true, 0);
            rules.took("sequential");
        } else if self.balance >= self.threshold {
            (self.sequential, self.balance) = (false, 0);
            rules.took("no longer sequential");
        }
    }

    /// Evicts one entry of a node.
    fn evict(&mut self, rules: &mut Rules, page: usize) {
        let entries = self.of_node(rules, page);
        let victim = *entries.iter().find(|e| !e.changed).unwrap_or(&entries[0]);
        if victim.changed {
            rules.write(page, Reason::Evict, false);
            let before = self.written;
            self.cleaned(rules, page);
            if self.written > before + 1 {
                rules.took("others of its map page were written with it");
            }
            rules.took("a changed entry left");
        } else {
            if victim.lpn != entries[0].lpn {
                rules.took("an unchanged entry left before an older one");
            }
            rules.took("an unchanged entry left");
        }
        self.clock += 1;
        self.entries.retain(|e| e.lpn != victim.lpn);
        if entries.len() == 1 {
            self.node_came_or_left(rules, -1);
            rules.took("a node left");
        }
    }

    /// Returns the number of entries after `lpn` that are to be loaded with it.
    fn wanted(&self, rules: &mut Rules, lpn: u32, ahead: u32) -> u32 {
        let in_page = rules.pages_in(rules.page_of(lpn));
        let request = if self.request { ahead } else { 0 };
        let before = (in_page.start..lpn).rev().take_while(|&lpn| self.has(lpn)).count() as u32;
        let sequence = if self.sequential { before } else { 0 };
        request.max(sequence).min(in_page.end - 1 - lpn)
    }
}

impl Memory for Tpftl {
    fn holds(&self, _: &Rules, lpn: u32) -> bool {
        self.has(lpn)
    }

    fn used(&mut self, _: &mut Rules, lpn: u32) {
        self.clock += 1;
        let at = self.entries.iter().position(|e| e.lpn == lpn).expect("the entry is in memory");
        let entry = self.entries.remove(at);
        self.entries.push(Cached { at: self.clock, ..entry });
    }

    fn fetch(&mut self, rules: &mut Rules, lpn: u32, ahead: u32) {
        let page = rules.page_of(lpn);
        let wanted = self.wanted(rules, lpn, ahead);
        let mut gives_room = None;
        loop {
            if self.bytes(rules) + 16 + 6 <= self.room {
                break;
            }
            let coldest = self.coldest(rules);
            gives_room = Some(coldest);
            self.evict(rules, coldest);
        }
        rules.load(page);
        self.clock += 1;
        if self.of_node(rules, page).is_empty() {
            self.node_came_or_left(rules, 1);
        }
        self.entries.push(Cached { lpn, changed: false, at: self.clock });
        for step in 1..=wanted {
            let lpn = lpn + step;
            if self.has(lpn) {
                continue;
            }
            while self.bytes(rules) + 6 > self.room {
                let node = gives_room.unwrap_or_else(|| self.coldest(rules));
                if node == page || self.of_node(rules, node).is_empty() {
                    rules.took("less was loaded for want of room");
                    return;
                }
                gives_room = Some(node);
                self.evict(rules, node);
            }
            self.clock += 1;
            self.entries.push(Cached { lpn, changed: false, at: self.clock });
            self.prefetched[usize::from(!(self.request && step <= ahead))] += 1;
            rules.took(if self.request && step <= ahead {
                "loaded for the request"
            } else {
                "loaded for a sequential reader"
            });
        }
    }

    fn changed(&mut self, _: &mut Rules, lpn: u32) {
        self.clock += 1;
        self.entries.iter_mut().find(|e| e.lpn == lpn).expect("the entry is in memory").changed =
            true;
    }

    fn whole(&self, _: &Rules, _: usize) -> bool {
        false
    }

    fn cleaned(&mut self, rules: &mut Rules, page: usize) {
        for entry in &mut self.entries {
            if rules.page_of(entry.lpn) == page && entry.changed {
                entry.changed = false;
                self.written += 1;
            }
        }
    }

    fn details(&self, _: &Rules) -> Vec<(&'static str, u64)> {
        vec![
            ("entries_prefetched_request", self.prefetched[0]),
            ("entries_prefetched_selective", self.prefetched[1]),
            ("entries_written", self.written),
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
