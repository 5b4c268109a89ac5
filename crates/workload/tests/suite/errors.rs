//! Errors of bad input, word for word.

use crate::common::*;
use flashatlas_workload::{BadKinds, OpenError, Opened, Place, ReadOptions, format_by_name, open};
use std::io::{self, Cursor};

#[test]
fn numbers_and_columns_of_msr() {
    let ok = "1,a,0,Read,0,512,1\n";
    let bad = |line: &str| error("msr", format!("{ok}{line}\n"));
    assert_eq!(
        bad("1,a,0,Read,0,512"),
        "2:1: the wrong number of columns in `1,a,0,Read,0,512`; the reader expects 7 columns: \
         timestamp,host,disk,Read|Write,offset,size,response"
    );
    assert_eq!(
        bad("1,a,0,Wrte,0,512,1"),
        "2:7: an unknown operation `Wrte`; the reader expects Read or Write"
    );
    assert_eq!(
        bad("1,a,0,Read,-8,512,1"),
        "2:12: a negative number `-8`; the reader expects an offset in bytes"
    );
    assert_eq!(
        bad("1,a,0,Read,0,,1"),
        "2:14: an empty field; the reader expects a length in bytes"
    );
    assert_eq!(
        bad("1,a,0,Read,0,0,1"),
        alone("2:14: a length of zero `0`; the reader expects at least one byte", "zero-length")
    );
    assert_eq!(
        bad("1,a,0,Read,0,1e3,1"),
        "2:14: not a number `1e3`; the reader expects a length in bytes"
    );
    assert_eq!(
        bad("1,a,0,Read,99999999999999999999,1,1"),
        "2:12: a number that is too large `99999999999999999999`; the reader expects an offset in \
         bytes"
    );
    assert_eq!(
        bad("1,a,0,Read,18446744073709551615,2,1"),
        alone(
            "2:12: an address beyond all drives `18446744073709551615`; the reader expects an end \
             below 2^64 bytes",
            "too-far"
        )
    );
    assert_eq!(
        bad("1,a,0,Read,0,1073741825,1"),
        alone(
            "2:14: a length beyond all requests `1073741825`; the reader expects at most 1 GiB, or \
             2 TiB less a sector for a trim",
            "too-long"
        )
    );
    assert!(
        bad("1,a,0,Read,0,512\r").contains("in `1,a,0,Read,0,512`;"),
        "the carriage return is no part of the line"
    );
    assert_eq!(
        bad("1,a,x,Read,0,1,1"),
        "2:5: not a number `x`; the reader expects the number of a disk"
    );
    assert_eq!(
        bad("18446744073709551615,a,0,Read,0,1,1"),
        "2:1: a time too far from the first record `18446744073709551615`; the reader expects at \
         most 213 days (`time_gap_max` cuts long gaps)"
    );
    assert_eq!(
        bad("\x01\u{e9},\"a\",0,Read,0,512,1,and more than forty characters"),
        "2:1: the wrong number of columns in `\\x01\\xc3\\xa9,\"a\",0,Read,0,512,1,and mor…`; the \
         reader expects 7 columns: timestamp,host,disk,Read|Write,offset,size,response"
    );
}

