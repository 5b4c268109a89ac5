//! Tests of a host that sends any entries, including forged entries.

use super::{PAGES, SUBREGION, config, counter};
use flashatlas_device::hpb::NO_ENTRY;
use flashatlas_device::{Cmd, Device, DriveConfig, Reply, Stack};
use flashatlas_ftl::Place;
use flashatlas_types::{Lba, Lpn, Ps, Seed, Stamp, Tag};
use proptest::prelude::*;

/// A drive, and a test that stores every entry that the drive ever returned and sends any entries.
struct Forger {
    stack: Stack,
    config: DriveConfig,
    truth: Vec<Stamp>,
    /// Entries that the drive returned, each with its page.
    seen: Vec<(u32, u64)>,
    number: u64,
    /// Number of responses that announced a reset.
    resets: u64,
    reply: Reply,
}

impl Forger {
    fn new(more: &[&str]) -> Forger {
        let config = config(more).unwrap();
        let mut stack = config.build_stack(Seed(1)).unwrap();
        stack.set_instant(true);
        let truth = vec![Stamp::ZERO; PAGES as usize];
        Forger {
            stack,
            config,
            truth,
            seen: Vec::new(),
            number: 0,
            resets: 0,
            reply: Reply::default(),
        }
    }

    fn lba(&self, page: u32) -> Lba {
        Lba(u64::from(page) * u64::from(self.stack.unit_sectors()))
    }

    fn submit(&mut self, cmd: Cmd<'_>) {
        self.stack.ssd_mut().submit(Ps::ZERO, Tag(0), cmd, &mut self.reply).unwrap();
        self.resets += u64::from(self.reply.notice.as_ref().is_some_and(|notice| notice.reset));
    }

    fn write(&mut self, page: u32) {
        self.number += 1;
        let sectors = self.stack.unit_sectors();
        let write = Cmd::Write {
            lba: self.lba(page),
            sectors,
            fua: false,
            content: self.number,
            data: None,
        };
        self.submit(write);
        self.truth[page as usize] = Stamp::whole(self.number, 0);
    }

    fn part(&mut self, page: u32) {
        self.number += 1;
        let (lba, sectors) = (self.lba(page), self.stack.unit_sectors().min(2));
        self.submit(Cmd::Write { lba, sectors, fua: false, content: self.number, data: None });
        let truth = &mut self.truth[page as usize];
        *truth = if sectors == self.stack.unit_sectors() {
            Stamp::whole(self.number, 0)
        } else {
            truth.overwritten(self.number, 0, sectors)
        };
    }

    fn trim(&mut self, page: u32) {
        self.submit(Cmd::Trim { lba: self.lba(page), sectors: self.stack.unit_sectors() });
        self.truth[page as usize] = Stamp::ZERO;
    }

    fn fetch(&mut self, subregion: u32) {
        self.submit(Cmd::ReadBuffer { subregion });
        let first = subregion * SUBREGION;
        let entries = std::mem::take(&mut self.reply.entries);
        assert_eq!(entries.len() as u32, SUBREGION.min(PAGES - first));
        self.seen.extend((first..).zip(entries).filter(|(_, entry)| *entry != NO_ENTRY));
    }

    /// Reads `page` with `entry`. Returns `true` if the data is correct.
    fn is_right(&mut self, page: u32, entry: u64) -> bool {
        let (lba, sectors) = (self.lba(page), self.stack.unit_sectors());
        self.submit(Cmd::HpbRead { lba, sectors, entries: &[entry] });
        self.reply.stamps == [self.truth[page as usize]]
    }

    /// Reads `count` pages with entries. Returns `true` if the data is correct.
    fn are_right(&mut self, first: u32, count: u32, entries: &[u64]) -> bool {
        let (lba, sectors) = (self.lba(first), count * self.stack.unit_sectors());
        self.submit(Cmd::HpbRead { lba, sectors, entries });
        self.reply.stamps == self.truth[first as usize..(first + count) as usize]
    }

