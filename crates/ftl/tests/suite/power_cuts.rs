//! Power cuts at every program and erase of short workloads on small drives. After every cut the
//! drive mounts and its tables obey their rules. Every page has the acknowledged version, or the
//! version that was being written when the power failed.
//!
//! The drives have log-block schemes and no spare blocks. Operations take effect in the order in
//! which they are planned. (`plan_graph.rs` tests operations that are in flight together on several
//! dies.)

use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, DriveConfig, Reply, Ssd, Storage};
use flashatlas_nand::Medium;
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};
use std::sync::atomic::{AtomicU64, Ordering};

const DRIVES: &[&[&str]] = &[
    &["ftl.scheme=bast", "ftl.log_blocks=2"],
    &["ftl.scheme=bast", "ftl.log_blocks=3", "nand.program_order=any"],
    &["ftl.scheme=sast", "ftl.log_blocks=4"],
    &["ftl.scheme=sast", "ftl.log_blocks=5", "ftl.group_blocks=3", "nand.program_order=any"],
    &["ftl.scheme=fast", "ftl.log_blocks=3"],
    &["ftl.scheme=fast", "ftl.log_blocks=4", "nand.program_order=any"],
    &["ftl.scheme=faster", "ftl.log_blocks=6"],
    &[
        "ftl.scheme=faster",
        "ftl.log_blocks=7",
        "ftl.isolation_interval=1",
        "nand.program_order=any",
    ],
    &["ftl.scheme=superblock", "ftl.log_blocks=2", "ftl.superblock_blocks=2"],
    &[
        "ftl.scheme=superblock",
        "ftl.log_blocks=3",
        "ftl.superblock_blocks=4",
        "nand.program_order=any",
    ],
    &["ftl.scheme=last", "ftl.log_blocks=4", "ftl.sequential_pages=3"],
    &["ftl.scheme=last", "ftl.log_blocks=6", "ftl.sequential_blocks=2", "nand.program_order=any"],
    &["ftl.scheme=mast", "ftl.log_blocks=7"],
    &[
        "ftl.scheme=mast",
        "ftl.log_blocks=8",
        "ftl.migrate_valid=0.4",
        "ftl.resize_window=16",
        "nand.program_order=any",
    ],
];

/// Number of pages of the drives. It is not a multiple of the eight pages in a block.
const PAGES: u32 = 45;

/// A write: its first page, and its number of pages.
type Write = (u32, u32);

/// Returns writes. Some are runs of a few pages that begin on a block boundary or elsewhere. The
/// others are single pages, most of them in a hot part.
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
    // the smallest sufficient number of blocks: data, log, a reserve of two, and two for trims
    let log: u32 =
        settings.iter().find_map(|s| s.strip_prefix("ftl.log_blocks=")).unwrap().parse().unwrap();
    with_blocks(settings, PAGES.div_ceil(8) + log + 4)
}

fn with_blocks(settings: &[&str], blocks: u32) -> DriveConfig {
    let common =
        ["drive.channels=1", "drive.ways=1", "drive.logical_pages=45", "cache.mode=write-through"];
    let blocks = format!("drive.blocks={blocks}");
    let settings: Vec<String> =
        common.iter().chain(settings).map(|&s| s.to_owned()).chain([blocks]).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{settings:?}: {e}"))
}

fn write(drive: &mut Ssd, number: u64, (first, pages): Write) -> Result<(), String> {
    let cmd = Cmd::Write {
        lba: Lba(u64::from(first) * 4),
        sectors: pages * 4,
        fua: false,
        content: number,
        data: None,
    };
    drive.submit(Ps::ZERO, Tag(0), cmd, &mut Reply::default()).map_err(|e| e.to_string())
}

fn filled(config: &DriveConfig) -> Ssd {
    let mut drive = config.build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
    drive.set_instant(true);
    drive
}

/// Returns the stamps of the pages that a write covers.
fn stamps(number: u64, (first, pages): Write) -> impl Iterator<Item = (usize, Stamp)> {
    (0..pages).map(move |i| ((first + i) as usize, Stamp::whole(number, i * 4)))
}

/// A medium after a power failure, and the versions that its pages may have.
struct Cut {
    medium: Medium,
    /// Stamps after all acknowledged writes.
    expected: Vec<Stamp>,
    /// The request in which the power failed.
    torn: (u64, Write),
}

/// Cuts the power after `operations` operations. Returns `None` if the workload needs fewer.
fn cut(config: &DriveConfig, work: &[Write], operations: u64) -> Option<Cut> {
    let mut drive = filled(config);
    let mut expected: Vec<Stamp> = (1..=PAGES).map(Stamp).collect();
    drive.faults().cut_power_after(operations);
    for (number, &one) in (1u64 << 32..).zip(work) {
        let accepted = write(&mut drive, number, one);
        if drive.medium().has_lost_power() {
            let mut medium = drive.into_medium();
            medium.restore_power();
            return Some(Cut { medium, expected, torn: (number, one) });
        }
        accepted.unwrap_or_else(|e| panic!("with the power on: {e}"));
        stamps(number, one).for_each(|(page, stamp)| expected[page] = stamp);
    }
    None
}

