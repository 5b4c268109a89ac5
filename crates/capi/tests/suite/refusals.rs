//! Tests that every kind of bad input gets a code and a sentence, and changes nothing.

use crate::hosted::{Hosted, SECTOR, command, create, create_of, reply, write};
use flashatlas_capi::abi::*;
use flashatlas_capi::calls::*;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

const READ: FaOp = FaOp::FA_OP_READ;
const WRITE: FaOp = FaOp::FA_OP_WRITE;

fn tiny(settings: &[&str]) -> Hosted {
    create("tiny", settings, 1).unwrap_or_else(|e| panic!("{e}"))
}

fn why(preset: Option<&str>, toml: Option<&str>, settings: &[&str]) -> String {
    create_of(preset, toml, settings, 1).map(|_| ()).expect_err("the drive must not be made")
}

#[test]
fn a_drive_that_cannot_be_made_says_why_and_what_is_near() {
    let error = why(Some("tinny"), None, &[]);
    assert!(error.contains("`tinny` is not known") && error.contains("tiny"), "{error}");
    let error = why(Some("tiny"), None, &["ftl.victm=greedy"]);
    assert!(error.contains("ftl.victm") && error.contains("ftl.victim"), "{error}");
    let error = why(Some("tiny"), None, &["ftl.victim=gredy"]);
    assert!(error.contains("`gredy`") && error.contains("greedy"), "{error}");
    let error = why(Some("tiny"), None, &["ftl.victim"]);
    assert!(error.contains("expected key=value"), "{error}");
    let error = why(Some("tiny"), None, &["drive.channels=0"]);
    assert!(error.contains("drive.channels"), "{error}");
    let error = why(None, None, &[]);
    assert_eq!(error, "`preset` is null");
    let error = why(Some("my.toml"), Some("[drive]\nbase = \"tiny\"\nchanels = 3\n"), &[]);
    assert!(error.contains("my.toml:3") && error.contains("drive.channels"), "{error}");
    let error = why(None, Some("[drive"), &[]);
    assert!(error.contains("drive.toml:1"), "{error}");
}

#[test]
fn null_and_what_is_no_text_are_refused_where_a_drive_is_made() {
    let mut room: [c_char; 64] = [0; 64];
    let mut said = |preset: *const c_char, settings: *const *const c_char, count| {
        // SAFETY: strings end with a zero, and buffers are as long as is said
        unsafe {
            let none = null();
            let made = fa_drive_create(preset, none, settings, count, 1, room.as_mut_ptr(), 64);
            assert!(made.is_null());
            CStr::from_ptr(room.as_ptr()).to_str().unwrap().to_owned()
        }
    };
    assert_eq!(said(c"tiny".as_ptr(), null(), 1), "`settings` is null");
    assert_eq!(said(c"tiny".as_ptr(), [null()].as_ptr(), 1), "`settings` is null");
    assert_eq!(said(c"\xff".as_ptr(), null(), 0), "`preset` is not UTF-8");
    // SAFETY: no room is needed
    unsafe {
        let preset = c"tinny".as_ptr();
        assert!(fa_drive_create(preset, null(), null(), 0, 1, null_mut(), 0).is_null());
    }
}

