//! Tests of allowed stacks, of media that a mount must not change, and of the time that a layer
//! takes.

use flashatlas_device::{Cmd, DriveConfig, Reply, Stack, SubmitError};
use flashatlas_host::STANDARD;
use flashatlas_nand::{FrameState, Medium};
use flashatlas_types::{FrameId, Lba, Lpn, Ps, Seed, Stamp, Tag};

const HARD: &[&str] = &[
    "drive.blocks=24",
    "map.unit=2KiB",
    "drive.logical_pages=496",
    "layers=hard",
    "hard.superpage=4KiB",
    "hard.page=2KiB",
    "hard.segment=6",
    "hard.ring=8",
    "hard.low_water=3",
    "hard.reserve=0.4",
];

fn hard(more: &[&str]) -> Result<DriveConfig, String> {
    let settings: Vec<String> = HARD.iter().chain(more).map(|&s| s.to_owned()).collect();
    STANDARD.load("tiny", None, &settings).map_err(|e| e.to_string())
}

#[test]
fn stacks_that_cannot_work_say_why() {
    let refused = |more: &[&str]| hard(more).map(drop).unwrap_err();
    let said = refused(&["drive.logical_pages=495"]);
    assert!(
        said.contains("is refused: 4096 bytes do not divide the 1013760 bytes of the lower device"),
        "{said}"
    );
    let said = refused(&["hard.superpage=5KiB"]);
    assert!(
        said.contains(
            "hard.superpage: 5120 bytes are not a whole number of at least two pages of 2048 bytes"
        ),
        "{said}"
    );
    let said = refused(&["hard.page=4KiB"]);
    assert!(
        said.contains(
            "hard.superpage: 4096 bytes are not a whole number of at least two pages of 4096 bytes"
        ),
        "{said}"
    );
    let said = refused(&["hard.superpage=1KiB", "hard.page=512"]);
    assert!(said.contains("each write would be a read-modify-write there"), "{said}");
    let said = refused(&["hard.reserve=0.01"]);
    assert!(
        said.contains("hard.reserve=0.01") && said.contains("reclamation needs at least 6"),
        "{said}"
    );
    let said = refused(&["hard.ring=7"]);
    assert!(said.contains("hard.ring: 7 records are too few: the log needs at least 8"), "{said}");
    let said = refused(&["hard.segment=400"]);
    assert!(said.contains("hard.segment: ") && said.contains("(allowed: 1 to 338)"), "{said}");
    let said = refused(&["layers=hard,hard"]);
    assert!(said.contains("layers: the layer `hard` is named twice"), "{said}");
    let said = refused(&["layers=hrad"]);
    assert!(said.contains("layers: layer `hrad` is not known; did you mean `hard`?"), "{said}");
    let said = STANDARD.load("tiny", None, &["hard.ring=9".into()]).unwrap_err().to_string();
    assert!(said.contains("hard.ring: belongs to the layer hard, which is not in use"), "{said}");
}

#[test]
fn a_file_may_name_layers_in_a_list() {
    let text = "layers = [\"hard\"]\n[drive]\nbase = \"superpage-sata\"\n";
    let config = STANDARD.load("mine.toml", Some(text), &[]).unwrap();
    assert_eq!(config.layers().iter().map(|l| l.name).collect::<Vec<_>>(), ["hard"]);
    let shape = config.shape();
    assert_eq!(shape.unit_sectors, 8, "pages of 4 KiB over superpages of 16 KiB");
    let error =
        STANDARD.load("mine.toml", Some("layers = [\"hrad\"]\n[drive]\nbase = \"tiny\"\n"), &[]);
    let said = error.unwrap_err().to_string();
    assert!(said.starts_with("mine.toml:1:"), "{said}");
}

