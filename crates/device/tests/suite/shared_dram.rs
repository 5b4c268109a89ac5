//! Waits for the DRAM of the controller, by hand: data passes it twice, in and out.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply};
use flashatlas_types::{Lba, Ps, Seed, Stamp, Tag};

/// A gigabyte a second: a byte takes 1,000 ps.
const RATE: &str = "memory.dram_shared_rate=1GB";
const BYTE: u64 = 1_000;
/// A page of 2 KiB on the channel of `tiny`, at 40 MB/s.
const CHANNEL: u64 = 51_200_000;
const PAGE: u64 = 2_048 * BYTE;
const READ: u64 = 25_000_000;

fn load(settings: &[&str]) -> DriveConfig {
    let common = [
        "host.link_rate=0",
        "host.command_time=0",
        "memory.dram_latency=0",
        "timing.t_read=25us",
        "timing.t_program=200us",
        "timing.t_command=0",
        "timing.channel_rate=40MB",
        "drive.page_bytes=2048",
        "drive.channels=2",
        "cache.mode=write-through",
    ];
    let settings: Vec<String> =
        common.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap()
}

/// Returns the picoseconds after which each of some commands of one page ends, on a filled drive.
/// All commands come together. The pages of commands with different numbers are on different dies.
fn times(settings: &[&str], commands: &[Command]) -> Vec<u64> {
    let mut drive = load(settings).build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
    let begin = drive.drain();
    for (tag, command) in (0..).zip(commands) {
        let lba = Lba(4 * tag);
        let cmd = match command {
            Command::Read => Cmd::Read { lba, sectors: 4 },
            Command::Write => Cmd::Write { lba, sectors: 4, fua: false, content: 9, data: None },
        };
        drive.submit(begin, Tag(tag), cmd, &mut Reply::default()).unwrap();
    }
    let mut done = Vec::new();
    drive.advance(Ps::MAX, &mut done);
    done.sort_unstable_by_key(|done| done.tag.0);
    done.iter().map(|done| done.at.since(begin).0).collect()
}

enum Command {
    Read,
    Write,
}
use Command::{Read, Write};

#[test]
fn data_of_a_read_passes_twice_and_its_lookup_once() {
    assert_eq!(times(&[], &[Read]), [READ + CHANNEL]);
    // the entry has 4 bytes, and a burst 64
    assert_eq!(times(&[RATE], &[Read]), [4 * BYTE + READ + CHANNEL + 2 * PAGE]);
    let burst = "memory.dram_burst=64";
    assert_eq!(times(&[RATE, burst], &[Read]), [64 * BYTE + READ + CHANNEL + 2 * PAGE]);
    // the access also has a latency, in which others may use the DRAM
    let slow = "memory.dram_latency=70ns";
    let lookup = 4 * BYTE + 70_000;
    assert_eq!(times(&[RATE, slow], &[Read]), [lookup + READ + CHANNEL + 2 * PAGE]);
}

/// Data reaches the flash after it passed in and out. The host writes over a link without limit.
#[test]
fn data_of_a_write_passes_twice_before_its_channel() {
    let alone = CHANNEL + 200_000_000;
    assert_eq!(times(&[], &[Write]), [alone]);
    assert_eq!(times(&[RATE], &[Write]), [2 * PAGE + alone]);
}

/// Two pages leave their channels at nearly the same time. The DRAM stores the first, and then the
/// second, which waits already when the first can be loaded. Then it loads both.
#[test]
fn reads_of_two_dies_wait_for_each_other() {
    assert_eq!(times(&[], &[Read, Read]), [READ + CHANNEL; 2]);
    // the second lookup waits for the first, but its page for more than that
    let stored = 4 * BYTE + READ + CHANNEL + PAGE;
    assert_eq!(times(&[RATE], &[Read, Read]), [stored + 2 * PAGE, stored + 3 * PAGE]);
    // all of it takes an eighth of the time at a rate that is 8 times as high
    let fast = "memory.dram_shared_rate=8GB";
    let stored = READ + CHANNEL + (4 * BYTE + PAGE) / 8;
    assert_eq!(times(&[fast], &[Read, Read]), [stored + PAGE / 4, stored + 3 * PAGE / 8]);
}

/// Writes into the cache are complete once their data is stored. The lookup of a read goes before
/// the data of a write that came earlier, but not before a transfer under way.
#[test]
fn a_lookup_goes_before_data_that_waits() {
    let cached = ["cache.mode=write-back", "cache.bytes=64KiB"];
    let all = times(&[&cached[..], &[RATE]].concat(), &[Write, Write, Read]);
    let lookup = PAGE + 4 * BYTE;
    assert_eq!(all, [PAGE, lookup + PAGE, lookup + READ + CHANNEL + 2 * PAGE]);
}

#[test]
fn what_does_not_combine_is_refused_by_name() {
    let refused = |settings: &[&str]| load(settings).build(Seed(1)).map(drop).unwrap_err();
    let error = refused(&["memory.dram_burst=64"]);
    assert_eq!(error.key, "memory.dram_burst");
    assert!(error.why.ends_with("set memory.dram_shared_rate"), "{error}");
    let error = refused(&[RATE, "memory.dram_rate=2GB"]);
    assert_eq!(error.key, "memory.dram_shared_rate");
    assert!(error.why.contains("memory.dram_rate"), "{error}");
}
