//! Formats that list the events of requests: blkparse, blktrace and WiscSee events, against
//! requests written out by hand.

use crate::common::*;
use flashatlas_types::HostOp::{Flush, Read, Trim, Write};
use flashatlas_workload::{Opened, ReadOptions, Record, open};
use std::io::Cursor;

fn with(bytes: &[u8], format: &str) -> Result<Vec<Record>, String> {
    read_with(bytes, Some(format), &ReadOptions::default())
}

fn fua(mut record: Record) -> Record {
    record.request.fua = true;
    record
}

const BLKPARSE: &str = "\
  8,16   3        1     0.000000001  3645  Q   R 1000 + 8 [java]
  8,16   3        2     0.000000500  3645  D   R 1000 + 8 [java]
  8,16   3        3     0.000001000  3645  C   R 1000 + 8 [0]
  8,32   3        4     0.000002000  3645  D FWFS 2000 + 16 [db]
  8,32   3        5     0.000003000  3645  D  FN [db]
  8,32   3        5     0.000003100  3645  C  FN 0 [0]
  8,16   3        6     0.000004000  3645  D   N 0 (00 ..) [kworker/u65:0]
  8,16   3        7     0.000005000  3645  D   R 36 (12 01 00 00 24 00 ..) [systemd-udevd]
  8,16   3        8     0.000006000  3645  m   N cfq3645 alloced
  8,16   3        9     0.000006500  3645  P   N [java]
  8,16   3       10     0.000006600  3645  A  WS 500 + 8 <- (8,17) 436
  8,16   1       11     0.000000400  3645  D  DS 4096 + 4194304 [fstrim]
  8,16   1       12     0.000007500  3645  D RAM 8 + 8 [java]
  8,16   1       13     0.000008500  3645  C  WS 8 + 8 [0]
CPU3 (8,16):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB
 Read depth:             7        	 Write depth:            33

Total (8,16):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB

Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,16): 12 entries
Skips: 0 forward (0 -   0.0%)
";

#[test]
fn blkparse_takes_what_was_issued() {
    let expected = [
        record(0, Read, 1000, 8, 0),
        record(1500 * NS, Flush, 0, 0, 1), // an F in front of W is a flush before the write
        fua(record(1500 * NS, Write, 2000, 16, 1)),
        record(2500 * NS, Flush, 0, 0, 1),
        record(0, Trim, 4096, 4_194_304, 0), // earlier than the first record
        record(7000 * NS, Read, 8, 8, 0),
    ];
    let Opened { format, mut source, .. } =
        open(Box::new(Cursor::new(BLKPARSE)), None, &ReadOptions::default()).unwrap();
    assert_eq!((format.name, drain(&mut *source)), ("blkparse", (expected.to_vec(), None)));
    assert_eq!(source.account().device_names, ["8,16", "8,32"]);
}

