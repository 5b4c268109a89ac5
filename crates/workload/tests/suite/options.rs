//! Changes that a reader makes and counts: devices, repeated records and gaps of time.

use crate::common::*;
use flashatlas_types::Dur;
use flashatlas_types::HostOp::{Read, Write};
use flashatlas_workload::{Account, DeviceMap, Jump, Opened, Place, ReadOptions, Record, open};
use std::io::Cursor;

const DAY: u64 = 86_400 * S;

fn read_account(text: &str, options: &ReadOptions) -> (Vec<Record>, Account) {
    let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let Opened { mut source, .. } = open(reader, None, options).unwrap();
    let (records, error) = drain(&mut *source);
    assert_eq!(error, None);
    (records, source.account())
}

fn error_of(text: &str, options: &ReadOptions) -> String {
    read_with(text.as_bytes(), None, options).unwrap_err()
}

#[test]
fn device_maps_by_name() {
    let parse = |text: &str| text.parse::<DeviceMap>().map_err(|e| e.to_string());
    assert_eq!(parse("separate"), Ok(DeviceMap::Separate));
    assert_eq!(parse("collapse"), Ok(DeviceMap::Collapse));
    assert_eq!(parse("select:65535"), Ok(DeviceMap::Select(65_535)));
    assert_eq!(
        parse("colapse").unwrap_err(),
        "device_map: device map `colapse` is not known; did you mean `collapse`? (allowed: \
         separate, collapse, select:N)"
    );
    assert_eq!(
        parse("select:65536").unwrap_err(),
        "device_map: `65536` is not the number of a device (allowed: select:0 to select:65535)"
    );
    assert!(
        parse("select:-1").is_err() && parse("select").is_err() && parse("separate:1").is_err()
    );
}

#[test]
fn devices_stay_apart_meet_or_are_selected() {
    let text = "7,1,512,w,1\n3,1,512,w,2\n7,2,512,r,4\n";
    let map =
        |device_map| read_account(text, &ReadOptions { device_map, ..ReadOptions::default() });
    let (records, account) = map(DeviceMap::Separate);
    assert_eq!(
        records,
        [record(0, Write, 1, 1, 0), record(S, Write, 1, 1, 1), record(3 * S, Read, 2, 1, 0)]
    );
    let last_place = Some(Place::Line { line: 3, column: 1 });
    assert_eq!(
        account,
        Account { device_names: vec!["7".into(), "3".into()], last_place, ..Account::default() }
    );
    let (records, _) = map(DeviceMap::Collapse);
    assert_eq!(
        records,
        [record(0, Write, 1, 1, 0), record(S, Write, 1, 1, 0), record(3 * S, Read, 2, 1, 0)]
    );
    // times count from the first record that is delivered
    let (records, account) = map(DeviceMap::Select(1));
    assert_eq!((records, account.not_selected), (vec![record(0, Write, 1, 1, 0)], 2));
    let options = ReadOptions { device_map: DeviceMap::Select(2), ..ReadOptions::default() };
    assert_eq!(
        error_of(text, &options),
        "4:1: the trace holds no request of device 2; the reader expects the number of a device of \
         the trace, counted from 0 in order of appearance"
    );
}

#[test]
fn a_repeat_within_the_window_is_dropped_and_moves_the_reference_along() {
    let text = "0,8,4096,w,0.000\n0,8,4096,w,0.004\n1,8,4096,w,0.005\n0,8,4096,w,0.009\n\
                0,8,4096,w,0.0141\n0,8,4096,r,0.0142\n0,8,4096,w,0.0143\n0,8,512,w,0.0144\n\
                0,8,512,w,0.0140\n";
    let options = ReadOptions { drop_duplicates: Some(Dur(5 * MS)), ..ReadOptions::default() };
    let (records, account) = read_account(text, &options);
    let at = |us: u64| us * US;
    let expected = [
        record(0, Write, 8, 8, 0),
        record(at(5_000), Write, 8, 8, 1),  // another device
        record(at(14_100), Write, 8, 8, 0), // 5.1 ms after the record before
        record(at(14_200), Read, 8, 8, 0),  // another operation
        record(at(14_300), Write, 8, 8, 0),
        record(at(14_400), Write, 8, 1, 0), // another length; the last record repeats it earlier
    ];
    assert_eq!((records, account.duplicates_dropped), (expected.to_vec(), 3));
    // a record exactly 5 ms later is still a repeat
    let edge = "0,8,512,w,0\n0,8,512,w,0.005\n";
    assert_eq!(read_account(edge, &options).1.duplicates_dropped, 1);
    let edge = "0,8,512,w,0\n0,8,512,w,0.005000000001\n";
    assert_eq!(read_account(edge, &options).1.duplicates_dropped, 0);
}

