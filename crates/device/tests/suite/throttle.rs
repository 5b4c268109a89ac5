//! Throttling of host writes: delays by hand, and beside a count of blocks by their roles.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd};
use flashatlas_ftl::Role;
use flashatlas_types::{Cause, ConfigError, Dur, Lba, OpId, OpKind, Ps, Rng, Seed, Tag};

/// A drive of one lane on which nothing but a delay takes time before the cache has a write.
const ONE_LANE: [&str; 10] = [
    "drive.channels=1",
    "drive.ways=1",
    "drive.dies=1",
    "drive.planes=1",
    "drive.blocks=16",
    "drive.logical_pages=64",
    "map.unit=2KiB",
    "cache.bytes=64KiB",
    "host.command_time=0",
    "host.link_rate=0",
];

const SMALL: &str = "cache.bytes=32KiB";

fn loaded(settings: &[&str]) -> Result<DriveConfig, ConfigError> {
    let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings)
}

fn built(settings: &[&[&str]]) -> Ssd {
    loaded(&settings.concat()).unwrap().build(Seed(1)).unwrap()
}

fn us(time: u64) -> Ps {
    Ps::ZERO.after(Dur::from_us(time))
}

fn write(page: u64) -> Cmd<'static> {
    Cmd::Write { lba: Lba(4 * page), sectors: 4, fua: false, content: page, data: None }
}

