//! Tests that send random requests to random small drives and compare the drives with a plain
//! array. Every rule is checked after each request.

mod array;

pub use array::{Model, SECTORS, Step, sum_of};

use crate::wear::LEVELLED;
use array::step;
use flashatlas_device::{Cmd, Device, Registry, Reply, Ssd, Storage};
use flashatlas_fixtures::proofs;
use flashatlas_types::{Lba, Lpn, Ps, Seed, Stamp, Tag};
use proptest::prelude::*;

/// Drives with different mapping units, ways of collection, and places where data waits.
const DRIVES: &[&[&str]] = &[
    &["cache.mode=write-through"],
    &["cache.bytes=16KiB"],
    // 512-byte units are gathered in a 2 KiB page
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
    // very little room, so a full drive collects constantly
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
    // an SLC cache: folds, direct writes, and blocks that change their mode
    &[
        "drive.cell=mlc",
        "ftl.slc=hybrid",
        "ftl.slc_static=2",
        "timing.t_read_slc=20us",
        "timing.t_program_slc=75us",
        "cache.mode=write-through",
    ],
    &[
        "drive.cell=qlc",
        "drive.blocks=24",
        "drive.spare_bytes=128",
        "map.unit=512",
        "ftl.slc=dynamic",
        "ftl.slc_keep=1",
        "ftl.wear_static=true",
        "ftl.wear_threshold=1",
        "timing.t_read_slc=20us",
        "timing.t_program_slc=75us",
        "map.store=dftl",
        "map.page_bytes=64",
        "map.cache_bytes=80",
    ],
    // all pages of a word line in one program, with and without an SLC cache
    &["drive.cell=mlc", "drive.program_unit=word-line", "map.unit=512", "drive.spare_bytes=128"],
    &[
        "drive.cell=mlc",
        "drive.program_unit=word-line",
        "drive.spare_bytes=128",
        "map.unit=1KiB",
        "ftl.slc=static",
        "ftl.slc_static=3",
        "timing.t_read_slc=20us",
        "timing.t_program_slc=75us",
        "cache.mode=write-through",
    ],
    // word lines in two and three steps, with and without an SLC cache and capacitors
    &[
        "drive.cell=tlc",
        "drive.pages=12",
        "drive.program_unit=word-line",
        "drive.spare_bytes=256",
        "map.unit=512",
        "cache.mode=write-through",
        "ftl.program_steps=2",
        "timing.t_program_first=200us",
        "timing.t_program_second=300us",
    ],
    &[
        "drive.cell=tlc",
        "drive.pages=24",
        "drive.program_unit=word-line",
        "drive.spare_bytes=128",
        "cache.bytes=64KiB",
        "cache.high=0.3",
        "cache.low=0.1",
        "ftl.program_steps=3",
        "ftl.flush=plp",
        "nand.plp_bytes=192KiB",
        "timing.t_program_first=100us",
        "timing.t_program_second=200us",
        "timing.t_program_third=400us",
    ],
    &[
        "drive.cell=qlc",
        "drive.pages=16",
        "drive.blocks=24",
        "drive.program_unit=word-line",
        "drive.spare_bytes=128",
        "map.unit=1KiB",
        "cache.bytes=64KiB",
        "cache.high=0.3",
        "cache.low=0.1",
        "ftl.slc=hybrid",
        "ftl.slc_static=2",
        "ftl.slc_dynamic=3",
        "ftl.program_steps=2",
        "timing.t_read_slc=20us",
        "timing.t_program_slc=75us",
        "timing.t_program_first=200us",
        "timing.t_program_second=300us",
    ],
    // FLUSHes copy word lines between their steps to blocks of their own, or to an SLC cache
    &[
        "drive.cell=tlc",
        "drive.pages=12",
        "drive.blocks=24",
        "drive.program_unit=word-line",
        "drive.over_provisioning=2.5",
        "drive.spare_bytes=256",
        "map.unit=512",
        "cache.bytes=64KiB",
        "cache.high=0.3",
        "cache.low=0.1",
        "ftl.program_steps=3",
        "ftl.flush=slc",
        "ftl.flush_blocks=1",
        "timing.t_read_slc=20us",
        "timing.t_program_slc=75us",
        "timing.t_program_first=100us",
        "timing.t_program_second=200us",
        "timing.t_program_third=400us",
    ],
    &[
        "drive.cell=tlc",
        "drive.pages=24",
        "drive.program_unit=word-line",
        "drive.over_provisioning=2.5",
        "drive.spare_bytes=128",
        "cache.bytes=64KiB",
        "cache.high=0.3",
        "cache.low=0.1",
        "ftl.slc=hybrid",
        "ftl.slc_static=2",
        "ftl.slc_dynamic=3",
        "ftl.program_steps=2",
        "ftl.flush=slc",
        "timing.t_read_slc=20us",
        "timing.t_program_slc=75us",
        "timing.t_program_first=200us",
        "timing.t_program_second=300us",
    ],
    // blocks wear out, and spare blocks replace them
    &["nand.endurance=2", "nand.spare_blocks=2000", "cache.mode=write-through"],
    &[
        "nand.endurance=1",
        "nand.spare_blocks=2000",
        "map.store=dftl",
        "map.page_bytes=64",
        "map.cache_bytes=80",
    ],
    // map pages of 16 to 64 entries, and little memory for them
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
    // a few log blocks, which are reclaimed constantly; both orders of programs, on one die and on
    // four dies
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

/// Returns a drive built from the parts of this crate, together with its array.
pub fn model(settings: &[&str], seed: u64) -> Model {
    Model::of(&Registry::DRIVES, settings, seed)
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
        model([DRIVES, LEVELLED].concat()[drive], seed).run_drawn(fill, gap, steps);
    }
}

