//! Random requests on random small drives against a plain array, with every rule checked after each
//! request.
//!
//! The array is the model: one stamp for each mapping unit, one byte for each byte. It shares only
//! the definition of stamps with the drive.

use crate::wear::LEVELLED;
use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, Done, DriveConfig, Reply, Ssd, Storage};
use flashatlas_testing::proofs;
use flashatlas_types::{Lba, Lpn, Ps, Seed, Stamp, StampSum, Tag};
use proptest::prelude::*;

/// Drives that differ in what they map, how they collect and where data waits.
const DRIVES: &[&[&str]] = &[
    &["cache.mode=write-through"],
    &["cache.bytes=16KiB"],
    // 512-byte units gather in a 2 KiB page
    &["map.unit=512", "cache.mode=write-through"],
    &["map.unit=512", "cache.bytes=4KiB", "ftl.victim=cost-benefit"],
    &["map.unit=1KiB", "ftl.classifier=sepbit", "drive.blocks=40"],
    &["map.unit=1KiB", "ftl.streams=2", "ftl.classifier=dac", "ftl.low_water=3", "ftl.victim=fifo"],
    &[
        "map.unit=1KiB",
        "ftl.streams=3",
        "ftl.classifier=two-lru",
        "ftl.hot_pages=8",
        "drive.blocks=28",
        "drive.over_provisioning=2.8",
    ],
    // hardly any room: collection all the time once the drive is filled
    &["map.unit=512", "drive.blocks=32", "drive.over_provisioning=0.25"],
    &["drive.blocks=32", "drive.over_provisioning=0.15", "cache.mode=write-through"],
    &["map.unit=512", "drive.blocks=32", "drive.over_provisioning=0.12", "ftl.gc_mode=single"],
    // two planes programmed together
    &["drive.planes=2", "drive.frame_planes=2", "map.unit=1KiB", "ftl.victim=d-choices", "ftl.d=3"],
    // a superpage over both channels and both ways
    &["drive.frame_channels=2", "drive.frame_ways=2", "map.unit=8KiB", "cache.mode=write-through"],
    &[
        "drive.frame_channels=2",
        "map.unit=4KiB",
        "cache.bytes=32KiB",
        "ftl.victim=windowed",
        "ftl.window=3",
    ],
    &["ftl.gc_mode=single", "cache.mode=write-through", "ftl.victim=random"],
    &["ftl.gc_mode=single", "map.unit=512", "cache.bytes=8KiB"],
    &[
        "ftl.wear_static=true",
        "ftl.wear_threshold=1",
        "ftl.wear_dynamic=false",
        "cache.mode=write-through",
    ],
    &["nand.factory_bad=60000", "map.unit=1KiB"],
    // blocks wear out, and spare ones take their place
    &["nand.endurance=2", "nand.spare_blocks=2000", "cache.mode=write-through"],
    &[
        "nand.endurance=1",
        "nand.spare_blocks=2000",
        "map.store=dftl",
        "map.page_bytes=64",
        "map.cache_bytes=80",
    ],
    // map pages of 16 to 64 entries, in little memory
    &["map.store=dram", "map.flush=pages", "map.page_bytes=128", "cache.bytes=16KiB"],
    &[
        "map.store=dram",
        "map.flush=whole",
        "map.segment_bytes=512",
        "map.directory=page",
        "ftl.gc_mode=single",
    ],
    &[
        "map.store=nvm-hybrid",
        "map.segment_bytes=64",
        "nvm.bytes=600",
        "map.nvm_idle=2us",
        "cache.bytes=16KiB",
    ],
    &["map.store=nvm-hybrid", "map.segment_bytes=128", "nvm.bytes=8KiB", "map.roll_forward=false"],
    &["map.store=demand", "map.page_bytes=64", "map.cache_bytes=128", "cache.bytes=16KiB"],
    &["map.store=dftl", "map.page_bytes=64", "map.cache_bytes=80", "cache.mode=write-through"],
    &[
        "map.store=dftl",
        "map.page_bytes=256",
        "map.cache_bytes=64",
        "map.lanes=2",
        "drive.blocks=24",
        "ftl.streams=2",
    ],
    &["map.store=cdftl", "map.page_bytes=64", "map.cache_bytes=160", "cache.bytes=16KiB"],
    &["map.store=sftl", "map.page_bytes=64", "map.cache_bytes=120", "cache.mode=write-through"],
    &["map.store=tpftl", "map.page_bytes=64", "map.cache_bytes=100", "cache.bytes=16KiB"],
    &["map.store=lpmt", "lookup.ways=2", "lookup.banks=2", "dram.preset=table-1"],
    &[
        "map.store=lpmt",
        "lookup.policy=set-mod",
        "lookup.scan=pipelined",
        "lookup.hash=mixer",
        "cache.mode=write-through",
    ],
    // all in one chain of sets, and pages on their own
    &[
        "map.store=lpmt",
        "lookup.hash=division",
        "lookup.divisor=1",
        "lookup.ways=2",
        "lookup.banks=2",
        "lookup.extent_pages=1",
    ],
    &[
        "map.store=lpmt",
        "map.unit=1KiB",
        "lookup.secondary=apart",
        "lookup.block_tables=apart",
        "lookup.banks=2",
    ],
    &["map.store=learnedftl", "map.page_bytes=64", "map.cache_bytes=100", "map.train=load"],
    &[
        "map.store=leaftl",
        "map.page_bytes=64",
        "map.cache_bytes=192",
        "map.learn_batch=8",
        "map.gamma=1",
    ],
    &["ftl.scheme=block", "cache.mode=write-through"],
    &["ftl.scheme=block", "nand.program_order=any", "cache.bytes=16KiB"],
    &["ftl.scheme=block", "ftl.spare_pages=2", "cache.mode=write-through", "ftl.coalesce=false"],
    &["ftl.scheme=block", "ftl.spare_pages=3", "nand.program_order=any"],
    &["ftl.scheme=block", "drive.frame_channels=2", "map.unit=4KiB", "ftl.wear_dynamic=false"],
    // log blocks: few, so that they are reclaimed all the time; in both orders of programs, on one
    // die and on four
    &["ftl.scheme=bast", "ftl.log_blocks=3", "cache.mode=write-through"],
    &["ftl.scheme=bast", "ftl.log_blocks=1", "nand.program_order=any", "cache.bytes=16KiB"],
    &["ftl.scheme=sast", "ftl.log_blocks=5", "cache.mode=write-through", "ftl.idle_log_blocks=2"],
    &[
        "ftl.scheme=sast",
        "ftl.log_blocks=8",
        "nand.program_order=any",
        "ftl.group_blocks=7",
        "ftl.group_log_blocks=3",
    ],
    &["ftl.scheme=fast", "ftl.log_blocks=2", "cache.mode=write-through"],
    &[
        "ftl.scheme=fast",
        "ftl.log_blocks=6",
        "nand.program_order=any",
        "ftl.idle_log_blocks=3",
        "ftl.eager_dead=true",
    ],
    &[
        "ftl.scheme=fast",
        "drive.frame_channels=2",
        "map.unit=4KiB",
        "cache.bytes=32KiB",
        "ftl.wear_dynamic=false",
    ],
    &["ftl.scheme=faster", "ftl.log_blocks=6", "cache.mode=write-through"],
    &[
        "ftl.scheme=faster",
        "ftl.log_blocks=14",
        "nand.program_order=any",
        "ftl.idle_log_blocks=2",
        "ftl.isolation_interval=2",
    ],
    &["ftl.scheme=superblock", "ftl.log_blocks=2", "cache.mode=write-through"],
    &[
        "ftl.scheme=superblock",
        "ftl.log_blocks=9",
        "nand.program_order=any",
        "ftl.superblock_blocks=3",
        "ftl.idle_log_blocks=4",
    ],
    &["ftl.scheme=last", "ftl.log_blocks=4", "cache.mode=write-through"],
    &[
        "ftl.scheme=last",
        "ftl.log_blocks=10",
        "nand.program_order=any",
        "ftl.idle_log_blocks=2",
        "ftl.sequential_pages=2",
    ],
    &[
        "ftl.scheme=last",
        "ftl.log_blocks=9",
        "ftl.hot_window_adaptive=true",
        "ftl.hot_window=20",
        "drive.blocks=20",
    ],
    &["ftl.scheme=mast", "ftl.log_blocks=7", "cache.mode=write-through", "drive.blocks=20"],
    &[
        "ftl.scheme=mast",
        "ftl.log_blocks=12",
        "nand.program_order=any",
        "ftl.resize_window=16",
        "ftl.recency=fifo",
        "drive.blocks=20",
    ],
    &[
        "ftl.scheme=mast",
        "ftl.log_blocks=9",
        "ftl.migrate_valid=0.3",
        "ftl.cold_victim=valid",
        "ftl.cold_update=hot",
        "ftl.resize_window=32",
        "ftl.resize_hot=hot",
    ],
    &[
        "ftl.scheme=mast",
        "ftl.log_blocks=8",
        "ftl.migrate=copy",
        "ftl.cold_victim=ratio",
        "ftl.sequential_hit=hot",
        "nand.factory_bad=30000",
        "drive.blocks=24",
    ],
];

