//! Copies of collection that stay inside their dies: their time by hand, and what they leave as it
//! is without them.
//!
//! The drive has one die. A page of 2 KiB is sensed in 25 us, programmed in 200 us, and crosses the
//! channel in 51.2 us (25 ns a byte).

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Storage};
use flashatlas_nand::Counters;
use flashatlas_types::{Cause, Dur, FrameId, Lba, Lpn, OpKind, Ps, Rng, Seed, Stamp, Tag};

const ON: &str = "ftl.copyback=same-plane";

const SLC: [&str; 4] =
    ["ftl.slc=hybrid", "ftl.slc_static=2", "timing.t_read_slc=20us", "timing.t_program_slc=75us"];

fn config(more: &[&[&str]]) -> DriveConfig {
    let common = ["drive.channels=1", "drive.ways=1", "cache.mode=write-through"];
    let settings = common.iter().chain(more.iter().copied().flatten());
    let settings: Vec<String> = settings.map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn build(more: &[&[&str]]) -> Ssd {
    config(more).build(Seed(1)).unwrap()
}

/// Writes runs of `units` units: first the whole drive in order, then random runs, most of them in
/// the first tenth. Each command comes when `next` says.
fn write(drive: &mut Ssd, writes: u64, units: u32, mut next: impl FnMut(&mut Ssd) -> Ps) {
    let mut rng = Rng::stream(Seed(7), "writes");
    let last = u64::from(drive.layout().logical_units - units);
    let sectors = drive.layout().unit_sectors();
    for n in 0..writes {
        let below = if rng.below(4) > 0 { last / 10 } else { last };
        let ordered = n * u64::from(units);
        let first = if ordered <= last { ordered } else { rng.below(below + 1) };
        let lba = Lba(first * u64::from(sectors));
        let write =
            Cmd::Write { lba, sectors: sectors * units, fua: false, content: n + 1, data: None };
        let at = next(drive);
        drive.submit(at, Tag(n), write, &mut Reply::default()).unwrap();
    }
    drive.check().unwrap();
}

/// Lets all work end, and returns its end.
fn rest(drive: &mut Ssd) -> Ps {
    drive.advance(Ps::MAX, &mut Vec::new());
    drive.drain()
}

/// Returns a drive that was written in no time, and its counters.
fn written(more: &[&[&str]], writes: u64, units: u32) -> (Ssd, Counters) {
    let mut drive = build(more);
    drive.set_instant(true);
    write(&mut drive, writes, units, |_| Ps::ZERO);
    let counters = drive.medium().counters;
    (drive, counters)
}

fn stamps(drive: &Ssd) -> Vec<Stamp> {
    let units = drive.layout().logical_units;
    (0..units).map(|unit| drive.peek_stamp(Lpn(unit)).unwrap()).collect()
}

fn detail(drive: &Ssd, name: &str) -> u64 {
    let details = drive.ftl_report().scheme_details;
    details.iter().find(|detail| detail.0 == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Returns the pages that were programmed with copies.
fn copied(counters: &Counters) -> u64 {
    let copies = [Cause::Gc, Cause::Idle, Cause::Wear, Cause::Fold, Cause::Refresh];
    copies.iter().map(|&cause| counters.programs[cause as usize]).sum()
}

/// Every copy may stay inside its die if a unit is a frame, and then no decision depends on it.
#[test]
fn copybacks_change_no_decision() {
    let mlc: [&str; 2] = ["drive.cell=mlc", "drive.pages=16"];
    let shapes: [&[&[&str]]; 7] = [
        &[],
        &[&["ftl.gc_mode=single"]],
        &[&["ftl.gc_pace=even"]],
        &[&["ftl.gc_pace=paced"]],
        &[&["ftl.wear_static=true", "ftl.wear_threshold=2"]],
        &[&["ftl.streams=2", "ftl.classifier=dac"]],
        &[&mlc, &SLC],
    ];
    for more in shapes {
        let (drive, plain) = written(more, 3000, 1);
        let expected = stamps(&drive);
        assert_eq!(plain.copybacks, 0);
        for most in ["ftl.copyback_max=255", "ftl.copyback_max=1"] {
            let on = [ON, most];
            let all: Vec<&[&str]> = more.iter().copied().chain([&on[..]]).collect();
            let (drive, counters) = written(&all, 3000, 1);
            assert_eq!(stamps(&drive), expected, "{all:?}");
            assert_eq!(Counters { copybacks: 0, ..counters }, plain, "{all:?}");
            // a page has one unit, so no copy waits in a buffer
            let (inside, over) =
                (detail(&drive, "copied_in_die"), detail(&drive, "copied_over_channel"));
            assert_eq!((inside, inside + over), (counters.copybacks, copied(&counters)), "{all:?}");
            assert_eq!(over > 0, most.ends_with("=1"), "{all:?}");
            assert_eq!(over, detail(&drive, "copyback_limited"), "{all:?}");
            assert!(inside > 100, "{all:?}: {inside}");
        }
    }
}

/// Each copy saves a transfer of a page out and in, 102.4 us, and sends a record of 20 bytes,
/// 0.5 us. The die is always the bottleneck, so the run is shorter by all of these times.
#[test]
fn a_drive_saves_two_transfers_for_each_copy() {
    let run = |more: &[&str]| {
        let mut drive = build(&[more, &["host.link_rate=0", "ftl.idle_free=0"]]);
        write(&mut drive, 1500, 1, rest);
        let end = rest(&mut drive);
        (end.0, drive.medium().counters.copybacks)
    };
    let ((plain, none), (end, copies)) = (run(&[]), run(&[ON, "ftl.copyback_max=255"]));
    assert!(none == 0 && copies > 100, "{copies} copies");
    assert_eq!(plain - end, copies * 101_900_000);
}

#[test]
fn no_data_is_copied_back_more_often_than_the_limit() {
    for most in [1, 2, 5] {
        let limit = format!("ftl.copyback_max={most}");
        let (drive, counters) = written(&[&[ON, &limit]], 6000, 1);
        let layout = drive.layout();
        let counts: Vec<u8> =
            (0..layout.frames()).map(|frame| drive.medium().copybacks_of(FrameId(frame))).collect();
        assert_eq!(counts.iter().max(), Some(&most), "{counts:?}");
        assert!(counters.copybacks > 100 && detail(&drive, "copyback_limited") > 10);
    }
}

/// Four units share a frame. A frame with a unit that is not valid goes over the channel.
#[test]
fn whole_frames_stay_inside_their_die_and_parts_of_frames_do_not() {
    let small = ["map.unit=512", "drive.spare_bytes=64"];
    let writes = 4000;
    let (drive, counters) = written(&[&small, &[ON]], writes, 4);
    let (inside, over) = (detail(&drive, "copied_in_die"), detail(&drive, "copied_over_channel"));
    assert!(inside > 100 && over > 100, "{inside} and {over}");
    assert_eq!(inside, 4 * counters.copybacks, "whole frames");
    // each slot was written by the host, copied, or padded
    let slots = 4 * counters.programs.iter().sum::<u64>();
    assert_eq!(slots, 4 * writes + inside + over + counters.padded_slots);
    let (other, _) = written(&[&small], writes, 4);
    assert_eq!(stamps(&drive), stamps(&other));
}

/// A unit that was copied as lost has a slot in a frame that can be read. A copyback of this frame
/// keeps it lost, and all other units keep their data.
#[test]
fn lost_units_are_copied_back_as_lost() {
    let small = ["map.unit=512", "drive.spare_bytes=64"];
    let (plain, _) = written(&[&small, &[ON]], 4000, 4);
    let (drive, counters) = written(&[&small, &[ON, "errors.unreadable=20000"]], 4000, 4);
    assert!(counters.copybacks > 100);
    let units = (0..drive.layout().logical_units).map(Lpn);
    let said = |unit| (drive.peek_stamp(unit), plain.peek_stamp(unit));
    let (lost, kept): (Vec<_>, Vec<_>) = units.map(said).partition(|(found, _)| found.is_err());
    assert!(lost.len() > 10 && kept.len() > 10 * lost.len(), "{} lost", lost.len());
    assert!(kept.iter().all(|(found, expected)| found == expected));
}

/// Word lines of three pages are filled from three pages in SLC mode.
#[test]
fn folds_stay_inside_their_die() {
    let lines = [
        "drive.cell=tlc",
        "drive.pages=24",
        "drive.program_unit=word-line",
        "drive.spare_bytes=64",
        "drive.over_provisioning=1",
    ];
    let mut drive = build(&[&lines, &SLC, &[ON]]);
    let (mut folds, mut most, mut writes) = (0, 0, 0);
    write(&mut drive, 2500, 1, |drive| {
        let now = rest(drive);
        writes += 1;
        if writes % 40 == 0 {
            drive.idle(now, now.after(Dur::from_us(400_000))).unwrap();
        }
        let plan = drive.plan();
        for (_, op, _) in plan.iter().filter(|(_, op, _)| op.cause == Some(Cause::Fold)) {
            if let OpKind::Copyback { bytes, .. } = op.kind {
                let sources = plan.sources(op.kind);
                let pages: Vec<u32> = sources.iter().map(|source| source.page).collect();
                assert!(pages.len() == 3 && pages.is_sorted_by(|a, b| a < b), "{sources:?}");
                assert!(sources.iter().all(|s| s.level == 4), "pages in SLC mode: {sources:?}");
                // 4 + 8 + 3 * 4 + 4 bytes, on three pages: 10 each
                assert_eq!(bytes, 30);
                (folds, most) = (folds + 1, most.max(pages[2] - pages[0]));
            }
        }
        rest(drive)
    });
    assert!(folds > 50, "{folds} folds inside the die");
    assert!(most > 2, "pages that need no fold are passed over");
    assert!(detail(&drive, "slc_folded") >= 3 * folds);
    let (other, _) = written(&[&lines, &SLC], 2500, 1);
    assert_eq!(stamps(&drive), stamps(&other));
}

/// Read reclaim copies a block so that its bits are corrected.
#[test]
fn what_is_reclaimed_goes_through_the_controller() {
    let erring = ["drive.cell=tlc", "drive.pages=12", "ecc.codeword=1KiB", "errors.model=tlc-72l"];
    let mut drive = build(&[&erring, &[ON, "ftl.read_reclaim=50"]]);
    write(&mut drive, 200, 1, rest);
    for n in 0..60 {
        let now = rest(&mut drive);
        let read = Cmd::Read { lba: Lba(0), sectors: 4 };
        drive.submit(now, Tag(1 << 20 | n), read, &mut Reply::default()).unwrap();
    }
    let counters = drive.medium().counters;
    assert!(counters.programs[Cause::Refresh as usize] > 0, "nothing was reclaimed");
    assert_eq!(counters.copybacks, 0);
}

#[test]
fn what_does_not_combine_is_refused_by_name() {
    let refused = |more: &[&str]| {
        let settings: Vec<String> = more.iter().map(|&s| s.to_owned()).collect();
        match Registry::DRIVES
            .load("tiny", None, &settings)
            .and_then(|c| c.build(Seed(1)).map(drop))
        {
            Err(error) => error.to_string(),
            Ok(()) => panic!("{more:?} is built"),
        }
    };
    let learned = refused(&[ON, "map.store=learnedftl"]);
    assert!(learned.contains("ftl.copyback") && learned.contains("learnedftl"), "{learned}");
    let block = refused(&[ON, "ftl.scheme=block"]);
    assert!(block.contains("ftl.copyback"), "{block}");
}