/// Runs every drive in the list until each block has been collected many times.
#[test]
fn long_runs_on_every_drive() {
    for settings in [DRIVES, LEVELLED].concat() {
        let mut model = self::model(settings, 1);
        model.run_long();
        let replaced = model.drive.medium().counters.replaced_blocks;
        assert_eq!(
            replaced > 0,
            settings.iter().any(|s| s.starts_with("nand.spare_blocks")),
            "{settings:?}: {replaced}"
        );
    }
}

/// A program that fails permanently stops the drive in the middle of a command. The drive refuses
/// every command until it is switched off and on again. If that mount fails, the drive continues to
/// refuse commands. After a successful mount it has the flushed data.
#[test]
fn a_drive_that_cannot_go_on_says_so_to_every_command() {
    for settings in [&["cache.mode=write-through"][..], &["ftl.scheme=mast", "ftl.log_blocks=12"]] {
        let mut model = self::model(settings, 1);
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
        assert!(failed.to_string().contains("no spare block is left"), "{failed}");
        for cmd in [write(40), Cmd::Read { lba: Lba(80), sectors: 4 }, Cmd::Flush] {
            assert_eq!(command(drive, cmd), Err(failed.clone()), "{settings:?}");
        }
        drive.set_instant(false);
        drive.faults().cut_power_after(0);
        if drive.power_cycle(&config, Seed(1)).is_err() {
            drive.set_instant(true);
            assert!(
                command(drive, Cmd::Flush).is_err(),
                "{settings:?}: after a failed mount the drive refuses every command"
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

#[test]
fn a_mount_finds_what_was_flushed() {
    for settings in [DRIVES, LEVELLED].concat() {
        model(settings, 1).run_with_mounts();
    }
}

/// Data that was not flushed is either old or new after a power cut, never anything else. Some of
/// the cache's data must be lost.
#[test]
fn a_lost_cache_leaves_old_or_new() {
    let mut model = self::model(&["cache.bytes=16KiB"], 1);
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
            .unwrap_or_else(|| panic!("page {lpn} is neither old nor new"));
        kept[which] += 1;
    }
    assert!(kept[0] > 0, "eight units fit the cache: some new versions were lost: {kept:?}");
}
