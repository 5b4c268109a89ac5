//! Programs in several steps: times by hand, reads between steps, and power failures there.
//!
//! The drive has one die. A word line has three pages of 2 KiB, which a channel of 61.44 MB/s
//! transfers in 100 us. A block has four word lines. Steps take 200 and 300 us in the cells.

use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Storage};
use flashatlas_types::{Cause, Dur, Lba, Lpn, OpKind, Ps, Rng, Seed, Stamp, Tag};

const US: u64 = 1_000_000;

const COMMON: [&str; 14] = [
    "drive.channels=1",
    "drive.ways=1",
    "drive.cell=tlc",
    "drive.pages=12",
    "drive.spare_bytes=128",
    "drive.program_unit=word-line",
    "drive.over_provisioning=2",
    "timing.channel_rate=61440000",
    "timing.t_command=0",
    "host.link_rate=0",
    "cache.bytes=64KiB",
    "timing.t_program_first=200us",
    "timing.t_program_second=300us",
    "ftl.program_steps=2",
];

const PLP: [&str; 2] = ["ftl.flush=plp", "nand.plp_bytes=24KiB"];

fn config(more: &[&str]) -> DriveConfig {
    let settings: Vec<String> = COMMON.iter().chain(more).map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load("tiny", None, &settings).unwrap()
}

/// Runs a command to its completion, and returns its duration in microseconds. Operations that it
/// does not wait for go on.
fn run(drive: &mut Ssd, now: &mut Ps, cmd: Cmd<'_>) -> u64 {
    let mut done = Vec::new();
    drive.submit(*now, Tag(now.0), cmd, &mut Reply::default()).unwrap();
    let at = drive.advance_to_completion(Ps::MAX, &mut done);
    assert_eq!(done.len(), 1);
    let took = at.since(*now).0;
    *now = at.after(Dur(1));
    drive.advance(*now, &mut done);
    // each command comes one picosecond after the one before
    (took + US / 2) / US
}

/// Writes the three pages of a word line to the cache.
fn write(drive: &mut Ssd, now: &mut Ps, first: u64) {
    let write = Cmd::Write { lba: Lba(4 * first), sectors: 12, fua: false, content: 7, data: None };
    assert_eq!(run(drive, now, write), 0, "the link has no limit");
}

/// Returns the programs of the last command, as pages and kinds of program.
fn programs(drive: &Ssd) -> Vec<(u32, u8)> {
    let plan = drive.plan().iter();
    plan.filter_map(|(_, op, _)| match op.kind {
        OpKind::Program { page, level, bytes, .. } => {
            assert_eq!(bytes, 6144, "each step transfers all pages");
            Some((page, level - 5))
        }
        _ => None,
    })
    .collect()
}

fn reads_flash(drive: &mut Ssd, now: &mut Ps, page: u64) -> bool {
    let mut done = Vec::new();
    let read = Cmd::Read { lba: Lba(4 * page), sectors: 4 };
    let mut reply = Reply::default();
    drive.submit(*now, Tag(now.0), read, &mut reply).unwrap();
    assert_ne!(reply.stamps[0], Stamp::ZERO);
    let read = drive.plan().iter().any(|(_, op, _)| matches!(op.kind, OpKind::Read { .. }));
    *now = drive.advance_to_completion(Ps::MAX, &mut done).after(Dur(1));
    drive.advance(*now, &mut done);
    read
}

#[test]
fn a_flush_finishes_what_it_promises() {
    let (mut drive, mut now) = (config(&[]).build(Seed(1)).unwrap(), Ps::ZERO);
    write(&mut drive, &mut now, 0);
    // first step of word line 0 (100 + 200), of word line 1 without data (100 + 200), second step
    // of word line 0 (100 + 300)
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 1000);
    assert_eq!(programs(&drive), [(0, 0), (1, 0), (0, 1)]);
    write(&mut drive, &mut now, 3);
    // word line 2: 300; second step of word line 1: 400; word line 3 without data: 300; second
    // step of word line 2: 400. Word line 3 is the last one, so its second step follows
    // immediately, and the FLUSH does not wait for it
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 1400);
    assert_eq!(programs(&drive), [(2, 0), (1, 1), (3, 0), (2, 1), (3, 1)]);
    assert_eq!(drive.drain().since(now).0 / US, 399, "100 + 300, less what has passed");
    let counters = &drive.medium().counters;
    assert_eq!(counters.steps, [12, 12, 0], "four word lines of three pages, two steps each");
    assert_eq!(counters.programs.iter().sum::<u64>(), 12);
    assert_eq!(counters.padded_slots, 6, "two word lines without data");
    drive.check().unwrap();
}

