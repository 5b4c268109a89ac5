//! Bit errors of drives whose pages are not all alike: whole word lines, orders of pages, and
//! blocks in SLC mode. Times and counts are worked out by hand.
//!
//! A lower page of 2 KiB is sensed in 50 us, an upper page in 70 us, and a page in SLC mode in
//! 20 us. It crosses the channel in 10.24 us (200 MB/s), and is decoded in 5 us.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Storage};
use flashatlas_types::{Cause, Lba, Lpn, Ps, Seed, Stamp, Tag};

const HOUR: u64 = 3_600_000_000_000_000;
const DAY_S: u32 = 86_400;

const LOWER: f64 = 50.0 + 10.24 + 5.0;
const UPPER: f64 = 70.0 + 10.24 + 5.0;
const IN_SLC_MODE: f64 = 20.0 + 10.24 + 5.0;

/// Settings of a die with cells of two bits whose errors come from time alone.
const MLC: [&str; 17] = [
    "drive.channels=1",
    "drive.ways=1",
    "drive.blocks=64",
    "drive.cell=mlc",
    "drive.spare_bytes=128",
    "cache.mode=write-through",
    "timing.t_read=50us",
    "timing.t_read_middle=70us",
    "timing.channel_rate=200MB",
    "errors.model=tlc-72l",
    "errors.e=0",
    "errors.a=0",
    "errors.m=0",
    "errors.g=0",
    "errors.block_spread=0",
    "ecc.code=bch",
    "ecc.decode=5us",
];

const SLC: [&str; 4] =
    ["ftl.slc=static", "ftl.slc_static=8", "timing.t_read_slc=20us", "timing.t_program_slc=75us"];