#[test]
fn the_other_text_formats() {
    assert_eq!(
        error("spc", "0,1,512,r,0\n\n0,1,512,q,0\n"),
        "3:9: an unknown operation `q`; the reader expects r or w"
    );
    assert_eq!(
        error("spc", "0,1,512,r,-1\n"),
        "1:11: a negative number `-1`; the reader expects a time in seconds"
    );
    assert_eq!(
        error("spc", "0,36028797018963968,512,r,0\n"),
        alone(
            "1:3: an address beyond all drives `36028797018963968`; the reader expects an end \
             below 2^64 bytes",
            "too-far"
        )
    );
    assert_eq!(
        error("spc", "0,1,512,r\n"),
        "1:1: the wrong number of columns in `0,1,512,r`; the reader expects at least 5 columns: \
         ASU,LBA,size,opcode,timestamp"
    );
    let names = "start ; sector; length ; op\n";
    assert_eq!(
        error("blkreplay", format!("{names}0 ; 1 ; 2 ; FWS\n")),
        "2:13: an unknown operation `FWS`; the reader expects R, W or D and then any of A, S, M, \
         F; or F alone"
    );
    assert_eq!(
        error("blkreplay", format!("{names}0 ; 1 ; 2 ; W ; 3\n")),
        "2:1: the wrong number of columns in `0 ; 1 ; 2 ; W ; 3`; the reader expects as many \
         columns as the line of column names has"
    );
    assert_eq!(
        error("blkreplay", "0 ; 1 ; 2 ; W\n"),
        "2:1: the line of column names is missing; the reader expects a line of column names: \
         start ; sector ; length ; op ; …"
    );
    assert_eq!(
        error("blkreplay", names),
        "2:1: the trace holds no request; the reader expects at least one line after the column \
         names"
    );
}

#[test]
fn a_far_time_is_pointed_at_where_it_stands() {
    let cases = [
        ("spc", "0,1,512,r,0\n0,2,512,r,", "20000000", "\n"),
        ("alibaba", "0,R,0,512,0\n0,R,0,512,", "20000000000000", "\n"),
        ("tencent", "0,0,1,0,0\n", "20000000", ",0,1,0,0\n"),
        ("blkreplay", "start ; sector; length ; op\n0 ; 1 ; 2 ; W\n", "20000000", " ; 1 ; 2 ; W\n"),
        ("iolog", "fio version 3 iolog\n0 f read 0 512\n", "20000000000000", " f read 0 512\n"),
        ("mqsim", "0 0 0 8 1\n", "18446744073709551615", " 0 0 8 1\n"),
    ];
    for (format, before, time, after) in cases {
        let line = before.lines().count() + usize::from(before.ends_with('\n'));
        let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
        let said = error(format, format!("{before}{time}{after}"));
        let place = format!("{line}:{column}: a time too far from the first record `{time}`;");
        assert!(said.starts_with(&place), "{format}: {said}, not {place}");
    }
}

#[test]
fn iologs() {
    let v2 = |line: &str| error("iolog", format!("fio version 2 iolog\nf read 0 512\n{line}\n"));
    let v3 = |line: &str| error("iolog", format!("fio version 3 iolog\n1 f read 0 512\n{line}\n"));
    assert_eq!(
        error("iolog", "fio version 4 iolog\nf read 0 512\n"),
        "1:1: not an iolog header: `fio version 4 iolog`; the reader expects `fio version 2 iolog` \
         or `fio version 3 iolog`"
    );
    assert_eq!(
        v2("f raed 0 1"),
        "3:3: an unknown action `raed`; the reader expects add, open, close, unlink, read, write, \
         trim, sync, datasync or (version 2) wait"
    );
    assert_eq!(
        v3("1 f wait 5 0"),
        "3:5: an unknown action `wait`; the reader expects add, open, close, unlink, read, write, \
         trim, sync, datasync or (version 2) wait"
    );
    assert_eq!(
        v2("f read 0"),
        "3:1: the wrong number of columns in `f read 0`; the reader expects a file, an action, an \
         offset and a length"
    );
    assert_eq!(
        v2("f"),
        "3:1: the wrong number of columns in `f`; the reader expects a file and an action"
    );
    assert_eq!(
        v3("7"),
        "3:1: the wrong number of columns in `7`; the reader expects a file and an action"
    );
    assert_eq!(
        v2("f open 1"),
        "3:1: the wrong number of columns in `f open 1`; the reader expects a file and an action"
    );
    assert_eq!(
        v3("f read 0 512"),
        "3:1: not a number `f`; the reader expects a timestamp in microseconds"
    );
    assert_eq!(
        error("iolog", "fio version 3 iolog\n1 f add\n"),
        "3:1: the trace holds no request; the reader expects at least one read, write, trim or sync"
    );
    assert_eq!(
        error("iolog", "\n"),
        "2:1: the iolog header is missing; the reader expects `fio version 2 iolog` or `fio \
         version 3 iolog`"
    );
}