    fn power_cycle(&mut self) {
        self.submit(Cmd::Flush);
        self.stack.set_instant(false);
        self.stack.power_cycle(&self.config.clone(), Seed(1)).unwrap();
        self.stack.set_instant(true);
    }
}

/// An action of the test's host.
#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    /// Write a part of a page.
    Part(u32),
    /// Write a page many times, so that blocks are collected and erased.
    Churn(u32),
    Trim(u32),
    Flush,
    Fetch(u32),
    PowerCycle,
    /// Read a page with these 8 bytes.
    Send(u32, u64),
    /// Read the page of an earlier entry with this entry. The number counts back from the last
    /// entry.
    Replay(usize),
    /// Read the page of an earlier entry with this entry, after some of its bits were flipped.
    Flip(usize, u64),
    /// Read another page with an earlier entry.
    Splice(usize, u32),
    /// Read consecutive pages with earlier entries of any pages.
    Long(u32, Vec<usize>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = 0..PAGES;
    let step = prop_oneof![
        4 => page.clone().prop_map(Step::Write),
        2 => page.clone().prop_map(Step::Part),
        1 => page.clone().prop_map(Step::Churn),
        2 => page.clone().prop_map(Step::Trim),
        1 => Just(Step::Flush),
        6 => (0..PAGES.div_ceil(SUBREGION)).prop_map(Step::Fetch),
        1 => Just(Step::PowerCycle),
        3 => (page.clone(), any::<u64>()).prop_map(|(p, e)| Step::Send(p, e)),
        // an unprotected entry has such a value
        1 => (page.clone(), 0u64..4096).prop_map(|(p, e)| Step::Send(p, e)),
        12 => (0usize..200).prop_map(Step::Replay),
        3 => (0usize..200, 0u32..64).prop_map(|(n, bit)| Step::Flip(n, 1 << bit)),
        3 => (0usize..200, any::<u64>()).prop_map(|(n, bits)| Step::Flip(n, bits)),
        3 => (0usize..200, page.clone()).prop_map(|(n, p)| Step::Splice(n, p)),
        3 => (page, prop::collection::vec(0usize..40, 1..9))
            .prop_map(|(p, back)| Step::Long(p, back)),
    ];
    prop::collection::vec(step, 1..120)
}

/// Settings with which four pages share a program and wait for each other.
const QUARTERS: &[&str] = &[
    "map.unit=512",
    "drive.spare_bytes=128",
    "map.cache_bytes=400",
    "hpb.region=16KiB",
    "hpb.subregion=8KiB",
];

fn play(more: &[&str], steps: &[Step], other: &[(u32, u64)]) -> Result<(), TestCaseError> {
    let mut host = Forger::new(more);
    // the host has the entries of the first version of every page, and the entries of another drive
    (0..PAGES).for_each(|page| host.write(page));
    (0..PAGES.div_ceil(SUBREGION)).for_each(|subregion| host.fetch(subregion));
    for &(page, entry) in other {
        prop_assert!(host.is_right(page, entry), "entry {entry:#x} of another drive");
    }
    for step in steps {
        let back = |host: &Forger, n: usize| host.seen[host.seen.len() - 1 - n % host.seen.len()];
        let (page, entry) = match *step {
            Step::Write(page) => {
                host.write(page);
                continue;
            }
            Step::Part(page) => {
                host.part(page);
                continue;
            }
            Step::Long(first, ref of) => {
                let count = (of.len() as u32).min(PAGES - first);
                let entries: Vec<u64> = of.iter().map(|&n| back(&host, n).1).collect();
                prop_assert!(host.are_right(first, count, &entries), "{step:?}");
                continue;
            }
            Step::Churn(page) => {
                (0..400).for_each(|n| host.write((page + n % 40) % PAGES));
                continue;
            }
            Step::Trim(page) => {
                host.trim(page);
                continue;
            }
            Step::Flush => {
                host.submit(Cmd::Flush);
                continue;
            }
            Step::Fetch(subregion) => {
                host.fetch(subregion);
                continue;
            }
            Step::PowerCycle => {
                host.power_cycle();
                continue;
            }
            Step::Send(page, entry) => (page, entry),
            Step::Replay(n) => back(&host, n),
            Step::Flip(n, bits) => {
                let (page, entry) = back(&host, n);
                (page, entry ^ bits)
            }
            Step::Splice(n, page) => (page, back(&host, n).1),
        };
        prop_assert!(
            host.is_right(page, entry),
            "page {page} with entry {entry:#x} after {step:?}"
        );
    }
    // at the end, each entry that ever existed is sent with a read of its page
    for (page, entry) in host.seen.clone() {
        prop_assert!(host.is_right(page, entry), "page {page} with entry {entry:#x} at the end");
    }
    Ok(())
}

