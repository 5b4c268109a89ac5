//! Predicted gaps: the steps of background work in a sequence of gaps, by hand.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd};
use flashatlas_types::{Dur, Lba, Ps, Seed, Tag};

const US: u64 = 1_000_000;

/// One die, on which only the cells take time: 25 us, 200 us and 1,500 us. A command takes 1 us.
const ONE_DIE: [&str; 17] = [
    "drive.channels=1",
    "drive.ways=1",
    "drive.dies=1",
    "drive.planes=1",
    "drive.blocks=32",
    "drive.pages=8",
    "drive.logical_pages=120",
    "map.unit=2KiB",
    "cache.mode=write-through",
    "timing.channel_rate=0",
    "timing.t_command=0",
    "memory.dram_latency=0",
    "memory.sram_latency=0",
    "host.command_time=1us",
    "host.link_rate=0",
    "ftl.idle_free=64",
    "ftl.idle_valid=0.5",
];

fn config(more: &[&str]) -> DriveConfig {
    let settings: Vec<String> = ONE_DIE.iter().chain(more).map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap()
}

fn send(drive: &mut Ssd, now: Ps, cmd: Cmd<'_>) -> Ps {
    drive.advance(now, &mut Vec::new());
    drive.submit(now, Tag(0), cmd, &mut Reply::default()).unwrap();
    drive.advance_to_completion(Ps::MAX, &mut Vec::new())
}

/// Returns a drive with twelve full blocks of which half is valid, and the time. The collection of
/// one of them takes 4 x (25 + 200) + 1,500 = 2,400 us.
fn half_valid(more: &[&str]) -> (Ssd, Ps) {
    let mut drive = config(more).build(Seed(1)).unwrap();
    let mut now = Ps::ZERO;
    for page in (0..96).chain((0..96).step_by(2)) {
        let (lba, content) = (Lba(4 * page), page);
        now =
            send(&mut drive, now, Cmd::Write { lba, sectors: 4, fua: false, content, data: None });
    }
    assert_eq!(drive.ftl_report().collected, [0; 3]);
    (drive, now)
}

/// Passes a gap and ends it with a read of a page that was never written. Returns the end of the
/// read.
fn gap(drive: &mut Ssd, began: Ps, us: u64) -> Ps {
    let end = began.after(Dur::from_us(us));
    drive.idle(began, end).unwrap();
    send(drive, end, Cmd::Read { lba: Lba(4 * 110), sectors: 4 })
}

const PREDICTED: [&str; 2] = ["host.idle=predicted", "host.idle_after=100ms"];

#[test]
fn steps_begin_while_the_predicted_gap_has_room_for_them() {
    let (mut drive, mut now) = half_valid(&PREDICTED);
    // each gap in microseconds, and the collections that have begun by its end
    let gaps = [
        // nothing is known: work would begin after 100 ms
        (10_000, 0),
        // 10 ms are predicted: steps begin at 0, 2.4, 4.8 and 7.2 ms, and end at 9.6 ms
        (10_000, 4),
        // steps begin at 0 and 2.4 ms, and the command comes during the second; 6.5 ms are
        // predicted from now on
        (3_000, 6),
        // the step ends at 1.8 ms, and the next begins: 4.7 ms are left; then 4.75 ms are predicted
        (3_000, 7),
        // the step ends at 1.2 ms, and the next begins: 3.55 ms are left; it is interrupted after
        // 1.8 ms, so steps are expected to take 3.6 ms; then 3.875 ms are predicted
        (3_000, 8),
        // the step ends at 0.6 ms, and 3.275 ms are left
        (3_000, 8),
        (3_000, 8),
        // at most 3.3 ms are predicted: work begins before 104 ms, and ends all four steps
        (200_000, 12),
    ];
    for (at, (us, begun)) in gaps.into_iter().enumerate() {
        now = gap(&mut drive, now, us);
        assert_eq!(drive.ftl_report().collected[1], begun, "gap {at}");
    }
    let c = drive.counters();
    assert_eq!((c.idle_gaps, c.idle_predicted, c.idle_held_back), (8, 4, 4));
    assert_eq!((c.idle_late, c.idle_interrupted), (1, 3));
}