#[test]
fn vscsi_records() {
    let good = || vscsi1(512, 0x28, 1, 1);
    let with = |third: Vec<u8>| error("vscsi", [good(), good(), third].concat());
    assert_eq!(
        with(vscsi1(512, 0x42, 1, 1)),
        "byte 76: an unknown command `B\\x00`; the reader expects READ, WRITE or SYNCHRONIZE CACHE \
         (such as 0x28, 0x2a, 0x35)"
    );
    assert_eq!(
        with(vscsi1(0, 0x2a, 1, 1)),
        alone(
            "byte 68: a length of zero `\\x00\\x00\\x00\\x00`; the reader expects at least one \
             byte",
            "zero-length"
        )
    );
    assert_eq!(
        with(vscsi1(512, 0x2a, u64::MAX, 1)),
        alone(
            "byte 80: an address beyond all drives `\\xff\\xff\\xff\\xff`; the reader expects an \
             end below 2^64 bytes",
            "too-far"
        )
    );
    let mut other = good();
    other[15] = 9;
    assert_eq!(with(other), "byte 79: an unknown version byte `\\t`; the reader expects 0x01");
    assert_eq!(
        with(good()[..5].to_vec()),
        "byte 64: a truncated record `\\x07\\x00\\x00\\x00\\x00`; the reader expects 32 bytes, or \
         40 in version 2"
    );
    assert_eq!(
        error("vscsi", "not a vscsi trace, but longer than a record"),
        "byte 0: not a vscsi record: `not a vscsi trace, but longer th`; the reader expects \
         version 1 or 2 records"
    );
}

#[test]
fn bad_records_are_skipped_up_to_the_allowance() {
    let text = "0,1,512,r,0\nbad\n0,1,0,r,0\n0,2,512,r,1\nworse\n0,3,512,r,2\n";
    let options = |skip_bad| ReadOptions { skip_bad, ..ReadOptions::default() };
    let reader = || Box::new(Cursor::new(text.as_bytes().to_vec()));
    let Opened { mut source, .. } = open(reader(), Some("spc"), &options(3)).unwrap();
    let (records, none) = drain(&mut *source);
    assert_eq!((records.len(), none, source.account().skipped_bad), (3, None, 3));

    let Opened { mut source, .. } = open(reader(), Some("spc"), &options(2)).unwrap();
    source.next().unwrap();
    source.next().unwrap();
    let error = source.next().unwrap_err();
    assert_eq!(
        (error.place, error.record, error.skipped),
        (Place::Line { line: 5, column: 1 }, 5, 2)
    );
    assert_eq!(
        error.to_string(),
        "5:1: the wrong number of columns in `worse`; the reader expects at least 5 columns: \
         ASU,LBA,size,opcode,timestamp (bad records skipped before: 2)"
    );

    let truncated = [vscsi1(512, 0x28, 1, 1), vscsi1(512, 0x28, 1, 1), vec![1; 31]].concat();
    assert_eq!(read_with(&truncated, None, &options(1)).unwrap().len(), 2);
    assert_eq!(
        read_with(b"x\ny\n", Some("spc"), &options(5)).unwrap_err(),
        "3:1: the trace holds no request; the reader expects at least one (bad records skipped \
         before: 2)"
    );
}

#[test]
fn over_long_lines_are_bounded_and_can_be_skipped() {
    let line =
        |len: usize| format!("0,1,512,r,0\n0,2,512,r,1,{}\n0,3,512,r,2\n", "x".repeat(len - 12));
    assert_eq!(read(line(65_536).as_bytes()).unwrap().len(), 3);
    for len in [65_537, 1 << 20] {
        assert_eq!(
            read(line(len).as_bytes()).unwrap_err(),
            format!(
                "2:1: a line that is too long `0,2,512,r,1,{}…`; the reader expects at most 65,536 \
                 bytes",
                "x".repeat(27)
            )
        );
        let options = ReadOptions { skip_bad: 1, ..ReadOptions::default() };
        let records = read_with(line(len).as_bytes(), None, &options).unwrap();
        assert_eq!(records.iter().map(|r| r.request.lba.0).collect::<Vec<_>>(), [1, 3]);
    }
    // a carriage return at the place where the line is cut does not end the line
    let mut text = line(70_000).into_bytes();
    text[12 + 65_536] = b'\r';
    assert!(read(&text).unwrap_err().starts_with("2:1: a line that is too long"));
}

