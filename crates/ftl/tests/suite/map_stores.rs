//! Map stores of the page-mapped FTL, on small drives that constantly collect data and map pages.
//! After every FLUSH a copy of the drive's medium is mounted, and has the same map. After every
//! power cut the drive mounts and obeys its rules, and each page has the flushed version or a newer
//! version.

use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, DriveConfig, Reply, Ssd, Storage};
use flashatlas_ftl::Place;
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};
use std::sync::atomic::{AtomicU64, Ordering};

/// Stores whose map survives a mount, with parameters that together reach all their code paths; see
/// `every_store_is_here`.
pub(crate) const STORES: &[&[&str]] = &[
    &["map.store=dram", "map.flush=pages", "map.page_bytes=512"],
    &["map.store=dram", "map.flush=segments", "map.segment_bytes=64", "map.entry_bytes=8"],
    &["map.store=dram", "map.flush=whole", "map.segment_bytes=256", "map.roll_forward=false"],
    &[
        "map.store=dram",
        "map.flush=pages",
        "map.page_bytes=128",
        "map.roll_forward=false",
        "map.pack=false",
    ],
    &[
        "map.store=dram",
        "map.flush=pages",
        "map.page_bytes=64",
        "map.directory=page",
        "map.lanes=1",
    ],
    &[
        "map.store=nvm-hybrid",
        "map.segment_bytes=64",
        "nvm.bytes=400",
        "map.directory=page",
        "map.roll_forward=false",
    ],
    // room for all segments, for some segments, for one (the spare slot), and for none
    &["map.store=nvm-hybrid", "map.segment_bytes=128", "nvm.bytes=4KiB"],
    &[
        "map.store=nvm-hybrid",
        "map.segment_bytes=64",
        "nvm.bytes=512",
        "map.dense_share=0.2",
        "map.full_share=0.5",
    ],
    &["map.store=nvm-hybrid", "map.segment_bytes=64", "nvm.bytes=300", "map.nvm_idle=10us"],
    &["map.store=nvm-hybrid", "map.segment_bytes=256", "nvm.bytes=0"],
    &["map.store=nvm-hybrid", "map.segment_bytes=64", "nvm.bytes=640", "map.roll_forward=false"],
    // the map has six pages of 16 entries
    &["map.store=demand", "map.page_bytes=64", "map.cache_bytes=64"],
    &["map.store=demand", "map.page_bytes=64", "map.cache_bytes=200", "map.changed_share=0"],
    &["map.store=dftl", "map.page_bytes=64", "map.cache_bytes=16", "map.lanes=1"],
    &["map.store=dftl", "map.page_bytes=64", "map.cache_bytes=160", "map.protected_share=0.5"],
    &["map.store=cdftl", "map.page_bytes=64", "map.cache_bytes=80"],
    &["map.store=cdftl", "map.page_bytes=64", "map.cache_bytes=300", "map.victim_search=3"],
    &["map.store=sftl", "map.page_bytes=64", "map.cache_bytes=80"],
    &[
        "map.store=sftl",
        "map.page_bytes=128",
        "map.cache_bytes=300",
        "map.buffer_share=0.4",
        "map.entry_bytes=8",
    ],
    &["map.store=tpftl", "map.page_bytes=64", "map.cache_bytes=44"],
    &["map.store=tpftl", "map.page_bytes=64", "map.cache_bytes=250", "map.prefetch_threshold=1"],
    &["map.store=leaftl", "map.page_bytes=64", "map.cache_bytes=160", "map.learn_batch=4"],
    &["map.store=learnedftl", "map.page_bytes=64", "map.cache_bytes=44"],
    &[
        "map.store=learnedftl",
        "map.page_bytes=64",
        "map.cache_bytes=120",
        "map.train=load",
        "map.lines=2",
    ],
    &[
        "map.store=leaftl",
        "map.page_bytes=128",
        "map.cache_bytes=400",
        "map.learn_batch=8",
        "map.gamma=4",
        "map.compaction=50",
    ],
    &[
        "map.store=demand",
        "map.unit=1KiB",
        "map.page_bytes=64",
        "map.cache_bytes=128",
        "drive.logical_pages=180",
        "drive.spare_bytes=128",
    ],
    // a segment consists of several map pages
    &[
        "map.store=nvm-hybrid",
        "map.segment_bytes=8KiB",
        "map.entry_bytes=8",
        "nvm.bytes=20KiB",
        "drive.logical_pages=600",
    ],
];

/// Returns a drive of 90 pages in blocks of eight, with only a few blocks more than it needs.
pub(crate) fn config(settings: &[&str]) -> DriveConfig {
    let common =
        ["drive.ways=1", "drive.blocks=14", "drive.logical_pages=90", "cache.mode=write-through"];
    let mut all: Vec<String> = common.iter().map(|&s| s.to_owned()).collect();
    if settings.contains(&"drive.logical_pages=600") {
        all[1] = "drive.blocks=60".into();
    }
    all.extend(settings.iter().map(|&s| s.to_owned()));
    Registry::DRIVES.load("tiny", None, &all).unwrap_or_else(|e| panic!("{settings:?}: {e}"))
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u32, u32),
    Trim(u32, u32),
    Read(u32),
    Flush,
    Idle,
}