/// Logical capacity of every drive here, in sectors: small, so that collection happens all the
/// time.
pub const SECTORS: u64 = 800;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Read { lba: u64, sectors: u32 },
    Write { lba: u64, sectors: u32, fua: bool },
    Trim { lba: u64, sectors: u32 },
    Flush,
    Idle,
}

fn step() -> impl Strategy<Value = Step> {
    // half of the requests fall into a tenth of the drive
    let lba = || prop_oneof![0..SECTORS, 0..SECTORS / 10];
    let sectors = || prop_oneof![Just(1u32), Just(4), 1..5u32, 1..70u32];
    let clip = |lba: u64, sectors: u32| u64::from(sectors).min(SECTORS - lba) as u32;
    prop_oneof![
        3 => (lba(), sectors()).prop_map(move |(lba, s)| Step::Read { lba, sectors: clip(lba, s) }),
        8 => (lba(), sectors(), prop::bool::weighted(0.05))
            .prop_map(move |(lba, s, fua)| Step::Write { lba, sectors: clip(lba, s), fua }),
        1 => (lba(), sectors()).prop_map(move |(lba, s)| Step::Trim { lba, sectors: clip(lba, s) }),
        1 => Just(Step::Flush),
        1 => Just(Step::Idle),
    ]
}

pub struct Model {
    pub config: DriveConfig,
    pub drive: Ssd,
    pub stamps: Vec<Stamp>,
    pub bytes: Vec<u8>,
    pub unit: u64,
    pub content: u64,
    pub now: Ps,
    pub done: Vec<Done>,
    pub submitted: usize,
}