#[test]
fn blkparse_takes_another_action_when_told_or_when_none_was_issued() {
    let completed = [
        record(0, Read, 1000, 8, 0),
        record(2100 * NS, Flush, 0, 0, 1),
        record(7500 * NS, Write, 8, 8, 0),
    ];
    assert_eq!(with(BLKPARSE.as_bytes(), "blkparse:action=C").unwrap(), completed);
    let without = |action: &str| -> String {
        BLKPARSE
            .lines()
            .filter(|line| !line.contains(&format!("  {action} ")))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    assert_eq!(read(without("D").as_bytes()).unwrap(), completed);
    assert_eq!(
        with(BLKPARSE.as_bytes(), "blkparse:action=Q").unwrap(),
        [record(0, Read, 1000, 8, 0)]
    );
    assert_eq!(
        with(without("D").as_bytes(), "blkparse:action=D").unwrap_err(),
        "18:1: the trace holds no request; the reader expects at least one event of the action \
         that is read"
    );
    assert_eq!(
        with(BLKPARSE.as_bytes(), "blkparse:action=I").unwrap_err(),
        "blkparse: action: action `I` is not known; did you mean `C`? (allowed: auto, D, C, Q)"
    );
    assert_eq!(
        with(BLKPARSE.as_bytes(), "blkparse:acton=C").unwrap_err(),
        "blkparse: acton: parameter `acton` is not known; did you mean `action`? (allowed: action)"
    );
}

#[test]
fn commands_to_zones_are_read_where_they_move_data() {
    let line = |flags: &str, at: &str| format!("259,0 1 1 0.0 100 D {flags} {at} [x]\n");
    let text = [
        line("ZA", "2048 + 8"),
        line("ZR", "4096 + 128"),
        line("ZR", "8192 + 0"), // a reset without a length, as the kernel sends it
        line("ZRA", "0 + 0"),
        line("ZO", "0 + 0"),
        line("ZF", "0 + 0"),
        line("R", "0 + 8"),
    ];
    assert_eq!(
        with(text.concat().as_bytes(), "blkparse").unwrap(),
        [record(0, Write, 2048, 8, 0), record(0, Trim, 4096, 128, 0), record(0, Read, 0, 8, 0)]
    );
}

#[test]
fn faults_of_blkparse() {
    let bad = |line: &str| {
        with(format!("  8,0 0 1 0.0 1 D R 8 + 8 [a]\n{line}\n").as_bytes(), "blkparse").unwrap_err()
    };
    assert_eq!(
        bad("  8,0 0 1 0.0 1 D X 8 + 8 [a]"),
        "2:19: unknown operation flags `X`; the reader expects flags such as R, WS, FWFSM, D, FF, \
         ZA or N"
    );
    assert_eq!(
        bad("8,0 0 1 0.0 1 D R 8 [a]"),
        "2:1: no sectors in the event `8,0 0 1 0.0 1 D R 8 [a]`; the reader expects the fields \
         device cpu sequence time pid action flags sector + sectors"
    );
    assert_eq!(
        bad("8.0 0 1 0.0 1 D R 8 + 8 [a]"),
        "2:1: not a blkparse event: `8.0 0 1 0.0 1 D R 8 + 8 [a]`; the reader expects the fields \
         device cpu sequence time pid action flags sector + sectors"
    );
    assert_eq!(
        bad("8,0 0 1 x 1 D R 8 + 8 [a]"),
        "2:9: not a number `x`; the reader expects a time in seconds"
    );
    assert_eq!(
        bad("8,0 0 1 0 1 D R 8 + 0 [a]"),
        alone("2:21: a length of zero `0`; the reader expects at least one byte", "zero-length")
    );
}

const ISSUED: u32 = 7 | 1 << 22;
const COMPLETED: u32 = 8 | 1 << 23;
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSED_THROUGH: u32 = 1 << 25;
const NOTE: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;

/// An event of blktrace: time, sector, bytes, action, minor number of the device, payload.
type Event<'a> = (u64, u64, u32, u32, u32, &'a [u8]);

fn blktrace(events: &[Event<'_>], big: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for &(time, sector, bytes, action, minor, payload) in events {
        let put = |out: &mut Vec<u8>, number: u64, len: usize| {
            let bytes = number.to_be_bytes();
            let bytes = &bytes[8 - len..];
            if big { out.extend_from_slice(bytes) } else { out.extend(bytes.iter().rev()) }
        };
        for (number, len) in [
            (0x6561_7407, 4),
            (1, 4),
            (time, 8),
            (sector, 8),
            (bytes.into(), 4),
            (action.into(), 4),
            (99, 4),
            ((8 << 20 | minor).into(), 4),
            (2, 4),
            (0, 2),
            (payload.len() as u64, 2),
        ] {
            put(&mut out, number, len);
        }
        out.extend_from_slice(payload);
    }
    out
}