#[test]
fn without_a_flush_the_next_word_line_finishes_the_one_before() {
    // a third step takes 400 us
    let three = ["ftl.program_steps=3", "timing.t_program_third=400us"];
    for (more, order) in [
        (&[][..], vec![(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (3, 0), (2, 1), (3, 1)]),
        (
            &three[..],
            vec![
                (0, 0),
                (1, 0),
                (0, 1),
                (2, 0),
                (1, 1),
                (0, 2),
                (3, 0),
                (2, 1),
                (1, 2),
                (3, 1),
                (2, 2),
                (3, 2),
            ],
        ),
    ] {
        let cache = ["cache.high=0", "cache.low=0"];
        let all: Vec<&str> = more.iter().chain(&cache).copied().collect();
        let (mut drive, mut now) = (config(&all).build(Seed(1)).unwrap(), Ps::ZERO);
        let mut found = Vec::new();
        for line in 0..4 {
            write(&mut drive, &mut now, 3 * line);
            found.extend(programs(&drive));
        }
        assert_eq!(found, order);
        // every step has its time, after 100 us on the channel
        let time = |&(_, step): &(u32, u8)| [300, 400, 500][usize::from(step)];
        let sum: u64 = order.iter().map(time).sum();
        assert_eq!(drive.drain().0 / US, sum);
    }
}

#[test]
fn a_flush_may_rest_on_capacitors() {
    let (mut drive, mut now) = (config(&PLP).build(Seed(1)).unwrap(), Ps::ZERO);
    write(&mut drive, &mut now, 0);
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 300, "the first step alone");
    write(&mut drive, &mut now, 3);
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 300);
    assert_eq!(programs(&drive), [(1, 0), (0, 1)]);
}

/// Three blocks of four pages in SLC mode take copies. A copy takes 33.3 us on the channel and 75
/// us in the cells.
const COPIES: [&str; 4] =
    ["ftl.flush=slc", "ftl.flush_blocks=3", "timing.t_read_slc=20us", "timing.t_program_slc=75us"];

/// Returns the programs of the last command: the number of steps, and of pages in SLC mode.
fn steps_and_copies(drive: &Ssd) -> (usize, usize) {
    let bytes = drive.plan().iter().filter_map(|(_, op, _)| match op.kind {
        OpKind::Program { bytes, .. } => Some(bytes),
        _ => None,
    });
    let (copies, steps): (Vec<u32>, Vec<u32>) = bytes.partition(|&bytes| bytes == 2048);
    assert!(steps.iter().all(|&bytes| bytes == 6144));
    (steps.len(), copies.len())
}

fn detail(drive: &Ssd, name: &str) -> u64 {
    let details = drive.ftl_report().scheme_details;
    details.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn a_flush_may_copy_what_it_promises() {
    let config = config(&COPIES);
    let (mut drive, mut now) = (config.build(Seed(1)).unwrap(), Ps::ZERO);
    write(&mut drive, &mut now, 0);
    // first step of word line 0 (100 + 200), and three copies (33.3 + 75 each)
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 625);
    assert_eq!(steps_and_copies(&drive), (1, 3));
    let page = |lba| Cmd::Write { lba: Lba(lba), sectors: 4, fua: false, content: 9, data: None };
    // a page that waits for the rest of its word line: its copy alone (33.3 + 75)
    run(&mut drive, &mut now, page(12));
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 108);
    assert_eq!(steps_and_copies(&drive), (0, 1));
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 0, "all of it is on flash");
    assert_eq!(steps_and_copies(&drive), (0, 0));
    // a new version of it, with FUA
    let again = Cmd::Write { lba: Lba(12), sectors: 4, fua: true, content: 8, data: None };
    assert_eq!(run(&mut drive, &mut now, again), 108);
    assert_eq!(steps_and_copies(&drive), (0, 1));
    assert_eq!(drive.medium().counters.padded_slots, 0);
    assert!(!reads_flash(&mut drive, &mut now, 0), "the controller still has it");
    let held = |drive: &Ssd| [0, 1, 2, 3].map(|lpn| drive.peek(Lpn(lpn)).unwrap().unwrap().stamp);
    let before = held(&drive);
    drive.drain();
    drive.check().unwrap();
    drive.power_cycle(&config, Seed(1)).unwrap();
    assert_eq!(held(&drive), before, "the word line is torn, and its copies are not");
    drive.check().unwrap();
    assert!(reads_flash(&mut drive, &mut now, 0));
}