/// Returns the sum of what consecutive units hold, from the first of a drive on.
pub fn sum_of(stamps: &[Stamp]) -> StampSum {
    (0..).map(Lpn).zip(stamps.iter().copied()).collect()
}

impl Model {
    pub fn new(settings: &[&str], seed: u64) -> Model {
        let common = [
            "nand.data=ram",
            "host.idle_after=1us",
            "drive.blocks=16",
            "drive.over_provisioning=1.5",
        ];
        let settings: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
        let config = Registry::DRIVES
            .load("tiny", None, &settings)
            .unwrap_or_else(|e| panic!("{settings:?}: {e}"));
        let drive = config.build(Seed(seed)).unwrap();
        let unit = u64::from(drive.unit_sectors());
        assert!(drive.sectors() >= SECTORS, "{settings:?}: {} sectors", drive.sectors());
        let stamps = vec![Stamp::ZERO; drive.sectors() as usize / unit as usize];
        let bytes = vec![0; drive.sectors() as usize * 512];
        Model {
            config,
            drive,
            stamps,
            bytes,
            unit,
            content: 0,
            now: Ps::ZERO,
            done: Vec::new(),
            submitted: 0,
        }
    }

    pub fn units(&self, lba: u64, sectors: u32) -> std::ops::Range<u64> {
        lba / self.unit..(lba + u64::from(sectors)).div_ceil(self.unit)
    }

    pub fn submit(&mut self, cmd: Cmd<'_>) -> Reply {
        let mut reply = Reply::default();
        self.drive.advance(self.now, &mut self.done);
        self.drive.submit(self.now, Tag(self.submitted as u64), cmd, &mut reply).unwrap();
        self.submitted += 1;
        reply
    }