/// Mounts a foreign medium under a stack. Returns the message of the refusal.
///
/// The stack must refuse the medium and program nothing.
fn refused(config: &DriveConfig, medium: &Medium) -> String {
    let mut stack = config.build_stack(Seed(1)).unwrap();
    let said = stack.remount([medium.clone()], config, Seed(1)).map(drop).unwrap_err().to_string();
    assert_eq!(stack.ssd().medium().sequence(), medium.sequence(), "{said}");
    said
}

#[test]
fn what_another_wrote_is_left_alone() {
    let config = hard(&[]).unwrap();
    let bare = STANDARD
        .load("tiny", None, &HARD[..3].iter().map(|&s| s.to_owned()).collect::<Vec<_>>())
        .unwrap();
    let mut drive = bare.build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
    let said = refused(&config, &drive.into_medium());
    assert!(
        said.contains("hard: the lower device was not written by this layer: sector 0"),
        "{said}"
    );
    assert!(said.contains("nothing was overwritten"), "{said}");
}

#[test]
fn records_of_another_layout_are_left_alone() {
    let config = hard(&["nand.data=ram"]).unwrap();
    let medium = config.build_stack(Seed(1)).unwrap().into_media().pop().unwrap();
    for (setting, key) in [
        ("hard.reserve=0.5", "hard.reserve"),
        ("hard.ring=9", "hard.ring"),
        ("hard.page=1KiB", "hard.page"),
    ] {
        let said = refused(&hard(&["nand.data=ram", setting]).unwrap(), &medium);
        assert!(
            said.contains(&format!("was written with {key} = "))
                && said.contains("nothing was overwritten"),
            "{said}"
        );
    }
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.remount([medium], &config, Seed(1)).unwrap();
}

/// A full record is written before the next trim, and must not free superpages that the trim
/// vacates.
#[test]
fn a_trim_waits_for_a_record_of_its_own() {
    let drive = [
        "map.unit=512",
        "drive.spare_bytes=128",
        "drive.logical_pages=2048",
        "drive.blocks=24",
        "layers=hard",
    ];
    let layer = [
        "hard.superpage=1KiB",
        "hard.page=512",
        "hard.segment=80",
        "hard.ring=8",
        "hard.reserve=0.2",
    ];
    let settings: Vec<String> = drive.iter().chain(&layer).map(|&s| s.to_owned()).collect();
    let config = STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"));
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
    stack.set_instant(true);
    let mut reply = Reply::default();
    let mut send =
        |stack: &mut Stack, cmd: Cmd<'_>| stack.submit(Ps::ZERO, Tag(1), cmd, &mut reply).unwrap();
    // the record is full after 124 trims of single pages
    for n in 0..124 {
        send(&mut stack, Cmd::Trim { lba: Lba(2 * n), sectors: 1 });
    }
    send(&mut stack, Cmd::Trim { lba: Lba(300), sectors: 200 });
    // these writes use free superpages, and none of them is durable
    for n in 0..75 {
        let write = Cmd::Write {
            lba: Lba(600 + 2 * n),
            sectors: 2,
            fua: false,
            content: 9000 + n,
            data: None,
        };
        send(&mut stack, write);
    }
    stack.set_instant(false);
    stack.power_cycle(&config, Seed(1)).unwrap();
    for page in 300..500 {
        let held = stack.top().peek_stamp(Lpn(page)).unwrap_or_else(|e| panic!("page {page}: {e}"));
        let filled = Stamp::whole(u64::from(page) + 1, 0);
        assert!(held == filled || held == Stamp::ZERO, "page {page} holds {held:?}");
    }
}

/// Sends `writes` writes of pages at the same time. Returns their completion times in microseconds.
fn completions(more: &[&str], writes: u64) -> Vec<u64> {
    let more = [&["cache.mode=write-through"], more].concat();
    let mut stack = hard(&more).unwrap().build_stack(Seed(1)).unwrap();
    for n in 0..writes {
        let write =
            Cmd::Write { lba: Lba(n * 4), sectors: 4, fua: false, content: n + 1, data: None };
        stack.submit(Ps::ZERO, Tag(n), write, &mut Reply::default()).unwrap();
    }
    let mut done = Vec::new();
    stack.advance(Ps(10_000_000_000_000), &mut done);
    assert!(done.is_sorted_by_key(|d| d.at), "{done:?}");
    assert_eq!(done.len() as u64, writes);
    let mut at: Vec<(u64, u64)> = done.iter().map(|d| (d.tag.0, d.at.0 / 1_000_000)).collect();
    at.sort_unstable();
    at.into_iter().map(|(_, at)| at).collect()
}

