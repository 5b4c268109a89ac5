//! Tests of the times at which units leave the write cache, calculated by hand. No operation
//! completes unless a test advances the drive.

use flashatlas_device::{Cmd, Device, Registry, Reply, Ssd};
use flashatlas_types::{Lba, OpKind, Ps, Seed, Tag};

/// Returns a drive with four lanes of one-page frames and a cache of 32 pages. Pages leave above 24
/// dirty pages until 16 are left. At most 4 pages may be on their way to flash.
fn drive(settings: &[&str]) -> Ssd {
    let common = ["cache.bytes=64KiB", "cache.ahead=1"];
    let settings: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
    let config = Registry::DRIVES.load("tiny", None, &settings).unwrap();
    assert_eq!((config.layout().unwrap().lanes, config.layout().unwrap().slots_per_frame), (4, 1));
    config.build(Seed(1)).unwrap()
}

/// Writes a page. Returns the number of pages that its plan programs, and the number of slots that
/// earlier plans must have freed before the write.
fn write(drive: &mut Ssd, at: Ps, page: u64) -> (usize, Option<u64>) {
    let write =
        Cmd::Write { lba: Lba(4 * page), sectors: 4, fua: false, content: page, data: None };
    drive.submit(at, Tag(page), write, &mut Reply::default()).unwrap();
    let of_plan = || drive.plan().iter().map(|(_, op, _)| op.kind);
    let programs = of_plan().filter(|kind| matches!(kind, OpKind::Program { .. })).count();
    let awaited = of_plan().find_map(|kind| match kind {
        OpKind::AwaitSlots(count) => Some(count),
        _ => None,
    });
    (programs, awaited)
}

#[test]
fn no_more_leaves_than_the_drive_can_take() {
    let mut drive = drive(&[]);
    // only every other page is written, so that no two pages leave together
    let mut next = (0..).map(|i| 2 * i);
    let mut write = |drive: &mut Ssd, at| write(drive, at, next.next().unwrap());
    for _ in 0..24 {
        assert_eq!(write(&mut drive, Ps::ZERO), (0, None));
    }
    // the 25th page is one too many: 9 should leave, but only 4 can; then there is room for 7 more
    assert_eq!(write(&mut drive, Ps::ZERO), (4, None));
    for _ in 0..7 {
        assert_eq!(write(&mut drive, Ps::ZERO), (0, None));
    }
    // each of these writes takes one of the 4 slots, and waits for one more freed slot than the
    // write before it
    for n in 1..=4 {
        assert_eq!(write(&mut drive, Ps::ZERO), (0, Some(n)));
    }
    // each of these writes makes one page leave
    for n in 5..=7 {
        assert_eq!(write(&mut drive, Ps::ZERO), (1, Some(n)));
    }
    // all 7 pages are on flash; the cache is full, so one page leaves, and 3 more because the drive
    // can take 4
    drive.advance(Ps(10_000_000_000), &mut Vec::new());
    assert_eq!(write(&mut drive, Ps(10_000_000_000)), (4, Some(8)));
}

#[test]
fn pages_that_follow_each_other_leave_together() {
    let mut drive = drive(&[]);
    for page in 0..24 {
        assert_eq!(write(&mut drive, Ps::ZERO, page), (0, None));
    }
    assert_eq!(write(&mut drive, Ps::ZERO, 24), (9, None), "all pages above 16");
    // 16 pages are left, so no page leaves until there are more than 24 again
    let later = Ps(10_000_000_000);
    drive.advance(later, &mut Vec::new());
    for page in 25..33 {
        assert_eq!(write(&mut drive, later, page), (0, None));
    }
    assert_eq!(write(&mut drive, later, 33), (9, None));
}