#[test]
fn null_pointers_are_codes() {
    let argument = FaCode::FA_ERR_ARGUMENT as i32;
    let drive = tiny(&[]);
    let (read, mut count, mut done) = (command(READ, 0, 4), 0, FaDone { tag: 0, at_ps: 0 });
    // SAFETY: pointers are null or what they should be
    unsafe {
        let none = null_mut();
        assert_eq!(fa_submit(none, 0, 1, &read, null_mut()), argument);
        assert_eq!(fa_next_event(none, &mut 0), argument);
        assert_eq!(fa_advance(none, 0, &mut done, 1, &mut count), argument);
        assert_eq!(fa_check(none), argument);
        assert_eq!(fa_is_on(none), 0);
        assert_eq!(CStr::from_ptr(fa_drive_error(none)), c"the drive is null");
        fa_drive_free(none);
        fa_string_free(null_mut());
        let refused = |code, name: &str| {
            let expected = (FaCode::FA_ERR_ARGUMENT, format!("`{name}` is null"));
            assert_eq!(drive.outcome(code), Err(expected));
        };
        refused(fa_submit(drive.0, 0, 1, null(), null_mut()), "command");
        refused(fa_next_event(drive.0, null_mut()), "at_ps");
        refused(fa_advance(drive.0, 0, null_mut(), 1, &mut count), "done");
        refused(fa_advance(drive.0, 0, &mut done, 1, null_mut()), "count");
        refused(fa_drive_geometry(drive.0, null_mut()), "geometry");
        refused(fa_record_json(drive.0, null_mut()), "json");
        // a null pointer is accepted if the host needs no result
        drive.outcome(fa_advance(drive.0, 0, null_mut(), 0, &mut count)).unwrap();
    }
}