#[test]
fn time_is_what_the_settings_say() {
    // only one page of a superpage of two is written, so it is sent when the timer expires
    let alone =
        completions(&["hard.complete=written", "hard.dispatch_after=3ms", "hard.fill=pad"], 1);
    let written = alone[0] - 3000;
    assert!((1..2000).contains(&written), "{alone:?}");
    assert_eq!(
        completions(&["hard.dispatch_after=3ms", "hard.lookup_time=7us"], 1),
        [7],
        "the write is complete in the buffer"
    );
    // with one buffer, superpages are written one after the other, and each write takes the same
    // time
    let narrow = completions(&["hard.complete=written", "hard.buffers=1"], 12);
    let wide = completions(&["hard.complete=written", "hard.buffers=64"], 12);
    assert!(narrow.chunks(2).all(|pair| pair[0] == pair[1]), "{narrow:?}");
    let serial = |(i, &at): (usize, &u64)| at.abs_diff((i as u64 / 2 + 1) * narrow[0]) < 3;
    assert!(narrow.iter().enumerate().all(serial), "{narrow:?}");
    assert!(3 * wide[11] < 2 * narrow[11], "with one buffer {narrow:?}, with 64 buffers {wide:?}");
}

#[test]
fn a_read_that_fails_leaves_nothing_behind() {
    let mut stack = hard(&[]).unwrap().build_stack(Seed(1)).unwrap();
    stack.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
    let medium = stack.ssd_mut().faults();
    let last = (0..medium.layout().frames())
        .map(FrameId)
        .filter(|&f| medium.state(f) == FrameState::Programmed);
    let frames: Vec<FrameId> = last.collect();
    frames.iter().for_each(|&frame| medium.decay(frame));
    let read = Cmd::Read { lba: Lba(0), sectors: 4 };
    let error = stack.submit(Ps::ZERO, Tag(1), read, &mut Reply::default()).unwrap_err();
    assert!(matches!(error, SubmitError::Ftl(_)), "{error}");
    assert!(stack.top().failure().is_none(), "other pages may be read");
    stack.drain();
    stack.set_instant(true);
}

/// A mount with stored bytes needs only the drive, and not the layer's table of digests.
#[test]
fn a_mount_needs_the_drive_alone() {
    let config = hard(&["nand.data=ram"]).unwrap();
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.set_instant(true);
    let mut reply = Reply::default();
    let page = |number: u64| vec![number as u8; 2048];
    for number in 1..200u64 {
        let (lba, data) = (Lba(number * 37 % 60 * 4), page(number));
        let write = Cmd::Write { lba, sectors: 4, fua: false, content: number, data: Some(&data) };
        stack.submit(Ps::ZERO, Tag(1), write, &mut reply).unwrap();
    }
    stack.submit(Ps::ZERO, Tag(1), Cmd::Flush, &mut reply).unwrap();
    let contents = stack.contents();
    let ssd = config.build_on(stack.into_media().pop().unwrap(), Seed(1)).unwrap();
    let mut stack = Stack::over(vec![ssd], &config).unwrap();
    stack.learn(&contents); // the contents to which the drive's stamps refer
    stack.set_instant(true);
    for number in 140..200u64 {
        stack
            .submit(
                Ps::ZERO,
                Tag(1),
                Cmd::Read { lba: Lba(number * 37 % 60 * 4), sectors: 4 },
                &mut reply,
            )
            .unwrap();
        assert_eq!(reply.bytes, page(number), "page of write {number}");
    }
    stack.top().check().unwrap();
}
