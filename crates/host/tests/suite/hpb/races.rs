//! Tests of honest hosts of every kind at every queue depth. They read the data that the drive
//! holds, and the counters of both sides agree.

use super::{config, counter, lba, write};
use flashatlas_device::{Cmd, Done, DriveConfig, Reply, Stack};
use flashatlas_types::{Dur, Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};

/// A host with any number of commands in flight.
struct Player {
    stack: Stack,
    config: DriveConfig,
    now: Ps,
    depth: usize,
    in_flight: Vec<u64>,
    reply: Reply,
    what: String,
}

impl Player {
    fn new(settings: &[&str], seed: u64, depth: usize) -> Player {
        let config = config(settings).unwrap_or_else(|e| panic!("{e}"));
        let mut stack = config.build_stack(Seed(seed)).unwrap();
        stack.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
        let what = format!("{settings:?}, seed {seed}, depth {depth}");
        Player {
            stack,
            config,
            now: Ps::ZERO,
            depth,
            in_flight: Vec::new(),
            reply: Reply::default(),
            what,
        }
    }

    fn submit(&mut self, tag: u64, cmd: Cmd<'_>) {
        self.stack
            .submit(self.now, Tag(tag), cmd, &mut self.reply)
            .unwrap_or_else(|e| panic!("{}: {e}", self.what));
        self.in_flight.push(tag);
    }

    /// Reads, and compares the result with the content of the medium.
    fn read(&mut self, tag: u64, lba: Lba, sectors: u32) {
        let unit = u64::from(self.stack.unit_sectors());
        let pages = lba.0 / unit..(lba.0 + u64::from(sectors)).div_ceil(unit);
        let held: Vec<Stamp> =
            pages.map(|page| self.stack.top().peek_stamp(Lpn(page as u32)).unwrap()).collect();
        self.submit(tag, Cmd::Read { lba, sectors });
        assert_eq!(
            self.reply.stamps, held,
            "{}: read {tag} of {sectors} sectors at {lba}",
            self.what
        );
    }

    fn wait(&mut self, left: usize) {
        let mut done: Vec<Done> = Vec::new();
        while self.in_flight.len() > left {
            let at = self.stack.next_event().unwrap_or_else(|| panic!("{}: stalled", self.what));
            assert!(at >= self.now, "{}: an event in the past", self.what);
            self.now = at;
            self.stack.advance(at, &mut done);
            for d in done.drain(..) {
                let known = self.in_flight.iter().position(|&tag| Tag(tag) == d.tag);
                self.in_flight.swap_remove(
                    known.unwrap_or_else(|| panic!("{}: {d:?} is nobody's", self.what)),
                );
                assert_eq!(d.at, self.now, "{}", self.what);
            }
        }
    }

    fn settle(&mut self) {
        self.wait(0);
        self.now = self.now.max(self.stack.drain());
    }

    fn play(&mut self, seed: u64, steps: u64) {
        let mut rng = Rng::stream(Seed(seed), "races");
        let (unit, sectors) = (u64::from(self.stack.unit_sectors()), self.stack.top().sectors());
        let hot = 1 + rng.below(200);
        for n in 1..=steps {
            let page = if rng.below(4) > 0 { rng.below(hot) } else { rng.below(sectors / unit) };
            let first = page * unit + if rng.below(4) == 0 { rng.below(unit) } else { 0 };
            let count =
                [unit, unit, 1 + rng.below(unit), 1 + rng.below(6 * unit)][rng.below(4) as usize];
            let (lba, count) = (Lba(first), count.min(sectors - first) as u32);
            match rng.below(200) {
                0 => {
                    self.settle();
                    let until = self.now.after(Dur::from_us(rng.below(50_000)));
                    self.stack.idle(self.now, until).unwrap();
                    self.now = until;
                }
                1 => {
                    self.settle();
                    self.stack.set_instant(true);
                    for k in 0..20 {
                        let at = Lba((page + k * 7) % (sectors / unit) * unit);
                        self.submit(
                            n,
                            Cmd::Write {
                                lba: at,
                                sectors: unit as u32,
                                fua: false,
                                content: n,
                                data: None,
                            },
                        );
                        self.read(n, at, unit as u32);
                    }
                    self.in_flight.clear();
                    self.stack.set_instant(false);
                }
                2 if rng.below(4) == 0 => {
                    self.settle();
                    let config = self.config.clone();
                    match rng.below(2) {
                        0 => self.stack.power_cycle(&config, Seed(n)).unwrap(),
                        _ => self.stack.ssd_mut().power_cycle(&config, Seed(n)).unwrap(),
                    }
                }
                3..=5 => self.submit(n, Cmd::Flush),
                6..=13 => self.submit(n, Cmd::Trim { lba, sectors: count }),
                14..=60 => {
                    let fua = rng.below(8) == 0;
                    self.submit(
                        n,
                        Cmd::Write { lba, sectors: count, fua, content: 10_000 + n, data: None },
                    );
                }
                _ => self.read(n, lba, count),
            }
            self.wait(if rng.below(8) == 0 { 0 } else { self.depth });
        }
        self.settle();
        self.stack.top().check().unwrap_or_else(|v| panic!("{}: {v}", self.what));
    }