/// Returns the entries of a drive with another key whose pages have the same places.
fn of_another(settings: &[&str]) -> Vec<(u32, u64)> {
    let mut other = Forger::new(&[settings, &["hpb.key=2"]].concat());
    (0..PAGES).for_each(|page| other.write(page));
    (0..PAGES.div_ceil(SUBREGION)).for_each(|subregion| other.fetch(subregion));
    other.seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_entry_changes_what_a_read_returns(
        steps in steps(),
        page in any::<bool>(),
        through in any::<bool>(),
        quarters in any::<bool>(),
    ) {
        let unit = if quarters { QUARTERS } else { &[] };
        let dirty = if page { "hpb.dirty=page" } else { "hpb.dirty=group" };
        let cache = if through { "cache.mode=write-through" } else { "cache.mode=write-back" };
        for protect in ["hpb.protect=tagged", "hpb.protect=encrypted"] {
            let settings = [&[protect, dirty, cache], unit].concat();
            play(&settings, &steps, &of_another(&settings))?;
        }
    }
}

/// Every reason to refuse an entry has a counter and occurs.
#[test]
fn every_refusal_is_counted_by_its_reason() {
    for protect in ["tagged", "encrypted", "plain"] {
        let mut host =
            Forger::new(&[&format!("hpb.protect={protect}"), "cache.mode=write-through"]);
        let refused = |host: &Forger, why: &str| counter(&host.stack, &format!("refused_{why}"));
        (0..PAGES).for_each(|page| host.write(page));
        assert!(
            host.is_right(3, 0) && refused(&host, "inactive") == 1,
            "{protect}: no entry was exported"
        );
        host.fetch(0);
        let (_, first) = host.seen[3];
        assert!(host.is_right(3, first) && counter(&host.stack, "valid_entries") == 1, "{protect}");
        // a write of another page makes the whole subregion dirty until it is fetched again
        host.write(4);
        assert!(host.is_right(3, first) && refused(&host, "dirty") == 1, "{protect}");
        host.fetch(0);
        if protect == "plain" {
            assert!(
                host.is_right(3, first),
                "the old entry equals the new entry, because the page has not moved"
            );
            assert!(
                host.is_right(3, host.seen[9].1) && refused(&host, "elsewhere") == 1,
                "another page is in that slot"
            );
            assert!(host.is_right(3, 1 << 20) && refused(&host, "out_of_range") == 1);
            assert!(host.is_right(3, 1 << 40) && refused(&host, "tampered") == 1);
            continue;
        }
        assert!(
            host.is_right(3, first) && refused(&host, "stale") == 1,
            "{protect}: the entry is of the previous generation"
        );
        let now = host.seen.iter().rev().find(|(page, _)| *page == 3).unwrap().1;
        assert!(host.is_right(3, now) && counter(&host.stack, "valid_entries") == 2, "{protect}");
        if protect == "tagged" {
            assert!(host.is_right(3, now ^ 1) && refused(&host, "tampered") == 1);
            assert!(host.is_right(5, now) && refused(&host, "tampered") == 2, "spliced");
        } else {
            // a changed entry decrypts to random bits; most results have another generation, and
            // the others have an invalid place or the place of another page
            (0..1000).for_each(|n| assert!(host.is_right(3, (now ^ (n + 1)) & 0xffff_ffff)));
            let all: u64 =
                ["stale", "out_of_range", "elsewhere"].iter().map(|why| refused(&host, why)).sum();
            assert_eq!(all, 1001);
            assert!(refused(&host, "out_of_range") > 30);
        }
    }
}