/// A gap of 7.4 ms is predicted. Steps begin at 0, 2.4 and 4.8 ms, and end at 7.2 ms. The next
/// begin at 7.4 + 100 ms and at 109.8 ms, in a gap that has not ended by then.
#[test]
fn a_gap_that_outlasts_its_prediction_is_used_after_the_time() {
    for (us, begun) in [(7_200, 3), (107_400, 3), (107_401, 4), (109_800, 4), (109_801, 5)] {
        let (mut drive, now) = half_valid(&PREDICTED);
        let now = gap(&mut drive, now, 7_400);
        gap(&mut drive, now, us);
        assert_eq!(drive.ftl_report().collected[1], begun, "{us} us");
        assert_eq!(drive.counters().idle_late, 0, "the gap was not held back at its beginning");
    }
}

/// The drive is told the end of each gap. If it is told other ends on the way, it does the same, so
/// it goes by the past alone.
#[test]
fn the_end_of_a_gap_decides_nothing() {
    let gaps = [10_000, 10_000, 3_000, 3_000, 12_000, 3_000, 700, 700, 150_000, 9_000];
    let passed = |every: u64| {
        let (mut drive, mut now) = half_valid(&PREDICTED);
        for us in gaps {
            let end = now.after(Dur::from_us(us));
            let mut told = now.after(Dur::from_us(every));
            while told < end {
                drive.idle(now, told).unwrap();
                drive.advance(told, &mut Vec::new());
                told = told.after(Dur::from_us(every));
            }
            now = gap(&mut drive, now, us);
        }
        (drive.counters(), drive.trajectory())
    };
    let whole = passed(1_000_000);
    assert!(whole.0.idle_predicted > 2 && whole.0.idle_late > 0 && whole.0.idle_interrupted > 0);
    for every in [5_000, 2_400, 999, 100, 7] {
        assert_eq!(passed(every), whole, "every {every} us");
    }
}

#[test]
fn a_drive_that_was_switched_off_knows_no_gaps() {
    let (mut drive, now) = half_valid(&PREDICTED);
    let now = gap(&mut drive, now, 10_000);
    drive.power_cycle(&config(&PREDICTED), Seed(1)).unwrap();
    let now = gap(&mut drive, now, 10_000);
    assert_eq!(drive.ftl_report().collected[1], 0, "10 ms were predicted before");
    gap(&mut drive, now, 10_000);
    assert_eq!(drive.ftl_report().collected[1], 4);
}

#[test]
fn without_a_prediction_nothing_is_counted_and_work_begins_after_the_time() {
    let (mut drive, mut now) = half_valid(&["host.idle_after=1ms"]);
    for (us, begun) in [(1_000, 0), (1_001, 1), (3_500, 2)] {
        now = gap(&mut drive, now, us);
        assert_eq!(drive.ftl_report().collected[1], begun, "{us} us");
    }
    let c = drive.counters();
    assert_eq!((c.idle_gaps, c.idle_predicted, c.idle_held_back, c.idle_late), (0, 0, 0, 0));
    assert_eq!(now.0 % US, 0);
}

/// A step takes four reads of 25 us, four programs of 200 us and an erase of 1,500 us on the only
/// die. All of them are queued when a read of another block comes during the first program or the
/// erase. The read waits for the end of this operation alone, unless its class is the last.
#[test]
fn a_host_read_goes_before_the_queued_operations_of_collection() {
    let last = "timing.priority=idle,gc,host_write,map,host_read";
    for (more, comes, sensed) in [
        (None, 150, 300),
        (None, 350, 500),
        (None, 1_000, 2_400),
        // the erase is not queued before the last program has ended
        (Some(last), 150, 900),
        (Some(last), 350, 900),
    ] {
        let settings: Vec<&str> = ["host.idle_after=1ms"].into_iter().chain(more).collect();
        let (mut drive, now) = half_valid(&settings);
        let begins = now.after(Dur::from_us(1_000));
        let at = begins.after(Dur::from_us(comes));
        drive.idle(now, at).unwrap();
        assert_eq!(drive.ftl_report().collected[1], 1);
        let done = send(&mut drive, at, Cmd::Read { lba: Lba(4 * 95), sectors: 4 });
        assert_eq!(done.since(begins), Dur::from_us(sensed + 25), "{more:?}, at {comes} us");
    }
}
