//! Frames with parity over their dies: times that are worked out by hand, counts, and refusals.
//!
//! A frame lies on four dies. Dies 0 and 1 of it are on one channel, and dies 2 and 3 on another. A
//! page of 2 KiB is sensed in 50 us and crosses the channel in 10.24 us (200 MB/s). The first frame
//! of a block has its parity on die 0, so its three units are on the dies 1, 2 and 3.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Storage};
use flashatlas_nand::Counters;
use flashatlas_types::{Cause, FrameId, Lba, Ps, Rng, Seed, Stamp, Tag};

const PARITY: [&str; 8] = [
    "ecc.parity=die",
    "drive.frame_channels=2",
    "drive.frame_ways=2",
    "drive.blocks=32",
    "cache.mode=write-through",
    "timing.t_read=50us",
    "timing.t_program=200us",
    "timing.channel_rate=200MB",
];

fn settings(more: &[&str]) -> Vec<String> {
    PARITY.iter().chain(more).map(|&s| s.into()).collect()
}

fn config(more: &[&str]) -> DriveConfig {
    let settings = settings(more);
    Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(more: &[&str]) -> String {
    Registry::DRIVES.load("tiny", None, &settings(more)).unwrap_err().to_string()
}

fn filled(more: &[&str]) -> Ssd {
    let mut drive = config(more).build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp::whole(1, lpn.0)).unwrap();
    drive
}

/// Submits commands at their times, in nanoseconds, and returns the times of their ends.
fn ends(drive: &mut Ssd, cmds: &[(u64, Cmd<'_>)]) -> Vec<f64> {
    let (mut reply, mut done) = (Reply::default(), Vec::new());
    for (tag, &(at, cmd)) in cmds.iter().enumerate() {
        let at = Ps(at * 1000);
        drive.advance(at, &mut done);
        drive.submit(at, Tag(tag as u64), cmd, &mut reply).unwrap();
    }
    drive.advance(Ps::MAX, &mut done);
    done.sort_by_key(|done| done.tag.0);
    done.iter().map(|done| done.at.0 as f64 / 1e3).collect()
}

const fn read(unit: u64) -> Cmd<'static> {
    Cmd::Read { lba: Lba(4 * unit), sectors: 4 }
}

const fn write(unit: u64, content: u64) -> Cmd<'static> {
    Cmd::Write { lba: Lba(4 * unit), sectors: 4, fua: false, content, data: None }
}

/// Checks the laws of the counts of a drive whose frames are on four dies.
fn add_up(counters: &Counters) {
    let errors = &counters.errors;
    let endings = errors.by_retries.iter().sum::<u64>() + errors.soft + errors.uncorrectable;
    assert_eq!(endings, errors.reads);
    assert_eq!(errors.uncorrectable, errors.rebuilt + errors.lost);
    let parity = counters.programs[Cause::Parity as usize];
    assert_eq!(3 * parity, Counters::total(&counters.programs) - parity);
    assert_eq!(counters.erases[Cause::Parity as usize], 0);
}

const BY_RATE: &str = "errors.unreadable=1";

/// Collection into the host's blocks keeps no room to write blocks with rebuilt pages again.
const SINGLE: &str = "ftl.gc_mode=single";

#[test]
fn a_rebuild_reads_the_other_dies_after_the_read_that_failed() {
    // the read fails at 60.24 us, and all others are sensed until 110.24. Die 0 has a channel of
    // its own; die 2 sends until 120.48, and die 3 until 130.72
    let mut drive = filled(&[BY_RATE, SINGLE]);
    drive.faults().lose_part(FrameId(0), 1);
    assert_eq!(ends(&mut drive, &[(0, read(0))]), [130_720.0]);
    let mut slow = filled(&[BY_RATE, SINGLE, "ecc.parity_time=7us"]);
    slow.faults().lose_part(FrameId(0), 1);
    assert_eq!(ends(&mut slow, &[(0, read(0))]), [137_720.0]);
    let counters = drive.medium().counters;
    assert_eq!((counters.errors.rebuilt, counters.reads[Cause::Parity as usize]), (1, 3));
    add_up(&counters);
}

#[test]
fn a_rebuild_waits_for_the_program_of_a_die() {
    // a frame is sent to the dies 0 and 2 from 10 us until 20.24, and to die 3 until 30.48. They
    // are programmed until 220.24, 220.24 and 230.48. Then dies 0 and 2 are sensed until 270.24 and
    // send until 280.48. Die 3 is sensed until 280.48 and sends until 290.72
    let mut drive = filled(&[BY_RATE, SINGLE]);
    drive.faults().lose_part(FrameId(0), 1);
    assert_eq!(ends(&mut drive, &[(0, read(0)), (10_000, write(200, 2))])[0], 290_720.0);
    add_up(&drive.medium().counters);
}

