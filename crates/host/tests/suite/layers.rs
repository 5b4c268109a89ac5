//! Tests that layers are transparent. Random requests return the same data with and without layers:
//! for every stack, in simulated time and in instant mode, across power cycles, with stamps and
//! with bytes.

use flashatlas_device::{Cmd, Done, DriveConfig, LayerDef, Reply, Stack};
use flashatlas_fixtures::proofs::one_in;
use flashatlas_host::{LAYERS, STANDARD};
use flashatlas_nand::params::DATA;
use flashatlas_types::{Dur, Lba, Lpn, Ps, Rng, SECTOR_BYTES, Seed, Stamp, StampSum, Tag};
use std::collections::BTreeSet;

/// Returns every allowed order of layers, with each variant of the first layer's settings.
fn stacks(drive: &[&str]) -> Vec<DriveConfig> {
    let mut all: Vec<Vec<&'static LayerDef>> = vec![vec![]];
    let mut longest = all.clone();
    for _ in LAYERS {
        longest = longest
            .iter()
            .flat_map(|below| {
                let free = LAYERS.iter().filter(|l| below.iter().all(|b| b.name != l.name));
                free.map(|layer| [&[layer], &below[..]].concat()).collect::<Vec<_>>()
            })
            .collect();
        all.extend(longest.clone());
    }
    let mut configs = Vec::new();
    for layers in all.into_iter().filter(|layers| !layers.is_empty()) {
        let names: Vec<&str> = layers.iter().map(|l| l.name).collect();
        let variants = layers.iter().map(|l| l.small.len()).max().unwrap_or(1);
        for variant in 0..variants {
            let small = layers.iter().flat_map(|l| l.small[variant.min(l.small.len() - 1)]);
            let mut settings: Vec<String> =
                drive.iter().chain(small).map(|&s| s.to_owned()).collect();
            settings.push(format!("layers={}", names.join(",")));
            // an order that makes no sense must be refused with an error about `layers`
            match STANDARD.load("tiny", None, &settings) {
                Ok(config) => configs.push(config),
                Err(error) => assert!(error.key == "layers", "{names:?}: {error}"),
            }
        }
    }
    configs
}

/// The contents of a drive without layers, which every stack must hold as well.
struct Model {
    stamps: Vec<Stamp>,
    bytes: Option<Vec<u8>>,
    unit_sectors: u32,
}

impl Model {
    /// Compares every unit, and the sum of all units if the stack has such a sum.
    fn compare_all(&self, stack: &Stack, what: &str) {
        for (lpn, &stamp) in (0..).map(Lpn).zip(&self.stamps) {
            let held = stack.top().peek_stamp(lpn).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(held, stamp, "{what}: unit {lpn}");
        }
        if let Some(sum) = stack.top().sum_of_stamps() {
            let all = (0..).map(Lpn).zip(self.stamps.iter().copied()).collect::<StampSum>();
            assert_eq!(sum, all, "{what}");
        }
    }

    fn write(&mut self, lba: u32, sectors: u32, content: u64, data: &[u8]) {
        for unit in lba / self.unit_sectors..(lba + sectors).div_ceil(self.unit_sectors) {
            let (low, high) = (unit * self.unit_sectors, (unit + 1) * self.unit_sectors);
            let (from, to) = (lba.max(low), (lba + sectors).min(high));
            let stamp = &mut self.stamps[unit as usize];
            *stamp = if to - from == self.unit_sectors {
                Stamp::whole(content, low - lba)
            } else {
                stamp.overwritten(content, from - low, to - from)
            };
        }
        if let Some(bytes) = &mut self.bytes {
            let start = (lba * SECTOR_BYTES) as usize;
            bytes[start..start + data.len()].copy_from_slice(data);
        }
    }