#[test]
fn long_gaps_are_cut_and_later_times_move() {
    let text = "0,1,512,r,100\n0,2,512,r,103\n0,3,512,r,103.5\n0,4,512,r,40\n0,5,512,r,41\n\
                0,6,512,r,40.5\n0,7,512,r,42.5\n";
    let options = ReadOptions { time_gap_max: Some(Dur(2 * S)), ..ReadOptions::default() };
    let (records, account) = read_account(text, &options);
    let times: Vec<u64> = records.iter().map(|r| r.request.at.0 / MS).collect();
    // steps: +3 s is cut to 2 s; +0.5 s stays; −63.5 s, a clock that was set, becomes 0; +1 s, −0.5
    // s and +2 s stay
    assert_eq!(times, [0, 2000, 2500, 2500, 3500, 3000, 5000]);
    assert_eq!((account.gaps_cut, account.backward_steps, account.first_jump), (1, 1, None));
}

#[test]
fn the_first_jump_is_told_with_its_place() {
    let text = format!("0,1,512,r,0\n0,2,512,r,86400\n0,3,512,r,{}\n0,4,512,r,0\n", 86_400 * 2 + 1);
    let (records, account) = read_account(&text, &ReadOptions::default());
    assert_eq!(records[2].request.at.0, 2 * DAY + S);
    let jump = Jump { place: Place::Line { line: 3, column: 1 }, step_ps: i128::from(DAY + S) };
    assert_eq!(account.first_jump, Some(jump));
    assert_eq!(jump.seconds(), 86_401.0);
    let (_, account) = read_account("0,1,512,r,90000\n0,2,512,r,1\n", &ReadOptions::default());
    assert_eq!(account.first_jump.map(|jump| jump.step_ps), Some(-i128::from(89_999 * S)));
    // in binary formats the place is a byte; a gap that is cut still counts as a jump of the trace
    let vscsi: Vec<u8> =
        [0, 1, 100_000_000_000].iter().flat_map(|&us| vscsi1(512, 0x28, 1, us)).collect();
    let options = ReadOptions { time_gap_max: Some(Dur(S)), ..ReadOptions::default() };
    let Opened { mut source, .. } = open(Box::new(Cursor::new(vscsi)), None, &options).unwrap();
    assert_eq!(drain(&mut *source).0[2].request.at.0, S + US);
    let account = source.account();
    assert_eq!(
        (account.first_jump.map(|jump| jump.place), account.gaps_cut),
        (Some(Place::Byte(64)), 1)
    );
}

#[test]
fn times_beyond_213_days_name_what_helps() {
    let text = "0,1,512,r,0\n0,2,512,r,20000000\n0,3,512,r,20000001\n";
    assert_eq!(
        error_of(text, &ReadOptions::default()),
        "2:11: a time too far from the first record `20000000`; the reader expects at most 213 \
         days (`time_gap_max` cuts long gaps)"
    );
    let cut = |seconds: u64| ReadOptions {
        time_gap_max: Some(Dur(seconds * S)),
        ..ReadOptions::default()
    };
    let times: Vec<u64> =
        read_account(text, &cut(60)).0.iter().map(|r| r.request.at.0 / S).collect();
    assert_eq!(times, [0, 60, 61]);
    // a refused record has no effect on the next record
    let options = ReadOptions { skip_bad: 1, ..ReadOptions::default() };
    let (records, account) =
        read_account("0,1,512,r,0\n0,2,512,r,20000000\n0,3,512,r,5\n", &options);
    assert_eq!(
        (records[1].request.at.0, account.skipped_bad, account.first_jump),
        (5 * S, 1, None)
    );
    let far = "0,1,512,r,0\n0,2,512,r,18000000\n0,3,512,r,36000000\n";
    assert_eq!(
        error_of(far, &cut(17_000_000)),
        "3:11: a time too far from the first record `36000000`; the reader expects at most 213 \
         days (a smaller `time_gap_max` cuts more)"
    );
}
