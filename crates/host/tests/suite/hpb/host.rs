//! Tests of both sides with an honest host. They check when subregions are fetched, and which
//! subregions are dropped.

use super::{DRIVE, SUBREGION, config, counter, lba, stack, write};
use flashatlas_device::{Cmd, Device, Done, Reply, Stack, Storage};
use flashatlas_host::STANDARD;
use flashatlas_nand::OobRole;
use flashatlas_types::{Lpn, Ppn, Ps, Seed, Stamp, Tag};

/// A host in simulated time.
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

    /// Waits until `tag` is complete.
    fn wait(&mut self, tag: u64) {
        while !self.done.iter().any(|d| d.tag == Tag(tag)) {
            self.now = self.now.max(self.stack.next_event().expect("something is under way"));
            self.stack.advance(self.now, &mut self.done);
        }
    }

    /// Reads a page and waits for it. Returns the latency in nanoseconds.
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
        self.now = self.now.max(self.stack.drain());
    }

    fn count(&self, name: &str) -> u64 {
        counter(&self.stack, name)
    }
}

/// Returns pages in different map pages.
///
/// The drive caches three map pages, so each lookup of such a page needs a flash read.
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
    host.stack.top_mut().reset_counters();
    let hit = (45..60).map(|n| host.read(far(n))).max().unwrap();
    assert_eq!((host.count("hits"), host.count("valid_entries")), (15, 15));
    let bare: Vec<&str> = DRIVE
        .iter()
        .copied()
        .filter(|s| !s.starts_with("hpb") && !s.starts_with("layers"))
        .collect();
    let settings: Vec<String> =
        bare.iter().chain(&["cache.mode=write-through"]).map(|&s| s.to_owned()).collect();
    let mut without = STANDARD.load("tiny", None, &settings).unwrap().build_stack(Seed(1)).unwrap();
    without.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
    let mut without = Host { stack: without, now: Ps::ZERO, number: 0, done: Vec::new() };
    let misses: Vec<u64> = (0..60).map(|n| without.read(far(n))).collect();
    let miss = *misses[45..].iter().min().unwrap();
    // in `tiny`, a map page takes 25 us to sense, and 2 KiB are transferred at 40 MB/s
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
    assert_eq!(
        time(&["hpb.protect=encrypted", "hpb.hash_time=100ns"]),
        plain + 800,
        "eight rounds"
    );
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
    assert_eq!(
        (host.count("notices_active"), host.count("map_requests"), host.count("map_bytes")),
        (1, 1, 16 * 8)
    );
    host.read(far(0));
    assert_eq!((host.count("hits"), host.count("valid_entries")), (1, 1));
    // another page of the subregion changes; the first entry is refused, and the second read makes
    // the drive announce the change
    host.write(far(0) + 1);
    host.read(far(0));
    host.settle();
    assert_eq!((host.count("refused_dirty"), host.count("notices_active")), (1, 1));
    host.read(far(0));
    host.settle();
    assert_eq!(
        (host.count("notices_active"), host.count("map_requests"), host.count("refetches")),
        (2, 2, 1)
    );
    host.read(far(0));
    assert_eq!((host.count("valid_entries"), host.count("refused_dirty")), (2, 2));
    // the host marks pages that it writes itself
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
    assert_eq!((host.count("valid_entries"), host.count("refused_dirty")), (1, 0));
}

/// Settings with host memory for two subregions, in regions of one subregion each.
const TWO: &[&str] = &["hpb.region=32KiB", "hpb.host_bytes=272", "hpb.activation_reads=1"];

#[test]
fn the_region_that_was_not_read_longest_leaves() {
    let mut host = Host::new(TWO);
    for page in [far(0), far(1), far(0), far(2)] {
        host.read(page);
        host.settle();
    }
    assert_eq!(
        (host.count("hits"), host.count("evictions"), host.count("map_requests")),
        (1, 1, 3)
    );
    host.read(far(0));
    assert_eq!(host.count("hits"), 2, "this page was read after the other page");
    host.read(far(1));
    assert_eq!(host.count("miss_region"), 4);
    let report = host.stack.top().reports().remove(0);
    assert_eq!(report.memory.iter().map(|m| m.1).sum::<u64>(), 272);
}

#[test]
fn a_drive_that_may_have_two_regions_cached_says_which_to_drop() {
    let mut host =
        Host::new(&["hpb.region=32KiB", "hpb.activation_reads=1", "hpb.active_regions=2"]);
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
    assert_eq!(
        host.count("map_requests"),
        2,
        "the pinned subregion, and the subregion that was read"
    );
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
    assert_eq!(
        (host.count("pressure_evictions"), host.count("hits")),
        (1, 1),
        "the region that was not read for the longest time is dropped"
    );
    read(&mut host, 200, 1);
    assert_eq!((host.count("pressure_evictions"), host.count("no_room")), (2, 1));
    for _ in 0..9 {
        read(&mut host, 300, 1);
    }
    assert!(host.count("hits") > 1, "there is room again");
}