#[test]
fn blktrace_of_both_byte_orders() {
    let events: [Event<'_>; 9] = [
        (100, 8, 4096, 1 | 1 << 20 | READ, 16, b""), // queued
        (200, 8, 4096, ISSUED | READ, 16, b""),
        (250, 0, 0, NOTE, 16, b"a message"),
        (300, 64, 8193, ISSUED | WRITE | FLUSH | FUA, 32, b""),
        (400, 0, 0, ISSUED | FLUSH, 32, b""),
        // a control group in the payload
        (500, 128, 65_536, ISSUED | 1 << 8 | WRITE | DISCARD, 16, &[1; 8]),
        (600, 0, 36, ISSUED | PASSED_THROUGH, 16, b"\x12\x00"),
        (700, 0, 0, ISSUED, 16, b""), // neither data nor a flush
        (150, 16, 512, COMPLETED | READ, 16, b""),
    ];
    let expected = [
        record(0, Read, 8, 8, 0),
        record(100 * NS, Flush, 0, 0, 1),
        fua(record(100 * NS, Write, 64, 17, 1)),
        record(200 * NS, Flush, 0, 0, 1),
        record(300 * NS, Trim, 128, 128, 0),
    ];
    for big in [false, true] {
        let bytes = blktrace(&events, big);
        assert_eq!(read(&bytes).unwrap(), expected);
        let Opened { mut source, .. } = open(
            Box::new(Cursor::new(bytes.clone())),
            Some("blktrace:action=C"),
            &ReadOptions::default(),
        )
        .unwrap();
        assert_eq!(drain(&mut *source).0, [record(0, Read, 16, 1, 0)]);
        assert_eq!(source.account().device_names, ["8,16"]);
        assert_eq!(source.bytes_read(), bytes.len() as u64);
        // without issued events, the completed events are read
        let others: Vec<Event<'_>> = events.iter().copied().filter(|e| e.3 & 0xff != 7).collect();
        assert_eq!(read(&blktrace(&others, big)).unwrap(), [record(0, Read, 16, 1, 0)]);
    }
}

#[test]
fn faults_of_blktrace() {
    let good = blktrace(
        &[(1, 8, 4096, ISSUED | READ, 0, b"12"), (2, 8, 4096, ISSUED | READ, 0, b"")],
        false,
    );
    let error = |bytes: &[u8]| with(bytes, "blktrace").unwrap_err();
    assert_eq!(
        error(b"not a trace of blktrace"),
        "byte 0: not a blktrace event: `not `; the reader expects 0x65617407 in either byte order"
    );
    assert_eq!(
        error(&good[..good.len() - 1]),
        "byte 50: a truncated record `\\x07tae\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00…`; the \
         reader expects 48 bytes"
    );
    assert!(error(&good[..49]).starts_with("byte 0: a record whose payload is truncated, `"));
    let mut other = good.clone();
    other[50] = 8;
    assert_eq!(
        error(&other),
        "byte 50: an unknown event version: `\\x08tae`; the reader expects 0x65617407 in either \
         byte order"
    );
    // without the magic number, the reader cannot find the records that follow
    let mut lost = good.clone();
    lost[53] = b'x';
    let options = ReadOptions { skip_bad: 100, ..ReadOptions::default() };
    assert_eq!(
        read_with(&lost, None, &options).unwrap_err(),
        "byte 50: not a blktrace event: `\\x07tax`; the reader expects 0x65617407 in either byte \
         order"
    );
    let huge = blktrace(&[(1, u64::MAX, 4096, ISSUED | READ, 0, b"")], false);
    assert_eq!(
        error(&huge),
        alone(
            "byte 16: an address beyond all drives `\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff`; the \
             reader expects an end below 2^64 bytes",
            "too-far"
        )
    );
}

#[test]
fn events() {
    let text = "\
39949 D read 299008 4096 0.5 0 False
0 C read 299008 4096 0.500122793 0.000122793 False
39949 D write 4096 513 0.5000001 4.4e-05 True
1386 D discard 0 1048576 0.439239477 4.43e-06 False
";
    let expected =
        [record(0, Read, 584, 8, 0), record(100 * NS, Write, 8, 2, 0), record(0, Trim, 0, 2048, 0)];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    assert_eq!(with(text.as_bytes(), "events:action=C").unwrap(), [record(0, Read, 584, 8, 0)]);
    let completed: String = text.lines().skip(1).take(1).collect();
    assert_eq!(read(completed.as_bytes()).unwrap(), [record(0, Read, 584, 8, 0)]);
    assert_eq!(
        with(b"1 D raed 0 4096 0 0 False\n", "events").unwrap_err(),
        "1:5: an unknown operation `raed`; the reader expects read, write or discard"
    );
    assert_eq!(
        with(b"1 X read 0 4096 0 0 False\n", "events").unwrap_err(),
        "1:3: an unknown action `X`; the reader expects D, C or Q"
    );
}