    /// Asserts that the counters of both sides agree. Returns the number of accepted entries.
    fn compare_counts(&self) -> u64 {
        let count = |name: &str| counter(&self.stack, name);
        let sum = |of: &str, names: &[&str]| {
            names.iter().map(|name| count(&format!("{of}_{name}"))).sum::<u64>()
        };
        let missed = sum("miss", &["long", "crosses", "region", "subregion", "dirty", "no_entry"]);
        assert_eq!(count("reads"), count("hits") + missed, "{}", self.what);
        assert_eq!(count("map_requests"), count("exported_entries"), "{}", self.what);
        assert_eq!(
            sum("refused", &["tampered", "out_of_range"]),
            0,
            "{}: an honest host",
            self.what
        );
        count("valid_entries")
    }
}

#[test]
fn honest_hosts_read_what_the_drive_holds() {
    let quarters = [
        "map.unit=512",
        "drive.spare_bytes=128",
        "map.cache_bytes=4KiB",
        "hpb.region=16KiB",
        "hpb.subregion=8KiB",
    ];
    let kinds: &[&[&str]] = &[
        &["hpb.protect=plain"],
        &["hpb.protect=tagged"],
        &["hpb.protect=encrypted", "hpb.dirty=page", "hpb.wire=paper"],
        &["hpb.wire=samsung"],
        &["hpb.protect=plain", "hpb.update=piggyback", "hpb.wire=paper"],
        &[
            "hpb.protect=plain",
            "hpb.update=piggyback",
            "hpb.wire=paper",
            "hpb.pairs=1",
            "hpb.changes=3",
        ],
        &[
            "hpb.control=host",
            "hpb.eviction_enter=2",
            "hpb.read_timeout=1ms",
            "hpb.poll=1ms",
            "hpb.timeout_expiries=2",
        ],
        &[
            "hpb.control=host",
            "hpb.protect=plain",
            "hpb.update=piggyback",
            "hpb.wire=paper",
            "hpb.eviction_enter=2",
        ],
    ];
    let mut valid_entries = vec![0; kinds.len()];
    for seed in 0..6u64 {
        let mut rng = Rng::stream(Seed(seed), "settings");
        let mut one_of = |of: &[&'static str]| of[rng.below(of.len() as u64) as usize];
        for (kind, settings) in kinds.iter().enumerate() {
            for unit in [&[][..], &quarters] {
                let mut all =
                    [*settings, unit, &["hpb.activation_reads=1", "hpb.refresh_reads=1"]].concat();
                all.push(one_of(&[
                    "hpb.host_bytes=300",
                    "hpb.host_bytes=800",
                    "hpb.host_bytes=64KiB",
                ]));
                all.push(one_of(&["hpb.requests=1", "hpb.requests=5"]));
                all.push(one_of(&["hpb.active_regions=0", "hpb.active_regions=2"]));
                all.push(one_of(&[
                    "hpb.pressure=",
                    "hpb.pressure=1ms=400,3ms=800,9ms=300,12ms=16KiB",
                ]));
                all.push(one_of(&["hpb.remark=true", "hpb.remark=false"]));
                all.push(one_of(&["hpb.hash_time=0ns", "hpb.hash_time=100us"]));
                all.push(one_of(&["cache.mode=write-through", "cache.bytes=32KiB"]));
                all.push(one_of(&[
                    "map.store=demand",
                    "map.store=dftl",
                    "map.store=sftl",
                    "map.store=tpftl",
                ]));
                let mut player = Player::new(&all, seed, 1 + seed as usize * 3);
                player.play(seed, 3000);
                valid_entries[kind] += player.compare_counts();
            }
        }
    }
    assert!(valid_entries.iter().all(|&n| n > 1000), "{valid_entries:?}");
}

/// With each wire format, the hosts do the same at the same times as with `hpb.wire=off`.
#[test]
fn a_wire_format_changes_nothing() {
    const HOST: &[&str] = &[
        "hpb.control=host",
        "hpb.eviction_enter=2",
        "hpb.read_timeout=1ms",
        "hpb.poll=1ms",
        "hpb.timeout_expiries=2",
    ];
    const PAIRS: &[&str] = &["hpb.protect=plain", "hpb.update=piggyback"];
    const FEW: &[&str] = &["hpb.active_regions=2"];
    let kinds: &[(&str, &[&str])] = &[
        ("jedec", FEW),
        ("jedec", HOST),
        ("jedec", &["hpb.protect=encrypted"]),
        ("samsung", FEW),
        ("samsung", &["hpb.protect=plain"]),
        ("paper", &["hpb.protect=encrypted"]),
        ("paper", PAIRS),
        ("paper", &[PAIRS, FEW].concat()),
        ("paper", &[PAIRS, HOST].concat()),
    ];
    for (wire, settings) in kinds {
        let played = |wire: &str| {
            let wire = format!("hpb.wire={wire}");
            let own = [&wire, "hpb.activation_reads=1", "hpb.refresh_reads=1"];
            let mut player = Player::new(&[settings, &own[..]].concat(), 7, 8);
            player.play(7, 3000);
            player
        };
        let (with, without) = (played(wire), played("off"));
        let counts = |of: &Player| {
            let report =
                of.stack.top().reports().into_iter().find(|r| r.layer == "hpb-host").unwrap();
            let (wire, rest): (Vec<_>, Vec<_>) =
                report.counters.into_iter().partition(|(name, _)| name.starts_with("wire_"));
            (wire.into_iter().map(|(_, n)| n).collect::<Vec<_>>(), rest)
        };
        let ((wires, found), (none, expected)) = (counts(&with), counts(&without));
        assert_eq!((with.now, &found), (without.now, &expected), "{}", with.what);
        assert_eq!(none, [0, 0], "{}", without.what);
        let count = |name: &str| counter(&with.stack, name);
        assert!(wires[0] >= count("hits") + count("map_requests"), "{}: {wires:?}", with.what);
        assert!(wires[1] >= 16 * wires[0] + count("map_bytes"), "{}: {wires:?}", with.what);
        assert!(count("hits") > 100, "{}", with.what);
    }
}

/// A page leaves the write cache while a fetch with its old place is in flight.
///
/// The response to another write contains the new entry, and arrives before the fetch.
#[test]
fn an_entry_that_overtakes_a_fetch_is_not_lost() {
    let settings = [
        "cache.bytes=64KiB",
        "hpb.update=piggyback",
        "hpb.protect=plain",
        "hpb.wire=paper",
        "hpb.activation_reads=1",
    ];
    let slow = ["hpb.region=1MiB", "hpb.subregion=1MiB"];
    let mut player = Player::new(&[&settings[..], &slow].concat(), 1, 64);
    player.submit(1, write(1, 7777));
    player.wait(0);
    player.submit(2, Cmd::Read { lba: lba(0), sectors: 4 });
    player.wait(0);
    assert_eq!(counter(&player.stack, "map_requests"), 1, "the map is on its way");
    (0..40).for_each(|n| player.submit(10 + u64::from(n), write(100 + n, 9000 + u64::from(n))));
    player.settle();
    player.read(500, lba(1), 4);
    assert_eq!(player.reply.stamps, [Stamp::whole(7777, 0)]);
}

/// A read of flash and its transfer begin only after every entry of the request was checked.
#[test]
fn each_check_is_waited_for() {
    let time = |hash: &str| {
        let quarters =
            ["map.unit=512", "drive.spare_bytes=128", "map.cache_bytes=400", "hpb.region=16KiB"];
        let more = [
            "hpb.subregion=8KiB",
            "hpb.max_read=2KiB",
            "cache.mode=write-through",
            "hpb.activation_reads=1",
        ];
        let mut player = Player::new(&[&quarters[..], &more, &[hash]].concat(), 1, 1);
        player
            .submit(1, Cmd::Write { lba: Lba(0), sectors: 4, fua: false, content: 5, data: None });
        player.settle();
        player.read(2, Lba(0), 4);
        player.settle();
        let begin = player.now;
        player.read(3, Lba(0), 4);
        player.wait(0);
        assert_eq!(counter(&player.stack, "valid_entries"), 4, "four pages of one frame");
        player.now.since(begin).0 / 1_000_000
    };
    assert_eq!(time("hpb.hash_time=1ms"), time("hpb.hash_time=0ns") + 4000);
}
