//! Errors of bad input in the delimited and blank-separated formats, word for word.

use crate::common::*;
use flashatlas_workload::{FORMATS, ReadOptions};

/// Returns the error of the second line of a trace in `format` whose first line is `good`.
fn second(format: &str, good: &str, bad: &str) -> String {
    error(format, format!("{good}\n{bad}\n"))
}

#[test]
fn alibaba() {
    let bad = |line| second("alibaba", "3,W,0,4096,18", line);
    assert_eq!(
        bad("3,W,0,4096"),
        "2:1: the wrong number of columns in `3,W,0,4096`; the reader expects 5 columns: \
         device,R|W,offset,length,timestamp"
    );
    assert_eq!(bad("3,w,0,4096,18"), "2:3: an unknown operation `w`; the reader expects R or W");
    assert_eq!(
        bad("3,W,0,0,18"),
        alone("2:7: a length of zero `0`; the reader expects at least one byte", "zero-length")
    );
    assert_eq!(
        bad("3,W,0,4096,1.5"),
        "2:12: not a number `1.5`; the reader expects a timestamp in microseconds"
    );
    assert_eq!(bad(",W,0,4096,1"), "2:1: an empty field; the reader expects the name of a device");
}

#[test]
fn tencent() {
    let bad = |line| second("tencent", "1538323200,12910952,128,0,1063", line);
    assert_eq!(
        bad("1,2,3,0"),
        "2:1: the wrong number of columns in `1,2,3,0`; the reader expects 5 columns: \
         timestamp,offset,size,0|1,volume"
    );
    assert_eq!(
        bad("1,2,3,2,4"),
        "2:7: an unknown operation `2`; the reader expects 0 (read) or 1 (write)"
    );
    assert_eq!(
        bad("1,2,3,0,x"),
        "2:9: not a number `x`; the reader expects the number of a volume"
    );
    assert_eq!(
        bad("1.5,2,3,0,4"),
        "2:1: not a number `1.5`; the reader expects a time in whole seconds"
    );
}

#[test]
fn systor17() {
    let bad = |line| second("systor17", "1.5,0.1,R,0,512,512", line);
    assert_eq!(
        bad("1.5,0.1,R,0,512"),
        "2:1: the wrong number of columns in `1.5,0.1,R,0,512`; the reader expects 6 columns: \
         Timestamp,Response,IOType,LUN,Offset,Size"
    );
    assert_eq!(
        bad("1.5,x,R,0,0,512"),
        "2:5: not a number `x`; the reader expects a response time in seconds, or nothing"
    );
    assert_eq!(bad("1.5,,T,0,0,512"), "2:6: an unknown operation `T`; the reader expects R or W");
}

#[test]
fn fiu() {
    let bad = |line| second("fiu", "0 1 p 8 8 R 6 0 ab", line);
    assert_eq!(
        bad("0 1 p 8 8 R 6"),
        "2:1: the wrong number of columns in `0 1 p 8 8 R 6`; the reader expects at least 8 \
         columns: timestamp pid process lba sectors R|W major minor md5"
    );
    assert_eq!(bad("0 1 p 8 8 D 6 0"), "2:11: an unknown operation `D`; the reader expects R or W");
    assert_eq!(bad("0 1 p 8 8 R 6 m"), "2:15: not a number `m`; the reader expects a minor number");
}

#[test]
fn nexus5() {
    let bad = |line| second("nexus5", "0 8 4096 4 1.7 1.8 1.9 2.0", line);
    assert_eq!(
        bad("0 8 4096 4 1.7 1.8 1.9"),
        "2:1: the wrong number of columns in `0 8 4096 4 1.7 1.8 1.9`; the reader expects 8 \
         columns: sector sectors bytes flags generate start submit finish"
    );
    assert_eq!(
        bad("0 8 4095 4 1.7 1.8 1.9 2.0"),
        "2:5: not the number of bytes in these sectors: `4095`; the reader expects 512 bytes a \
         sector"
    );
    assert_eq!(
        bad("0 8 4096 W 1.7 1.8 1.9 2.0"),
        "2:10: not a number `W`; the reader expects flags, bit 0 of which is 1 for a write"
    );
}

#[test]
fn pixel6a() {
    let bad = |line| second("pixel6a", "p,8388608,R,8,16,1.5", line);
    assert_eq!(
        bad("p,1,R,8,16"),
        "2:1: the wrong number of columns in `p,1,R,8,16`; the reader expects 6 columns: \
         proces,device,rw_flag,sector,size,timestamp"
    );
    assert_eq!(
        bad("p,1,X,8,16,1.5"),
        "2:5: unknown operation flags `X`; the reader expects flags such as R, WS, FWFSM, D, FF, \
         ZA or N"
    );
    assert_eq!(
        bad("p,q,R,8,16,1.5"),
        "2:3: not a number `q`; the reader expects the number of a device"
    );
}

#[test]
fn arc() {
    let bad = |line| second("arc", "1 1 0 0", line);
    assert_eq!(
        bad("1 1 0"),
        "2:1: the wrong number of columns in `1 1 0`; the reader expects 4 columns: first_block \
         count ignored sequence_number"
    );
    assert_eq!(
        bad("1 0 0 1"),
        alone("2:3: a length of zero `0`; the reader expects at least one byte", "zero-length")
    );
    let huge = error("arc:block=1MiB", "1 1025 0 0\n");
    assert_eq!(
        huge,
        alone(
            "1:3: a length beyond all requests `1025`; the reader expects at most 1 GiB, or 2 TiB \
             less a sector for a trim",
            "too-long"
        )
    );
    assert_eq!(
        error("arc:block=1000", "1 1 0 0\n"),
        "arc: block: 1000 bytes are not a whole number of sectors (allowed: multiples of 512)"
    );
}

