//! Formats that a specification describes, guesses of unknown formats, and oracleGeneral.

use crate::common::*;
use flashatlas_types::HostOp::{Flush, Read, Write};
use flashatlas_workload::{ReadOptions, Record};

fn described(spec: &str, text: &str) -> Vec<Record> {
    read_with(text.as_bytes(), Some(spec), &ReadOptions::default()).unwrap()
}

/// Returns the specification that the error about an unknown trace offers.
fn guessed(text: &str) -> Option<String> {
    let error = read(text.as_bytes()).unwrap_err();
    Some(error.split_once("format `")?.1.split_once("`: check the units")?.0.to_owned())
}

#[test]
fn numbers_are_hexadecimal_where_they_say_so() {
    let expected = [record(0, Read, 0x1f, 0x10, 0)];
    assert_eq!(described("columns:offset=0:sectors,size=1:sectors", "0x1F,0X10\n"), expected);
    assert_eq!(
        described("columns:offset=0:sectors,size=1:sectors,hex=true", "1f,0x10\n"),
        expected
    );
    assert_eq!(
        error("columns:offset=0:sectors,size=1:sectors", "1f,16\n"),
        "1:1: not a number `1f`; the reader expects an offset"
    );
    assert_eq!(
        error("columns:offset=0:sectors,size=1:sectors", "1,0x\n"),
        "1:3: not a number `0x`; the reader expects a size"
    );
}

#[test]
fn times_of_iso_8601_count_to_the_nanosecond() {
    let spec = "columns:time=0:iso,offset=1:sectors,size=2:sectors";
    let text = "2026-02-28T23:59:59.999999999Z,0,1\n2026-03-01 00:00:00.5,1,1\n\
                2026-03-01T02:00:01+01:00,2,1\n";
    let expected = [
        record(0, Read, 0, 1, 0),
        record(S / 2 + NS, Read, 1, 1, 0),
        record(3601 * S + NS, Read, 2, 1, 0),
    ];
    assert_eq!(described(spec, text), expected);
    for bad in ["2026-02-30T00:00:00Z", "12:00:00", "1969-12-31T23:00:00Z", "7"] {
        assert_eq!(
            error(spec, format!("{bad},0,1\n")),
            format!(
                "1:1: not an ISO 8601 time since 1970: `{bad}`; the reader expects a time such as \
                 2026-01-31T12:00:00.25Z"
            )
        );
    }
}

#[test]
fn a_length_may_count_from_zero_or_be_the_same_for_all() {
    let nvme = described("columns:offset=0:sectors,size=1:sectors,zero_based=true", "8,0\n8,7\n");
    assert_eq!(nvme, [record(0, Read, 8, 1, 0), record(0, Read, 8, 8, 0)]);
    let pages = described("columns:offset=0:4KiB,size=each:4KiB,op=1", "2,R\n3,W\n,F\n");
    assert_eq!(
        pages,
        [record(0, Read, 16, 8, 0), record(0, Write, 24, 8, 0), record(0, Flush, 0, 0, 0)]
    );
}

#[test]
fn json_lines_by_key_with_objects_within() {
    let spec = "jsonl:time=ts:us,op=io.op,offset=io.lba:sectors,size=io.len:bytes,device=disk";
    let text = "{\"ts\": 5, \"io\": {\"lba\": 8, \"op\": \"R\", \"len\": 4096}, \"disk\": \"a\"}\n\
                {\"disk\": \"b\", \"io\": {\"len\": \"0x200\", \"lba\": 9, \"op\": \"write\"}, \
                \"ts\": 6.5, \"more\": [1, {}]}\n";
    assert_eq!(
        described(spec, text),
        [record(0, Read, 8, 8, 0), record(1_500 * NS, Write, 9, 1, 1)]
    );
}

#[test]
fn json_lines_say_what_is_wrong_and_where() {
    let of = |text: &str| error("jsonl:offset=at:sectors,size=n:sectors", text);
    assert_eq!(
        of("{\"at\": 1, \"n\": 2}\n{\"at\": 1, \"n\": 2\n"),
        "2:16: not a JSON object: `2`; the reader expects a whole object on one line, with the \
         keys of the specification"
    );
    assert_eq!(
        of("{\"at\": 1}\n"),
        "1:1: a key of the specification is missing in `{\"at\": 1}`; the reader expects every key \
         of the specification"
    );
    assert_eq!(
        of("{\"at\": \"x\", \"n\": 1}\n"),
        "1:9: not a number `x`; the reader expects an offset"
    );
    assert_eq!(
        of("{\"at\": \"\\u0031\", \"n\": 1}\n"),
        "1:8: a string with escapes: `\"\\\\u0031\"`; the reader expects a string without escapes"
    );
    assert_eq!(
        of("{\"at\": {}, \"n\": 1}\n"),
        "1:8: not a number `{}`; the reader expects an offset"
    );
}

