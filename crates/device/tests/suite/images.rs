//! Tests of media from damaged or hostile checkpoints. Each is mounted or refused with a message,
//! and none causes a panic.

use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, DriveConfig, Reply, Ssd, Storage};
use flashatlas_fixtures::proofs;
use flashatlas_nand::Image;
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};

const CASES: usize = 11_000;

fn config(settings: &[&str]) -> DriveConfig {
    let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap()
}

/// Returns a drive with a history: every page was written once, and some pages were written again.
fn written(config: &DriveConfig) -> Ssd {
    let mut drive = config.build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
    updated(drive, 300)
}

/// Returns the same drive after more writes of four sectors to its first half. Most of these writes
/// go to a small part of that half.
fn updated(mut drive: Ssd, writes: u64) -> Ssd {
    let mut rng = Rng::stream(Seed(2), "updates");
    drive.set_instant(true);
    for content in 0..writes {
        let part = if rng.chance(500_000) { 80 } else { 8 };
        let (lba, sectors) = (Lba(rng.below(drive.sectors() / part) * 4), 4);
        let cmd = Cmd::Write { lba, sectors, fua: false, content, data: None };
        drive.submit(Ps::ZERO, Tag(0), cmd, &mut Reply::default()).unwrap();
    }
    drive.make_durable().unwrap();
    drive
}

const DRIVES: &[&[&str]] = &[
    &[],
    &["map.unit=512"],
    &["nand.factory_bad=100000", "drive.blocks=64"],
    // blocks of map pages wear out, and spare blocks replace blocks
    &[
        "map.store=dftl",
        "map.page_bytes=64",
        "map.cache_bytes=80",
        "nand.endurance=2",
        "drive.blocks=72",
    ],
    &["nand.endurance=1", "nand.spare_blocks=300"],
    &["ftl.scheme=block"],
    &["ftl.scheme=bast", "ftl.log_blocks=6"],
    &["ftl.scheme=sast", "ftl.log_blocks=9"],
    &["ftl.scheme=fast", "ftl.log_blocks=6"],
    &["ftl.scheme=faster", "ftl.log_blocks=9"],
    &["ftl.scheme=superblock", "ftl.log_blocks=6"],
    &["ftl.scheme=last", "ftl.log_blocks=9"],
    &["ftl.scheme=mast", "ftl.log_blocks=12"],
];

#[test]
fn an_image_is_the_medium_it_was_made_of() {
    for settings in DRIVES {
        let config = config(settings);
        let before = written(&config);
        let holds = |drive: &Ssd, lpn| drive.peek(Lpn(lpn)).unwrap().map(|u| u.stamp);
        let expected: Vec<_> =
            (0..before.layout().logical_units).map(|lpn| holds(&before, lpn)).collect();
        let image = before.into_medium().into_image();
        let again = config.medium_from(image.clone()).unwrap().into_image();
        assert_eq!(image, again, "{settings:?}");
        let drive = config.build_on(config.medium_from(image).unwrap(), Seed(1)).unwrap();
        drive.check().unwrap();
        for lpn in 0..drive.layout().logical_units {
            assert_eq!(holds(&drive, lpn), expected[lpn as usize], "{settings:?}: page {lpn}");
        }
    }
}

/// Changes one entry of one array.
fn damage(image: &mut Image, rng: &mut Rng) {
    let word = [0, 1, 7, 8, 9, 639, 640, u32::MAX, u32::MAX - 1][rng.below(9) as usize];
    let pick = |len: usize, rng: &mut Rng| rng.below(len.max(1) as u64) as usize;
    let words = match rng.below(10) {
        0 => &mut image.erases,
        1 => &mut image.next,
        2 => &mut image.sequence_low,
        3 | 4 => &mut image.lpns,
        5 => &mut image.stamps,
        6 => {
            let at = pick(image.state.len(), rng);
            image.state[at] = rng.below(4) as u8;
            return;
        }
        7 => {
            let at = pick(image.health.len(), rng);
            image.health[at] = rng.below(9) as u8;
            return;
        }
        8 => {
            let at = pick(image.roles.len(), rng);
            image.roles[at] = rng.below(9) as u8;
            return;
        }
        _ => {
            image.sequence = [0, u64::from(word), 1 << 40][rng.below(3) as usize];
            return;
        }
    };
    match rng.below(12) {
        0 => drop(words.pop()),
        _ => {
            let at = pick(words.len(), rng);
            words[at] = if rng.below(2) == 0 { word } else { rng.below(700) as u32 };
        }
    }
}

#[test]
fn damaged_media_are_refused_or_mounted() {
    let (mut refused, mut mounted) = (0, 0);
    for settings in DRIVES {
        let config = config(settings);
        let good = written(&config).into_medium().into_image();
        let mut rng = Rng::stream(Seed(5), "images");
        for _ in 0..proofs::cases(CASES / DRIVES.len()) {
            let mut image = good.clone();
            (0..=rng.below(4)).for_each(|_| damage(&mut image, &mut rng));
            let drive = config
                .medium_from(image)
                .and_then(|m| config.build_on(m, Seed(1)).map_err(|e| e.to_string()));
            match drive {
                Err(why) => {
                    assert!(!why.is_empty());
                    refused += 1;
                }
                Ok(drive) => {
                    // the drive may have other content than was written, and may break a rule; both
                    // are reported without a panic
                    drop(drive.check());
                    (0..drive.layout().logical_units).for_each(|lpn| drop(drive.peek(Lpn(lpn))));
                    mounted += 1;
                }
            }
        }
    }
    let least = proofs::cases(3000);
    assert!(refused > least && mounted > least, "{refused} {mounted}, at least {least}");
}

/// Checks that a second mount finds the same drive. A mount may change the medium: it erases dead
/// blocks and finishes work that a power cut interrupted.
#[test]
fn a_second_mount_finds_what_the_first_left() {
    for settings in DRIVES {
        let config = config(settings);
        let mount =
            |image: Image| config.build_on(config.medium_from(image).unwrap(), Seed(1)).unwrap();
        let state = |drive: &Ssd| {
            let mut blocks = Vec::new();
            drive.for_each_block(&mut |block, role, valid| blocks.push((block, role, valid)));
            let places: Vec<_> =
                (0..drive.layout().logical_units).map(|lpn| drive.place(Lpn(lpn))).collect();
            (blocks, places, drive.ftl_report().areas)
        };
        let blank = config.build(Seed(1)).unwrap();
        for drive in [written(&config), updated(blank, 2000)] {
            let image = drive.into_medium().into_image();
            let programs = image.sequence;
            let first = mount(image);
            let written = first.medium().sequence() - programs;
            // a map in little memory has no room for the entries that a mount finds, so the mount
            // writes map pages
            let map_pages = first.ftl_report().mount.map_page_writes;
            assert_eq!(
                written > 0,
                map_pages > 0,
                "{settings:?}: the power was not cut, so no data is written again"
            );
            assert_eq!(map_pages > 0, settings.contains(&"map.store=dftl"), "{settings:?}");
            let expected = state(&first);
            let second = mount(first.into_medium().into_image());
            let (found, expected) = (state(&second), expected);
            let other = found.0.iter().zip(&expected.0).find(|(a, b)| a != b);
            assert_eq!(other, None, "{settings:?}: a block");
            assert_eq!(
                found.1.iter().zip(&expected.1).position(|(a, b)| a != b),
                None,
                "{settings:?}: a page"
            );
            assert_eq!(found.2, expected.2, "{settings:?}");
        }
    }
}