#[test]
fn truncated_and_damaged_streams() {
    let text: String =
        (0..30_000).map(|i| format!("0,{},512,r,{i}\n", i * 7919 % 65_536)).collect();
    for name in &COMPRESSIONS[1..] {
        let whole = compress(text.as_bytes(), name);
        for cut in [whole.len() - 1, whole.len() * 9 / 10] {
            let why = read_with(
                &whole[..cut],
                Some("spc"),
                &ReadOptions { skip_bad: 1000, ..ReadOptions::default() },
            )
            .unwrap_err();
            assert!(
                why.contains(&format!(": the {name} stream is truncated")),
                "{cut} bytes: {why}"
            );
        }
        let why = read(&whole[..12]).unwrap_err();
        assert_eq!(why, format!("byte 0: the {name} stream is truncated"));
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0xff;
        damaged[whole.len() / 2 + 1] ^= 0xff;
        let why = read_with(
            &damaged,
            Some("spc"),
            &ReadOptions { skip_bad: u64::MAX, ..ReadOptions::default() },
        )
        .unwrap_err();
        assert!(why.contains(&format!("the {name} stream is ")), "{why}");
        let garbage_after = [whole, b"\x01\x02\x03 garbage".to_vec()].concat();
        if *name != "gz" {
            assert!(read(&garbage_after).is_err(), "{name}");
        }
    }
}

/// Reader that hands out its bytes, fails once, and then is at its end.
struct FailsOnce(Cursor<Vec<u8>>, bool);

impl io::Read for FailsOnce {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !std::mem::replace(&mut self.1, true) => {
                Err(io::Error::other("the cable came off"))
            }
            n => Ok(n),
        }
    }
}

#[test]
fn an_error_met_while_looking_ahead_is_not_lost() {
    let reader = FailsOnce(Cursor::new(b"0,1,512,r,0\n".to_vec()), false);
    let Opened { mut source, .. } = open(Box::new(reader), None, &ReadOptions::default()).unwrap();
    let (records, error) = drain(&mut *source);
    assert_eq!((records.len(), error.as_deref()), (1, Some("2:1: the cable came off")));
}

#[test]
fn nothing_recognised_and_nothing_there() {
    assert_eq!(read(b"").unwrap_err(), "byte 0: the trace is empty");
    for name in &COMPRESSIONS[1..] {
        assert_eq!(read(&compress(b"", name)).unwrap_err(), "byte 0: the trace is empty", "{name}");
    }
    for format in flashatlas_workload::FORMATS {
        assert_eq!(error(spec(format.name), ""), "byte 0: the trace is empty");
    }
    assert_eq!(
        read(b"\n\nonce upon a time\n").unwrap_err(),
        "no trace format recognises `once upon a time` (compression: none); formats: alibaba, arc, \
         atlas, blkparse, blkreplay, blktrace, columns, csv, disksim, events, fiu, ftrace, iolog, \
         jsonl, mqsim, msr, nexus5, oraclegeneral, pixel6a, spc, ssdsim, systor17, tencent, vscsi; \
         name one of them (`format`) to see where its reader stops"
    );
    assert_eq!(
        format_by_name("mrs").unwrap_err().to_string(),
        "format: trace format `mrs` is not known; did you mean `msr`? (allowed: alibaba, \
         arc, atlas, blkparse, blkreplay, blktrace, columns, csv, disksim, events, fiu, ftrace, \
         iolog, jsonl, mqsim, msr, nexus5, oraclegeneral, pixel6a, spc, ssdsim, systor17, tencent, \
         vscsi)"
    );
    let unknown = open(Box::new(Cursor::new(vec![1])), Some("mrs"), &ReadOptions::default()).err();
    assert_eq!(unknown, Some(OpenError::Config(format_by_name("mrs").unwrap_err())));
}