#[test]
fn a_host_in_control_counts_reads() {
    let control = [
        "hpb.control=host",
        "hpb.activation_reads=3",
        "hpb.eviction_enter=6",
        "hpb.eviction_exit=9",
    ];
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
    assert_eq!(host.count("map_requests"), 0, "the write set the counter to zero");
    read(&mut host, 0, 1);
    assert_eq!((host.count("map_requests"), host.count("notices_active")), (1, 0));
    read(&mut host, 0, 20); // after these reads it is not dropped for another region
    read(&mut host, 1, 4);
    assert_eq!((host.count("map_requests"), host.count("hits")), (2, 21));
    // the third region is read often enough to be fetched, but not often enough to drop another
    // region for it
    read(&mut host, 2, 3);
    assert_eq!((host.count("no_room"), host.count("evictions")), (1, 0));
    read(&mut host, 2, 10);
    assert_eq!(host.count("no_room"), 1, "the host tried to fetch it once");
}

#[test]
fn timers_drop_what_was_written_and_later_everything() {
    let control =
        ["hpb.control=host", "hpb.activation_reads=1", "hpb.read_timeout=10ms", "hpb.poll=1ms"];
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
    assert_eq!(at(&mut host, 12), 1, "the written region expired");
    assert_eq!(at(&mut host, 24), 1);
    assert_eq!(at(&mut host, 36), 2, "the timer of the other region expired for the third time");
}

/// A hash time with which the drive needs 16 ms to make the entries of a subregion.
const SLOW: &str = "hpb.hash_time=1ms";

