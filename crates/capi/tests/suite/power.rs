//! Tests of power failures. Flushed data is there afterwards, commands in flight never complete,
//! and commands without power are refused.

use crate::hosted::{Hosted, SECTOR, command, create, write};
use flashatlas_capi::abi::*;
use flashatlas_capi::calls::*;

fn tiny(settings: &[&str]) -> Hosted {
    let settings = [&["nand.data=ram"][..], settings].concat();
    create("tiny", &settings, 1).unwrap_or_else(|e| panic!("{e}"))
}

fn page(of: u64) -> Vec<u8> {
    (0..4 * SECTOR as u64).map(|i| (of * 37 + i * 11) as u8 | 1).collect()
}

const HARD: &[&str] = &[
    "layers=hard",
    "hard.superpage=4KiB",
    "hard.page=2KiB",
    "hard.segment=6",
    "hard.ring=8",
    "hard.low_water=3",
    "hard.reserve=0.4",
];

const HPB: &[&str] =
    &["layers=hpb-host", "map.store=dftl", "hpb.region=16KiB", "hpb.subregion=8KiB"];

/// Flushed data and FUA writes are on the medium, and data that was only in the cache is not.
#[test]
fn a_mount_finds_what_was_flushed_and_not_what_was_in_the_cache() {
    let stacks: [&[&str]; 5] =
        [&[], &["ftl.scheme=mast", "ftl.log_blocks=8"], &["map.store=dftl"], HARD, HPB];
    for settings in stacks {
        let drive = tiny(settings);
        let mut now = 0;
        for unit in 0..20 {
            now = drive.write(now, unit * 4, &page(unit));
        }
        now = drive.flush(now);
        let forced = page(21);
        let fua = FaCommand { fua: 1, ..write(21 * 4, &forced) };
        now = drive.carry_out(now, &fua, None);
        now = drive.write(now, 30 * 4, &page(30));
        for cut in 1..3 {
            drive.power_cut(now).unwrap();
            now = drive.power_on(now).unwrap();
            drive.check();
            for unit in (0..20).chain([21]) {
                let found = drive.read(&mut now, unit * 4, 4);
                assert_eq!(found, page(unit), "{settings:?}: unit {unit} after cut {cut}");
            }
            let found = drive.read(&mut now, 30 * 4, 4);
            assert_eq!(found, [0; 2048], "{settings:?}: the write was only in the cache");
            assert_eq!(drive.record()["power_cuts"], cut);
        }
        now = drive.write(now, 30 * 4, &page(31));
        assert_eq!(drive.read(&mut now, 30 * 4, 4), page(31), "{settings:?}");
    }
}

#[test]
fn what_is_in_flight_is_lost_and_what_is_complete_can_be_fetched() {
    let drive = tiny(&["cache.mode=write-through"]);
    let data = page(1);
    drive.submit(0, 1, &write(0, &data), None).unwrap();
    let first = drive.advance(FA_NEVER).unwrap()[0].1;
    drive.submit(first, 2, &write(0, &data), None).unwrap();
    // the first write took the time `first`, so this write is complete at `second` and the next one
    // is not
    let second = 2 * first;
    drive.submit(second, 3, &write(0, &data), None).unwrap();
    drive.power_cut(second + 1).unwrap();
    assert_eq!(drive.advance(FA_NEVER).unwrap().iter().map(|d| d.0).collect::<Vec<_>>(), [2]);
    assert_eq!(drive.next_event(), FA_NEVER);
    // SAFETY: it is a drive
    assert_eq!(unsafe { fa_is_on(drive.0) }, 0);
    let ready = drive.power_on(second + 1).unwrap();
    // SAFETY: it is a drive
    assert_eq!(unsafe { fa_is_on(drive.0) }, 1);
    assert!(ready > second + 1, "a mount takes time");
    // the tag is free again, and the drive's clock goes on
    drive.submit(ready, 3, &write(0, &data), None).unwrap();
    let done = drive.advance(FA_NEVER).unwrap();
    assert!(done.len() == 1 && done[0].0 == 3 && done[0].1 > ready, "{done:?}");
}

#[test]
fn without_power_every_call_says_so() {
    let drive = tiny(&[]);
    let read = command(FaOp::FA_OP_READ, 0, 4);
    let error = drive.power_on(0).unwrap_err();
    assert_eq!(error, (FaCode::FA_ERR_ARGUMENT, "the power is on".into()));
    drive.power_cut(5).unwrap();
    let off = Err((FaCode::FA_ERR_POWER_OFF, "the power is off; call fa_power_on".into()));
    let mut text = std::ptr::null_mut();
    // SAFETY: it is a drive
    unsafe {
        assert_eq!(drive.submit(5, 1, &read, None), off);
        assert_eq!(drive.outcome(fa_idle(drive.0, 5, 6)), off);
        assert_eq!(drive.outcome(fa_fill(drive.0)), off);
        assert_eq!(drive.outcome(fa_check(drive.0)), off);
        assert_eq!(drive.outcome(fa_reset_counters(drive.0)), off);
        assert_eq!(drive.outcome(fa_power_cut(drive.0, 6)), off);
        assert_eq!(drive.outcome(fa_power_cut_after(drive.0, 6)), off);
        assert_eq!(drive.outcome(fa_record_json(drive.0, &mut text)), off);
    }
    let (code, text) = drive.power_on(4).unwrap_err();
    assert_eq!(code, FaCode::FA_ERR_TIME);
    assert_eq!(text, "the time 4 ps is before 5 ps, which the drive has already reached");
    let ready = drive.power_on(5).unwrap();
    assert_eq!(drive.submit(ready - 1, 1, &read, None).unwrap_err().0, FaCode::FA_ERR_TIME);
    drive.carry_out(ready, &read, None);
}

/// The power fails after each number of operations in turn. The command that needs the next
/// operation reports the failure. After the mount, the drive holds everything that was flushed
/// before it.
#[test]
fn a_cut_after_so_many_operations_takes_nothing_that_was_flushed() {
    let mut cuts = 0;
    for operations in 0..40 {
        let drive = tiny(&[]);
        let (mut now, mut flushed, mut lost) = (0, 0, false);
        // SAFETY: it is a drive
        drive.outcome(unsafe { fa_power_cut_after(drive.0, operations) }).unwrap();
        for unit in 0..30 {
            let data = page(unit);
            let flush = command(FaOp::FA_OP_FLUSH, 0, 0);
            let one = if unit % 3 == 2 { flush } else { write(unit * 4, &data) };
            match drive.submit(now, 1, &one, None) {
                Ok(()) => now = drive.advance(FA_NEVER).unwrap()[0].1,
                Err((code, text)) => {
                    assert_eq!(code, FaCode::FA_ERR_POWER_LOST, "{text}");
                    assert_eq!(text, "the power failed (fa_power_cut_after)");
                    lost = true;
                    break;
                }
            }
            flushed = if unit % 3 == 2 { unit } else { flushed };
        }
        if !lost {
            break;
        }
        cuts += 1;
        now = drive.power_on(now).unwrap();
        drive.check();
        for unit in (0..flushed).filter(|unit| unit % 3 != 2) {
            assert_eq!(drive.read(&mut now, unit * 4, 4), page(unit), "cut {operations}: {unit}");
        }
        // the drive can be used again, and the power does not fail a second time
        for unit in 100..140 {
            now = drive.write(now, unit * 4, &page(unit));
        }
        now = drive.flush(now);
        assert_eq!(drive.read(&mut now, 100 * 4, 4), page(100));
    }
    assert!(cuts > 15, "{cuts} cuts");
}