/// Returns steps. Most are writes of runs and of single pages in a hot part. Reads, trims, FLUSHes
/// and idle times come in between.
fn workload(seed: u64, pages: u32, steps: u32) -> Vec<Step> {
    let mut rng = Rng::stream(Seed(seed), "steps");
    let one = |_| {
        let at = if rng.below(3) > 0 {
            rng.below(u64::from(pages) / 8)
        } else {
            rng.below(pages.into())
        } as u32;
        let few = |rng: &mut Rng, most: u64| (1 + rng.below(most) as u32).min(pages - at);
        match rng.below(20) {
            0..9 => Step::Write(at, few(&mut rng, 2)),
            9 => Step::Write(at, few(&mut rng, 24)),
            10..12 => Step::Trim(at, few(&mut rng, 6)),
            12..15 => Step::Read(at),
            15 => Step::Idle,
            _ => Step::Flush,
        }
    };
    (0..steps).map(one).collect()
}

/// A drive, and the versions that each page may have: the last flushed version, and every later
/// version.
struct Model {
    drive: Ssd,
    versions: Vec<Vec<Stamp>>,
    content: u64,
}

impl Model {
    fn new(config: &DriveConfig) -> Model {
        let mut drive = config.build(Seed(1)).unwrap_or_else(|e| panic!("{e}"));
        drive.set_instant(true);
        let versions = vec![vec![Stamp::ZERO]; drive.layout().logical_units as usize];
        Model { drive, versions, content: 0 }
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        let mut reply = Reply::default();
        let unit = self.drive.unit_sectors();
        let lba = |page: u32| Lba(u64::from(page * unit));
        let cmd = match step {
            Step::Write(first, pages) => {
                self.content += 1;
                for i in 0..pages {
                    self.versions[(first + i) as usize].push(Stamp::whole(self.content, i * unit));
                }
                Cmd::Write {
                    lba: lba(first),
                    sectors: pages * unit,
                    fua: false,
                    content: self.content,
                    data: None,
                }
            }
            Step::Trim(first, pages) => {
                (first..first + pages).for_each(|p| self.versions[p as usize].push(Stamp::ZERO));
                Cmd::Trim { lba: lba(first), sectors: pages * unit }
            }
            Step::Read(page) => Cmd::Read { lba: lba(page), sectors: unit },
            Step::Flush => Cmd::Flush,
            Step::Idle => {
                // idle work takes time, and no time passes while commands are instant
                self.drive.set_instant(false);
                let now = self.drive.drain();
                let done = self.drive.idle(now, now.after(flashatlas_types::Dur::from_us(400_000)));
                if !self.drive.medium().has_lost_power() {
                    self.drive.drain();
                    self.drive.set_instant(true);
                }
                return done.map_err(|e| e.to_string());
            }
        };
        self.drive.submit(Ps::ZERO, Tag(0), cmd, &mut reply).map_err(|e| e.to_string())?;
        match step {
            Step::Flush => self.versions.iter_mut().for_each(|v| drop(v.drain(..v.len() - 1))),
            Step::Read(page) => assert_eq!(
                Some(&reply.stamps[0]),
                self.versions[page as usize].last(),
                "page {page}"
            ),
            _ => {}
        }
        Ok(())
    }
}

fn held(drive: &Ssd, page: usize) -> Stamp {
    drive
        .peek(Lpn(page as u32))
        .unwrap_or_else(|e| panic!("page {page}: {e}"))
        .map_or(Stamp::ZERO, |u| u.stamp)
}

/// Mounts a medium and compares every page. If `exactly` is `true`, a page must have its newest
/// version. Otherwise it may have any of its versions.
fn mounts(config: &DriveConfig, medium: Medium, versions: &[Vec<Stamp>], exactly: bool) -> Ssd {
    let drive = config.build_on(medium, Seed(1)).unwrap_or_else(|e| panic!("{e}"));
    drive.check().unwrap_or_else(|v| panic!("after the mount: {v}"));
    for (page, versions) in versions.iter().enumerate() {
        let held = held(&drive, page);
        let good = if exactly { versions.last() == Some(&held) } else { versions.contains(&held) };
        assert!(good, "page {page} holds {held:?}, of {versions:?}");
    }
    drive
}

fn on_every_store(test: impl Fn(&DriveConfig)) {
    for settings in STORES {
        let config = config(settings);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&config)));
        assert!(failed.is_ok(), "{settings:?}");
    }
}

#[test]
fn every_store_is_here() {
    for store in flashatlas_ftl::maps::MAPS {
        let name = format!("map.store={}", store.name);
        let config =
            Registry::DRIVES.load("tiny", None, &[name.clone(), "drive.blocks=100".into()]);
        let drive = config.unwrap_or_else(|e| panic!("{e}")).build(Seed(1)).unwrap();
        if drive.ftl_report().forgets_trims {
            continue;
        }
        assert!(STORES.iter().any(|settings| settings.contains(&name.as_str())), "{name}");
    }
}