/// Asserts that the drive mounts, obeys its rules, has every page, and accepts the workload a
/// second time.
fn goes_on(
    config: &DriveConfig,
    work: &[Write],
    Cut { medium, mut expected, torn: (number, one) }: Cut,
) {
    let mut drive = config.build_on(medium, Seed(1)).unwrap_or_else(|e| panic!("{e}"));
    drive.check().unwrap_or_else(|v| panic!("after the mount: {v}"));
    let holds = |drive: &Ssd, page: usize| drive.peek(Lpn(page as u32)).unwrap().map(|u| u.stamp);
    for (page, stamp) in stamps(number, one) {
        if holds(&drive, page) == Some(stamp) {
            expected[page] = stamp; // this page of the torn request was written
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
    compare(&drive, &expected, "after more writes");
}

/// Runs `test` for each cut of three workloads on every drive.
fn on_every_cut(test: impl Fn(&DriveConfig, &[Write], Cut)) {
    for settings in DRIVES {
        let config = config(settings);
        for seed in 0..3 {
            let work = workload(seed);
            let mut cuts = 0;
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                while let Some(state) = cut(&config, &work, cuts) {
                    test(&config, &work, state);
                    cuts += 1;
                }
            }));
            assert!(failed.is_ok(), "{settings:?}, seed {seed}, cut after {cuts} operations");
            assert!(cuts > 200, "{settings:?}: {cuts} operations: too few to mean anything");
        }
    }
}

#[test]
fn every_cut_leaves_a_drive_that_mounts() {
    on_every_cut(goes_on);
}

/// Cuts the mount after a power cut at each of its operations, and the next mount once in the
/// middle.
#[test]
fn mounts_that_are_cut_take_nothing_away() {
    let mounts = AtomicU64::new(0);
    on_every_cut(|config, work, state| {
        for operations in 0.. {
            let mut medium = state.medium.clone();
            medium.cut_power_after(operations);
            let mounted = config.mount(&mut medium, Seed(1));
            if !medium.has_lost_power() {
                mounted.unwrap_or_else(|e| panic!("with the power on: {e}"));
                break;
            }
            medium.restore_power();
            medium.cut_power_after(operations / 2);
            drop(config.mount(&mut medium, Seed(1)));
            medium.restore_power();
            mounts.fetch_add(1, Ordering::Relaxed);
            let (expected, torn) = (state.expected.clone(), state.torn);
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                goes_on(config, &work[..10], Cut { medium, expected, torn });
            }));
            assert!(failed.is_ok(), "the mount cut after {operations} operations");
        }
    });
    assert!(mounts.into_inner() > 5_000, "mounts have something to do");
}

/// A mount was cut, and the block that it was making can no longer be erased. The next mount works
/// without this block.
#[test]
fn a_mount_goes_on_when_what_it_discards_has_worn_out() {
    let mut worn_out = 0;
    for settings in DRIVES {
        let config = with_blocks(settings, 24);
        let worn = with_blocks(&[settings, &["nand.endurance=1"][..]].concat(), 24);
        let work = workload(0);
        for cut_after in (40..).step_by(3) {
            let Some(state) = cut(&config, &work, cut_after) else { break };
            for operations in 0.. {
                let mut medium = state.medium.clone();
                medium.cut_power_after(operations);
                drop(config.mount(&mut medium, Seed(1)));
                if !medium.has_lost_power() {
                    break;
                }
                medium.restore_power();
                let medium = worn.medium_from(medium.into_image()).unwrap();
                let good = medium.good_blocks();
                let drive = match worn.build_on(medium, Seed(1)) {
                    Ok(drive) => drive,
                    Err(e) if e.to_string().contains("no space") => continue,
                    Err(e) => panic!(
                        "{settings:?}, cut after {cut_after}, its mount after {operations}: {e}"
                    ),
                };
                worn_out += u32::from(drive.medium().good_blocks() < good);
                drive.check().unwrap_or_else(|v| panic!("{settings:?}: {v}"));
                let torn: Vec<usize> =
                    stamps(state.torn.0, state.torn.1).map(|(page, _)| page).collect();
                for page in (0..PAGES as usize).filter(|page| !torn.contains(page)) {
                    let held = drive.peek(Lpn(page as u32)).unwrap().map(|u| u.stamp);
                    assert_eq!(held, Some(state.expected[page]), "{settings:?}: page {page}");
                }
            }
        }
    }
    assert!(worn_out > 50, "{worn_out} mounts found a worn block");
}