fn config(more: &[&[&str]]) -> DriveConfig {
    let settings = MLC.iter().chain(more.iter().copied().flatten());
    let settings: Vec<String> = settings.map(|&s| s.into()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns a drive to which the host has written the first `units` units, one after another.
fn written(config: &DriveConfig, units: u64) -> Ssd {
    written_in(config, units, 1)
}

/// Returns a drive to which the host has written the first `units` units, a number of them in each
/// command.
fn written_in(config: &DriveConfig, units: u64, at_once: u32) -> Ssd {
    let mut drive = config.build(Seed(1)).unwrap();
    drive.set_instant(true);
    for unit in (0..units).step_by(at_once as usize) {
        let (lba, sectors, content) = (Lba(4 * unit), 4 * at_once, 1 + unit);
        let write = Cmd::Write { lba, sectors, fua: false, content, data: None };
        drive.submit(Ps::ZERO, Tag(unit), write, &mut Reply::default()).unwrap();
    }
    drive.set_instant(false);
    drive
}

/// Returns how long a read takes, in microseconds.
fn read(drive: &mut Ssd, at: u64, unit: u64, units: u32) -> f64 {
    let (mut reply, mut done) = (Reply::default(), Vec::new());
    let cmd = Cmd::Read { lba: Lba(4 * unit), sectors: 4 * units };
    drive.submit(Ps(at), Tag(0), cmd, &mut reply).unwrap();
    let is_written = reply.stamps.iter().all(|&stamp| stamp != Stamp::ZERO);
    assert!(reply.stamps.len() == units as usize && is_written);
    drive.advance(Ps::MAX, &mut done);
    (done[0].at.0 - at) as f64 / 1e6
}

#[track_caller]
fn takes(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} us, expected {expected} us");
}

/// At rest for a day, 8192 x 0.002 = 16 bits of a codeword of a lower page are wrong, of 40 that
/// are corrected. An upper page has 1638, and 1.6 after a retry.
const UPPER_IS_WEAK: [&str; 3] =
    ["errors.b=0.002", "errors.page_spread=100", "ecc.retry_gain=0.001"];

#[test]
fn an_upper_page_of_a_word_line_needs_a_retry_of_its_own() {
    let config = config(&[&UPPER_IS_WEAK, &["drive.program_unit=word-line"]]);
    // a write that is complete has filled its word line
    let mut drive = written_in(&config, 4, 2);
    drive.faults().rest(DAY_S);
    takes(read(&mut drive, 0, 0, 1), LOWER);
    takes(read(&mut drive, 1_000_000_000, 1, 1), 2.0 * UPPER);
    // both: the lower page has left the die at 60.24 us; the upper one is sensed until 130.24, has
    // left at 140.48, is decoded at 145.48, and is read again after that
    takes(read(&mut drive, 2_000_000_000, 2, 2), 60.24 + 2.0 * UPPER);
    let errors = drive.medium().counters.errors;
    assert_eq!((errors.reads, errors.by_retries[..2].to_vec()), (4, vec![2, 2]));
}

#[test]
fn the_order_of_pages_decides_which_one_needs_a_retry() {
    // pages 0 to 3 are L0 L1 U0 L2 in shadow order, and L0 U0 L1 U1 in consecutive order
    for (order, upper) in [("shadow", [false, false, true]), ("consecutive", [false, true, false])]
    {
        let order = format!("drive.page_order={order}");
        let mut drive = written(&config(&[&UPPER_IS_WEAK, &[&order]]), 3);
        drive.faults().rest(DAY_S);
        for (unit, upper) in (0..).zip(upper) {
            let expected = if upper { 2.0 * UPPER } else { LOWER };
            takes(read(&mut drive, unit * 1_000_000_000, unit, 1), expected);
        }
    }
}

/// After a day, a fifth of the bits of a native page are wrong and a retry corrects it. A page in
/// SLC mode has a hundredth of that: 16 bits of a codeword.
#[test]
fn a_page_in_slc_mode_has_a_rate_of_its_own_until_it_is_folded() {
    let settings = ["errors.b=0.2", "errors.slc_factor=0.01", "ecc.retry_gain=0.001"];
    let config = config(&[&SLC, &settings]);
    // eight blocks with four pages in SLC mode; the next unit goes to a lower page directly
    let mut drive = written(&config, 33);
    drive.faults().rest(DAY_S);
    takes(read(&mut drive, 0, 31, 1), IN_SLC_MODE);
    takes(read(&mut drive, 1_000_000_000, 32, 1), 2.0 * LOWER);
    // idle time folds the blocks; the data is new there
    let second = 1_000_000_000_000;
    drive.idle(Ps(2_000_000_000), Ps(second)).unwrap();
    let folded = drive.medium().counters.programs[Cause::Fold as usize];
    assert_eq!(folded, 32);
    takes(read(&mut drive, second, 0, 1), LOWER);
    takes(read(&mut drive, 2 * second, 1, 1), UPPER);
    drive.faults().rest(DAY_S);
    takes(read(&mut drive, 3 * second, 0, 1), 2.0 * LOWER);
    takes(read(&mut drive, 4 * second, 1, 1), 2.0 * UPPER);
}

fn detail(drive: &Ssd, name: &str) -> u64 {
    let details = drive.ftl_report().scheme_details;
    details.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("{name}")).1
}

fn holds(drive: &Ssd, units: u64) {
    drive.medium().check().unwrap();
    for unit in 0..units {
        let found = drive.peek(Lpn(unit as u32)).unwrap().unwrap();
        assert_eq!(found.stamp, Stamp::whole(1 + unit, 0), "unit {unit}");
    }
}

/// 8192 x 0.004 t = 32.8 t bits of a codeword are wrong after t days in a native block, and half of
/// them in SLC mode. 0.9 of the 72 bits that are corrected are 64.8.
const LINEAR: [&str; 5] = [
    "errors.b=0.004",
    "errors.n=1",
    "errors.slc_factor=0.5",
    "ecc.code=ldpc-soft",
    "host.idle_after=1ms",
];