/// Sends commands, each at its time in microseconds, and returns the times at which they complete.
fn completed(drive: &mut Ssd, commands: &[(u64, Cmd<'_>)]) -> Vec<u64> {
    let mut done = Vec::new();
    for (tag, &(at, cmd)) in (0..).zip(commands) {
        drive.advance(us(at), &mut done);
        drive.submit(us(at), Tag(tag), cmd, &mut Reply::default()).unwrap();
    }
    drive.advance(us(1_000_000), &mut done);
    done.sort_by_key(|done| done.tag.0);
    done.iter().map(|done| done.at.0 / 1_000_000).collect()
}

/// The drive has 16 free blocks, of which 14 are above the low-water mark of 2. With delays below
/// 28 blocks, half of the room is gone. So 2 KiB take half of the millisecond that they take at
/// 2,048,000 bytes/s.
#[test]
fn a_write_waits_until_the_writes_before_it_have_had_their_time() {
    let half = ["ftl.throttle_from=28", "ftl.throttle_rate=2048000"];
    // two more together; one 200 us after the second; one after a pause
    let writes = [0, 0, 0, 1_200, 5_000].map(|at| (at, write(at % 64)));
    let mut drive = built(&[&ONE_LANE, &half]);
    assert_eq!(completed(&mut drive, &writes), [0, 500, 1_000, 1_500, 5_000]);
    let (counters, delays) = (drive.counters(), Dur::from_us(500 + 1_000 + 300));
    assert_eq!((counters.throttled_writes, counters.throttled), (3, delays));
    // a third of the room is gone at 21 blocks, nothing at 14
    for (from, second) in [("21", 333), ("14", 0)] {
        let from = format!("ftl.throttle_from={from}");
        let mut drive = built(&[&ONE_LANE, &[&from, half[1]]]);
        assert_eq!(completed(&mut drive, &writes)[1], second, "{from}");
        assert_eq!(drive.counters().throttled_writes > 0, second > 0);
    }
    assert_eq!(completed(&mut built(&[&ONE_LANE]), &writes), [0, 0, 0, 1_200, 5_000]);
}

#[test]
fn only_writes_are_delayed_and_long_writes_take_their_time() {
    let half = ["ftl.throttle_from=28", "ftl.throttle_rate=2048000", "memory.dram_latency=0"];
    let eight = Cmd::Write { lba: Lba(0), sectors: 32, fua: false, content: 9, data: None };
    let commands = [
        (0, eight),
        (0, Cmd::Read { lba: Lba(200), sectors: 4 }),
        (0, Cmd::Trim { lba: Lba(200), sectors: 4 }),
        (0, write(20)),
    ];
    let mut drive = built(&[&ONE_LANE, &half]);
    // the last write waits for the eight units of the first
    assert_eq!(completed(&mut drive, &commands), [0, 0, 0, 4_000]);
}

#[test]
fn a_write_through_waits_before_its_transfer() {
    let half = ["ftl.throttle_from=28", "ftl.throttle_rate=2048000"];
    let through = ["cache.mode=write-through"];
    let times = |more: &[&str]| {
        let mut drive = built(&[&ONE_LANE, &through, more]);
        completed(&mut drive, &[(0, write(0)), (30_000, write(1)), (30_000, write(2))])
    };
    let (plain, delayed) = (times(&[]), times(&half));
    assert_eq!(delayed[..2], plain[..2], "the first two find the drive unused");
    // one block is in use: 15 of 28 blocks of room are gone, so each unit takes 535.7 us; the
    // program of the second write is over by then, and the third no longer waits for it
    let alone = plain[1] - 30_000;
    assert!(alone < 535 && plain[2] > plain[1], "{plain:?}");
    assert_eq!(delayed[2], 30_000 + 535 + alone, "{plain:?}");
}

/// Random writes on a drive that collects, beside a sum over the roles of all blocks, with the
/// erases that plans contain and that have not ended.
#[test]
fn delays_follow_the_free_blocks_whose_erase_is_complete() {
    let drives: [&[&str]; 4] = [
        &["ftl.throttle_from=3", "cache.mode=write-through", "drive.logical_pages=600"],
        &["ftl.throttle_from=5", SMALL, "ftl.gc_pace=even", "drive.logical_pages=600"],
        &["ftl.throttle_from=2", SMALL, "ftl.gc_pace=paced", "drive.logical_pages=600"],
        &["ftl.throttle_from=4", SMALL, "drive.frame_channels=2", "drive.logical_pages=300"],
    ];
    for more in drives {
        let shape = ["drive.channels=2", "drive.blocks=32", "ftl.throttle_rate=20MB"];
        let mut drive = built(&[&shape, more]);
        let low_water = 2;
        let from: u64 = more[0].rsplit('=').next().unwrap().parse().unwrap();
        let layout = drive.layout().clone();
        let (lanes, dies) = (u64::from(layout.lanes), u64::from(layout.dies_per_frame));
        let pages = u64::from(layout.logical_units) * u64::from(layout.unit_bytes) / 2048;
        let (mut rng, mut now, mut next) = (Rng::stream(Seed(7), "writes"), 0_u64, 0_u64);
        let (mut erases, mut done): (Vec<OpId>, _) = (Vec::new(), Vec::new());
        let (mut delayed, mut at_once, mut waited_for_erases) = (0, 0, 0);
        for tag in 0..4000 {
            now += rng.below(if tag % 100 < 50 { 150_000_000 } else { 400_000_000 });
            drive.advance(Ps(now), &mut done);
            let mut free = vec![0_u64; lanes as usize];
            drive.for_each_block(&mut |block, role, _| {
                free[layout.lane_of(block).number() as usize] += u64::from(role == Role::Free);
            });
            erases.retain(|&op| !drive.is_complete(op));
            let above: u64 = free.iter().map(|free| free.saturating_sub(low_water)).sum();
            let ready = above.saturating_sub((erases.len() as u64).div_ceil(dies));
            waited_for_erases += u64::from(ready < above && above < from * lanes);
            let (mut expected, room) = (0, from * lanes);
            if ready < room {
                // 2 KiB at 20 MB/s take 102.4 us
                let takes = (102_400_000 * (room - ready)).div_ceil(room);
                (expected, next) = (next.saturating_sub(now), next.max(now) + takes);
            }
            drive
                .submit(Ps(now), Tag(tag), write(rng.below(pages)), &mut Reply::default())
                .unwrap();
            let kinds = drive.plan().iter().map(|(id, op, _)| (id, op.kind, op.cause));
            let (mut found, mut count) = (0, 0);
            for (id, kind, cause) in kinds {
                match kind {
                    OpKind::Throttle(time) => (found, count) = (time.0, count + 1),
                    OpKind::Erase { .. } if cause != Some(Cause::Map) => erases.push(id),
                    _ => {}
                }
            }
            assert_eq!((found, count), (expected, usize::from(expected > 0)), "{more:?}: {tag}");
            delayed += u64::from(expected > 0);
            at_once += u64::from(ready >= room);
        }
        assert!(delayed > 200 && at_once > 20, "{more:?}: {delayed} {at_once}");
        assert!(waited_for_erases > 20, "{more:?}: {waited_for_erases}");
        assert_eq!(drive.counters().throttled_writes, delayed);
    }
}

#[test]
fn what_throttling_does_not_combine_with_is_refused_by_name() {
    let both = ["ftl.throttle_from=4", "ftl.throttle_rate=1MB"];
    let slc = ["ftl.slc=dynamic", "drive.cell=mlc", "timing.t_program_slc=75us"];
    for (settings, why) in [
        (&both[..1], "set ftl.throttle_rate"),
        (&both[1..], "set ftl.throttle_from"),
        (&[&both[..], &["ftl.gc_mode=single"]].concat(), "needs ftl.gc_mode = dual"),
        (&[&both[..], &slc[..], &["timing.t_read_slc=20us"]].concat(), "needs ftl.slc = none"),
        (&[&both[..], &["ftl.scheme=fast"]].concat(), "belongs to ftl.scheme = page"),
        (&[&both[..], &["ftl.scheme=block"]].concat(), "belongs to ftl.scheme = page"),
    ] {
        let error = loaded(settings).unwrap_err().to_string();
        assert!(error.contains("ftl.throttle_") && error.contains(why), "{settings:?}: {error}");
    }
}