/// Mounts a copy of the medium after every FLUSH, and compares the whole map.
#[test]
fn a_flush_keeps_the_whole_map() {
    on_every_store(|config| {
        for seed in 0..3 {
            let mut model = Model::new(config);
            let mut flushes = 0;
            for step in workload(seed, model.versions.len() as u32, 1500) {
                model.step(step).unwrap_or_else(|e| panic!("{step:?}: {e}"));
                if !matches!(step, Step::Flush) {
                    continue;
                }
                flushes += 1;
                model.drive.check().unwrap_or_else(|v| panic!("after {step:?}: {v}"));
                let drive = mounts(config, model.drive.medium().clone(), &model.versions, true);
                let place = |drive: &Ssd, page: usize| match drive.place(Lpn(page as u32)) {
                    Place::Buffer(_) => panic!("a FLUSH leaves nothing in buffers"),
                    place => place,
                };
                for page in 0..model.versions.len() {
                    assert_eq!(
                        place(&drive, page),
                        place(&model.drive, page),
                        "the place of page {page}"
                    );
                }
                let mount = drive.ftl_report().mount;
                assert_eq!(
                    (mount.lost, mount.damaged_map_pages, mount.damaged_nvm_slots),
                    (0, 0, 0)
                );
            }
            assert!(flushes > 200, "{flushes} flushes");
            let medium = model.drive.medium();
            let collected = |role: OobRole| {
                let blocks = medium.layout().block_ids();
                let of_role = blocks.filter(|&block| medium.oob_role(block) == role);
                of_role.map(|block| medium.erases(block)).sum::<u32>()
            };
            assert!(collected(OobRole(0)) > 20, "data was collected");
        }
    });
}

/// Cuts the power in every program, erase, NVM store and fence of short workloads.
#[test]
fn every_cut_leaves_what_was_flushed_or_something_newer() {
    on_every_store(|config| {
        for seed in 10..12 {
            let mut cuts = 0;
            let pages = config.layout().unwrap().logical_units;
            let work = workload(seed, pages, 160);
            loop {
                let mut model = Model::new(config);
                model.drive.faults().cut_power_after(cuts);
                let failed = work.iter().find(|&&step| model.step(step).is_err());
                let Some(step) = failed.filter(|_| model.drive.medium().has_lost_power()) else {
                    assert!(failed.is_none(), "with the power on: {failed:?}");
                    break;
                };
                let (mut medium, versions) = (model.drive.into_medium(), model.versions);
                medium.restore_power();
                let goes_on = || {
                    let drive = mounts(config, medium.clone(), &versions, false);
                    let versions =
                        (0..versions.len()).map(|page| vec![held(&drive, page)]).collect();
                    let mut model = Model { drive, versions, content: 1 << 32 };
                    model.drive.set_instant(true);
                    for &step in work[..40].iter().chain([&Step::Flush]) {
                        model
                            .step(step)
                            .unwrap_or_else(|e| panic!("after the mount, {step:?}: {e}"));
                    }
                    model.drive.check().unwrap_or_else(|v| panic!("after more writes: {v}"));
                    mounts(config, model.drive.into_medium(), &model.versions, true);
                };
                let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(goes_on));
                assert!(failed.is_ok(), "seed {seed}, cut after {cuts} operations, in {step:?}");
                cuts += 1;
            }
            assert!(cuts > 150, "{cuts} cuts: too few to mean anything");
        }
    });
}

/// Cuts the mount after a power cut at each of its operations, and the second mount too. The third
/// mount is not cut.
#[test]
fn mounts_that_are_cut_take_nothing_away() {
    let cut_mounts = AtomicU64::new(0);
    on_every_store(|config| {
        let pages = config.layout().unwrap().logical_units;
        let work = workload(10, pages, 160);
        for cuts in (0..).step_by(5) {
            let mut model = Model::new(config);
            model.drive.faults().cut_power_after(cuts);
            let failed = work.iter().any(|&step| model.step(step).is_err());
            if !failed {
                break;
            }
            let (mut medium, versions) = (model.drive.into_medium(), model.versions);
            medium.restore_power();
            for operations in 0.. {
                let mut again = medium.clone();
                again.cut_power_after(operations);
                drop(config.mount(&mut again, Seed(1)));
                if !again.has_lost_power() {
                    break;
                }
                again.restore_power();
                again.cut_power_after(operations / 2);
                drop(config.mount(&mut again, Seed(1)));
                again.restore_power();
                cut_mounts.fetch_add(1, Ordering::Relaxed);
                let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    mounts(config, again, &versions, false)
                }));
                assert!(held.is_ok(), "cut after {cuts}, its mount after {operations}");
            }
        }
    });
    let cut_mounts = cut_mounts.into_inner();
    assert!(cut_mounts > 1000, "{cut_mounts} cut mounts: too few to mean anything");
}
