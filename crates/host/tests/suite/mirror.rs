//! Tests of the mirror. It continues without a failed drive, and repairs units that a drive cannot
//! read. It reads only from drives that hold every write, and never writes to a foreign drive.

use flashatlas_device::{Cmd, Contents, Device, DriveConfig, Reply, Stack, Storage};
use flashatlas_host::STANDARD;
use flashatlas_types::{Dur, Lba, Lpn, Ps, Seed, Stamp, Tag};

const UNIT: u32 = 4;

fn config(more: &[&str]) -> DriveConfig {
    let own = ["layers=mirror", "drive.blocks=24", "drive.logical_pages=400", "map.unit=2KiB"];
    let settings: Vec<String> = own.iter().chain(more).map(|&s| s.to_owned()).collect();
    STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn built(config: &DriveConfig) -> Stack {
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.set_instant(true);
    stack
}

/// Returns a stack with the contents to which digests on other drives refer.
fn knowing(config: &DriveConfig, contents: &[Contents]) -> Stack {
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.learn(contents);
    stack
}

fn write(stack: &mut Stack, unit: u32, content: u64) {
    let (lba, data) = (Lba(u64::from(unit * UNIT)), None);
    let write = Cmd::Write { lba, sectors: UNIT, fua: false, content, data };
    stack.submit(Ps::ZERO, Tag(0), write, &mut Reply::default()).unwrap();
}

fn read(stack: &mut Stack, unit: u32) -> Stamp {
    let mut reply = Reply::default();
    let read = Cmd::Read { lba: Lba(u64::from(unit * UNIT)), sectors: UNIT };
    stack.submit(Ps::ZERO, Tag(0), read, &mut reply).unwrap();
    reply.stamps[0]
}

fn flush(stack: &mut Stack) {
    stack.submit(Ps::ZERO, Tag(0), Cmd::Flush, &mut Reply::default()).unwrap();
}

fn counter(stack: &Stack, key: &str) -> u64 {
    let reports = stack.top().reports();
    reports[0].counters.iter().find(|(name, _)| *name == key).unwrap().1
}

fn idle(stack: &mut Stack, seconds: u64) {
    stack.set_instant(false);
    let now = stack.drain();
    stack.idle(now, now.after(Dur::from_us(seconds * 1_000_000))).unwrap();
    stack.drain();
    stack.set_instant(true);
}

#[test]
fn what_one_drive_cannot_read_another_can_and_it_is_written_again() {
    let mut stack = built(&config(&["cache.mode=write-through", "mirror.read=first"]));
    (0..50).for_each(|unit| write(&mut stack, unit, 7));
    flush(&mut stack);
    let frame = {
        let drive = &mut stack.drives_mut()[0];
        let flashatlas_ftl::Place::Flash(ppn) = drive.place(Lpn(9)) else { panic!("on flash") };
        let frame = drive.layout().frame_of(ppn);
        drive.faults().decay(frame);
        frame
    };
    assert_eq!(read(&mut stack, 9), Stamp::whole(7, 0));
    assert_eq!((counter(&stack, "read_errors"), counter(&stack, "repaired_units")), (1, 1));
    // the first drive now holds the unit again, in another place
    assert_eq!(read(&mut stack, 9), Stamp::whole(7, 0));
    assert_eq!((counter(&stack, "read_errors"), counter(&stack, "dropped")), (1, 0));
    let drive = &stack.drives()[0];
    let flashatlas_ftl::Place::Flash(ppn) = drive.place(Lpn(9)) else { panic!("on flash") };
    assert_ne!(drive.layout().frame_of(ppn), frame);
    stack.top().check().unwrap();
}

#[test]
fn a_drive_that_was_left_out_is_behind_until_it_is_copied_to() {
    let config = config(&["cache.mode=write-through"]);
    let mut stack = built(&config);
    write(&mut stack, 1, 5);
    flush(&mut stack);
    stack.drives_mut()[0].faults().fail_program_after(0);
    (0..100).for_each(|unit| write(&mut stack, unit, 6));
    flush(&mut stack);
    assert_eq!((counter(&stack, "dropped"), counter(&stack, "current_drives")), (1, 1));
    assert_eq!(read(&mut stack, 1), Stamp::whole(6, 0));
    // the first drive does not hold these writes, so the mirror does not read from it after the
    // mount
    stack.set_instant(false);
    stack.power_cycle(&config, Seed(1)).unwrap();
    stack.set_instant(true);
    assert_eq!(counter(&stack, "current_drives"), 1);
    assert_eq!(read(&mut stack, 1), Stamp::whole(6, 0));
    assert_ne!(stack.drives()[0].peek(Lpn(50)).unwrap().map(|u| u.stamp), Some(Stamp::whole(6, 0)));
}

#[test]
fn idle_time_makes_drives_alike_and_a_blank_one_current() {
    let config = config(&[]);
    let mut stack = built(&config);
    (0..100).for_each(|unit| write(&mut stack, unit, 3));
    flush(&mut stack);
    let contents = stack.contents();
    stack.set_instant(false);
    let mut media = stack.into_media();
    media[1] = config.build(Seed(2)).unwrap().into_medium();
    let mut stack = knowing(&config, &contents);
    stack.remount(media, &config, Seed(1)).unwrap();
    assert_eq!(counter(&stack, "current_drives"), 1);
    assert_eq!(counter(&stack, "unsure_units"), u64::from(stack.shape().units()));
    idle(&mut stack, 100);
    assert_eq!((counter(&stack, "current_drives"), counter(&stack, "unsure_units")), (2, 0));
    stack.top().check().unwrap();
    for unit in 0..100 {
        let held = stack.drives()[1].peek(Lpn(unit)).unwrap().map(|u| u.stamp);
        assert_eq!(held, Some(Stamp::whole(3, 0)), "unit {unit} of the drive that was blank");
    }
}

#[test]
fn a_drive_of_somebody_else_is_left_as_it_is() {
    let config = config(&[]);
    let mut stack = built(&config);
    write(&mut stack, 1, 3);
    flush(&mut stack);
    let contents = stack.contents();
    let mut media = stack.into_media();
    let mut other = config.build(Seed(2)).unwrap();
    other.fill(|_| Stamp::whole(99, 0)).unwrap();
    media[1] = other.into_medium();
    let before = media[1].sequence();
    let mut stack = knowing(&config, &contents);
    let said = stack.remount(media, &config, Seed(1)).unwrap_err().to_string();
    assert!(said.contains("drive 1") && said.contains("nothing was overwritten"), "{said}");
    assert_eq!(stack.into_media()[1].sequence(), before);
}

#[test]
fn drives_that_changed_places_are_not_believed() {
    let config = config(&[]);
    let mut stack = built(&config);
    write(&mut stack, 1, 3);
    flush(&mut stack);
    let contents = stack.contents();
    let mut media = stack.into_media();
    media.reverse();
    let mut stack = knowing(&config, &contents);
    let said = stack.remount(media, &config, Seed(1)).unwrap_err().to_string();
    assert!(said.contains("the number of a drive"), "{said}");
}

#[test]
fn settings_that_make_no_mirror_say_why() {
    let refused = |more: &[&str]| {
        let settings: Vec<String> = more.iter().map(|&s| s.to_owned()).collect();
        STANDARD.load("tiny", None, &settings).map(drop).unwrap_err().to_string()
    };
    for (settings, said) in [
        (&["layers=mirror", "mirror.reserve=3000"][..], "not a whole number"),
        (&["layers=mirror", "mirror.lose=2@1s"][..], "a drive from 0 to 1"),
        (&["layers=mirror", "mirror.lose=1"][..], "1@2s"),
        (&["layers=mirror", "mirror.drives=1"][..], "2 to 8"),
        (&["layers=hpb-host,mirror", "map.store=demand"][..], "mirror,hpb-host"),
    ] {
        let why = refused(settings);
        assert!(why.contains(said), "{settings:?}: {why}");
    }
}

#[test]
fn a_lost_drive_leaves_the_other_and_the_last_one_is_an_error() {
    let config = config(&["mirror.lose=1@1ms,0@2s"]);
    let mut stack = config.build_stack(Seed(1)).unwrap();
    let (mut reply, mut done) = (Reply::default(), Vec::new());
    let mut now = Ps::ZERO;
    for number in 0..100u64 {
        let write = Cmd::Write {
            lba: Lba(number % 50 * u64::from(UNIT)),
            sectors: UNIT,
            fua: true,
            content: number,
            data: None,
        };
        stack.submit(now, Tag(number), write, &mut reply).unwrap();
        while done.len() as u64 <= number {
            now = stack.next_event().expect("a write completes");
            stack.advance(now, &mut done);
        }
    }
    assert_eq!((counter(&stack, "dropped"), counter(&stack, "current_drives")), (1, 1));
    let late = Ps::ZERO.after(Dur::from_us(3_000_000));
    stack.advance(late, &mut done);
    let said = stack.submit(late, Tag(200), Cmd::Flush, &mut reply).unwrap_err().to_string();
    assert!(said.contains("drive 0 failed"), "{said}");
}

#[test]
fn a_unit_that_cannot_be_read_takes_no_other_with_it() {
    let config = config(&["cache.mode=write-through", "mirror.read=first"]);
    let mut stack = built(&config);
    (0..20).for_each(|unit| write(&mut stack, unit, 7));
    flush(&mut stack);
    stack.set_instant(false);
    stack.power_cycle(&config, Seed(1)).unwrap();
    stack.set_instant(true);
    // the second drive holds an older version of unit 3, as after a power failure
    let older = Cmd::Write { lba: Lba(12), sectors: UNIT, fua: false, content: 2, data: None };
    let mut drives = stack.drives_mut();
    drives[1].set_instant(true);
    drives[1].submit(Ps::ZERO, Tag(0), older, &mut Reply::default()).unwrap();
    // unit 4 cannot be read on the first drive
    let first = &mut stack.drives_mut()[0];
    let flashatlas_ftl::Place::Flash(ppn) = first.place(Lpn(4)) else { panic!("on flash") };
    let frame = first.layout().frame_of(ppn);
    first.faults().decay(frame);
    let mut reply = Reply::default();
    let both = Cmd::Read { lba: Lba(12), sectors: 2 * UNIT };
    stack.submit(Ps::ZERO, Tag(0), both, &mut reply).unwrap();
    assert_eq!(reply.stamps, [Stamp::whole(7, 0); 2]);
    assert_eq!(counter(&stack, "repaired_units"), 1);
    assert_eq!(read(&mut stack, 3), Stamp::whole(7, 0));
}

#[test]
fn idle_time_that_is_looked_at_in_parts_goes_on_where_it_was() {
    let config = config(&[]);
    let mut stack = built(&config);
    (0..100).for_each(|unit| write(&mut stack, unit, 3));
    flush(&mut stack);
    stack.set_instant(false);
    stack.power_cycle(&config, Seed(1)).unwrap();
    let mut done = Vec::new();
    // a run that samples in idle time calls `idle` several times with the same start time
    for part in 1..=40 {
        let until = Ps::ZERO.after(Dur::from_us(part * 500));
        stack.idle(Ps::ZERO, until).unwrap();
        stack.advance(until, &mut done);
    }
    assert!(done.is_empty());
    assert!(counter(&stack, "resynced_units") > 0);
}

#[test]
fn when_every_drive_is_lost_in_idle_time_commands_are_errors() {
    let config = config(&["mirror.lose=0@1s,1@1s"]);
    let mut stack = config.build_stack(Seed(1)).unwrap();
    let (from, until) = (2_000_000, 3_000_000);
    let at = |us| Ps::ZERO.after(Dur::from_us(us));
    let said = stack.idle(at(from), at(until)).unwrap_err().to_string();
    assert!(said.contains(" failed (mirror.lose)"), "{said}");
    let read = Cmd::Read { lba: Lba(0), sectors: UNIT };
    let again = stack.submit(at(until), Tag(1), read, &mut Reply::default()).unwrap_err();
    assert_eq!(again.to_string(), said);
    assert!(stack.top().peek_stamp(Lpn(0)).is_err() && stack.top().failure().is_some());
    stack.top().check().unwrap();
}

#[test]
fn a_power_failure_while_time_passes_is_that_of_all_drives() {
    let config = config(&[
        "layers=mirror,hard",
        "hard.page=2KiB",
        "hard.superpage=4KiB",
        "hard.segment=6",
        "hard.ring=8",
        "hard.reserve=0.4",
        "hard.low_water=3",
        "hard.dispatch_after=1ms",
        "cache.mode=write-through",
    ]);
    let mut stack = config.build_stack(Seed(1)).unwrap();
    let (mut reply, mut done) = (Reply::default(), Vec::new());
    // HARD gathers this write, and sends it to the drives after a millisecond
    let write = Cmd::Write { lba: Lba(0), sectors: UNIT, fua: false, content: 1, data: None };
    stack.submit(Ps::ZERO, Tag(1), write, &mut reply).unwrap();
    stack.drives_mut()[0].faults().cut_power_after(0);
    let late = Ps::ZERO.after(Dur::from_us(10_000));
    stack.advance(late, &mut done);
    assert_eq!(counter(&stack, "dropped"), 0, "no drive has failed by itself");
    let said = stack.submit(late, Tag(2), Cmd::Flush, &mut reply).unwrap_err().to_string();
    assert!(said.contains("power"), "{said}");
    stack.drives_mut()[0].faults().restore_power();
    stack.power_cycle(&config, Seed(1)).unwrap();
    assert_eq!(counter(&stack, "current_drives"), 2);
}
