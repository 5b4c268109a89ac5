//! Refresh and read reclaim. Their counts are compared with a reference that knows only the formula
//! and the times of the workload.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd};
use flashatlas_types::{BlockId, Cause, Lba, Ps, Seed, Stamp, Tag};

/// An hour and a day in picoseconds.
const HOUR: u64 = 3_600_000_000_000_000;
const DAY: u64 = 24 * HOUR;

/// A drive in which 8192 x 0.004 t = 32.8 t bits of a codeword are wrong after t days. The code
/// corrects 72 bits.
pub const LINEAR: [&str; 10] = [
    "drive.channels=1",
    "drive.ways=1",
    "drive.blocks=64",
    "errors.model=tlc-72l",
    "errors.e=0",
    "errors.a=0",
    "errors.b=0.004",
    "errors.m=0",
    "errors.n=1",
    "errors.g=0",
];

fn config(more: &[&str]) -> DriveConfig {
    let settings: Vec<String> =
        LINEAR.iter().chain(&["host.idle_after=1ms"]).chain(more).map(|&s| s.into()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn full(config: &DriveConfig) -> Ssd {
    let mut drive = config.build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp::whole(1, lpn.0)).unwrap();
    drive
}

fn holds_everything(drive: &Ssd) {
    drive.medium().check().unwrap();
    for lpn in (0..drive.layout().logical_units).map(flashatlas_types::Lpn) {
        assert_eq!(drive.peek(lpn).unwrap().unwrap().stamp, Stamp::whole(1, lpn.0));
    }
}

/// Returns the number of blocks that are not erased.
fn blocks_in_use(drive: &Ssd) -> u64 {
    let blocks = (0..drive.layout().blocks()).map(BlockId::new);
    blocks.filter(|&block| drive.medium().write_pointer(block) > 0).count() as u64
}

#[test]
fn a_drive_that_nobody_reads_refreshes_its_data_when_it_is_due() {
    let config = config(&["ftl.refresh=0.9", "errors.block_spread=0", "ftl.idle_free=0"]);
    let mut drive = full(&config);
    let blocks = blocks_in_use(&drive);
    // 0.9 x 72 = 64.8 bits are wrong after 64.8 / 32.768 = 1.9775 days (47.46 hours), so the look
    // at hour 48 finds the blocks due; their copies are due 48 hours later
    for (until, rounds) in [(47 * HOUR, 0), (49 * HOUR, 1), (95 * HOUR, 1), (97 * HOUR, 2)] {
        let now = Ps(until - HOUR);
        drive.idle(now, Ps(until)).unwrap();
        let refreshed = drive.ftl_report().refreshed;
        assert_eq!(refreshed, [rounds * blocks, 0], "after {} hours", until / HOUR);
    }
    holds_everything(&drive);
    let counters = drive.medium().counters;
    let units = u64::from(drive.layout().logical_units);
    assert_eq!(counters.programs[Cause::Refresh as usize], 2 * units);
    assert_eq!(counters.reads[Cause::Refresh as usize], 2 * units);
    assert_eq!(counters.erases[Cause::Refresh as usize], 2 * blocks);
    assert_eq!(drive.ftl_report().collected, [0; 3], "refresh is not collection");
}

#[test]
fn without_refresh_the_same_drive_loses_its_data() {
    for (refresh, lost) in [("ftl.refresh=0.4", false), ("ftl.refresh=0", true)] {
        let config = config(&[refresh, "ecc.code=ldpc", "ecc.retry_gain=1"]);
        let mut drive = full(&config);
        for day in 0..10 {
            drive.idle(Ps(day * DAY), Ps((day + 1) * DAY)).unwrap();
        }
        let (mut reply, mut unreadable) = (Reply::default(), 0);
        for unit in 0..u64::from(drive.layout().logical_units) {
            let cmd = Cmd::Read { lba: Lba(4 * unit), sectors: 4 };
            let read =
                drive.submit(Ps(10 * DAY + unit * 10_000_000_000), Tag(unit), cmd, &mut reply);
            unreadable += u32::from(read.is_err());
            drive.advance(Ps::MAX, &mut Vec::new());
        }
        assert_eq!(unreadable > 0, lost, "{refresh}: {unreadable} units");
    }
}

#[test]
fn a_block_that_is_read_often_is_written_again() {
    let config = config(&["ftl.read_reclaim=100", "errors.b=0"]);
    let mut drive = full(&config);
    let mut reply = Reply::default();
    let mut done = Vec::new();
    for n in 0..1000_u64 {
        let cmd = Cmd::Read { lba: Lba(0), sectors: 4 };
        drive.submit(Ps(n * 1_000_000_000), Tag(n), cmd, &mut reply).unwrap();
        drive.advance(Ps((n + 1) * 1_000_000_000 - 1), &mut done);
    }
    // Each reclaim reads the other seven pages of the block once more, before the block is erased.
    // The block with the copy of the unit has no reads at first, so every hundredth read causes a
    // reclaim.
    assert_eq!(drive.ftl_report().refreshed, [0, 10]);
    assert_eq!(drive.medium().counters.reads[Cause::Host as usize], 1000);
    drive.advance(Ps::MAX, &mut Vec::new());
    holds_everything(&drive);
}

#[test]
fn a_drive_that_cannot_refresh_says_why() {
    let refused = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&s| s.into()).collect();
        Registry::DRIVES.load("tiny", None, &settings).unwrap_err().to_string()
    };
    let model = "errors.model=tlc-72l";
    assert!(refused(&["ftl.refresh=0.5"]).contains("ftl.refresh: nothing ages without"));
    assert!(
        refused(&[model, "ftl.refresh=0.5", "ftl.gc_mode=single"]).contains("gc_mode = single")
    );
    assert!(refused(&[model, "ftl.read_reclaim=9", "map.store=dftl"]).contains("a map on flash"));
    assert!(
        refused(&[model, "ftl.refresh=0.5", "ftl.scheme=bast"])
            .contains("belongs to ftl.scheme = page; the scheme here is bast")
    );
}