/// A forged entry with the place of map page 3 is not accepted for data page 3.
#[test]
fn a_map_page_is_not_taken_for_data() {
    let mut host = Forger::new(&["hpb.protect=plain", "cache.mode=write-through"]);
    (0..PAGES).for_each(|page| host.write(page));
    host.fetch(0);
    for ppn in 0..host.stack.ssd().layout().slots() {
        assert!(host.is_right(3, ppn.into()), "slot {ppn}");
    }
    assert_eq!(counter(&host.stack, "valid_entries"), 1);
}

/// A page that has left the write cache and waits for other pages of its frame still has its old
/// entry.
#[test]
fn a_page_in_the_page_buffer_is_read_from_there() {
    let mut host = Forger::new(QUARTERS);
    (0..PAGES).for_each(|page| host.write(page));
    let mut seen = 0;
    // the number of earlier writes decides which page leaves the cache last
    for before in 0..12 {
        host.submit(Cmd::Flush);
        host.fetch(0);
        let (_, entry) = host.seen[host.seen.len() - SUBREGION as usize + 3];
        for n in 0..60 {
            host.write(if n == before { 3 } else { SUBREGION + 7 * n });
            if let Place::Buffer(_) = host.stack.ssd().place(Lpn(3)) {
                assert!(host.is_right(3, entry));
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "the page was never in the page buffer");
}

/// With `plain` the drive accepts a forged entry of an old version (`docs/RELIABILITY.md`).
#[test]
fn without_protection_a_forger_reads_what_was() {
    let mut host = Forger::new(&["hpb.protect=plain", "cache.mode=write-through"]);
    (0..PAGES).for_each(|page| host.write(page));
    host.fetch(0);
    let (_, old) = host.seen[3];
    host.write(3);
    assert!(host.is_right(3, old), "the subregion is dirty");
    host.fetch(0);
    assert!(
        !host.is_right(3, old),
        "the old version is still on flash, and its spare area names the page"
    );
}

/// Old entries stay invalid when generation numbers are used again.
#[test]
fn generations_that_come_again_reset_the_host() {
    for (protect, generations) in [("tagged", 256), ("encrypted", 16)] {
        for dirty in ["group", "page"] {
            let (protect_by, known) =
                (format!("hpb.protect={protect}"), format!("hpb.dirty={dirty}"));
            let mut host = Forger::new(&[&protect_by, &known, "cache.mode=write-through"]);
            (0..PAGES).for_each(|page| host.write(page));
            host.fetch(0);
            let (_, first) = host.seen[3];
            for n in 0..generations {
                assert_eq!(counter(&host.stack, "resets"), 0, "{protect}, {dirty}: after {n}");
                host.write(3);
                host.fetch(0);
            }
            assert_eq!(counter(&host.stack, "resets"), 1, "{protect}, {dirty}");
            assert!(host.is_right(3, first), "{protect}, {dirty}");
            assert_eq!(host.resets, 1, "the response says so");
        }
    }
}

/// For a read of a partly cached page, an entry is accepted only for the version over which the
/// cached part was written.
#[test]
fn an_old_version_is_not_laid_under_what_the_cache_holds() {
    let mut host = Forger::new(&["hpb.protect=plain"]);
    (0..PAGES).for_each(|page| host.write(page));
    host.submit(Cmd::Flush);
    host.fetch(0);
    let (_, old) = host.seen[3];
    host.write(3);
    host.submit(Cmd::Flush);
    host.fetch(0);
    host.number += 1;
    host.submit(Cmd::Write {
        lba: host.lba(3),
        sectors: 1,
        fua: false,
        content: host.number,
        data: None,
    });
    host.truth[3] = host.truth[3].overwritten(host.number, 0, 1);
    assert!(host.is_right(3, old));
    assert_eq!(counter(&host.stack, "refused_elsewhere"), 1);
}
