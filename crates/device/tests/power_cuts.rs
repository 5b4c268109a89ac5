//! Power cuts at every program and erase of short workloads on small drives: whatever the cut leaves, the drive mounts,
//! its tables obey their rules, and every page holds what was acknowledged, or what was under way when the power failed.
//!
//! Log-block schemes only, in the order in which they plan, and one cut in a life. (What is in flight together on several
//! dies is `plan_graph.rs`.)

use flashatlas_device::{Cmd, Device, DriveConfig, Reply, Ssd};
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};

const DRIVES: &[&[&str]] = &[
    &["ftl.scheme=bast", "ftl.log_blocks=2"],
    &["ftl.scheme=bast", "ftl.log_blocks=3", "nand.program_order=any"],
    &["ftl.scheme=sast", "ftl.log_blocks=4"],
    &["ftl.scheme=sast", "ftl.log_blocks=5", "ftl.group_blocks=3", "nand.program_order=any"],
    &["ftl.scheme=fast", "ftl.log_blocks=3"],
    &["ftl.scheme=fast", "ftl.log_blocks=4", "nand.program_order=any"],
    &["ftl.scheme=faster", "ftl.log_blocks=6"],
    &["ftl.scheme=faster", "ftl.log_blocks=7", "ftl.isolation_interval=1", "nand.program_order=any"],
    &["ftl.scheme=superblock", "ftl.log_blocks=2", "ftl.superblock_blocks=2"],
    &["ftl.scheme=superblock", "ftl.log_blocks=3", "ftl.superblock_blocks=4", "nand.program_order=any"],
    &["ftl.scheme=last", "ftl.log_blocks=4", "ftl.sequential_pages=3"],
    &["ftl.scheme=last", "ftl.log_blocks=6", "ftl.sequential_blocks=2", "nand.program_order=any"],
    &["ftl.scheme=mast", "ftl.log_blocks=7"],
    &["ftl.scheme=mast", "ftl.log_blocks=8", "ftl.migrate_valid=0.4", "ftl.resize_window=16", "nand.program_order=any"],
];

/// Pages of the drives: not a multiple of the eight in a block.
const PAGES: u32 = 45;

/// A write of so many pages.
type Write = (u32, u32);

/// Runs that begin on block boundaries and elsewhere, broken off, and single pages, most of them in a hot part.
fn workload(seed: u64) -> Vec<Write> {
    let mut rng = Rng::stream(Seed(seed), "writes");
    let one = |_| {
        let (first, pages) = match rng.below(8) {
            0 => (rng.below(6) as u32 * 8, 1 + rng.below(9) as u32),
            1 => (rng.below(45) as u32, 1 + rng.below(6) as u32),
            2..6 => (rng.below(10) as u32, 1),
            _ => (rng.below(45) as u32, 1),
        };
        (first, pages.min(PAGES - first))
    };
    (0..90).map(one).collect()
}

fn config(settings: &[&str]) -> DriveConfig {
    let common =
        ["drive.channels=1", "drive.ways=1", "drive.blocks=32", "drive.logical_pages=45", "cache.mode=write-through"];
    let settings: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
    DriveConfig::load("tiny", None, &settings).unwrap_or_else(|e| panic!("{settings:?}: {e}"))
}

fn write(drive: &mut Ssd, number: u64, (first, pages): Write) -> Result<(), String> {
    let cmd =
        Cmd::Write { lba: Lba(u64::from(first) * 4), sectors: pages * 4, fua: false, content: number, data: None };
    drive.submit(Ps::ZERO, Tag(0), cmd, &mut Reply::default()).map_err(|e| e.to_string())
}

fn filled(config: &DriveConfig) -> Ssd {
    let mut drive = config.build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
    drive.set_instant(true);
    drive
}

/// What a write puts into each page.
fn stamps(number: u64, (first, pages): Write) -> impl Iterator<Item = (usize, Stamp)> {
    (0..pages).map(move |i| ((first + i) as usize, Stamp::whole(number, i * 4)))
}

/// Cut the power after so many operations; `None` when the workload needs fewer.
fn cut(config: &DriveConfig, work: &[Write], operations: u64) -> Option<()> {
    let mut drive = filled(config);
    let mut expected: Vec<Stamp> = (1..=PAGES).map(Stamp).collect();
    drive.cut_power_after(operations);
    let mut torn: Option<(u64, Write)> = None;
    for (number, &one) in (1u64 << 32..).zip(work) {
        let accepted = write(&mut drive, number, one);
        if drive.medium().has_lost_power() {
            torn = Some((number, one));
            break;
        }
        accepted.unwrap_or_else(|e| panic!("with the power on: {e}"));
        stamps(number, one).for_each(|(page, stamp)| expected[page] = stamp);
    }
    let (number, one) = torn?;
    let mut medium = drive.into_medium();
    medium.restore_power();
    let mut drive = config.build_on(medium, Seed(1)).unwrap_or_else(|e| panic!("{e}"));
    drive.check().unwrap_or_else(|v| panic!("after the mount: {v}"));
    let holds = |drive: &Ssd, page: usize| drive.peek(Lpn(page as u32)).unwrap().map(|u| u.stamp);
    for (page, stamp) in stamps(number, one) {
        if holds(&drive, page) == Some(stamp) {
            expected[page] = stamp; // the page of the torn request arrived
        }
    }
    let compare = |drive: &Ssd, expected: &[Stamp], when: &str| {
        for (page, &stamp) in expected.iter().enumerate() {
            assert_eq!(holds(drive, page), Some(stamp), "{when}: page {page}");
        }
    };
    compare(&drive, &expected, "after the mount");
    drive.set_instant(true);
    for (number, &one) in (1u64 << 33..).zip(work) {
        write(&mut drive, number, one).unwrap_or_else(|e| panic!("after the mount: {e}"));
        stamps(number, one).for_each(|(page, stamp)| expected[page] = stamp);
        drive.check().unwrap_or_else(|v| panic!("{v}"));
    }
    compare(&drive, &expected, "after writing on");
    Some(())
}

#[test]
fn every_cut_leaves_a_drive_that_mounts() {
    for settings in DRIVES {
        let config = config(settings);
        for seed in 0..3 {
            let work = workload(seed);
            let mut cuts = 0;
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                while cut(&config, &work, cuts).is_some() {
                    cuts += 1;
                }
            }));
            assert!(failed.is_ok(), "{settings:?}, seed {seed}, cut after {cuts} operations");
            assert!(cuts > 200, "{settings:?}: {cuts} operations: too few to mean anything");
        }
    }
}
