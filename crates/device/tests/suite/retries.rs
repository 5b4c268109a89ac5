//! Reads whose bits must be corrected. Their times are worked out by hand.
//!
//! A page of 2 KiB is sensed in 50 us and crosses the channel in 10.24 us (200 MB/s). Wrong bits
//! come only from time: at rest for a day, a fifth of the bits of a page are wrong. A retry
//! multiplies this rate by `ecc.retry_gain`.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Stack};
use flashatlas_nand::ErrorCounters;
use flashatlas_types::{Lba, Ps, Seed, Tag};

const DAY: u32 = 86_400;

fn config(more: &[&str]) -> DriveConfig {
    let settings = [
        "drive.channels=1",
        "drive.ways=1",
        "drive.blocks=64",
        "cache.mode=write-through",
        "timing.t_read=50us",
        "timing.channel_rate=200MB",
        "errors.model=tlc-72l",
        "errors.e=0",
        "errors.a=0",
        "errors.b=0.2",
        "errors.m=0",
        "errors.g=0",
        "errors.block_spread=0",
        "ecc.code=bch",
        "ecc.decode=5us",
    ];
    let settings: Vec<String> = settings.iter().chain(more).map(|&s| s.into()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

/// Writes two units to a drive, and lets it rest for a day.
fn rested(more: &[&str]) -> Ssd {
    let config = config(more);
    let mut drive = config.build(Seed(1)).unwrap();
    drive.fill(|lpn| flashatlas_types::Stamp::whole(1, lpn.0)).unwrap();
    drive.faults().rest(DAY);
    drive
}

/// Submits reads of these units at the same time, and returns the times of their ends, in
/// nanoseconds.
fn ends(drive: &mut Ssd, units: &[u64]) -> Vec<f64> {
    let (mut reply, mut done) = (Reply::default(), Vec::new());
    for (tag, unit) in units.iter().enumerate() {
        let cmd = Cmd::Read { lba: Lba(4 * unit), sectors: 4 };
        drive.submit(Ps::ZERO, Tag(tag as u64), cmd, &mut reply).unwrap();
    }
    drive.advance(Ps::MAX, &mut done);
    done.sort_by_key(|done| done.tag.0);
    done.iter().map(|done| done.at.0 as f64 / 1e3).collect()
}

fn errors(drive: &Ssd) -> ErrorCounters {
    drive.medium().counters.errors
}

/// Checks that every read has one ending.
fn add_up(errors: &ErrorCounters) {
    let endings = errors.by_retries.iter().sum::<u64>() + errors.soft + errors.uncorrectable;
    assert_eq!(endings, errors.reads);
}

#[test]
fn a_clean_read_takes_its_decoding() {
    let mut drive = rested(&["errors.b=0"]);
    assert_eq!(ends(&mut drive, &[0]), [50_000.0 + 10_240.0 + 5_000.0]);
    assert_eq!((errors(&drive).by_retries[0], errors(&drive).further_reads), (1, 0));
    add_up(&errors(&drive));
}

#[test]
fn a_retry_waits_for_the_decoding_and_occupies_die_and_bus_again() {
    // the second read has 0.0002 x 8192 = 1.6 wrong bits a codeword, and 40 can be corrected
    let mut drive = rested(&["ecc.retry_gain=0.001"]);
    assert_eq!(ends(&mut drive, &[0]), [2.0 * 65_240.0]);
    assert_eq!((errors(&drive).by_retries[1], errors(&drive).further_reads), (1, 1));
    // two pages of the die are read: A is sensed until 50 us and on the bus until 60.24; B is
    // sensed from 60.24 until 110.24 and on the bus until 120.48. A's retry takes the die until
    // 180.72 and is decoded at 185.72. B's retry waits for A's retry and for the decoding of B
    let mut drive = rested(&["ecc.retry_gain=0.001"]);
    assert_eq!(ends(&mut drive, &[0, 1]), [185_720.0, 180_720.0 + 65_240.0]);
    add_up(&errors(&drive));
}

#[test]
fn soft_decoding_follows_the_last_retry() {
    // 0.2 x 8192 = 1638 wrong bits, in every read alike
    let soft = [
        "ecc.retry_gain=1",
        "ecc.retry_steps=2",
        "ecc.soft_correctable=2500",
        "ecc.soft_reads=2",
        "ecc.soft_decode=30us",
    ];
    let mut drive = rested(&soft);
    assert_eq!(ends(&mut drive, &[0]), [3.0 * 65_240.0 + 2.0 * 60_240.0 + 30_000.0]);
    let found = errors(&drive);
    assert_eq!((found.soft, found.further_reads, found.reads), (1, 4, 1));
    // two codewords of 8192 bits, of which a fifth is wrong; the standard deviation is 51
    assert!((3276 - 300..3276 + 300).contains(&found.corrected_bits), "{}", found.corrected_bits);
    add_up(&found);
}

#[test]
fn pipelined_retries_are_sensed_while_the_bus_and_the_decoder_work() {
    let overlap = ["ecc.retry_gain=0.001", "ecc.retry_overlap=true", "timing.cache_read=true"];
    // the retry is sensed from 50 us until 100, on the bus until 110.24, and then decoded
    assert_eq!(ends(&mut rested(&overlap), &[0]), [115_240.0]);
    let refused = Registry::DRIVES.load(
        "tiny",
        None,
        &["errors.model=tlc-72l".into(), "ecc.retry_overlap=true".into()],
    );
    assert!(refused.unwrap_err().to_string().contains("ecc.retry_overlap: retries overlap only"));
}

#[test]
fn what_no_retry_corrects_cannot_be_read_from_then_on() {
    let mut drive = rested(&["ecc.retry_gain=1", "ecc.retry_steps=3"]);
    let mut reply = Reply::default();
    let mut read = |drive: &mut Ssd| {
        let cmd = Cmd::Read { lba: Lba(0), sectors: 4 };
        drive.submit(Ps::ZERO, Tag(0), cmd, &mut reply).unwrap_err().to_string()
    };
    assert!(read(&mut drive).contains("cannot be read"));
    assert_eq!((errors(&drive).uncorrectable, errors(&drive).further_reads), (1, 3));
    assert!(
        read(&mut drive).contains("cannot be read"),
        "the page stays lost, without another retry"
    );
    assert_eq!(errors(&drive).reads, 1);
    add_up(&errors(&drive));
}

#[test]
fn the_next_mount_finds_what_a_rest_did() {
    // after a day, 8192 x 0.0044 = 36 wrong bits in the mean are few enough for only some of the
    // pages
    let config = config(&["errors.b=0.0044", "ecc.retry_gain=1", "drive.logical_pages=200"]);
    let mut drive = Stack::over(vec![config.build(Seed(1)).unwrap()], &config).unwrap();
    drive.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
    let held = |drive: &Stack| {
        let stamps = (0..200).map(|unit| drive.top().peek_stamp(flashatlas_types::Lpn(unit)));
        stamps.filter(|stamp| stamp.as_ref().is_ok_and(|s| s.0 != 0)).count() as u64
    };
    assert_eq!(held(&drive), 200);
    drive.ssd_mut().faults().rest(DAY);
    drive.power_cycle(&config, Seed(1)).unwrap();
    let lost = drive.ssd().medium().counters.errors.found_unreadable;
    assert_eq!(held(&drive), 200 - lost);
    // a page of two codewords is lost with a probability of about 1 - 0.76^2
    assert!((20..180).contains(&lost), "{lost}");
    assert_eq!(drive.ssd().ftl_report().mount.unreadable_frames, lost);
    drive.power_cycle(&config, Seed(1)).unwrap();
    assert_eq!(drive.ssd().medium().counters.errors.found_unreadable, lost, "nothing new");
}

#[test]
fn keys_that_no_model_uses_are_refused() {
    let refused = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&s| s.into()).collect();
        Registry::DRIVES.load("tiny", None, &settings).unwrap_err().to_string()
    };
    assert!(refused(&["ecc.retry_steps=3"]).contains("ecc.retry_steps: has no use with"));
    assert!(refused(&["errors.model=tlc-73l"]).contains("did you mean `tlc-72l`?"));
    let long = ["errors.model=tlc-72l", "ecc.codeword=4KiB"];
    assert!(refused(&long).contains("codewords of 4096 bytes do not divide pages of 2048 bytes"));
    let soft = ["errors.model=tlc-72l", "ecc.soft_correctable=50"];
    assert!(refused(&soft).contains("must exceed the 72 bits"));
}

