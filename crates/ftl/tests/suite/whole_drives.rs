//! Functions that process every unit of a drive: reads of all stamps, and the search for units at a
//! mount.

use super::model::sum_of;
use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Storage};
use flashatlas_nand::Medium;
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};

const UNITS: u32 = 70_000;

fn config() -> DriveConfig {
    let settings = ["drive.blocks=2600", "drive.logical_pages=70000", "cache.bytes=64KiB"];
    let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap()
}

/// Returns a drive on which most units are written at least once, in random order. The last written
/// units are in the write cache.
fn written() -> Ssd {
    let mut drive = config().build(Seed(1)).unwrap();
    let mut rng = Rng::stream(Seed(1), "whole drives");
    drive.set_instant(true);
    for content in 1..=u64::from(UNITS) * 3 / 2 {
        let lba = Lba(rng.below(UNITS.into()) * 4);
        let cmd = Cmd::Write { lba, sectors: 4, fua: false, content, data: None };
        drive.submit(Ps::ZERO, Tag(0), cmd, &mut Reply::default()).unwrap();
    }
    drive.set_instant(false);
    drive
}

#[test]
fn units_looked_at_together_hold_what_each_does() {
    let drive = written();
    assert!(Medium::windows(drive.layout()) > 1);
    drive.check().unwrap();
    let one_by_one: Vec<Stamp> =
        (0..UNITS).map(|lpn| drive.peek_stamp(Lpn(lpn)).unwrap()).collect();
    let empty = one_by_one.iter().filter(|&&stamp| stamp == Stamp::ZERO).count();
    assert!((1000..UNITS as usize / 2).contains(&empty), "{empty} were not written");
    let sum = drive.sum_of_stamps().expect("a page-mapped drive sums up its slots");
    assert_eq!(sum, sum_of(&one_by_one));
    for (first, count) in [(0, UNITS), (5, 40_003), (69_999, 1), (7, 0)] {
        let mut together = vec![Stamp(7); count as usize];
        drive.peek_stamps(Lpn(first), &mut together).unwrap();
        assert_eq!(together, one_by_one[first as usize..][..count as usize]);
    }
}

#[test]
fn of_units_that_cannot_be_read_the_first_is_named() {
    let mut drive = written();
    drive.make_durable().unwrap();
    let on_flash = |drive: &Ssd, from: u32| {
        let mut places = (from..UNITS).map(Lpn).map(|lpn| drive.place(lpn));
        let place = places.find_map(|place| match place {
            flashatlas_ftl::Place::Flash(ppn) => Some(ppn),
            _ => None,
        });
        drive.layout().frame_of(place.unwrap())
    };
    let (first, second) = (on_flash(&drive, 2000), on_flash(&drive, 60_000));
    for frame in [second, first] {
        drive.faults().decay(frame);
        let refused = drive.peek_stamps(Lpn(0), &mut vec![Stamp::ZERO; UNITS as usize]);
        let why = refused.unwrap_err().to_string();
        assert!(why.contains(&format!("{frame}")), "{why}, of {frame}");
    }
}

/// A mount that takes every entry from spare areas meets the newest version of most pages first.
/// The exceptions are a few pages whose versions are in blocks that were written at the same time.
#[test]
fn a_mount_meets_the_newest_versions_first() {
    let mut drive = written();
    drive.make_durable().unwrap();
    let held: Vec<Stamp> = (0..UNITS).map(|lpn| drive.peek_stamp(Lpn(lpn)).unwrap()).collect();
    drive.power_cycle(&config(), Seed(1)).unwrap();
    let found: Vec<Stamp> = (0..UNITS).map(|lpn| drive.peek_stamp(Lpn(lpn)).unwrap()).collect();
    assert_eq!(found, held);
    let pages = held.iter().filter(|&&stamp| stamp != Stamp::ZERO).count() as u64;
    let taken = drive.ftl_report().mount.rolled_forward;
    assert!((pages..pages + pages / 1000).contains(&taken), "{taken} entries of {pages} pages");
}