/// In the mean, 36 of 8192 bits are wrong after a day, and 40 are corrected. One retry halves them.
#[test]
fn a_rebuild_waits_for_the_retry_of_another_die() {
    let weak = [
        SINGLE,
        "errors.model=tlc-72l",
        "errors.e=0",
        "errors.a=0",
        "errors.b=0.0044",
        "errors.m=0",
        "errors.g=0",
        "errors.block_spread=0",
        "ecc.code=bch",
        "ecc.decode=5us",
        "ecc.retry_gain=0.5",
        "ecc.retry_steps=1",
    ];
    let mut seen = 0;
    for frame in (0..80).step_by(4) {
        let mut drive = filled(&weak);
        drive.faults().rest(86_400);
        let first = 3 * u64::from(frame);
        let retries = |drive: &Ssd| drive.medium().counters.errors.by_retries[1];
        let each = [0, 1].map(|n| {
            let before = retries(&drive);
            ends(&mut drive, &[(1_000_000 * (n + 1), read(first + n + 1))]);
            retries(&drive) - before
        });
        let before = retries(&drive);
        drive.faults().lose_part(FrameId(frame), 1);
        let began = 9_000_000;
        let end = ends(&mut drive, &[(began, read(first))])[0] - began as f64;
        // die 3 alone is read again
        if each == [0, 1] && retries(&drive) - before == 1 {
            // the read of the lost part and its retry end at 130.48 us. Die 3 is sensed until
            // 180.48, sends until 200.96 after die 2, and is decoded at 205.96. Its retry is sensed
            // until 255.96, sends until 266.2, and is decoded at 271.2
            assert_eq!(end, 271_200.0);
            seen += 1;
        }
        add_up(&drive.medium().counters);
    }
    assert!(seen > 0);
}

#[test]
fn a_frame_with_parity_has_three_quarters_of_the_units() {
    let without = ["ecc.parity=none", BY_RATE];
    let slots = |more: &[&str]| config(more).layout().unwrap().slots();
    assert_eq!(4 * slots(&[BY_RATE]), 3 * slots(&without));
}

/// Half of the reads and writes go to a part of the drive, so that it is collected. A block with a
/// rebuilt page is written again, which saves nearly all data from a second loss.
#[test]
fn counts_add_up_and_blocks_with_rebuilt_pages_are_reclaimed() {
    for (more, reclaims) in [(&[][..], true), (&[SINGLE], false)] {
        let mut settings = vec!["errors.unreadable=20000", "drive.logical_pages=300"];
        settings.extend(more);
        let mut drive = filled(&settings);
        drive.set_instant(true);
        let (mut rng, mut reply) = (Rng::stream(Seed(3), "test"), Reply::default());
        let mut held: Vec<Stamp> = (0..300).map(|unit| Stamp::whole(1, unit)).collect();
        let mut lost = 0;
        for content in 2..6000 {
            let unit = rng.below(300);
            if rng.below(2) == 0 {
                // a write may need the data of a unit that is lost
                if drive.submit(Ps::ZERO, Tag(0), write(unit, content), &mut reply).is_ok() {
                    held[unit as usize] = Stamp::whole(content, 0);
                }
            } else if drive.submit(Ps::ZERO, Tag(0), read(unit), &mut reply).is_ok() {
                assert_eq!(reply.stamps, [held[unit as usize]], "unit {unit}");
            } else {
                lost += 1;
            }
        }
        let counters = drive.medium().counters;
        add_up(&counters);
        let reclaimed = drive.ftl_report().refreshed[1];
        assert_eq!(reclaimed > 20, reclaims, "{reclaimed}");
        assert!(counters.errors.rebuilt > 50, "{}", counters.errors.rebuilt);
        assert!(if reclaims { lost < 150 } else { lost > 0 }, "{lost}");
        drive.check().unwrap();
    }
}

#[test]
fn what_parity_does_not_combine_with_is_refused_by_name() {
    let no_loss = refusal(&[]);
    assert!(no_loss.contains("ecc.parity: nothing makes a page unreadable"), "{no_loss}");
    let few = refusal(&["drive.frame_ways=1", BY_RATE]);
    assert!(few.contains("ecc.parity") && few.contains("2 of at least 3 dies"), "{few}");
    let copied = refusal(&["ftl.copyback=same-plane", BY_RATE]);
    assert!(copied.contains("ftl.copyback") && copied.contains("ecc.parity"), "{copied}");
    let steps = refusal(&["ftl.program_steps=2", BY_RATE]);
    assert!(steps.contains("ftl.program_steps"), "{steps}");
    let time = refusal(&["ecc.parity=none", "ecc.parity_time=1us"]);
    assert!(time.contains("ecc.parity_time: has no use with ecc.parity = none"), "{time}");
    // 8 KiB are the frame with its parity
    let unit = refusal(&["map.unit=8KiB", BY_RATE]);
    assert!(unit.contains("map.unit") && unit.contains("without its parity"), "{unit}");
}
