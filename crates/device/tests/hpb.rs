//! R7 of RELIABILITY.md: whatever the host sends with a read, the read returns what it would return without. And what the two
//! sides of HPB do to keep it so, and to be fast.

use flashatlas_device::hpb::NO_ENTRY;
use flashatlas_device::{Cmd, Device, Done, DriveConfig, Reply, Stack, SubmitError};
use flashatlas_ftl::Place;
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};
use proptest::prelude::*;

/// 496 pages of 2 KiB in 31 subregions of 16; map pages of 16 entries, 3 of them in memory.
const DRIVE: &[&str] = &[
    "drive.blocks=24",
    "map.unit=2KiB",
    "drive.logical_pages=496",
    "map.store=demand",
    "map.page_bytes=64",
    "map.cache_bytes=200",
    "layers=hpb-host",
    "hpb.region=64KiB",
    "hpb.subregion=32KiB",
    "hpb.max_read=8KiB",
    "hpb.host_bytes=64KiB",
];
const PAGES: u32 = 496;
const SUBREGION: u32 = 16;

fn config(more: &[&str]) -> Result<DriveConfig, String> {
    let settings: Vec<String> = DRIVE.iter().chain(more).map(|&s| s.to_owned()).collect();
    DriveConfig::load("tiny", None, &settings).map_err(|e| e.to_string())
}

fn stack(more: &[&str]) -> Stack {
    config(more).unwrap_or_else(|e| panic!("{e}")).build_stack(Seed(1)).unwrap()
}

fn counter(stack: &Stack, name: &str) -> u64 {
    let report = stack.reports().into_iter().find(|r| r.layer == "hpb-host").unwrap();
    report.counters.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

fn lba(page: u32) -> Lba {
    Lba(u64::from(page) * 4)
}

fn write(page: u32, content: u64) -> Cmd<'static> {
    Cmd::Write { lba: lba(page), sectors: 4, fua: false, content, data: None }
}

/// A drive whose host is the test: it keeps every entry that it ever got, and sends what it likes.
struct Forger {
    stack: Stack,
    config: DriveConfig,
    truth: Vec<Stamp>,
    /// Entries with the pages that they are of.
    seen: Vec<(u32, u64)>,
    number: u64,
    /// Responses that said so.
    resets: u64,
    reply: Reply,
}

impl Forger {
    fn new(more: &[&str]) -> Forger {
        let config = config(more).unwrap();
        let mut stack = config.build_stack(Seed(1)).unwrap();
        stack.set_instant(true);
        let truth = vec![Stamp::ZERO; PAGES as usize];
        Forger { stack, config, truth, seen: Vec::new(), number: 0, resets: 0, reply: Reply::default() }
    }

    fn lba(&self, page: u32) -> Lba {
        Lba(u64::from(page) * u64::from(self.stack.unit_sectors()))
    }

    fn submit(&mut self, cmd: Cmd<'_>) {
        self.stack.ssd_mut().submit(Ps::ZERO, Tag(0), cmd, &mut self.reply).unwrap();
        self.resets += u64::from(self.reply.notice.reset);
    }