#[test]
fn the_last_step_supersedes_the_copies_of_a_flush() {
    let config = config(&COPIES);
    let (mut drive, mut now) = (config.build(Seed(1)).unwrap(), Ps::ZERO);
    // block A takes the copies of word line 0
    write(&mut drive, &mut now, 0);
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 625);
    // first step of word line 1 (300), last step of word line 0 (400), three copies (325): one
    // fills block A, two are in block B
    write(&mut drive, &mut now, 3);
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 1025);
    assert_eq!(steps_and_copies(&drive), (2, 3));
    assert_eq!(["slc_saved", "slc_held"].map(|name| detail(&drive, name)), [3, 3]);
    assert_eq!(drive.medium().counters.erases[Cause::Fold as usize], 0);
    // the same again: the last step of word line 1 leaves no valid copy in block A, which is
    // erased. The FLUSH does not wait for that
    write(&mut drive, &mut now, 6);
    assert_eq!(run(&mut drive, &mut now, Cmd::Flush), 1025);
    assert_eq!(["slc_saved", "slc_held"].map(|name| detail(&drive, name)), [6, 3]);
    assert_eq!(["slc_folded", "slc_folds"].map(|name| detail(&drive, name)), [0, 1]);
    let counters = drive.medium().counters;
    assert_eq!(counters.erases[Cause::Fold as usize], 1);
    // nine pages of the host: each is programmed once in a word line, and once as a copy
    assert_eq!(["flush_copies", "slc_writes"].map(|name| detail(&drive, name)), [9, 9]);
    assert_eq!(counters.programs[Cause::CacheEvict as usize], 18);
    assert_eq!(counters.programs.iter().sum::<u64>(), 18);
    assert_eq!((counters.steps, counters.padded_slots), ([9, 6, 0], 0));
    drive.drain();
    drive.check().unwrap();
}

#[test]
fn a_block_of_copies_is_folded_when_no_other_has_room() {
    // one block: the fifth copy needs it again. The four pages in it wait for no last step: the
    // first word line is finished without data, and the fourth page is copied
    let one = ["ftl.flush=slc", "ftl.flush_blocks=1", COPIES[2], COPIES[3]];
    let config = config(&one);
    let (mut drive, mut now) = (config.build(Seed(1)).unwrap(), Ps::ZERO);
    for page in 0..5 {
        let write =
            Cmd::Write { lba: Lba(4 * page), sectors: 4, fua: true, content: page, data: None };
        run(&mut drive, &mut now, write);
        drive.check().unwrap();
    }
    let names = ["flush_copies", "slc_folds", "slc_folded", "slc_saved", "slc_held"];
    assert_eq!(names.map(|name| detail(&drive, name)), [5, 1, 1, 3, 1]);
    drive.drain();
    let held =
        |drive: &Ssd| [0, 1, 2, 3, 4].map(|lpn| drive.peek(Lpn(lpn)).unwrap().map(|u| u.stamp));
    let before = held(&drive);
    drive.power_cycle(&config, Seed(1)).unwrap();
    assert_eq!(held(&drive), before);
    drive.check().unwrap();
}

/// A FLUSH after each write fills most frames with padding, so a lane must collect all the time.
#[test]
fn a_drive_keeps_room_when_each_write_is_flushed() {
    let tight = ["drive.over_provisioning=0.7", "drive.blocks=40", "drive.channels=2"];
    let copies = ["ftl.flush=slc", "ftl.flush_blocks=2"];
    let slc = ["timing.t_program_slc=100us", "timing.t_read_slc=10us"];
    let capacitors = ["ftl.flush=plp", "nand.plp_bytes=48KiB"];
    for way in [&["ftl.flush=pad"][..], &capacitors, &[copies, slc].concat()] {
        let config = config(&[way, &tight].concat());
        let (mut drive, mut now) = (config.build(Seed(1)).unwrap(), Ps::ZERO);
        let pages = u64::from(config.layout().unwrap().logical_units);
        let mut rng = Rng::stream(Seed(1), "flushed");
        for content in 1..=20_000 {
            let lba = Lba(4 * if content <= pages { content - 1 } else { rng.below(pages) });
            run(
                &mut drive,
                &mut now,
                Cmd::Write { lba, sectors: 4, fua: false, content, data: None },
            );
            run(&mut drive, &mut now, Cmd::Flush);
        }
        drive.check().unwrap();
    }
}

#[test]
fn reads_between_steps_are_served_from_the_buffer() {
    let (mut drive, mut now) = (config(&PLP).build(Seed(1)).unwrap(), Ps::ZERO);
    write(&mut drive, &mut now, 0);
    run(&mut drive, &mut now, Cmd::Flush);
    now = now.max(drive.drain());
    assert!(!reads_flash(&mut drive, &mut now, 0), "it is between its steps");
    write(&mut drive, &mut now, 3);
    run(&mut drive, &mut now, Cmd::Flush);
    assert!(!reads_flash(&mut drive, &mut now, 0), "its last step is under way");
    now = now.max(drive.drain());
    assert!(reads_flash(&mut drive, &mut now, 0), "its last step is done");
    assert!(!reads_flash(&mut drive, &mut now, 3));
}