/// Every fifth read of a page loses it, in collection too. A unit reads as it was written, or not
/// at all: never as zeros or as an older version.
#[test]
fn what_collection_cannot_read_is_copied_as_lost() {
    let set = ["errors.unreadable=200000", "ftl.victim=greedy", "drive.blocks=16"];
    let settings: Vec<String> = set.iter().map(|&s| s.into()).collect();
    let config = Registry::DRIVES.load("tiny", None, &settings).unwrap();
    let mut drive = config.build_stack(Seed(1)).unwrap();
    drive.set_instant(true);
    let units = drive.shape().units();
    let mut held = vec![flashatlas_types::Stamp::ZERO; units as usize];
    let mut rng = flashatlas_types::Rng::stream(Seed(1), "test");
    let (mut reply, mut lost) = (Reply::default(), 0);
    for content in 1..4000_u64 {
        // half of the units are written once, so collection copies them again and again
        let hot = u64::from(units) / 2;
        let unit = if content <= u64::from(units) { content - 1 } else { rng.below(hot) };
        let write = Cmd::Write { lba: Lba(4 * unit), sectors: 4, fua: false, content, data: None };
        drive.submit(Ps::ZERO, Tag(0), write, &mut reply).unwrap();
        held[unit as usize] = flashatlas_types::Stamp::whole(content, 0);
        let unit = rng.below(content.min(units.into()));
        let read = Cmd::Read { lba: Lba(4 * unit), sectors: 4 };
        match drive.submit(Ps::ZERO, Tag(0), read, &mut reply) {
            Ok(()) => assert_eq!(reply.stamps, [held[unit as usize]], "unit {unit}"),
            Err(error) => {
                assert!(error.to_string().contains("cannot be read"), "{error}");
                lost += 1;
            }
        }
    }
    assert!(drive.flash_counters().errors.failed_reads > 100 && lost > 100, "{lost}");
    drive.top().check().unwrap();
}