    fn write(&mut self, page: u32) {
        self.number += 1;
        let sectors = self.stack.unit_sectors();
        let write = Cmd::Write { lba: self.lba(page), sectors, fua: false, content: self.number, data: None };
        self.submit(write);
        self.truth[page as usize] = Stamp::whole(self.number, 0);
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

    /// Read `page` with `entry`: whether the data is right.
    fn is_right(&mut self, page: u32, entry: u64) -> bool {
        let (lba, sectors) = (self.lba(page), self.stack.unit_sectors());
        self.submit(Cmd::HpbRead { lba, sectors, entries: &[entry] });
        self.reply.stamps == [self.truth[page as usize]]
    }

    fn power_cycle(&mut self) {
        self.submit(Cmd::Flush);
        self.stack.set_instant(false);
        self.stack.power_cycle(&self.config.clone(), Seed(1)).unwrap();
        self.stack.set_instant(true);
    }
}

/// What the host of the test does next.
#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    /// Write a page so often that blocks are collected and erased.
    Churn(u32),
    Trim(u32),
    Flush,
    Fetch(u32),
    PowerCycle,
    /// Read a page with these 8 bytes.
    Send(u32, u64),
    /// Read the page of an entry that was seen before, with the entry: how many back.
    Replay(usize),
    /// The same with bits turned over, and for another page.
    Flip(usize, u64),
    Splice(usize, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = 0..PAGES;
    let step = prop_oneof![
        4 => page.clone().prop_map(Step::Write),
        1 => page.clone().prop_map(Step::Churn),
        2 => page.clone().prop_map(Step::Trim),
        1 => Just(Step::Flush),
        6 => (0..PAGES.div_ceil(SUBREGION)).prop_map(Step::Fetch),
        1 => Just(Step::PowerCycle),
        3 => (page.clone(), any::<u64>()).prop_map(|(p, e)| Step::Send(p, e)),
        // what looks like an entry without protection
        1 => (page.clone(), 0u64..4096).prop_map(|(p, e)| Step::Send(p, e)),
        12 => (0usize..200).prop_map(Step::Replay),
        3 => (0usize..200, 0u32..64).prop_map(|(n, bit)| Step::Flip(n, 1 << bit)),
        3 => (0usize..200, any::<u64>()).prop_map(|(n, bits)| Step::Flip(n, bits)),
        3 => (0usize..200, page).prop_map(|(n, p)| Step::Splice(n, p)),
    ];
    prop::collection::vec(step, 1..120)
}

/// Four pages share a program, and wait for each other.
const QUARTERS: &[&str] =
    &["map.unit=512", "drive.spare_bytes=128", "map.cache_bytes=400", "hpb.region=16KiB", "hpb.subregion=8KiB"];

fn play(more: &[&str], steps: &[Step], other: &[(u32, u64)]) -> Result<(), TestCaseError> {
    let mut host = Forger::new(more);
    // every page is known, in its first version, and what another drive said of it, too
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
        prop_assert!(host.is_right(page, entry), "page {page} with entry {entry:#x} after {step:?}");
    }
    // at the end every entry that ever was, for its page
    for (page, entry) in host.seen.clone() {
        prop_assert!(host.is_right(page, entry), "page {page} with entry {entry:#x} at the end");
    }
    Ok(())
}

/// Entries of a drive with other keys, whose pages stand where those of the drive under test do.
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

/// Every reason to refuse an entry has its counter, and a way there.
#[test]
fn every_refusal_is_counted_by_its_reason() {
    for protect in ["tagged", "encrypted", "plain"] {
        let mut host = Forger::new(&[&format!("hpb.protect={protect}"), "cache.mode=write-through"]);
        let refused = |host: &Forger, why: &str| counter(&host.stack, &format!("refused_{why}"));
        (0..PAGES).for_each(|page| host.write(page));
        assert!(host.is_right(3, 0) && refused(&host, "inactive") == 1, "{protect}: nothing was handed out");
        host.fetch(0);
        let (_, first) = host.seen[3];
        assert!(host.is_right(3, first) && counter(&host.stack, "believed") == 1, "{protect}");
        // a page beside it is written: the whole subregion is dirty until it is fetched again
        host.write(4);
        assert!(host.is_right(3, first) && refused(&host, "dirty") == 1, "{protect}");
        host.fetch(0);
        if protect == "plain" {
            assert!(host.is_right(3, first), "nothing tells it from the new one, and the page has not moved");
            assert!(host.is_right(3, host.seen[9].1) && refused(&host, "elsewhere") == 1, "another page stands there");
            assert!(host.is_right(3, 1 << 20) && refused(&host, "out_of_range") == 1);
            assert!(host.is_right(3, 1 << 40) && refused(&host, "tampered") == 1);
            continue;
        }
        assert!(host.is_right(3, first) && refused(&host, "stale") == 1, "{protect}: it is of the generation before");
        let now = host.seen.iter().rev().find(|(page, _)| *page == 3).unwrap().1;
        assert!(host.is_right(3, now) && counter(&host.stack, "believed") == 2, "{protect}");
        if protect == "tagged" {
            assert!(host.is_right(3, now ^ 1) && refused(&host, "tampered") == 1);
            assert!(host.is_right(5, now) && refused(&host, "tampered") == 2, "spliced");
        } else {
            // a changed entry decrypts to anything: most have another generation, the others no place or that of another page
            (0..1000).for_each(|n| assert!(host.is_right(3, (now ^ (n + 1)) & 0xffff_ffff)));
            let all: u64 = ["stale", "out_of_range", "elsewhere"].iter().map(|why| refused(&host, why)).sum();
            assert_eq!(all, 1001);
            assert!(refused(&host, "out_of_range") > 30);
        }
    }
}