#[test]
fn one_kind_of_bad_record_can_be_skipped_alone() {
    // two records of no bytes, one of more than 1 GiB (2^30 + 512 bytes), and one that is bad for
    // another reason
    let text = "0,1,512,r,0\n0,1,0,r,0\n0,2,512,r,1\n0,2,0,r,1\n0,3,1073742336,r,1\nworse\n";
    let skipping =
        |kinds: &str| ReadOptions { skip_kinds: kinds.parse().unwrap(), ..ReadOptions::default() };
    let read = |text: &str, options: &ReadOptions| {
        let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let Opened { mut source, .. } = open(reader, Some("spc"), options).unwrap();
        let (records, error) = drain(&mut *source);
        let account = source.account();
        (records.len(), error.map(|e| e.to_string()), account.skipped_bad, account.skipped_kinds)
    };
    let told = |error: Option<String>| error.unwrap();
    // without the option, the error counts these records and names the option that skips them
    let (records, error, ..) = read(text, &ReadOptions::default());
    assert_eq!(
        (records, told(error)),
        (
            1,
            "2:5: a length of zero `0`; the reader expects at least one byte (2 such records from \
             here to the end; `skip_bad=zero-length` skips and counts this kind)"
                .to_owned()
        )
    );
    // with the option, a record of another kind is still an error, and the skipped records are
    // counted
    let (records, error, skipped, kinds) = read(text, &skipping("zero-length"));
    assert_eq!((records, skipped, kinds), (2, 2, [2, 0, 0]));
    let error = told(error);
    assert!(error.starts_with("5:5: a length beyond all requests `1073742336`"), "{error}");
    assert!(
        error.ends_with(
            " (bad records skipped before: 2) (the only such record from here to the end; \
             `skip_bad=too-long` skips and counts this kind)"
        ),
        "{error}"
    );
    let (records, error, skipped, kinds) = read(text, &skipping("zero-length,too-long"));
    assert_eq!((records, skipped, kinds), (2, 3, [2, 1, 0]));
    assert!(told(error).starts_with("6:1: the wrong number of columns in `worse`"));
    // a number skips bad records of any kind, and each kind is counted
    let any = ReadOptions { skip_bad: 4, ..ReadOptions::default() };
    assert_eq!(read(text, &any), (2, None, 4, [2, 1, 0]));
    // the same holds for binary records
    let binary = [vscsi1(512, 0x28, 1, 1), vscsi1(0, 0x28, 1, 1), vscsi1(0, 0x28, 1, 1)].concat();
    let error = read_with(&binary, None, &ReadOptions::default()).unwrap_err();
    assert!(error.contains("(2 such records from here to the end; "), "{error}");
    assert_eq!(read_with(&binary, None, &skipping("zero-length")).unwrap().len(), 1);
}

#[test]
fn a_long_trace_is_looked_at_for_a_million_lines() {
    let text = format!("0,1,512,r,0\n{}", "0,1,0,r,0\n".repeat(1_000_001));
    let error = read_with(text.as_bytes(), Some("spc"), &ReadOptions::default()).unwrap_err();
    assert!(
        error.contains("(at least 1000000 such records among the 1000000 from here; "),
        "{error}"
    );
}

#[test]
fn a_kind_that_does_not_exist_is_refused_with_those_that_do() {
    let refused = |text: &str| text.parse::<BadKinds>().unwrap_err().to_string();
    assert_eq!(
        refused("zero-lenght"),
        "skip_bad: kind of bad record `zero-lenght` is not known; did you mean `zero-length`? \
         (allowed: a number of records, zero-length, too-long, too-far)"
    );
    assert!(refused("zero-length,").contains("kind of bad record `` is not known"));
}
