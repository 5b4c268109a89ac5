//! Tests that no operation of a command begins before the controller has handled the command.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd};
use flashatlas_types::{Dur, Lba, OpId, OpKind, Ps, Rng, Seed, Stamp, Tag};
use std::collections::BTreeSet;

fn config(settings: &[&str]) -> DriveConfig {
    drive("tiny", settings)
}

fn drive(name: &str, settings: &[&str]) -> DriveConfig {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    Registry::DRIVES.load(name, None, &settings).unwrap()
}

/// Runs a single command to its completion, and returns its duration in picoseconds.
fn alone(drive: &mut Ssd, tag: u64, cmd: Cmd<'_>) -> u64 {
    let now = drive.drain();
    let mut done = Vec::new();
    drive.submit(now, Tag(tag), cmd, &mut Reply::default()).unwrap();
    let at = drive.advance_to_completion(Ps::MAX, &mut done);
    assert_eq!(done.len(), 1);
    at.since(now).0
}

#[test]
fn a_flush_programs_once_the_controller_has_handled_it() {
    const US: u64 = 1_000_000;
    for command in [0, 5, 50, 400] {
        let mut drive = config(&[
            "timing.t_program=500us",
            "timing.channel_rate=400MB",
            "timing.t_command=0",
            "drive.page_bytes=4096",
            "drive.frame_channels=1",
            "map.unit=4KiB",
            "cache.bytes=64KiB",
            "host.link_rate=0",
            "memory.dram_latency=0",
            "memory.sram_latency=0",
            &format!("host.command_time={command}us"),
        ])
        .build(Seed(1))
        .unwrap();
        let write = Cmd::Write { lba: Lba(0), sectors: 8, fua: false, content: 1, data: None };
        // the write goes into the cache over a link without limit, so only the controller takes
        // time
        assert_eq!(alone(&mut drive, 1, write), command * US);
        // the controller's work, then 4096 bytes at 400 MB/s (10.24 us), then tPROG (500 us)
        let right = command * US + 10_240_000 + 500 * US;
        assert_eq!(alone(&mut drive, 2, Cmd::Flush), right, "{command} us a command");
    }
}

/// The same test on an unchanged preset: 200 ns of command cycles, 32 KiB (a page of 16 KiB on each
/// of two planes) at 1.6 GB/s, and tPROG of 500 us. The sum is 520.68 us, and the controller's work
/// is added.
#[test]
fn a_flush_of_tlc_small_takes_the_command_time_longer() {
    let program = 200_000 + 2 * 16_384 * 1_000_000 / 1_600 + 500_000_000;
    for (command, right) in
        [(0, 520_680_000), (5, 525_680_000), (50, 570_680_000), (400, 920_680_000)]
    {
        assert_eq!(right, program + command * 1_000_000);
        let time = format!("host.command_time={command}us");
        let mut drive = drive("tlc-small", &[&time]).build(Seed(1)).unwrap();
        let write = Cmd::Write { lba: Lba(0), sectors: 8, fua: false, content: 1, data: None };
        alone(&mut drive, 1, write);
        assert_eq!(alone(&mut drive, 2, Cmd::Flush), right, "{command} us a command");
    }
}