/// Map pages have numbers, too: that of map page 3 is no place of page 3.
#[test]
fn a_map_page_is_not_taken_for_data() {
    let mut host = Forger::new(&["hpb.protect=plain", "cache.mode=write-through"]);
    (0..PAGES).for_each(|page| host.write(page));
    host.fetch(0);
    for ppn in 0..host.stack.ssd().layout().slots() {
        assert!(host.is_right(3, ppn.into()), "slot {ppn}");
    }
    assert_eq!(counter(&host.stack, "believed"), 1);
}

/// A page that waits for others of its frame has left the write cache, and its entry is not another one yet.
#[test]
fn a_page_in_the_page_buffer_is_read_from_there() {
    let mut host = Forger::new(QUARTERS);
    (0..PAGES).for_each(|page| host.write(page));
    let mut seen = 0;
    // which page is the last that leaves the cache at a time depends on how many came before
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
    assert!(seen > 0, "it was never there");
}

/// What `plain` does not promise, as `docs/RELIABILITY.md` says: a forged entry of an old version is believed.
#[test]
fn without_protection_a_forger_reads_what_was() {
    let mut host = Forger::new(&["hpb.protect=plain", "cache.mode=write-through"]);
    (0..PAGES).for_each(|page| host.write(page));
    host.fetch(0);
    let (_, old) = host.seen[3];
    host.write(3);
    assert!(host.is_right(3, old), "the subregion is dirty");
    host.fetch(0);
    assert!(!host.is_right(3, old), "the old version still stands on flash, and names the page");
}