    pub fn run(&mut self, step: Step) {
        match step {
            Step::Read { lba, sectors } => {
                let reply = self.submit(Cmd::Read { lba: Lba(lba), sectors });
                let units = self.units(lba, sectors);
                assert_eq!(
                    reply.stamps,
                    self.stamps[units.start as usize..units.end as usize],
                    "stamps of {step:?}"
                );
                let range = lba as usize * 512..(lba as usize + sectors as usize) * 512;
                assert!(reply.bytes == self.bytes[range], "bytes of {step:?}");
            }
            Step::Write { lba, sectors, fua } => {
                self.content += 1;
                let data: Vec<u8> = (0..sectors * 512)
                    .map(|i| (self.content * 31 + u64::from(i / 512)) as u8)
                    .collect();
                self.submit(Cmd::Write {
                    lba: Lba(lba),
                    sectors,
                    fua,
                    content: self.content,
                    data: Some(&data),
                });
                for u in self.units(lba, sectors) {
                    let (from, to) = (
                        lba.max(u * self.unit),
                        (lba + u64::from(sectors)).min((u + 1) * self.unit),
                    );
                    let old = self.stamps[u as usize];
                    self.stamps[u as usize] = if to - from == self.unit {
                        Stamp::whole(self.content, (from - lba) as u32)
                    } else {
                        old.overwritten(
                            self.content,
                            (from - u * self.unit) as u32,
                            (to - from) as u32,
                        )
                    };
                }
                self.bytes[lba as usize * 512..][..data.len()].copy_from_slice(&data);
            }
            Step::Trim { lba, sectors } => {
                self.submit(Cmd::Trim { lba: Lba(lba), sectors });
                for u in lba.div_ceil(self.unit)..(lba + u64::from(sectors)) / self.unit {
                    self.stamps[u as usize] = Stamp::ZERO;
                    self.bytes[(u * self.unit) as usize * 512..][..self.unit as usize * 512]
                        .fill(0);
                }
            }
            Step::Flush => drop(self.submit(Cmd::Flush)),
            Step::Idle => {
                self.finish();
                let until = self.now.after(flashatlas_types::Dur::from_us(20_000));
                self.drive.idle(self.now, until).unwrap();
                self.now = until;
            }
        }
        self.drive.check().unwrap_or_else(|v| panic!("after {step:?}: {v}"));
    }

    /// Lets everything in flight complete.
    pub fn finish(&mut self) {
        while let Some(at) = self.drive.next_event() {
            self.drive.advance(at, &mut self.done);
            self.now = self.now.max(at);
        }
        assert!(!self.drive.is_busy(), "stands still: {}", self.drive.explain());
        assert_eq!(self.done.len(), self.submitted, "every command completes once");
        assert!(self.done.is_sorted_by_key(|d| d.at));
    }