/// Every operation of a command waits for the command's first operation, on drives of every kind.
#[test]
fn every_operation_of_a_command_waits_for_its_first() {
    let drives: &[&[&str]] = &[
        &["cache.mode=write-through"],
        &["cache.bytes=8KiB", "map.unit=512", "ftl.gc_pace=even"],
        &["cache.bytes=8KiB", "map.unit=512", "ftl.gc_pace=paced"],
        &["cache.bytes=8KiB", "map.store=dftl", "map.cache_bytes=4KiB"],
        &["cache.mode=write-through", "map.unit=512", "map.store=dftl", "map.cache_bytes=4KiB"],
        &["cache.bytes=8KiB", "ftl.scheme=block", "nand.program_order=any"],
        &["cache.bytes=8KiB", "ftl.scheme=fast", "ftl.log_blocks=4"],
    ];
    for settings in drives {
        let mut settings = settings.to_vec();
        settings.push("host.command_time=400us");
        let mut drive = config(&settings).build(Seed(1)).unwrap();
        let (mut rng, mut now, mut reply) =
            (Rng::stream(Seed(1), "command_time"), Ps::ZERO, Reply::default());
        let sectors = drive.sectors() - 16;
        let mut begun_at_once = 0;
        for number in 0..3000 {
            let (lba, count) = (Lba(rng.below(sectors)), 1 + rng.below(16) as u32);
            let cmd = match rng.below(10) {
                0..3 => Cmd::Read { lba, sectors: count },
                3..8 => {
                    let fua = rng.below(4) == 0;
                    Cmd::Write { lba, sectors: count, fua, content: number, data: None }
                }
                8 => Cmd::Trim { lba, sectors: count },
                _ => Cmd::Flush,
            };
            drive.submit(now, Tag(number), cmd, &mut reply).unwrap();
            let mut handled: BTreeSet<OpId> = BTreeSet::new();
            for (place, (id, op, after)) in drive.plan().iter().enumerate() {
                let waits = after.iter().any(|on| handled.contains(on));
                let first = place == 0 && op.kind == OpKind::Delay(Dur::from_us(400));
                assert!(first || waits, "{settings:?}: {cmd:?}: {:?} begins immediately", op.kind);
                begun_at_once += u32::from(first);
                handled.insert(id);
            }
            now = now.after(Dur::from_us(rng.below(2000)));
            drive.advance(now, &mut Vec::new());
        }
        assert_eq!(begun_at_once, 3000, "one operation of each command");
    }
}

/// Returns the picoseconds after which each of some reads of `sectors` sectors ends, if all of them
/// come at the same time to an empty drive, whose flash has nothing to read.
fn at_once(settings: &[&str], reads: u64, sectors: u32) -> Vec<u64> {
    let common = ["host.link_rate=0", "memory.dram_latency=0", "host.command_time=3us"];
    let mut drive = config(&[&common, settings].concat()).build(Seed(1)).unwrap();
    for tag in 0..reads {
        let read = Cmd::Read { lba: Lba(0), sectors };
        drive.submit(Ps::ZERO, Tag(tag), read, &mut Reply::default()).unwrap();
    }
    let mut done = Vec::new();
    drive.advance(Ps::MAX, &mut done);
    done.iter().map(|done| done.at.0).collect()
}

/// A command takes 3 us, and each unit of 2 KiB another 2 us: a read of 12 sectors has three units.
#[test]
fn commands_wait_for_a_core() {
    const US: u64 = 1_000_000;
    let unit = "firmware.unit_time=2us";
    assert_eq!(at_once(&[unit], 3, 12), [9 * US; 3]);
    assert_eq!(at_once(&[unit, "firmware.cores=1"], 3, 12), [9 * US, 18 * US, 27 * US]);
    assert_eq!(at_once(&[unit, "firmware.cores=2"], 3, 12), [9 * US, 9 * US, 18 * US]);
    assert_eq!(at_once(&["firmware.cores=2"], 3, 12), [3 * US, 3 * US, 6 * US]);
}

/// A page is sensed in 25 us, and 2 KiB cross the channel in 51.2 us (25 ns a byte). A read of
/// flash takes a core first, so the second of two reads waits for the first.
#[test]
fn operations_on_flash_wait_for_a_core() {
    let read = |settings: &[&str]| {
        let common = [
            "host.link_rate=0",
            "memory.dram_latency=0",
            "host.command_time=0",
            "timing.t_command=0",
            "cache.mode=write-through",
            "drive.channels=2",
        ];
        let mut drive = config(&[&common, settings].concat()).build(Seed(1)).unwrap();
        drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
        let begin = drive.drain();
        for unit in 0..2 {
            let read = Cmd::Read { lba: Lba(4 * unit), sectors: 4 };
            drive.submit(begin, Tag(unit), read, &mut Reply::default()).unwrap();
        }
        let mut done = Vec::new();
        drive.advance(Ps::MAX, &mut done);
        done.iter().map(|done| done.at.since(begin).0).collect::<Vec<_>>()
    };
    let alone = 25_000_000 + 51_200_000;
    assert_eq!(read(&[]), [alone; 2], "two dies on two channels");
    let flash = "firmware.flash_time=7us";
    assert_eq!(read(&[flash]), [alone + 7_000_000; 2]);
    let one = [alone + 7_000_000, alone + 14_000_000];
    assert_eq!(read(&[flash, "firmware.cores=1"]), one);
}