    fn trim(&mut self, lba: u32, sectors: u32) {
        for unit in lba.div_ceil(self.unit_sectors)..(lba + sectors) / self.unit_sectors {
            self.stamps[unit as usize] = Stamp::ZERO;
            if let Some(bytes) = &mut self.bytes {
                let unit_bytes = (self.unit_sectors * SECTOR_BYTES) as usize;
                bytes[unit as usize * unit_bytes..(unit as usize + 1) * unit_bytes].fill(0);
            }
        }
    }

    fn compare(&self, lba: u32, sectors: u32, reply: &Reply, what: &str) {
        let units = (lba / self.unit_sectors) as usize
            ..((lba + sectors).div_ceil(self.unit_sectors)) as usize;
        assert_eq!(reply.stamps, self.stamps[units], "{what}: read of {sectors} sectors at {lba}");
        if let Some(bytes) = &self.bytes {
            let range = (lba * SECTOR_BYTES) as usize..((lba + sectors) * SECTOR_BYTES) as usize;
            assert!(reply.bytes == bytes[range], "{what}: bytes of {sectors} sectors at {lba}");
        }
    }
}

/// A host that keeps several commands in flight.
struct Host {
    stack: Stack,
    now: Ps,
    in_flight: Vec<u64>,
    timed: bool,
}

impl Host {
    fn submit(&mut self, tag: u64, cmd: Cmd<'_>, reply: &mut Reply, what: &str) {
        self.stack.submit(self.now, Tag(tag), cmd, reply).unwrap_or_else(|e| panic!("{what}: {e}"));
        if self.timed {
            self.in_flight.push(tag);
        }
    }

    fn wait(&mut self, most: usize, what: &str) {
        let mut done: Vec<Done> = Vec::new();
        while self.in_flight.len() > most {
            let at = self
                .stack
                .next_event()
                .unwrap_or_else(|| panic!("{what}: {:?} never complete", self.in_flight));
            self.now = self.now.max(at);
            self.stack.advance(at, &mut done);
            for d in done.drain(..) {
                assert!(d.at <= self.now, "{what}: complete in the future");
                let place = self.in_flight.iter().position(|&t| t == d.tag.0);
                self.in_flight.remove(
                    place.unwrap_or_else(|| panic!("{what}: {} was complete before", d.tag)),
                );
            }
        }
    }
}