/// A page is written while its subregion is being fetched, so the entries that arrive are older.
#[test]
fn what_is_written_while_entries_arrive_is_not_read_by_them() {
    for (remark, known) in [("true", true), ("false", false)] {
        let settings =
            ["hpb.activation_reads=1", &format!("hpb.remark={remark}"), "hpb.dirty=page", SLOW];
        let mut host = Host::new(&settings);
        host.read(far(0));
        // the response has arrived, and the map request is in flight
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
    let mut host = Host::new(&[
        "hpb.activation_reads=1",
        "hpb.update=piggyback",
        "hpb.protect=plain",
        "hpb.wire=paper",
    ]);
    host.read(far(0));
    host.settle();
    for _ in 0..5 {
        host.write(far(0));
        host.settle();
    }
    // the write changes the entry immediately, and its response contains the new entry
    host.read(far(0));
    assert_eq!((host.count("map_requests"), host.count("pairs"), host.count("hits")), (1, 5, 1));
    assert_eq!((host.count("valid_entries"), host.count("refused_dirty")), (1, 0));
    // there are more changes than the drive may store, so the subregion is fetched
    let mut host = Host::new(&[
        "hpb.activation_reads=1",
        "hpb.refresh_reads=1",
        "hpb.update=piggyback",
        "hpb.protect=plain",
        "hpb.wire=paper",
        "hpb.pairs=1",
        "hpb.changes=2",
    ]);
    host.read(far(0));
    host.settle();
    let all: Vec<Stamp> = (0..8).map(|n| Stamp::whole(5000, n * 4)).collect();
    host.submit(
        2,
        Cmd::Write { lba: lba(far(0)), sectors: 32, fua: false, content: 5000, data: None },
    );
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

/// A late response contains an older entry of a page than a response that arrived earlier.
#[test]
fn responses_that_arrive_late_are_overtaken() {
    let mut host = Host::new(&[
        "hpb.activation_reads=1",
        "hpb.update=piggyback",
        "hpb.protect=plain",
        "hpb.wire=paper",
        "hpb.pairs=1",
    ]);
    host.read(0);
    host.settle();
    // the response contains one of the two new entries; the other new entry comes with a long read
    host.submit(2, Cmd::Write { lba: lba(0), sectors: 8, fua: false, content: 5000, data: None });
    host.wait(2);
    host.submit(5, Cmd::Read { lba: lba(100), sectors: 400 });
    host.submit(6, Cmd::Trim { lba: lba(1), sectors: 4 });
    host.wait(6);
    assert!(!host.done.iter().any(|d| d.tag == Tag(5)), "the read is still under way");
    host.wait(5);
    host.settle();
    assert_eq!(host.submit(1, Cmd::Read { lba: lba(1), sectors: 4 }), [Stamp::ZERO]);
    assert_eq!(
        (host.count("miss_no_entry"), host.count("pairs")),
        (1, 2),
        "the late entry was dropped"
    );
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
        // all three responses have arrived; further map requests are sent when one completes
        let sent = host.count("map_requests");
        host.settle();
        assert_eq!((sent, host.count("map_requests")), (3 - later, 3), "{requests} together");
    }
}

/// The power of the drive fails, and the host continues with its old entries.
#[test]
fn a_drive_that_was_off_tells_the_host_so() {
    let config = config(&["hpb.activation_reads=1", "cache.mode=write-through"]).unwrap();
    let mut host = Host::new(&["hpb.activation_reads=1"]);
    host.read(far(0));
    host.settle();
    host.read(far(0));
    assert_eq!(host.count("valid_entries"), 1);
    host.settle();
    host.stack.ssd_mut().power_cycle(&config, Seed(1)).unwrap();
    let stamps = host.submit(1, Cmd::Read { lba: lba(far(0)), sectors: 4 });
    assert_eq!(stamps, [Stamp::whole(u64::from(far(0)) + 1, 0)]);
    host.settle_after(1);
    assert_eq!((host.count("refused_inactive"), host.count("notices_reset")), (1, 1));
    host.read(far(0));
    assert_eq!(
        host.count("valid_entries"),
        2,
        "the subregion was fetched again, under the new key"
    );
}

/// The host reads pages without entries if a map page of their subregion cannot be read.
#[test]
fn a_map_page_that_cannot_be_read_stops_nobody() {
    let mut host = Host::new(&["hpb.activation_reads=1", "hpb.region=1MiB", "hpb.subregion=1MiB"]);
    let layout = host.stack.ssd().layout().clone();
    let medium = host.stack.ssd_mut().faults();
    let is_map = |p: &Ppn| {
        medium.oob_role(layout.block_of(*p)) == OobRole::MAP && medium.lpn(*p) == Ok(Lpn(20))
    };
    let frames: Vec<_> =
        (0..layout.slots()).map(Ppn).filter(is_map).map(|p| layout.frame_of(p)).collect();
    assert!(!frames.is_empty());
    frames.into_iter().for_each(|frame| medium.decay(frame));
    for n in 0..20 {
        host.read(n % 6);
        host.settle();
    }
    assert!(
        (1..4).contains(&host.count("failed_requests")),
        "the host fetches again only after another notice"
    );
    assert_eq!(host.count("map_requests"), 0);
    assert!(host.stack.top().failure().is_none());
}

#[test]
fn what_has_changed_is_refreshed_where_pages_are_known_as_where_they_are_not() {
    for dirty in ["hpb.dirty=group", "hpb.dirty=page"] {
        for control in ["hpb.control=device", "hpb.control=host"] {
            let mut host =
                Host::new(&["hpb.activation_reads=3", "hpb.refresh_reads=2", dirty, control]);
            for _ in 0..3 {
                host.read(far(0));
                host.settle();
            }
            assert_eq!(host.count("map_requests"), 1, "{dirty}, {control}");
            // the drive moves a page, but the host does not get the new entry
            let place = host.stack.ssd().place(Lpn(far(0)));
            host.number += 1;
            let number = host.number;
            host.stack.ssd_mut().set_instant(true);
            let moved = write(far(0), number);
            host.stack.ssd_mut().submit(host.now, Tag(77), moved, &mut Reply::default()).unwrap();
            host.stack.ssd_mut().set_instant(false);
            assert_ne!(host.stack.ssd().place(Lpn(far(0))), place);
            for _ in 0..2 {
                host.read(far(0));
                host.settle();
            }
            assert_eq!(
                (host.count("refused_dirty"), host.count("map_requests")),
                (2, 2),
                "{dirty}, {control}"
            );
            host.read(far(0));
            assert_eq!(host.count("valid_entries"), 1, "{dirty}, {control}");
        }
    }
}

#[test]
fn the_layer_forgets_what_it_was_about_when_the_power_fails() {
    let config =
        config(&["hpb.activation_reads=1", "hpb.pinned_regions=1", "cache.mode=write-through"])
            .unwrap();
    let mut host = Host::new(&["hpb.activation_reads=1", "hpb.pinned_regions=1"]);
    host.stack.set_instant(true);
    host.stack.power_cycle(&config, Seed(1)).unwrap();
    host.stack.top_mut().reset_counters();
    for n in 0..4 {
        // the layer's own commands take time again, and are not reported to the host above
        host.submit(n, Cmd::Read { lba: lba(far(0)), sectors: 4 });
        host.wait(n);
        host.settle();
    }
    assert!(host.done.iter().all(|d| d.tag.0 < 4), "{:?}", host.done);
    assert_eq!(
        (host.count("notices_reset"), host.count("refetches")),
        (1, 0),
        "entries that were fetched after the reset stay valid"
    );
}