/// Text that `/sys/kernel/tracing/trace` shows, with a task whose name has a blank.
const FTRACE: &str = "\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
     kworker/0:1-100   [000] ..... 1000.000000: block_rq_issue: 8,0 R 4096 () 1000 + 8 [kworker]
          <idle>-0     [000] d.h1. 1000.000500: block_rq_complete: 8,0 R () 1000 + 8 [0]
     Web Content-789   [000] ..... 1000.001000: block_rq_issue: 8,0 WS 8192 () 2048 + 16 be,0,0 [x]
CPU:3 [LOST 4 EVENTS]
     kworker/3:1-77    [003] ..... 1000.002000: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/3:1]
     kworker/3:1-77    [003] ..... 1000.002500: block_rq_issue: 8,0 N 36 (12 00 + 24) 0 + 0 [udevd]
           fio-9       [003] ..... 1000.002600: sched_switch: prev_comm=fio prev_pid=9
      fstrim-901       [001] ..... 1000.003000: block_rq_issue: 259,3 D 65536 () 4096 + 128 [fstrim]
";

#[test]
fn the_text_of_the_kernel_is_what_was_issued() {
    let expected = [
        record(0, Read, 1000, 8, 0),
        record(1_000_000 * NS, Write, 2048, 16, 0),
        record(2_000_000 * NS, Flush, 0, 0, 0),
        record(3_000_000 * NS, Trim, 4096, 128, 1),
    ];
    let Opened { format, mut source, .. } =
        open(Box::new(Cursor::new(FTRACE)), None, &ReadOptions::default()).unwrap();
    assert_eq!((format.name, drain(&mut *source)), ("ftrace", (expected.to_vec(), None)));
    assert_eq!(source.account().device_names, ["8,0", "259,3"]);
    let completed = with(FTRACE.as_bytes(), "ftrace:action=C").unwrap();
    assert_eq!(completed, [record(0, Read, 1000, 8, 0)]);
}

#[test]
fn the_tools_that_print_events_of_the_kernel_do_it_otherwise() {
    // text of trace-cmd report and of perf script, and bio events where no request events were
    // recorded
    let one = [record(0, Write, 2048, 16, 0)];
    for text in [
        "cpus=2\n  fio-789  [000]  1000.001000: block_rq_issue:  8,0 W 8192 () 2048 + 16 [fio]\n",
        "fio 789 [000] 1000.001000: block:block_rq_issue: 8,0 W 8192 () 2048 + 16 [fio]\n",
        "fio-789 (789) [000] d..1. 1.5: block_bio_queue: 8,0 W 2048 + 16 [fio]\n",
        "fio-789 [000] 1.5: block_rq_issue: 8,0 W 8192 () 2048 + 16 be,0,4 [fio]\n",
    ] {
        assert_eq!(read(text.as_bytes()).unwrap(), one, "{text}");
    }
    let bad = |line: &str| with(line.as_bytes(), "ftrace").unwrap_err();
    assert!(bad("fio-789 1.5 W 8\n").contains("not a kernel event:"));
    assert!(bad("f-1 [0] 1.5: block_rq_issue: 8,0 W 8192 ()\n").contains("too few fields"));
    assert!(bad("f-1 [0] 1.5: block_rq_issue: 8,0\n").contains("too few fields"));
    assert!(bad("f-1 [0] 1.5: block_rq_issue: 8 W 1 () 0 + 8\n").contains("not a device:"));
    assert!(bad("f-1 [0] 1.5: block_rq_issue: 8,0 Q 1 () 0 + 8\n").contains("operation flags"));
    assert!(bad("f-1 [0] 1.5: block_rq_issue: 8,0 W 1 () x + 8\n").contains("not a number"));
    assert!(bad("f-1 [0] 1.5: sched_switch: a\n").contains("the trace holds no request"));
}