#[test]
fn the_columns_of_an_unknown_trace_are_guessed_from_its_header() {
    assert_eq!(
        guessed(
            "timestamp_us,opcode,lba,nbytes\n1700000000000000,read,8,4096\n\
             1700000000000009,write,16,512\n"
        )
        .as_deref(),
        Some(
            "columns:time=timestamp_us:us,op=opcode,offset=lba:sectors,size=nbytes:bytes,header=1"
        )
    );
    // 0 is a read and 1 a write; NVMe lengths count from zero; tabs separate the columns
    assert_eq!(
        guessed("time\tdev\tslba\tnlb\trw\n0.25\tnvme0\t0x100\t0\t0\n0.5\tnvme0\t0x108\t7\t1\n")
            .as_deref(),
        Some(
            "columns:time=time:s,op=rw,offset=slba:sectors,size=nlb:sectors,device=dev,read=0,\
             write=1,zero_based=true,delimiter=tab,header=1"
        )
    );
    assert_eq!(
        guessed("date;page;kind\n2026-01-01 00:00:00;5;x\n2026-01-01 00:00:01;6;x\n"),
        None,
        "no word shows that `page` is an address"
    );
    for document in ["[1,2,3]\n[4,5,6]\n", "<a>1,2,3</a>\n"] {
        assert_eq!(guessed(document), None, "{document}");
    }
}

#[test]
fn the_columns_of_an_unknown_trace_are_guessed_from_its_values() {
    let text =
        "2026-01-01T00:00:00Z | rd | 1048576 | 4096\n2026-01-01T00:00:01Z | wr | 8192 | 512\n";
    assert_eq!(
        guessed(text).as_deref(),
        Some("columns:time=0:iso,op=1,offset=2:bytes,size=3:bytes,read=rd,write=wr,delimiter=|")
    );
    let spec = guessed(text).unwrap();
    assert_eq!(
        described(&spec, text),
        [record(0, Read, 2048, 8, 0), record(S, Write, 16, 1, 0)],
        "the guessed specification reads the trace"
    );
}

/// A trace of MSR Cambridge whose column of offsets is missing has lengths in bytes and response
/// times: no column is an address.
#[test]
fn a_column_that_is_no_address_is_not_guessed_to_be_one() {
    let text = "128166372003061629,hm,1,Read,4096,41286\n\
                128166372016382155,hm,1,Write,8192,85321\n\
                128166372026382245,hm,1,Read,4096,39881\n";
    assert_eq!(guessed(text), None);
    let more = text.replace("d,", "d,383496192,7,").replace("e,", "e,2822144,7,");
    assert!(guessed(&more).is_some_and(|spec| spec.contains("offset=4:bytes")), "{more}");
}

#[test]
fn the_keys_of_json_lines_are_guessed() {
    let text = "{\"ts\": 1.5, \"io\": {\"offset\": 4096, \"size\": 8192, \"op\": \"W\"}}\n";
    assert_eq!(
        guessed(text).as_deref(),
        Some("jsonl:time=ts:s,op=io.op,offset=io.offset:bytes,size=io.size:bytes")
    );
}

/// Returns a record of oracleGeneral.
fn oracle(seconds: u32, object: u64, bytes: u32, next: i64) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(seconds.to_le_bytes());
    record.extend(object.to_le_bytes());
    record.extend(bytes.to_le_bytes());
    record.extend(next.to_le_bytes());
    record
}

#[test]
fn oraclegeneral_is_told_by_what_its_records_say_of_each_other() {
    let trace = |third: u64| {
        [oracle(7, 100, 512, 3), oracle(7, 200, 4096, -1), oracle(9, third, 1000, -1)].concat()
    };
    let expected =
        [record(0, Read, 100, 1, 0), record(0, Read, 200, 8, 0), record(2 * S, Read, 100, 2, 0)];
    assert_eq!(read(&trace(100)), Ok(expected.to_vec()));
    assert!(read(&trace(101)).unwrap_err().contains("no trace format recognises"));
    let blocks = read_with(&trace(100), Some("oraclegeneral:unit=4KiB"), &ReadOptions::default());
    assert_eq!(blocks.unwrap()[0], record(0, Read, 800, 1, 0));
    assert_eq!(
        error("oraclegeneral", oracle(0, 1, 0, -1)),
        alone(
            "byte 12: a length of zero `\\x00\\x00\\x00\\x00`; the reader expects at least one \
             byte",
            "zero-length"
        )
    );
    assert_eq!(
        error("oraclegeneral", &trace(100)[..30]),
        "byte 24: a truncated record `\\x07\\x00\\x00\\x00\\xc8\\x00`; the reader expects 24 bytes"
    );
}
