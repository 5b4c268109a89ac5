//! A read whose map entry is on flash, on a die that is programming. The read of the map suspends
//! the program, just as the read of the page does.

use flashatlas_device::{Cmd, Device, Registry, Reply, Ssd};
use flashatlas_types::{Class, Lba, OpKind, Ps, Seed, Tag};

/// Returns a single die of tlc-small on which every page takes the same time to read.
fn one_die(store: &str, cache_bytes: &str, suspend: &str) -> Ssd {
    let mut settings = vec![
        "drive.channels=1".to_owned(),
        "drive.ways=1".to_owned(),
        "drive.logical_pages=65536".to_owned(),
        "timing.t_read_upper=50us".to_owned(),
        format!("map.store={store}"),
        format!("map.cache_bytes={cache_bytes}"),
        format!("timing.suspend={suspend}"),
    ];
    if store == "cdftl" {
        // the least recently used entry leaves, even if it has changed
        settings.push("map.victim_search=1".to_owned());
    }
    Registry::DRIVES.load("tlc-small", None, &settings).unwrap().build(Seed(1)).unwrap()
}

fn submit(drive: &mut Ssd, at: Ps, tag: u64, cmd: Cmd<'_>) {
    drive.submit(at, Tag(tag), cmd, &mut Reply::default()).unwrap();
}

/// Runs until a command is complete, and returns the time of its completion.
fn until_complete(drive: &mut Ssd, tag: u64) -> Ps {
    let mut done = Vec::new();
    loop {
        let at = drive.advance_to_completion(Ps::MAX, &mut done);
        if done.iter().any(|one| one.tag == Tag(tag)) {
            return at;
        }
    }
}

fn write(unit: u64, fua: bool) -> Cmd<'static> {
    Cmd::Write { lba: Lba(unit * 8), sectors: 8, fua, content: 1, data: None }
}

/// Returns the duration, in picoseconds, of a read of unit 0 that arrives 100 us after a durable
/// write. The read needs one page of the map.
fn read_behind_a_program(store: &str, cache_bytes: &str, suspend: &str) -> u64 {
    let mut drive = one_die(store, cache_bytes, suspend);
    // unit 0 is written first, then other units until the entry of unit 0 has left memory
    let units = [0].into_iter().chain((64_000..64_800).map(|n| n * 8 % 65_536 + 1));
    for (tag, unit) in (0..).zip(units.chain([20_007])) {
        let now = drive.drain();
        submit(&mut drive, now, tag, write(unit, false));
        until_complete(&mut drive, tag);
    }
    let now = drive.drain();
    submit(&mut drive, now, 1000, Cmd::Flush);
    until_complete(&mut drive, 1000);
    // the map entry of unit 20,007 is in memory
    let now = drive.drain();
    submit(&mut drive, now, 1001, write(20_007, true));
    let (arrives, mut done) = (Ps(now.0 + 100_000_000), Vec::new());
    drive.advance(arrives, &mut done);
    assert!(done.is_empty(), "the write is still being programmed");
    submit(&mut drive, arrives, 1002, Cmd::Read { lba: Lba(0), sectors: 8 });
    let plan = drive.plan().iter().filter(|(_, op, _)| op.class == Class::Map);
    let kinds: Vec<OpKind> = plan.map(|(_, op, _)| op.kind).collect();
    assert!(
        matches!(kinds[..], [OpKind::Read { .. }, OpKind::Memory { .. }]),
        "{store}: {kinds:?}"
    );
    until_complete(&mut drive, 1002).since(arrives).0
}

/// All times are in microseconds. The controller handles a command in 5. A read takes 0.2 on the
/// channel and 50 in the cells. At 1.6 GB/s, a map page of 16 KiB takes 10.24 and a unit of 4 KiB
/// takes 2.56. At 7 GB/s the link takes 0.585143 for a unit, rounded up to a whole picosecond.
#[test]
fn a_read_that_misses_the_map_waits_for_no_program() {
    let alone = 5_000_000
        + (200_000 + 50_000_000 + 10_240_000)
        + (200_000 + 50_000_000 + 2_560_000)
        + 585_143;
    // the write: the controller's 5, the link, 0.2 and a frame of 32 KiB on the channel, tPROG
    let program = 5_000_000 + 585_143 + 200_000 + 20_480_000 + 500_000_000;
    for (store, cache_bytes) in [
        ("dftl", "1KiB"),
        ("demand", "40KiB"),
        ("cdftl", "17KiB"),
        ("tpftl", "1KiB"),
        ("learnedftl", "1KiB"),
    ] {
        let read = |suspend| read_behind_a_program(store, cache_bytes, suspend);
        // the read reaches the die at 105 and waits for the end of the program at 540.050286
        assert_eq!(read("none"), alone + program - 105_000_000, "{store}");
        assert_eq!(read("erase"), alone + program - 105_000_000, "{store}");
        // both reads share one suspension, which takes 20 to begin; the sum is 138.785143
        assert_eq!(read("both"), alone + 20_000_000, "{store}");
        assert_eq!(read("both"), 138_785_143, "{store}");
    }
}
