//! A drive together with a plain array that has one stamp for each mapping unit and one entry for
//! each byte. The array and the drive share only the definition of stamps.
//!
//! The tests of `crates/lpmt` also use this file as a module.

use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, Done, DriveConfig, Reply, Ssd, Storage};
use flashatlas_types::{Dur, Lba, Lpn, Ps, Rng, Seed, Stamp, StampSum, Tag};
use proptest::prelude::*;

/// Logical capacity of every drive here, in sectors. It is small, so that collection is constantly
/// necessary.
pub const SECTORS: u64 = 800;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Read { lba: u64, sectors: u32 },
    Write { lba: u64, sectors: u32, fua: bool },
    Trim { lba: u64, sectors: u32 },
    Flush,
    Idle,
}

/// Returns a strategy that draws requests.
pub fn step() -> impl Strategy<Value = Step> {
    // half of the requests go to a tenth of the drive
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
    pub settings: Vec<String>,
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

/// Returns the sum of the stamps of consecutive units, beginning with the first unit of a drive.
pub fn sum_of(stamps: &[Stamp]) -> StampSum {
    (0..).map(Lpn).zip(stamps.iter().copied()).collect()
}

impl Model {
    /// Builds a drive of the parts of `registry`.
    pub fn of(registry: &Registry, settings: &[&str], seed: u64) -> Model {
        let common = [
            "nand.data=ram",
            "host.idle_after=1us",
            "drive.blocks=16",
            "drive.over_provisioning=1.5",
        ];
        let settings: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
        let config =
            registry.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{settings:?}: {e}"));
        let drive = config.build(Seed(seed)).unwrap();
        let unit = u64::from(drive.unit_sectors());
        assert!(drive.sectors() >= SECTORS, "{settings:?}: {} sectors", drive.sectors());
        let stamps = vec![Stamp::ZERO; drive.sectors() as usize / unit as usize];
        let bytes = vec![0; drive.sectors() as usize * 512];
        Model {
            settings,
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
                let until = self.now.after(Dur::from_us(20_000));
                self.drive.idle(self.now, until).unwrap();
                self.now = until;
            }
        }
        self.drive.check().unwrap_or_else(|v| panic!("after {step:?}: {v}"));
    }

    /// Runs until all operations are complete.
    pub fn finish(&mut self) {
        while let Some(at) = self.drive.next_event() {
            self.drive.advance(at, &mut self.done);
            self.now = self.now.max(at);
        }
        assert!(!self.drive.is_busy(), "no progress: {}", self.drive.explain());
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

    /// Runs random requests, with a pause of one of three lengths after each request.
    pub fn run_drawn(mut self, fill: bool, gap: u64, steps: Vec<Step>) {
        if fill {
            self.drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
            (0..self.stamps.len()).for_each(|lpn| self.stamps[lpn] = Stamp(lpn as u32 + 1));
        }
        for step in steps {
            self.run(step);
            // no pause, less than a program takes, or enough for all operations in flight
            let pause = Dur::from_us([0, 90, 4000][gap as usize]);
            self.now = self.now.after(pause);
            self.drive.advance(self.now, &mut self.done);
        }
        self.finish();
        self.compare_all();
        self.drive.make_durable().unwrap();
        self.compare_all();
    }

    /// Runs until each block has been collected many times.
    pub fn run_long(&mut self) {
        let mut rng = Rng::stream(Seed(3), "steps");
        for _ in 0..1500 {
            let lba = rng.below(SECTORS - 8);
            self.run(match rng.below(12) {
                0 => Step::Flush,
                1 => Step::Trim { lba, sectors: 8 },
                2 | 3 => Step::Read { lba, sectors: 8 },
                _ => Step::Write { lba, sectors: 1 + rng.below(8) as u32, fua: false },
            });
            self.now = self.now.after(Dur::from_us(100));
        }
        self.finish();
        self.compare_all();
    }

    /// Switches the drive off and on again between writes. The drive must have the flushed data,
    /// and continue to work. (There are no trims here, because some map stores lose them at a
    /// mount, and the pages come back.)
    pub fn run_with_mounts(mut self) {
        let mut rng = Rng::stream(Seed(4), "steps");
        for cycle in 0..5 {
            for _ in 0..300 {
                let lba = rng.below(SECTORS - 8);
                self.run(Step::Write { lba, sectors: 1 + rng.below(8) as u32, fua: false });
            }
            self.run(Step::Flush);
            self.finish();
            self.drive.power_cycle(&self.config.clone(), Seed(cycle)).unwrap();
            self.drive
                .check()
                .unwrap_or_else(|v| panic!("{:?}: after the mount: {v}", self.settings));
            self.compare_all();
        }
    }
}
