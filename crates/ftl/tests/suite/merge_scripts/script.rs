//! The language of the scripts.
//!
//! A script is a list of requests, with conditions that must hold between them:
//!
//! | | |
//! |---|---|
//! | `w 4 5 9` | writes of pages 4, 5 and 9, each as a request |
//! | `r 4 3` | one write of three pages from page 4 |
//! | `t 4 5` | trims of single pages |
//! | `fill` | writes of all pages in ascending order; then all counters are set to zero |
//! | `idle` | a second without requests |
//! | `1: ddl.` | logical block 1 has two pages in its data block, one in the log, and an unmapped last page |
//! | `= partial 1, copies 2` | these counters have these values, all others are zero; then all are set to zero |
//!
//! The counters `switch`, `partial`, `full`, `dead` and `moved` count log blocks. `data full` and
//! the other `data` counters count data blocks.

use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, Reply, Ssd, Storage};
use flashatlas_ftl::{MergeClass, Place, Role};
use flashatlas_types::{Dur, Lba, Lpn, Ps, Seed, Stamp, Tag};
use std::collections::BTreeMap;

/// Number of pages in a block.
const B: u32 = 4;

fn drive(settings: &[&str]) -> Ssd {
    let common = [
        "drive.channels=1",
        "drive.ways=1",
        "drive.blocks=64",
        "drive.pages=4",
        "drive.logical_pages=32",
        "cache.mode=write-through",
        "nand.program_order=any",
    ];
    let settings: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
    let config = Registry::DRIVES
        .load("tiny", None, &settings)
        .unwrap_or_else(|e| panic!("{settings:?}: {e}"));
    config.build(Seed(1)).unwrap()
}

/// A drive on which a script runs.
pub struct Script {
    pub drive: Ssd,
    pub now: Ps,
    written: u64,
}

impl Script {
    /// Returns a blank drive.
    pub fn on(settings: &[&str]) -> Script {
        Script { drive: drive(settings), written: 0, now: Ps::ZERO }
    }

    /// Executes a line of requests, or checks a line with a condition.
    pub fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbers = || rest.split_whitespace().map(|n| n.parse().expect("a number"));
        match word {
            "w" => numbers().for_each(|page| self.write(page, 1)),
            "r" => {
                let numbers: Vec<u32> = numbers().collect();
                self.write(numbers[0], numbers[1]);
            }
            "t" => numbers().for_each(|page: u32| {
                self.submit(Cmd::Trim { lba: Lba(u64::from(page) * 4), sectors: 4 });
            }),
            "fill" => {
                self.drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
                self.drive.reset_counters();
            }
            "idle" => {
                self.settle();
                let until = self.now.after(Dur::from_us(1_000_000));
                self.drive.idle(self.now, until).unwrap();
                self.now = until;
            }
            "=" => {
                assert_eq!(self.counts(), counts_of(rest), "counts");
                self.drive.reset_counters();
            }
            _ => {
                let lbn: u32 = word
                    .trim_end_matches(':')
                    .parse()
                    .unwrap_or_else(|_| panic!("`{line}` is no step"));
                assert_eq!(self.places(lbn), rest, "logical block {lbn}");
            }
        }
        self.drive.check().unwrap_or_else(|v| panic!("{v}"));
    }

    fn write(&mut self, page: u32, pages: u32) {
        self.written += 1;
        let (lba, content) = (Lba(u64::from(page) * 4), self.written);
        self.submit(Cmd::Write { lba, sectors: pages * 4, fua: false, content, data: None });
    }

    fn submit(&mut self, cmd: Cmd<'_>) {
        self.settle();
        self.drive
            .submit(self.now, Tag(0), cmd, &mut Reply::default())
            .unwrap_or_else(|e| panic!("{e}"));
        self.settle();
    }

    /// Runs until no operation is in flight.
    pub fn settle(&mut self) {
        while let Some(at) = self.drive.next_event() {
            self.drive.advance(at, &mut Vec::new());
            self.now = self.now.max(at);
        }
    }

    /// Returns the kind of place of each page of a logical block, with one character for each page.
    fn places(&self, lbn: u32) -> String {
        let mut roles = BTreeMap::new();
        self.drive.for_each_block(&mut |block, role, _| {
            roles.insert(block, role);
        });
        let place = |offset| match self.drive.place(Lpn(lbn * B + offset)) {
            Place::Flash(ppn) => match roles[&self.drive.layout().block_of(ppn)] {
                Role::Data => 'd',
                Role::Log => 'l',
                other => panic!("a page in a block that is {other:?}"),
            },
            _ => '.',
        };
        (0..B).map(place).collect()
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        let m = self.drive.ftl_report().merges.expect("a scheme that merges");
        let named = |prefix: &str, counts: &[u64]| -> Vec<(String, u64)> {
            MergeClass::ALL
                .iter()
                .zip(counts)
                .map(|(c, &n)| (format!("{prefix}{}", c.name()), n))
                .collect()
        };
        let mut all = named("", &m.log_blocks.expect("a scheme with a log"));
        all.extend(named("data ", &m.data_blocks));
        let erases = self.drive.medium().counters.erases.iter().sum();
        all.extend([
            ("copies".to_owned(), m.copies),
            ("moves".to_owned(), m.moved_pages),
            ("migrated".to_owned(), m.migrated_blocks),
            ("in place".to_owned(), m.in_place),
            ("detours".to_owned(), m.order_detours),
            ("erases".to_owned(), erases),
        ]);
        // a switch or a partial merge of a log block also counts as a merge of its data block
        all.retain(|(name, n)| *n > 0 && name != "data switch" && name != "data partial");
        all.into_iter().collect()
    }
}

fn counts_of(text: &str) -> BTreeMap<String, u64> {
    let one = |part: &str| {
        let (name, n) = part.trim().rsplit_once(' ').expect("name and number");
        (name.to_owned(), n.parse().expect("a number"))
    };
    text.split(',').filter(|part| *part != "nothing").map(one).collect()
}

/// Runs a script on a blank drive. The text after `--` in a line is a comment.
pub fn play(settings: &[&str], script: &str) {
    let mut state = Script::on(settings);
    for (number, line) in
        script.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty())
    {
        let step = line.split("--").next().unwrap_or("").trim();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| state.line(step)));
        assert!(outcome.is_ok(), "{settings:?}, line {number}: {line}");
    }
}