/// The numbers of generations come again; what was handed out long ago does not become genuine with them.
#[test]
fn generations_that_come_again_reset_the_host() {
    for (protect, generations) in [("tagged", 256), ("encrypted", 16)] {
        for dirty in ["group", "page"] {
            let (protect_by, known) = (format!("hpb.protect={protect}"), format!("hpb.dirty={dirty}"));
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

/// A host that plays in time.
struct Host {
    stack: Stack,
    now: Ps,
    number: u64,
    done: Vec<Done>,
}

impl Host {
    fn new(more: &[&str]) -> Host {
        let mut stack = stack(&[&["cache.mode=write-through", "hpb.hash_time=0ns"], more].concat());
        stack.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
        Host { stack, now: Ps::ZERO, number: 1000, done: Vec::new() }
    }

    fn submit(&mut self, tag: u64, cmd: Cmd<'_>) -> Vec<Stamp> {
        let mut reply = Reply::default();
        self.done.retain(|d| d.tag != Tag(tag));
        self.stack.submit(self.now, Tag(tag), cmd, &mut reply).unwrap();
        reply.stamps
    }

    /// Until `tag` is complete.
    fn wait(&mut self, tag: u64) {
        while !self.done.iter().any(|d| d.tag == Tag(tag)) {
            self.now = self.now.max(self.stack.next_event().expect("something is under way"));
            self.stack.advance(self.now, &mut self.done);
        }
    }

    /// Read a page and wait; how long it took, in nanoseconds.
    fn read(&mut self, page: u32) -> u64 {
        let begin = self.now;
        self.submit(1, Cmd::Read { lba: lba(page), sectors: 4 });
        self.wait(1);
        self.now.since(begin).0 / 1000
    }

    fn write(&mut self, page: u32) {
        self.number += 1;
        self.submit(2, write(page, self.number));
        self.wait(2);
    }

    fn settle(&mut self) {
        self.now = self.now.max(self.stack.settle_down());
    }

    fn count(&self, name: &str) -> u64 {
        counter(&self.stack, name)
    }
}

/// The pages that the tests read are in different map pages: with three in memory each look at the map is a flash read.
fn far(n: u32) -> u32 {
    n % 15 * 2 * SUBREGION + n / 15
}

#[test]
fn an_entry_saves_the_read_of_a_map_page() {
    let mut host = Host::new(&["hpb.activation_reads=2"]);
    for n in 0..45 {
        host.read(far(n));
        host.settle();
    }
    host.stack.reset_counters();
    let hit = (45..60).map(|n| host.read(far(n))).max().unwrap();
    assert_eq!((host.count("hits"), host.count("believed")), (15, 15));
    let bare: Vec<&str> = DRIVE.iter().copied().filter(|s| !s.starts_with("hpb") && !s.starts_with("layers")).collect();
    let settings: Vec<String> = bare.iter().chain(&["cache.mode=write-through"]).map(|&s| s.to_owned()).collect();
    let mut without = DriveConfig::load("tiny", None, &settings).unwrap().build_stack(Seed(1)).unwrap();
    without.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
    let mut without = Host { stack: without, now: Ps::ZERO, number: 0, done: Vec::new() };
    let misses: Vec<u64> = (0..60).map(|n| without.read(far(n))).collect();
    let miss = *misses[45..].iter().min().unwrap();
    // tiny: 25 us to sense, 40 MB/s for the 64 bytes of a map page, cut to a unit of 2 KiB
    assert_eq!(miss - hit, 25_000 + 2048 * 1000 / 40, "{miss} without, {hit} with an entry");
}

#[test]
fn hashes_take_their_time() {
    let time = |settings: &[&str]| {
        let mut host = Host::new(&[&["hpb.activation_reads=1"], settings].concat());
        host.read(far(0));
        host.settle();
        host.read(far(0))
    };
    let plain = time(&["hpb.protect=plain", "hpb.hash_time=100ns"]);
    assert_eq!(time(&["hpb.protect=tagged", "hpb.hash_time=100ns"]), plain + 100);
    assert_eq!(time(&["hpb.protect=encrypted", "hpb.hash_time=100ns"]), plain + 800, "eight rounds");
}

#[test]
fn a_drive_in_control_recommends_what_is_read() {
    let mut host = Host::new(&["hpb.activation_reads=3", "hpb.refresh_reads=2"]);
    host.read(far(0));
    host.read(far(0));
    host.settle();
    assert_eq!((host.count("map_requests"), host.count("miss_region")), (0, 2));
    host.read(far(0));
    host.settle();
    assert_eq!((host.count("notices_active"), host.count("map_requests"), host.count("map_bytes")), (1, 1, 16 * 8));
    host.read(far(0));
    assert_eq!((host.count("hits"), host.count("believed")), (1, 1));
    // a page beside it changes: the first read finds out, the second is what makes the drive say so
    host.write(far(0) + 1);
    host.read(far(0));
    host.settle();
    assert_eq!((host.count("refused_dirty"), host.count("notices_active")), (1, 1));
    host.read(far(0));
    host.settle();
    assert_eq!((host.count("notices_active"), host.count("map_requests"), host.count("refetches")), (2, 2, 1));
    host.read(far(0));
    assert_eq!((host.count("believed"), host.count("refused_dirty")), (2, 2));
    // the host knows what it wrote itself
    host.write(far(0));
    host.read(far(0));
    assert_eq!(host.count("miss_dirty"), 1);
}

#[test]
fn only_the_page_that_changed_is_dirty_where_pages_are_known() {
    let mut host = Host::new(&["hpb.activation_reads=1", "hpb.dirty=page"]);
    host.read(far(0));
    host.settle();
    host.write(far(0) + 1);
    host.read(far(0));
    assert_eq!((host.count("believed"), host.count("refused_dirty")), (1, 0));
}

/// Memory for two subregions of regions with one each.
const TWO: &[&str] = &["hpb.region=32KiB", "hpb.host_bytes=272", "hpb.activation_reads=1"];

#[test]
fn the_region_that_was_not_read_longest_leaves() {
    let mut host = Host::new(TWO);
    for page in [far(0), far(1), far(0), far(2)] {
        host.read(page);
        host.settle();
    }
    assert_eq!((host.count("hits"), host.count("evictions"), host.count("map_requests")), (1, 1, 3));
    host.read(far(0));
    assert_eq!(host.count("hits"), 2, "it was read after the other");
    host.read(far(1));
    assert_eq!(host.count("miss_region"), 4);
    let report = host.stack.reports().remove(0);
    assert_eq!(report.memory.iter().map(|m| m.1).sum::<u64>(), 272);
}

#[test]
fn a_drive_that_may_have_two_regions_cached_says_which_to_drop() {
    let mut host = Host::new(&["hpb.region=32KiB", "hpb.activation_reads=1", "hpb.active_regions=2"]);
    for page in [far(0), far(1), far(0), far(2)] {
        host.read(page);
        host.settle();
    }
    assert_eq!((host.count("inactivated"), host.count("evictions")), (1, 0));
    host.read(far(0));
    assert_eq!(host.count("hits"), 2);
}

#[test]
fn pinned_regions_are_there_from_the_start_and_stay() {
    let mut host = Host::new(&[TWO, &["hpb.pinned_regions=1"]].concat());
    host.read(far(5));
    host.settle();
    assert_eq!(host.count("map_requests"), 2, "the pinned one, and what was read");
    for n in 1..6 {
        host.read(far(n));
        host.settle();
    }
    let hits = host.count("hits");
    host.read(far(0));
    assert_eq!(host.count("hits"), hits + 1);
}

#[test]
fn memory_that_shrinks_is_given_back() {
    let pressure = ["hpb.pressure=100ms=136,200ms=0,300ms=1KiB"];
    let mut host = Host::new(&[TWO, &pressure].concat());
    let read = |host: &mut Host, at_ms: u64, n: u32| {
        host.now = host.now.max(Ps(at_ms * 1_000_000_000));
        host.read(far(n));
        host.settle();
    };
    read(&mut host, 0, 0);
    read(&mut host, 0, 1);
    assert_eq!(host.count("pressure_evictions"), 0);
    read(&mut host, 100, 1);
    assert_eq!((host.count("pressure_evictions"), host.count("hits")), (1, 1), "the one that was not read longest");
    read(&mut host, 200, 1);
    assert_eq!((host.count("pressure_evictions"), host.count("no_room")), (2, 1));
    for _ in 0..9 {
        read(&mut host, 300, 1);
    }
    assert!(host.count("hits") > 1, "there is room again");
}

#[test]
fn a_host_in_control_counts_reads() {
    let control = ["hpb.control=host", "hpb.activation_reads=3", "hpb.eviction_enter=6", "hpb.eviction_exit=9"];
    let mut host = Host::new(&[TWO, &control].concat());
    let read = |host: &mut Host, n: u32, times: u32| {
        for _ in 0..times {
            host.read(far(n));
            host.settle();
        }
    };
    read(&mut host, 0, 2);
    host.write(far(0) + 1);
    read(&mut host, 0, 2);
    assert_eq!(host.count("map_requests"), 0, "the write made the counter begin again");
    read(&mut host, 0, 1);
    assert_eq!((host.count("map_requests"), host.count("notices_active")), (1, 0));
    read(&mut host, 0, 20); // now it was read too often to be dropped for another
    read(&mut host, 1, 4);
    assert_eq!((host.count("map_requests"), host.count("hits")), (2, 21));
    // the third is read often enough to be fetched, not to drop another for it
    read(&mut host, 2, 3);
    assert_eq!((host.count("no_room"), host.count("evictions")), (1, 0));
    read(&mut host, 2, 10);
    assert_eq!(host.count("no_room"), 1, "asked once");
}

#[test]
fn timers_drop_what_was_written_and_later_everything() {
    let control = ["hpb.control=host", "hpb.activation_reads=1", "hpb.read_timeout=10ms", "hpb.poll=1ms"];
    let mut host = Host::new(&[&control[..], &["hpb.timeout_expiries=3"]].concat());
    host.read(far(0));
    host.settle();
    host.read(far(1));
    host.settle();
    host.write(far(1) + 1);
    let at = |host: &mut Host, ms: u64| {
        host.now = host.now.max(Ps(ms * 1_000_000_000));
        host.read(far(7) + 1);
        host.settle();
        host.count("expired")
    };
    assert_eq!(at(&mut host, 9), 0);
    assert_eq!(at(&mut host, 12), 1, "the one that was written");
    assert_eq!(at(&mut host, 24), 1);
    assert_eq!(at(&mut host, 36), 2, "the timer of the other expired for the third time");
}

/// 16 ms to make the entries of a subregion.
const SLOW: &str = "hpb.hash_time=1ms";

/// While a subregion is on its way, a page of it is written; entries of before arrive.
#[test]
fn what_is_written_while_entries_arrive_is_not_read_by_them() {
    for (remark, known) in [("true", true), ("false", false)] {
        let settings = ["hpb.activation_reads=1", &format!("hpb.remark={remark}"), "hpb.dirty=page", SLOW];
        let mut host = Host::new(&settings);
        host.read(far(0));
        // the response is there, and the map request under way
        assert_eq!(host.count("map_requests"), 1);
        host.number += 1;
        let number = host.number;
        host.submit(2, write(far(0), number));
        host.settle_after(2);
        let stamps = host.submit(1, Cmd::Read { lba: lba(far(0)), sectors: 4 });
        assert_eq!(stamps, [Stamp::whole(number, 0)], "remark = {remark}");
        host.wait(1);
        let (by_host, by_drive) = (host.count("miss_dirty"), host.count("refused_dirty"));
        assert_eq!((by_host, by_drive), if known { (1, 0) } else { (0, 1) }, "remark = {remark}");
    }
}

impl Host {
    fn settle_after(&mut self, tag: u64) {
        self.wait(tag);
        self.settle();
    }
}

#[test]
fn entries_that_come_with_responses_keep_the_host_up_to_date() {
    let mut host = Host::new(&["hpb.activation_reads=1", "hpb.update=piggyback", "hpb.protect=plain"]);
    host.read(far(0));
    host.settle();
    for _ in 0..5 {
        host.write(far(0));
        host.settle();
    }
    // the change is decided with the write, whose own response takes it along
    host.read(far(0));
    assert_eq!((host.count("map_requests"), host.count("pairs"), host.count("hits")), (1, 5, 1));
    assert_eq!((host.count("believed"), host.count("refused_dirty")), (1, 0));
    // more than may wait: the subregion is fetched
    let mut host = Host::new(&[
        "hpb.activation_reads=1",
        "hpb.refresh_reads=1",
        "hpb.update=piggyback",
        "hpb.protect=plain",
        "hpb.pairs=1",
        "hpb.changes=2",
    ]);
    host.read(far(0));
    host.settle();
    let all: Vec<Stamp> = (0..8).map(|n| Stamp::whole(5000, n * 4)).collect();
    host.submit(2, Cmd::Write { lba: lba(far(0)), sectors: 32, fua: false, content: 5000, data: None });
    host.settle_after(2);
    let stamps = host.submit(1, Cmd::Read { lba: lba(far(0) + 9), sectors: 4 });
    host.settle_after(1);
    assert_ne!(stamps, [Stamp::ZERO]);
    assert_eq!(host.count("map_requests"), 2);
    let stamps = host.submit(1, Cmd::Read { lba: lba(far(0)), sectors: 16 });
    host.wait(1);
    assert_eq!(stamps, all[..4]);
    assert_eq!(host.count("hits"), 2);
}

/// A response that takes longer says what was, when a later one has said what is.
#[test]
fn responses_that_arrive_late_are_overtaken() {
    let mut host = Host::new(&["hpb.activation_reads=1", "hpb.update=piggyback", "hpb.protect=plain", "hpb.pairs=1"]);
    host.read(0);
    host.settle();
    // of two changes the response takes one along; the other goes with a long read
    host.submit(2, Cmd::Write { lba: lba(0), sectors: 8, fua: false, content: 5000, data: None });
    host.wait(2);
    host.submit(5, Cmd::Read { lba: lba(100), sectors: 400 });
    host.submit(6, Cmd::Trim { lba: lba(1), sectors: 4 });
    host.wait(6);
    assert!(!host.done.iter().any(|d| d.tag == Tag(5)), "the read is still under way");
    host.wait(5);
    host.settle();
    assert_eq!(host.submit(1, Cmd::Read { lba: lba(1), sectors: 4 }), [Stamp::ZERO]);
    assert_eq!((host.count("miss_no_entry"), host.count("pairs")), (1, 2), "the late one was dropped");
}

#[test]
fn only_as_many_map_requests_are_under_way_as_may_be() {
    for (requests, later) in [("1", 2), ("2", 1), ("3", 0)] {
        let settings = ["hpb.activation_reads=1", &format!("hpb.requests={requests}"), SLOW];
        let mut host = Host::new(&settings);
        for n in 0..3 {
            host.submit(10 + u64::from(n), Cmd::Read { lba: lba(far(n)), sectors: 4 });
        }
        (10..13).for_each(|tag| host.wait(tag));
        // all three responses are there; the others are sent when one arrives
        let sent = host.count("map_requests");
        host.settle();
        assert_eq!((sent, host.count("map_requests")), (3 - later, 3), "{requests} at once");
    }
}

/// The power of the drive fails under a host that goes on.
#[test]
fn a_drive_that_was_off_tells_the_host_so() {
    let config = config(&["hpb.activation_reads=1", "cache.mode=write-through"]).unwrap();
    let mut host = Host::new(&["hpb.activation_reads=1"]);
    host.read(far(0));
    host.settle();
    host.read(far(0));
    assert_eq!(host.count("believed"), 1);
    host.settle();
    host.stack.ssd_mut().power_cycle(&config, Seed(1)).unwrap();
    let stamps = host.submit(1, Cmd::Read { lba: lba(far(0)), sectors: 4 });
    assert_eq!(stamps, [Stamp::whole(u64::from(far(0)) + 1, 0)]);
    host.settle_after(1);
    assert_eq!((host.count("refused_inactive"), host.count("notices_reset")), (1, 1));
    host.read(far(0));
    assert_eq!(host.count("believed"), 2, "it was fetched again, under the new key");
}

const OVER_HARD: &[&str] =
    &["layers=hpb-host,hard", "hard.superpage=4KiB", "hard.page=2KiB", "hard.low_water=3", "hard.reserve=0.4"];

#[test]
fn stacks_that_cannot_work_say_why() {
    let refused = |more: &[&str]| config(more).map(drop).unwrap_err();
    let cases: &[(&[&str], &str)] = &[
        (&["hpb.host_bytes=0"], "hpb.host_bytes: 0 bytes hold no subregion: the entries of one (16 pages) take 136"),
        (&["hpb.host_bytes=135"], "leave the layer out"),
        (&["hpb.subregion=5KiB"], "hpb.subregion: 5120 bytes are no whole number of the drive's pages (2048 bytes)"),
        (&["hpb.max_read=1KiB"], "hpb.max_read: 1024 bytes are no whole number"),
        (&["hpb.region=48KiB"], "hpb.region: 49152 bytes are no whole number of subregions of 32768"),
        (&["hpb.update=piggyback"], "hpb.update: piggyback needs hpb.protect = plain"),
        (&["hpb.update=piggyback", "hpb.protect=plain", "hpb.dirty=page"], "piggyback needs hpb.dirty = group"),
        (
            &["hpb.pinned_regions=99", "hpb.host_bytes=272"],
            "hpb.pinned_regions: the entries of 31 pinned subregions take 4216",
        ),
        (&["hpb.pinned_regions=1", "hpb.pressure=1s=100"], "hpb.pinned_regions: the entries of 2 pinned subregions"),
        (&["hpb.pressure=1s"], "hpb.pressure: `1s`: expected a time and bytes, such as 2s=1MiB,5s=256KiB"),
        (&["hpb.pressure=2s=1KiB,1s=2KiB"], "expected times that ascend"),
        (&["hpb.pressure=2x=1KiB"], "hpb.pressure: "),
        (&["map.store=dftl", "map.cache_bytes=100", "hpb.protect=sealed"], "hpb.protect: "),
        (OVER_HARD, "hpb-host must stand on the drive itself"),
        (OVER_HARD, "`hard,hpb-host` would do"),
    ];
    for (settings, said) in cases {
        let found = refused(settings);
        assert!(found.contains(said), "{settings:?}: {found}");
    }
    let load = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
        DriveConfig::load("tiny", None, &settings).map(drop).unwrap_err().to_string()
    };
    let said = load(&["layers=hpb-host"]);
    assert!(
        said.contains(
            "with map.store = dram the whole map is in the drive's memory: it needs one of demand, dftl, cdftl"
        ),
        "{said}"
    );
    let said = load(&["layers=hpb-host", "ftl.scheme=fast"]);
    assert!(said.contains("fast has no map of pages to hand out"), "{said}");
    assert!(load(&["hpb.key=3"]).contains("belongs to the layer hpb-host, which is not in use"));
}

#[test]
fn there_is_no_map_where_none_is_handed_out() {
    let submit = |stack: &mut Stack, cmd: Cmd<'_>| stack.submit(Ps::ZERO, Tag(1), cmd, &mut Reply::default());
    let mut with = stack(&[]);
    let drive = with.ssd_mut();
    let mut ask = |cmd: Cmd<'_>| drive.submit(Ps::ZERO, Tag(1), cmd, &mut Reply::default()).unwrap_err().to_string();
    assert_eq!(ask(Cmd::ReadBuffer { subregion: 31 }), "subregion 31 of the map: there are 31");
    assert_eq!(ask(Cmd::WriteBuffer { region: Some(16) }), "region 16 of the map: there are 16");
    // above the layer that is the host, and on a drive without one
    let none = SubmitError::NoMap { what: "subregion", number: 0, count: 0 };
    assert_eq!(submit(&mut with, Cmd::ReadBuffer { subregion: 0 }), Err(none.clone()));
    let mut without = DriveConfig::load("tiny", None, &[]).unwrap().build_stack(Seed(1)).unwrap();
    assert_eq!(submit(&mut without, Cmd::ReadBuffer { subregion: 0 }), Err(none.clone()));
    assert!(none.to_string().contains("hands out no map"));
    // a read with an entry is a read
    submit(&mut without, write(0, 7)).unwrap();
    let mut reply = Reply::default();
    without.submit(Ps::ZERO, Tag(2), Cmd::HpbRead { lba: lba(0), sectors: 4, entries: &[5] }, &mut reply).unwrap();
    assert_eq!(reply.stamps, [Stamp::whole(7, 0)]);
}

/// Random work in time, at every depth: what the drive and the host count of the same things agrees.
#[test]
fn both_sides_count_the_same() {
    for more in
        [&[][..], &["hpb.control=host", "hpb.activation_reads=2"], &["hpb.update=piggyback", "hpb.protect=plain"]]
    {
        let mut host = Host::new(&[more, &["hpb.host_bytes=544", "hpb.requests=2"]].concat());
        let mut rng = Rng::stream(Seed(3), "hpb");
        let mut in_flight = 0;
        let mut done = Vec::new();
        for n in 0..4000u64 {
            let page = (rng.below(8) * 32 + rng.below(32)) as u32;
            match rng.below(8) {
                0 => drop(host.submit(n, write(page, 10_000 + n))),
                _ => drop(host.submit(n, Cmd::Read { lba: lba(page), sectors: 4 })),
            }
            in_flight += 1;
            while in_flight > 8 {
                host.now = host.now.max(host.stack.next_event().unwrap());
                host.stack.advance(host.now, &mut done);
                in_flight -= done.len();
                done.clear();
            }
        }
        while in_flight > 0 {
            host.now = host.stack.next_event().unwrap();
            host.stack.advance(host.now, &mut done);
            in_flight -= done.len();
            done.clear();
        }
        host.settle();
        let refused: u64 = ["inactive", "dirty", "stale", "tampered", "out_of_range", "elsewhere"]
            .iter()
            .map(|why| host.count(&format!("refused_{why}")))
            .sum();
        let missed: u64 = ["long", "crosses", "region", "subregion", "dirty", "no_entry"]
            .iter()
            .map(|why| host.count(&format!("miss_{why}")))
            .sum();
        assert_eq!(host.count("reads"), host.count("hits") + missed, "{more:?}");
        // what waits in the drive's page buffer is read from there, whatever comes with the read
        assert!(host.count("hits") >= host.count("believed") + refused, "{more:?}");
        assert_eq!(host.count("map_requests"), host.count("handed_out"), "{more:?}");
        assert!(host.count("believed") > 300, "{more:?}: {}", host.count("believed"));
        assert_eq!(host.count("refused_tampered") + host.count("refused_out_of_range"), 0, "{more:?}: an honest host");
        for page in 0..PAGES {
            host.stack.held(Lpn(page)).unwrap();
        }
    }
}