#[test]
fn the_text_of_disksim() {
    let bad = |line| second("disksim", "1.5 0 8 8 1", line);
    assert_eq!(
        bad("1.5 0 8 8"),
        "2:1: the wrong number of columns in `1.5 0 8 8`; the reader expects 5 columns: time \
         device sector sectors op"
    );
    assert_eq!(
        bad("1.5 0 8 8 2"),
        "2:11: an unknown operation `2`; the reader expects 0 (write) or 1 (read)"
    );
    assert_eq!(
        bad("x 0 8 8 1"),
        "2:1: not a number `x`; the reader expects a time in milliseconds"
    );
    assert_eq!(
        bad("1 d 8 8 1"),
        "2:3: not a number `d`; the reader expects the number of a device"
    );
    assert_eq!(
        error("mqsim", "x 0 8 8 1\n"),
        "1:1: not a number `x`; the reader expects a time in nanoseconds"
    );
    assert_eq!(
        error("disksim:size=1000", "1 0 8 8 1\n"),
        "disksim: size: 1000 bytes are not a whole number of sectors (allowed: multiples of 512)"
    );
}

#[test]
fn csv() {
    const NAMES: &str = "time_ps,op,sector,sectors,fua,device";
    let bad = |line| second("csv", NAMES, line);
    assert_eq!(
        error("csv", "0,read,0,8,0,0\n"),
        "1:1: not a line of column names: `0,read,0,8,0,0`; the reader expects 6 columns: \
         time_ps,op,sector,sectors,fua,device"
    );
    assert_eq!(
        bad("0,raed,0,8,0,0"),
        "2:3: an unknown operation `raed`; the reader expects read, write, trim or flush"
    );
    assert_eq!(
        bad("0,read,0,8,2,0"),
        "2:12: not 0 or 1: `2`; the reader expects 1 for forced unit access, else 0"
    );
    assert_eq!(
        bad("0,read,0,8,0,65536"),
        "2:14: not a device number: `65536`; the reader expects at most 65,535"
    );
    assert_eq!(
        bad("0,flush,0,8,0,0"),
        "2:11: a flush with an address or length: `8`; the reader expects 0 for both"
    );
    assert_eq!(
        bad("0,read,0,0,0,0"),
        alone("2:10: a length of zero `0`; the reader expects at least one byte", "zero-length")
    );
}

#[test]
fn columns() {
    let of = |settings: &str, text: &str| {
        error(&format!("columns:offset=0:bytes,size=1:bytes{settings}"), text)
    };
    assert_eq!(
        of(",op=2", "0,1,R\n0,1\n"),
        "2:1: too few columns in `0,1`; the reader expects every column of the specification"
    );
    assert_eq!(
        of(",op=2", "0,1,R\n0,1,X\n"),
        "2:5: an unknown operation `X`; the reader expects one of the spellings of read, write, \
         trim and flush"
    );
    assert_eq!(of(",time=2:s", "0,1,x\n"), "1:5: not a number `x`; the reader expects a time");
    assert_eq!(of(",time=2", "0,1,1\n"), "columns: time: `2` has no unit: write time=PLACE:UNIT");
    assert_eq!(
        of(",time=2:m", "0,1,1\n"),
        "columns: time: unit `m` is not known; did you mean `ms`? (allowed: ps, ns, 100ns, us, ms, \
         s, iso)"
    );
    assert_eq!(
        error("columns:offset=0:page,size=1:bytes", "0,1\n"),
        "columns: offset: unit `page` is not known (allowed: bytes, sectors, 1 to 1GiB)"
    );
    assert_eq!(
        of(",op=kind", "0,1,R\n"),
        "columns: op: `kind` is a name, and no line names the columns: write header=1, or a number"
    );
    assert_eq!(
        of(",op=knd,header=1", "at,len,kind\n0,1,R\n"),
        "columns: op: column `knd` is not known; did you mean `kind`? (allowed: at, len, kind)"
    );
    assert_eq!(
        of(",op=1024", "0,1,R\n"),
        "columns: op: there is no column 1024 (allowed: 0 to 1023)"
    );
    assert_eq!(
        of(",delimiter=blank", "0,1,R\n"),
        "columns: delimiter: delimiter `blank` is not known (allowed: tab, space, comma, \
         semicolon, one sign)"
    );
    assert_eq!(
        of(",op=2,read=X,write=X", "0,1,X\n"),
        "columns: write: `X` is already a spelling of a read"
    );
    assert_eq!(
        error("columns:offset=0:bytes", "0,1\n"),
        "columns: size: is not given: PLACE:UNIT of the length, with the units of offset; \
         `each:4KiB`: every request has this size"
    );
    assert_eq!(
        error("columns:offset=0:1GiB,size=1:bytes", "17179869184,1\n"),
        alone(
            "1:1: an address beyond all drives `17179869184`; the reader expects an end below 2^64 \
             bytes",
            "too-far"
        )
    );
}

#[test]
fn formats_without_parameters_refuse_them() {
    for format in FORMATS.iter().filter(|f| f.params.is_empty()) {
        let name = format.name;
        let why = read_with(b"x", Some(&format!("{name}:action=C")), &ReadOptions::default())
            .unwrap_err();
        assert_eq!(why, format!("{name}: action=C: `{name}` takes no parameters"));
        assert!(
            read_with(b"x", Some(&format!("{name}:")), &ReadOptions::default()).is_err(),
            "as without the colon"
        );
    }
}

#[test]
fn every_format_says_where_it_comes_from_and_its_terms() {
    for format in FORMATS {
        for text in [format.summary, format.quirks, format.source, format.licence] {
            assert!(text.len() > 10 && !text.contains("  "), "{}: {text}", format.name);
        }
    }
}