#[test]
fn the_power_may_fail_between_steps() {
    for (more, survives) in [(&[][..], false), (&PLP[..], true)] {
        let all: Vec<&str> = more.iter().chain(&["cache.high=0", "cache.low=0"]).copied().collect();
        let config = config(&all);
        let (mut drive, mut now) = (config.build(Seed(1)).unwrap(), Ps::ZERO);
        write(&mut drive, &mut now, 0);
        write(&mut drive, &mut now, 3);
        now = now.max(drive.drain());
        drive.power_cycle(&config, Seed(1)).unwrap();
        let held = |lpn| drive.peek(Lpn(lpn)).unwrap().is_some();
        assert_eq!([0, 3].map(held), [true, survives], "{more:?}");
        drive.check().unwrap();
        // the drive goes on behind the torn word line
        write(&mut drive, &mut now, 6);
        run(&mut drive, &mut now, Cmd::Flush);
        drive.drain();
        drive.power_cycle(&config, Seed(1)).unwrap();
        assert_eq!(
            [0, 3, 6].map(|lpn| drive.peek(Lpn(lpn)).unwrap().is_some()),
            [true, survives, true]
        );
    }
}

#[test]
fn what_does_not_combine_is_refused_by_name() {
    let refused = |more: &[&str]| {
        let settings: Vec<String> = COMMON.iter().chain(more).map(|&s| s.to_owned()).collect();
        let found = Registry::DRIVES.load("tiny", None, &settings);
        found.map(|_| String::new()).unwrap_or_else(|e| e.to_string())
    };
    assert_eq!(refused(&[]), "");
    for (more, key) in [
        ("drive.cell=slc", "use drive.cell = tlc or qlc"),
        ("drive.program_unit=page", "use drive.program_unit = word-line"),
        ("timing.t_program_second=0", "needs the time of step 2"),
        ("timing.t_program_third=1us", "has no step 3"),
        ("ftl.program_steps=3", "needs the time of step 3"),
        ("ftl.program_steps=4", "ftl.program_steps"),
        ("ftl.gc_mode=single", "need ftl.gc_mode = dual"),
        ("ftl.gc_pace=even", "need ftl.gc_pace = burst"),
        ("ftl.streams=2", "need ftl.streams = 1"),
        ("ftl.wear_static=true", "need ftl.wear_static = false"),
        ("ftl.flush=plp", "rests on capacitors"),
        ("nand.plp_bytes=23KiB", "give at least 24576"),
        ("cache.bytes=16KiB", "18432 bytes"),
        ("ftl.low_water=2", "must be above 2"),
    ] {
        let why = refused(&[more]);
        assert!(why.contains(key), "{more}: {why}");
    }
    let pages = refused(&["map.flush=pages", "map.page_bytes=2KiB"]);
    assert!(pages.contains("use map.store = dram"), "{pages}");
    let through = ["ftl.flush=plp", "nand.plp_bytes=24KiB", "cache.mode=write-through"];
    assert!(refused(&through).contains("`plp` needs cache.mode = write-back"));
    for flush in ["plp", "slc"] {
        let one = refused(&["ftl.program_steps=1", &format!("ftl.flush={flush}")]);
        let why = format!("`{flush}` is about word lines between their steps: it needs ftl.");
        assert!(one.contains(&why), "{one}");
    }
    let without = |index: usize| {
        let rest = COPIES.iter().enumerate().filter(|(i, _)| *i != index);
        refused(&rest.map(|(_, &setting)| setting).collect::<Vec<_>>())
    };
    assert!(without(1).contains("ftl.flush = slc without ftl.slc needs at least one block"));
    assert!(without(2).contains("ftl.flush = slc needs the time of a page in SLC mode"));
    let cached: Vec<&str> =
        COPIES.into_iter().chain(["ftl.slc=static", "ftl.slc_static=2"]).collect();
    assert!(refused(&cached).contains("not with ftl.slc = static, whose blocks take the copies"));
    let mut through = COPIES.to_vec();
    through.push("cache.mode=write-through");
    assert!(refused(&through).contains("`slc` needs cache.mode = write-back"));
    // times are taken without steps, so that a study can vary the switch
    assert_eq!(refused(&["ftl.program_steps=1"]), "");
}