fn exercise(config: &DriveConfig, seed: u64, requests: u64) {
    let what = format!(
        "{:?} seed {seed}",
        config.pairs().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>()
    );
    let stack = config.build_stack(Seed(1)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (unit_sectors, sectors) = (stack.unit_sectors(), stack.top().sectors() as u32);
    assert_eq!(stack.shape(), config.shape());
    let keeps = config.params.get(DATA) == "ram";
    let units = stack.shape().units();
    let mut model = Model {
        stamps: vec![Stamp::ZERO; units as usize],
        bytes: keeps.then(|| vec![0; (sectors * SECTOR_BYTES) as usize]),
        unit_sectors,
    };
    let mut host = Host { stack, now: Ps::ZERO, in_flight: Vec::new(), timed: seed % 2 == 0 };
    host.stack.set_instant(!host.timed);
    let mut rng = Rng::stream(Seed(seed), "layers");
    let mut reply = Reply::default();
    for number in 1..=requests {
        let lba = rng.below(sectors.into()) as u32;
        let most = if rng.below(4) == 0 { 64 } else { 2 * unit_sectors };
        let mut count = (1 + rng.below(most.into()) as u32).min(sectors - lba);
        let mut lba = lba;
        if rng.below(2) == 0 {
            lba -= lba % unit_sectors;
            count = count.div_ceil(unit_sectors).max(1) * unit_sectors;
            count = count.min(sectors - lba);
        }
        let range = Lba(lba.into());
        match rng.below(32) {
            0..16 => {
                let data: Vec<u8> = (0..count * SECTOR_BYTES)
                    .map(|i| (number as u32 * 31 + i / 512) as u8)
                    .collect();
                let fua = rng.below(16) == 0;
                let data_given = keeps.then_some(&data[..]);
                let write = Cmd::Write {
                    lba: range,
                    sectors: count,
                    fua,
                    content: number,
                    data: data_given,
                };
                host.submit(number, write, &mut reply, &what);
                model.write(lba, count, number, &data);
            }
            16..28 => {
                host.submit(number, Cmd::Read { lba: range, sectors: count }, &mut reply, &what);
                model.compare(lba, count, &reply, &format!("{what}, request {number}"));
            }
            // on some drives, trimmed data may come back after a power failure
            // (docs/RELIABILITY.md, R3)
            28 if !host.stack.top().forgets_trims() => {
                host.submit(number, Cmd::Trim { lba: range, sectors: count }, &mut reply, &what);
                model.trim(lba, count);
            }
            28 | 29 => host.submit(number, Cmd::Flush, &mut reply, &what),
            30 => {
                host.wait(0, &what);
                if host.timed {
                    let until = host.now.after(Dur::from_us(rng.below(20_000)));
                    host.stack.idle(host.now, until).unwrap();
                    let mut done = Vec::new();
                    host.stack.advance(until, &mut done);
                    assert!(done.is_empty(), "{what}: {done:?}");
                    host.now = until;
                }
            }
            _ => {
                // all flushed data must be there after a power cycle
                host.submit(number, Cmd::Flush, &mut reply, &what);
                host.wait(0, &what);
                if host.timed {
                    host.now = host.now.max(host.stack.drain());
                }
                host.stack
                    .top()
                    .check()
                    .unwrap_or_else(|v| panic!("{what}, request {number}: {v}"));
                host.stack.set_instant(false);
                host.stack.power_cycle(config, Seed(1)).unwrap_or_else(|e| panic!("{what}: {e}"));
                host.stack.set_instant(!host.timed);
                host.stack
                    .top()
                    .check()
                    .unwrap_or_else(|v| panic!("{what}, mounted at {number}: {v}"));
                model.compare_all(&host.stack, &format!("{what}, request {number}"));
            }
        }
        host.wait(if host.timed { 8 } else { 0 }, &what);
    }
    host.wait(0, &what);
    host.stack.top().check().unwrap_or_else(|v| panic!("{what}: {v}"));
    model.compare_all(&host.stack, &what);
}

const PAGE: &[&str] = &["drive.blocks=24", "drive.over_provisioning=0.3"];

#[test]
fn layers_change_no_data() {
    let drives: [&[&str]; 7] = [
        &["map.unit=2KiB", "drive.logical_pages=496"],
        &["map.unit=512", "drive.spare_bytes=128", "drive.logical_pages=2048", "cache.bytes=16KiB"],
        &[
            "map.unit=4KiB",
            "drive.frame_channels=2",
            "cache.mode=write-through",
            "drive.logical_pages=248",
        ],
        &[
            "map.unit=2KiB",
            "drive.logical_pages=496",
            "map.store=demand",
            "map.page_bytes=64",
            "map.cache_bytes=200",
        ],
        &[
            "map.unit=512",
            "drive.spare_bytes=128",
            "drive.logical_pages=1536",
            "map.store=dftl",
            "map.page_bytes=64",
        ],
        &[
            "map.unit=2KiB",
            "drive.logical_pages=496",
            "map.store=sftl",
            "map.page_bytes=64",
            "cache.mode=write-through",
        ],
        &["map.unit=2KiB", "drive.logical_pages=496", "map.store=tpftl", "map.page_bytes=64"],
    ];
    let (mut tested, mut exercised) = (BTreeSet::new(), 0);
    for drive in drives {
        for data in ["none", "ram"] {
            let data = format!("nand.data={data}");
            for config in stacks(&[PAGE, drive, &[&data]].concat()) {
                tested.extend(config.layers().iter().map(|l| l.name));
                // requests are in simulated time, in instant mode, or in both by turns; with
                // several drives, each request becomes several
                exercised += 1;
                let by_turns = exercised % 2..exercised % 2 + 1;
                let (seeds, requests) = match (config.drives(), config.layers().len()) {
                    (1, _) => (0..2, 3000),
                    (_, 1) => (0..2, 1500),
                    _ => (by_turns.clone(), 800),
                };
                let (seeds, requests) =
                    if one_in() > 1 { (by_turns, requests / 2) } else { (seeds, requests) };
                seeds.for_each(|seed| exercise(&config, seed, requests));
            }
        }
    }
    assert_eq!(tested.len(), LAYERS.len(), "some layer is tested on no drive: {tested:?}");
}

/// The ring of records never overflows, although it takes long to write a checkpoint of several
/// parts.
///
/// The parts of the checkpoint are written together with later records, and each mount begins the
/// checkpoint again.
#[test]
fn a_checkpoint_keeps_ahead_of_the_ring() {
    let drive = [
        "map.unit=512",
        "drive.spare_bytes=128",
        "drive.logical_pages=4096",
        "drive.blocks=48",
        "layers=hard",
    ];
    let layer = [
        "hard.superpage=1KiB",
        "hard.page=512",
        "hard.segment=2",
        "hard.ring=8",
        "hard.reserve=0.3",
    ];
    let settings: Vec<String> = drive.iter().chain(&layer).map(|&s| s.to_owned()).collect();
    let config = STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"));
    for seed in 0..4 {
        exercise(&config, seed, 3000);
    }
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.set_instant(true);
    let counter = |stack: &Stack, name: &str| {
        let reports = stack.top().reports();
        reports[0].counters.iter().find(|(key, _)| *key == name).map(|c| c.1).unwrap()
    };
    for number in 1..200u64 {
        let write = Cmd::Write {
            lba: Lba(number * 7 % 1000),
            sectors: 1,
            fua: true,
            content: number,
            data: None,
        };
        stack.submit(Ps::ZERO, Tag(1), write, &mut Reply::default()).unwrap();
        if number % 3 == 0 {
            stack.set_instant(false);
            stack.power_cycle(&config, Seed(1)).unwrap();
            stack.set_instant(true);
        }
    }
    let (parts, checkpoints) =
        (counter(&stack, "checkpoint_chunks"), counter(&stack, "checkpoints"));
    assert!(
        checkpoints > 0 && parts >= 8 * checkpoints,
        "{parts} parts of {checkpoints} checkpoints"
    );
}

/// Work in idle time may end later than the idle time.
///
/// Pages that are gathered afterwards in instant mode are sent only at the time at which that work
/// ends.
#[test]
fn what_is_gathered_after_idle_time_is_sent_after_it() {
    let settings = [
        "map.unit=1KiB",
        "drive.blocks=36",
        "drive.logical_pages=600",
        "layers=hard",
        "hard.superpage=4KiB",
        "hard.page=2KiB",
        "hard.reserve=0.3",
        "ftl.idle_free=2048",
        "ftl.idle_valid=1",
        "host.idle_after=1us",
    ]
    .map(String::from);
    let config = STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"));
    let mut stack = config.build_stack(Seed(1)).unwrap();
    let mut late = 0;
    for number in 1..400 {
        stack.set_instant(true);
        let write = Cmd::Write {
            lba: Lba(number * 52 % 512),
            sectors: 4,
            fua: false,
            content: number,
            data: None,
        };
        stack.submit(Ps::ZERO, Tag(1), write, &mut Reply::default()).unwrap();
        stack.set_instant(false);
        let now = stack.drain();
        let until = now.after(Dur::from_us(30));
        stack.idle(now, until).unwrap();
        late += u32::from(stack.drain() > until);
    }
    assert!(late > 20, "only {late} times was work in idle time late");
    stack.top().check().unwrap();
}