#[test]
fn a_block_in_slc_mode_is_folded_when_it_is_due() {
    let refresh = ["ftl.refresh=0.9", "ftl.idle_free=0", "ftl.slc_keep=8"];
    let config = config(&[&SLC, &LINEAR, &refresh]);
    // ten units: two full blocks, and two pages of an open one
    let mut drive = written(&config, 10);
    // a block in SLC mode is due after 64.8 / 16.4 = 3.955 days, which the look of hour 95 finds
    // (94.92 hours); the copies are in two native blocks, which are due 47.46 hours later
    let looks = [(95, [0, 0], 0, 10), (96, [3, 0], 3, 0), (143, [3, 0], 3, 0), (144, [5, 0], 3, 0)];
    for (until, refreshed, folds, held) in looks {
        drive.idle(Ps((until - 1) * HOUR), Ps(until * HOUR)).unwrap();
        assert_eq!(drive.ftl_report().refreshed, refreshed, "after {until} hours");
        let found = (detail(&drive, "slc_folds"), detail(&drive, "slc_held"));
        assert_eq!(found, (folds, held), "after {until} hours");
    }
    let counters = drive.medium().counters;
    assert_eq!((counters.programs[Cause::Fold as usize], detail(&drive, "slc_folded")), (10, 10));
    assert_eq!(counters.erases[Cause::Fold as usize], 3);
    assert_eq!(counters.erases[Cause::Refresh as usize], 2);
    holds(&drive, 10);
}

#[test]
fn a_block_in_slc_mode_that_is_read_often_is_folded() {
    let config =
        config(&[&SLC, &LINEAR, &["errors.b=0", "ftl.read_reclaim=100", "ftl.slc_keep=8"]]);
    let mut drive = written(&config, 4);
    for n in 0..1000 {
        read(&mut drive, n * 10_000_000_000, 0, 1);
    }
    // the fold reads the block's other pages once more before it is erased, and its copies begin
    // with no read; so every hundredth read is a reclaim, and only the first one is a fold
    assert_eq!(drive.ftl_report().refreshed, [0, 10]);
    assert_eq!((detail(&drive, "slc_folds"), detail(&drive, "slc_held")), (1, 0));
    let programs = drive.medium().counters.programs;
    assert_eq!(programs[Cause::Fold as usize], 4);
    assert_eq!(programs[Cause::Refresh as usize], 9 * 4);
    holds(&drive, 4);
}

/// New data has 8192 x 0.008 = 65.5 wrong bits of 72, which is more than a half. Half of the other
/// 6.464 bits are 3.232, which are wrong after 3.232 / 32.768 days: 2.37 hours. The look of hour 3
/// finds that, and the look of hour 6 finds the copies.
#[test]
fn new_data_is_not_due_again_at_once_however_worn_the_flash_is() {
    let worn = ["errors.e=0.008", "ftl.refresh=0.5", "ftl.idle_free=0", "ecc.soft_correctable=200"];
    let config = config(&[&LINEAR, &worn]);
    let mut drive = written(&config, 80);
    let blocks = 80_u64.div_ceil(config.layout().unwrap().frames_per_block.into());
    for (until, rounds) in [(3, 0), (4, 1), (6, 1), (7, 2)] {
        drive.idle(Ps((until - 1) * HOUR), Ps(until * HOUR)).unwrap();
        let refreshed = drive.ftl_report().refreshed;
        assert_eq!(refreshed, [rounds * blocks, 0], "after {until} hours");
    }
    holds(&drive, 80);
}

/// New data has 8192 x 0.009 = 73.7 wrong bits of 72: whatever is written again is no better.
#[test]
fn data_that_no_refresh_makes_better_is_not_refreshed() {
    let worn = ["errors.e=0.009", "ftl.refresh=0.1", "ftl.idle_free=0", "ecc.soft_correctable=200"];
    let mut drive = written(&config(&[&LINEAR, &worn]), 80);
    drive.idle(Ps::ZERO, Ps(100 * HOUR)).unwrap();
    assert_eq!(drive.ftl_report().refreshed, [0, 0]);
    holds(&drive, 80);
}