    pub fn compare_all(&mut self) {
        for (lpn, &stamp) in self.stamps.iter().enumerate() {
            let unit = self.drive.peek(Lpn(lpn as u32)).unwrap();
            assert_eq!(unit.map_or(Stamp::ZERO, |u| u.stamp), stamp, "page {lpn}");
        }
        if let Some(sum) = self.drive.sum_of_stamps() {
            assert_eq!(sum, sum_of(&self.stamps), "all pages");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: proofs::cases(10_000) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_drive_is_an_array(
        drive in 0..DRIVES.len() + LEVELLED.len(),
        fill: bool,
        gap in 0u64..3,
        seed: u64,
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let mut model = Model::new([DRIVES, LEVELLED].concat()[drive], seed);
        if fill {
            model.drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
            (0..model.stamps.len()).for_each(|lpn| model.stamps[lpn] = Stamp(lpn as u32 + 1));
        }
        for step in steps {
            model.run(step);
            // no time, less than a program takes, or time for all that is in flight
            let pause = flashatlas_types::Dur::from_us([0, 90, 4000][gap as usize]);
            model.now = model.now.after(pause);
            model.drive.advance(model.now, &mut model.done);
        }
        model.finish();
        model.compare_all();
        model.drive.make_durable().unwrap();
        model.compare_all();
    }
}

/// Runs every drive of the list long enough that each block is collected many times.
#[test]
fn long_runs_on_every_drive() {
    for settings in [DRIVES, LEVELLED].concat() {
        let mut model = Model::new(settings, 1);
        let mut rng = flashatlas_types::Rng::stream(Seed(3), "steps");
        for _ in 0..1500 {
            let lba = rng.below(SECTORS - 8);
            model.run(match rng.below(12) {
                0 => Step::Flush,
                1 => Step::Trim { lba, sectors: 8 },
                2 | 3 => Step::Read { lba, sectors: 8 },
                _ => Step::Write { lba, sectors: 1 + rng.below(8) as u32, fua: false },
            });
            model.now = model.now.after(flashatlas_types::Dur::from_us(100));
        }
        model.finish();
        model.compare_all();
        let replaced = model.drive.medium().counters.replaced_blocks;
        assert_eq!(
            replaced > 0,
            settings.iter().any(|s| s.starts_with("nand.spare_blocks")),
            "{settings:?}: {replaced}"
        );
    }
}

/// A program that fails for good leaves the drive in the middle of a command. The drive refuses
/// every command until it is switched off and on again. If that mount fails, it goes on refusing.
/// After a mount that succeeds it holds what was flushed.
#[test]
fn a_drive_that_cannot_go_on_says_so_to_every_command() {
    for settings in [&["cache.mode=write-through"][..], &["ftl.scheme=mast", "ftl.log_blocks=12"]] {
        let mut model = Model::new(settings, 1);
        let config = model.config.clone();
        let drive = &mut model.drive;
        drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
        drive.set_instant(true);
        let command =
            |drive: &mut Ssd, cmd| drive.submit(Ps::ZERO, Tag(0), cmd, &mut Reply::default());
        let write =
            |lba| Cmd::Write { lba: Lba(lba), sectors: 4, fua: true, content: 7, data: None };
        drive.faults().fail_program_after(0);
        let failed = command(drive, write(0)).unwrap_err();
        assert!(failed.to_string().contains("no spare block takes its place"), "{failed}");
        for cmd in [write(40), Cmd::Read { lba: Lba(80), sectors: 4 }, Cmd::Flush] {
            assert_eq!(command(drive, cmd), Err(failed.clone()), "{settings:?}");
        }
        drive.set_instant(false);
        drive.faults().cut_power_after(0);
        if drive.power_cycle(&config, Seed(1)).is_err() {
            drive.set_instant(true);
            assert!(
                command(drive, Cmd::Flush).is_err(),
                "{settings:?}: a mount that failed leaves nothing to use"
            );
            drive.set_instant(false);
        }
        drive.faults().restore_power();
        drive.power_cycle(&config, Seed(1)).unwrap();
        for lpn in (1..drive.layout().logical_units).map(Lpn) {
            assert_eq!(
                drive.peek(lpn).unwrap().unwrap().stamp,
                Stamp(lpn.0 + 1),
                "{settings:?}: {lpn}"
            );
        }
    }
}

/// Switches drives off and on again between writes: the drive holds what was flushed, and goes on.
/// (There are no trims here: some map stores forget them, so that a mount brings the pages back.)
#[test]
fn a_mount_finds_what_was_flushed() {
    for settings in [DRIVES, LEVELLED].concat() {
        let mut model = Model::new(settings, 1);
        let mut rng = flashatlas_types::Rng::stream(Seed(4), "steps");
        for cycle in 0..5 {
            for _ in 0..300 {
                let lba = rng.below(SECTORS - 8);
                model.run(Step::Write { lba, sectors: 1 + rng.below(8) as u32, fua: false });
            }
            model.run(Step::Flush);
            model.finish();
            model.drive.power_cycle(&model.config.clone(), Seed(cycle)).unwrap();
            model.drive.check().unwrap_or_else(|v| panic!("{settings:?}: after the mount: {v}"));
            model.compare_all();
        }
    }
}

/// Data that was not flushed is old or new after a power cut, never anything else. Some of the
/// cache's data must be lost.
#[test]
fn a_lost_cache_leaves_old_or_new() {
    let mut model = Model::new(&["cache.bytes=16KiB"], 1);
    for lba in (0..64).step_by(4) {
        model.run(Step::Write { lba, sectors: 4, fua: false });
    }
    model.run(Step::Flush);
    let old = model.stamps.clone();
    for lba in (0..64).step_by(4) {
        model.run(Step::Write { lba, sectors: 4, fua: false });
    }
    model.finish();
    model.drive.power_cycle(&model.config.clone(), Seed(1)).unwrap();
    let mut kept = [0, 0];
    for lpn in 0..16 {
        let found = model.drive.peek(Lpn(lpn)).unwrap().expect("it was flushed once").stamp;
        let versions = [old[lpn as usize], model.stamps[lpn as usize]];
        let which = versions
            .iter()
            .position(|&v| v == found)
            .unwrap_or_else(|| panic!("page {lpn} is neither"));
        kept[which] += 1;
    }
    assert!(kept[0] > 0, "eight units fit the cache: some new versions were lost: {kept:?}");
}