/// A command that must be refused, the expected code, and a part of the expected sentence.
type Wrong = (FaCommand, FaCode, &'static str);

#[test]
fn commands_that_mean_nothing_or_too_much_are_refused() {
    let data = [0; 4 * SECTOR];
    let plain = command(WRITE, 0, 4);
    let unsupported = FaCode::FA_ERR_UNSUPPORTED;
    let (argument, range) = (FaCode::FA_ERR_ARGUMENT, FaCode::FA_ERR_RANGE);
    let wrong: Vec<Wrong> = vec![
        (FaCommand { namespace_id: 1, ..plain }, unsupported, "`namespace_id` is 1"),
        (FaCommand { stream: 2, ..plain }, unsupported, "`stream` is 2"),
        (FaCommand { placement: 3, ..plain }, unsupported, "`placement` is 3"),
        (FaCommand { zone_command: 4, ..plain }, unsupported, "`zone_command` is 4"),
        (FaCommand { reserved: 5, ..plain }, unsupported, "`reserved`"),
        (FaCommand { more: [0, 0, 0, 6], ..plain }, unsupported, "`more`"),
        (FaCommand { op: 0, ..plain }, argument, "`op` is 0, but must be 1 (read)"),
        (FaCommand { op: 9, ..plain }, argument, "`op` is 9, but must be 1 (read)"),
        (FaCommand { fua: 2, ..plain }, argument, "`fua` is 2"),
        (FaCommand { fua: 1, ..command(READ, 0, 4) }, argument, "`fua` is given with a read"),
        (
            FaCommand { content: 1, ..command(READ, 0, 4) },
            argument,
            "`content` is given with a read",
        ),
        (FaCommand { op: READ as u32, ..write(0, &data) }, argument, "`data` is given with a read"),
        (command(FaOp::FA_OP_FLUSH, 0, 4), argument, "`lba or sectors` is given with a flush"),
        (command(READ, 0, 0), range, "`sectors` is 0"),
        (command(READ, 2560, 1), range, "end beyond the drive, which has 2560"),
        (command(WRITE, 2559, 2), range, "2 sectors from lba 2559 on end beyond"),
        (command(FaOp::FA_OP_TRIM, u64::MAX, 2), range, "end beyond the drive"),
        (write(0, &data), unsupported, "make the drive with nand.data=ram"),
    ];
    let drive = tiny(&[]);
    for (command, code, part) in &wrong {
        let (got, text) = drive.submit(0, 1, command, None).unwrap_err();
        assert!(got == *code && text.contains(part), "{command:?}: {got:?}: {text}");
    }
    assert_eq!(drive.next_event(), FA_NEVER, "nothing was carried out");
    drive.carry_out(0, &plain, None);
}

#[test]
fn bytes_that_are_missing_or_have_no_room_are_refused() {
    let drive = tiny(&["nand.data=ram"]);
    let data = [0; 4 * SECTOR];
    let (mut room, mut stamps) = ([0; 4 * SECTOR], [0; 2]);
    let refused = |command: &FaCommand, place: Option<&mut FaReply>, part: &str| {
        let (code, text) = drive.submit(0, 1, command, place).unwrap_err();
        assert!(code == FaCode::FA_ERR_ARGUMENT && text.contains(part), "{code:?}: {text}");
    };
    refused(&command(WRITE, 0, 4), None, "`data` is null, but the drive keeps the bytes");
    let short = FaCommand { sectors: 5, ..write(0, &data) };
    refused(&short, None, "`data_bytes` is 2048, but 5 sectors have 2560");
    let mut place = reply(&mut room, &mut []);
    refused(&command(READ, 0, 5), Some(&mut place), "`data_room` is 2048, but the read");
    let mut place = reply(&mut [], &mut stamps);
    // sectors 3 to 8 are in three units
    refused(&command(READ, 3, 6), Some(&mut place), "`stamp_room` is 2, but the read has 3 stamps");
    let mut place = reply(&mut room, &mut []);
    refused(&write(0, &data), Some(&mut place), "only a read puts something");
    let mut place = reply(&mut room, &mut []);
    let (code, text) = tiny(&[]).submit(0, 1, &command(READ, 0, 4), Some(&mut place)).unwrap_err();
    assert_eq!(code, FaCode::FA_ERR_UNSUPPORTED);
    assert!(text.contains("nand.data=ram"), "{text}");
}

#[test]
fn times_tags_and_a_full_queue_are_refused_and_the_drive_goes_on() {
    let drive = tiny(&["host.queue_depth=2"]);
    let read = command(READ, 0, 4);
    drive.submit(1000, 1, &read, None).unwrap();
    let refused = |now, tag, code, part: &str| {
        let (got, text) = drive.submit(now, tag, &read, None).unwrap_err();
        assert!(got == code && text.contains(part), "{got:?}: {text}");
    };
    refused(1000, 1, FaCode::FA_ERR_ARGUMENT, "tag 1 is already in flight");
    refused(
        1000,
        1 << 63,
        FaCode::FA_ERR_ARGUMENT,
        "the highest bit of tag 9223372036854775808 must be 0",
    );
    refused(FA_LATEST + 1, 2, FaCode::FA_ERR_TIME, "is after FA_LATEST");
    drive.submit(1000, 2, &read, None).unwrap();
    refused(1000, 3, FaCode::FA_ERR_QUEUE_FULL, "2 commands are in flight, which is the limit");
    // SAFETY: it is a drive
    let busy = drive.outcome(unsafe { fa_fill(drive.0) }).unwrap_err();
    assert_eq!(busy.0, FaCode::FA_ERR_BUSY);
    let last = drive.advance(FA_NEVER).unwrap()[1].1;
    refused(last - 1, 3, FaCode::FA_ERR_TIME, "which the drive has already reached");
    drive.submit(last, 3, &read, None).unwrap();
    // no time overflows at `FA_LATEST`
    drive.advance(FA_NEVER).unwrap();
    drive.carry_out(FA_LATEST, &read, None);
    // SAFETY: it is a drive
    let late = drive.outcome(unsafe { fa_idle(drive.0, FA_LATEST, u64::MAX) }).unwrap_err();
    assert_eq!(late.0, FaCode::FA_ERR_TIME);
}

/// Every block of the drive fails at its second erase, so the drive runs out of space.
#[test]
fn a_drive_that_cannot_go_on_says_so_with_every_command() {
    let drive = tiny(&["nand.endurance=1"]);
    let mut now = 0;
    let failed = (0..20_000u64).find_map(|n| {
        match drive.submit(now, 1, &command(WRITE, n * 37 % 640 * 4, 4), None) {
            Ok(()) => {
                now = drive.advance(FA_NEVER).unwrap()[0].1;
                None
            }
            Err(error) => Some(error),
        }
    });
    let (code, text) = failed.expect("the drive wears out");
    assert!(code == FaCode::FA_ERR_FAILED && text.contains("no space"), "{code:?}: {text}");
    let again = drive.submit(now, 1, &command(READ, 0, 4), None).unwrap_err();
    assert_eq!(again.0, FaCode::FA_ERR_FAILED);
}
