//! The delimited and blank-separated formats with each of their quirks, against requests written
//! out by hand.

use crate::common::*;
use flashatlas_types::HostOp;
use flashatlas_types::HostOp::{Flush, Read, Trim, Write};
use flashatlas_workload::{Opened, ReadOptions, Record, open};
use std::io::Cursor;

/// Returns the names of the devices of `text` in `format`, and two flags. The first is `true` if
/// its records have times, the second if they have operations.
fn said(text: &str, format: Option<&str>) -> (Vec<String>, bool, bool) {
    let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let Opened { mut source, times, operations, .. } =
        open(reader, format, &ReadOptions::default()).unwrap();
    assert_eq!(drain(&mut *source).1, None);
    (source.account().device_names, times, operations)
}

fn fua(record: Record) -> Record {
    let request = flashatlas_types::Request { fua: true, ..record.request };
    Record { request, ..record }
}

#[test]
fn alibaba() {
    let text = "3,W,0,4096,1577808000000018\n11,R,4097,512,1577808000000200\n\
                3,R,8192,16384,1577808000000010\n";
    let expected =
        [record(0, Write, 0, 8, 0), record(182 * US, Read, 8, 2, 1), record(0, Read, 16, 32, 0)];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    let named = format!("device_id,opcode,offset,length,timestamp\n{text}");
    assert_eq!(read(named.as_bytes()).unwrap(), expected);
    assert_eq!(said(text, None), (vec!["3".to_owned(), "11".to_owned()], true, true));
}

#[test]
fn tencent() {
    let text =
        "1538323200,12910952,128,0,1063\n1538323202,6338688,8,1,1627\n1538323202,0,1,1,1063\n";
    let expected = [
        record(0, Read, 12_910_952, 128, 0),
        record(2 * S, Write, 6_338_688, 8, 1),
        record(2 * S, Write, 0, 1, 0),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    assert_eq!(
        read(format!("timestamp,offset,size,ioType,volumeID\n{text}").as_bytes()).unwrap(),
        expected
    );
}

#[test]
fn systor17() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                1455591804.310701000,0.006475000,R,0,203468398592,32768\n\
                1455591804.310701001,,W,3,513,512\n1455591804.300000000,0.1,R,0,0,512\n";
    let expected =
        [record(0, Read, 397_399_216, 64, 0), record(NS, Write, 1, 2, 1), record(0, Read, 0, 1, 0)];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
}

#[test]
fn fiu() {
    // the digests and their number do not matter
    let text = "89966104303356 4253 nfsd 508112351 8 W 6 0 531e779d\n89966104304356 4253 nfsd \
                508112359 16 R 6 0 531e779d 05a1\n89966104304357 1 kjournald 0 8 R 6 1\n";
    let expected = [
        record(0, Write, 508_112_351, 8, 0),
        record(US, Read, 508_112_359, 16, 0),
        record(US + NS, Read, 0, 8, 1),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    assert_eq!(said(text, None).0, ["6 0", "6 1"]);
}

#[test]
fn nexus5() {
    // of the flags 0, 1, 4 and 5, bit 0 marks a write; 25 sectors become 24, 2 stay 2; the
    // generation time counts
    let text = "0\t\t8\t\t4096\t\t4\t\t1.740780627\t\t1.8\t\t1.9\t\t2.0\n\
                52465664\t\t25\t\t12800\t\t1\t\t1.740780628\t\t2.0\t\t2.1\t\t2.2\n\
                376834\t\t2\t\t1024\t\t5\t\t1.740780620\t\t2.0\t\t2.1\t\t2.2\n\
                16\t\t9\t\t4608\t\t0\t\t2.740780627\t\t2.8\t\t2.9\t\t3.0\n";
    let expected = [
        record(0, Read, 0, 8, 0),
        record(NS, Write, 52_465_664, 24, 0),
        record(0, Write, 376_834, 2, 0),
        record(S, Read, 16, 8, 0),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
}

#[test]
fn pixel6a() {
    // 83748699998 is .837487 as a binary fraction; the name of a process may contain commas
    let text = "proces,device,rw_flag,sector,size,timestamp\n\
                <...>-12228,8388608,R,29880920,16,159273.751646\n\
                a,b-1,8388608,WS,30175712,8,159273.83748699998\njbd2-9,8388624,FF,0,0,159273.9\n\
                jbd2-9,8388624,WFS,8,8,159273.9\nfstrim-1,8388608,D,64,128,159273.9\n\
                scsi-1,8388608,N,0,0,159273.9\n";
    let expected = [
        record(0, Read, 29_880_920, 16, 0),
        record(85_841 * US, Write, 30_175_712, 8, 0),
        record(148_354 * US, Flush, 0, 0, 1),
        fua(record(148_354 * US, Write, 8, 8, 1)),
        record(148_354 * US, Trim, 64, 128, 0),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
}

#[test]
fn arc_says_neither_operation_nor_time() {
    let text = "230027 8 0 0\n1 1 7 1\n";
    assert_eq!(
        read(text.as_bytes()).unwrap(),
        [record(0, Read, 230_027, 8, 0), record(0, Read, 1, 1, 0)]
    );
    assert_eq!(said(text, None), (vec![], false, false));
    let options = ReadOptions { assume_op: Some(Write), ..ReadOptions::default() };
    let pages = read_with(text.as_bytes(), Some("arc:block=4KiB"), &options).unwrap();
    assert_eq!(pages, [record(0, Write, 1_840_216, 64, 0), record(0, Write, 8, 8, 0)]);
}

#[test]
fn an_operation_is_assumed_only_where_there_is_none() {
    let with = |op: HostOp, text: &str| {
        let options = ReadOptions { assume_op: Some(op), ..ReadOptions::default() };
        read_with(text.as_bytes(), None, &options)
    };
    assert_eq!(
        with(Write, "0,1,512,r,0\n").unwrap_err(),
        "assume_op: this spc trace already names the operation of each record"
    );
    assert_eq!(
        with(Flush, "1 1 0 0\n").unwrap_err(),
        "assume_op: a flush has no address (allowed: read, write, trim)"
    );
    assert_eq!(with(Trim, "1 1 0 0\n").unwrap(), [record(0, Trim, 1, 1, 0)]);
}

#[test]
fn the_text_of_disksim_ssdsim_and_mqsim() {
    let whole = "0 0 303567 7 0\n26214 1 240840 6 1\n26214 0 8 1 1\n";
    let in_unit = |ps: u64| {
        [
            record(0, Write, 303_567, 7, 0),
            record(26_214 * ps, Read, 240_840, 6, 1),
            record(26_214 * ps, Read, 8, 1, 0),
        ]
    };
    for (format, ps) in [("ssdsim", NS), ("mqsim", NS), ("disksim", MS)] {
        assert_eq!(
            read_with(whole.as_bytes(), Some(format), &ReadOptions::default()).unwrap(),
            in_unit(ps)
        );
    }
    let sectors = "addresses and sizes sectors of 512 bytes";
    assert_eq!(
        read(whole.as_bytes()).unwrap_err(),
        format!(
            "several formats fit this content: `disksim` if times are milliseconds, {sectors}; \
             `mqsim` if times are nanoseconds, {sectors}; `ssdsim` if times are nanoseconds, \
             {sectors}; name one of them (`format`)"
        )
    );
    // times with decimals may be milliseconds of DiskSim, or seconds of another program
    let decimal = "5265.313 0 6357144 8 0\n5265.314 0 8 1 1\n";
    let named = |text: &str, format| {
        read_with(text.as_bytes(), Some(format), &ReadOptions::default()).unwrap()
    };
    let expected = [record(0, Write, 6_357_144, 8, 0), record(US, Read, 8, 1, 0)];
    assert_eq!(named(decimal, "disksim"), expected);
    let columns = |time, unit| {
        format!(
            "columns:time=0:{time},device=1,offset=2:{unit},size=3:{unit},op=4,read=1,write=0,\
             delimiter=space"
        )
    };
    let expected = [record(0, Write, 6_357_144, 8, 0), record(MS, Read, 8, 1, 0)];
    assert_eq!(named(decimal, &columns("s", "sectors")), expected);
    let seconds = format!("`{}` if times are seconds, {sectors}", columns("s", "sectors"));
    let ms = format!("`disksim` if times are milliseconds, {sectors}");
    let asked = |readings: &[&str]| {
        format!(
            "several formats fit this content: {}; name one of them (`format`)",
            readings.join("; ")
        )
    };
    assert_eq!(read(decimal.as_bytes()).unwrap_err(), asked(&[&ms, &seconds]));
    // multiples of 512 may be bytes: 65,536 sectors would be a request of 32 MiB
    let bytes = "0.000 0 8192 4096 0\n0.400 0 1048576 65536 1\n0.900 0 4096 8192 0\n";
    let spec = &*columns("ms", "bytes");
    let in_bytes = |time, words| {
        format!("`{}` if times are {words}, addresses and sizes bytes", columns(time, "bytes"))
    };
    let (ms_bytes, s_bytes) = (in_bytes("ms", "milliseconds"), in_bytes("s", "seconds"));
    assert_eq!(read(bytes.as_bytes()).unwrap_err(), asked(&[&ms, &seconds, &ms_bytes, &s_bytes]));
    assert_eq!(
        read_with(bytes.as_bytes(), Some(spec), &ReadOptions::default()).unwrap(),
        [
            record(0, Write, 16, 8, 0),
            record(400 * US, Read, 2048, 128, 0),
            record(900 * US, Write, 8, 16, 0)
        ]
    );
    // text with tabs may come from DiskSim, or from uFLIP with another unit of size
    let tabs = decimal.replace(' ', "\t");
    let pages = "`disksim:size=4KiB` if times are milliseconds, addresses sectors and sizes pages \
                 of 4 KiB, as in the uFLIP traces";
    assert_eq!(read(tabs.as_bytes()).unwrap_err(), asked(&[&ms, pages, &seconds]));
    let uflip =
        read_with(tabs.as_bytes(), Some("disksim:size=4KiB"), &ReadOptions::default()).unwrap();
    assert_eq!(uflip, [record(0, Write, 6_357_144, 64, 0), record(US, Read, 8, 8, 0)]);
}

#[test]
fn csv_holds_everything_and_counts_from_its_own_origin() {
    let text = "time_ps,op,sector,sectors,fua,device\n1500,write,8,16,1,3\n1499,read,0,8,0,0\n\
                2000,trim,0,4294967295,0,0\n2001,flush,0,0,0,3\n";
    let expected = [
        fua(record(1500, Write, 8, 16, 3)),
        record(1499, Read, 0, 8, 0),
        record(2000, Trim, 0, u32::MAX, 0),
        record(2001, Flush, 0, 0, 3),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
}

#[test]
fn columns_by_number_and_name_in_every_unit() {
    let read = |spec: &str, text: &str| {
        read_with(text.as_bytes(), Some(spec), &ReadOptions::default()).unwrap()
    };
    let expected = [record(0, Read, 8, 8, 0), record(10_500 * NS, Write, 9, 2, 1)];
    let spec = "columns:time=0:us,op=1,offset=2:bytes,size=3:bytes,device=4";
    assert_eq!(read(spec, "1,R,4096,4096,a,more\n11.5,W,4609,1000,b\n"), expected);
    assert_eq!(
        read(
            "columns:time=when:100ns,op=what,offset=where:sectors,size=how \
             much:bytes,device=disk,delimiter=;,header=2",
            "a comment\nwhat;disk;when;where;how much\nR;a;10;8;4096\nW;b;115;9;1000\n"
        ),
        expected
    );
    assert_eq!(
        read(
            "columns:delimiter=space,time=2:ps,op=0,read=7/get,write=8,offset=3:512,size=4:512,\
             device=1",
            " get  a 0   8 8\n\t8 b 10500000 9 2\n"
        ),
        expected
    );
    assert_eq!(
        read(
            "columns:delimiter=tab,offset=0:4KiB,size=1:4096,op=2,trim=X,flush=Y",
            "1\t2\tX\n\t\tY\n5\t1\tW\n"
        ),
        [record(0, Trim, 8, 16, 0), record(0, Flush, 0, 0, 0), record(0, Write, 40, 8, 0)]
    );
    // given spellings take precedence over the default spellings of other operations
    let swapped =
        read("columns:offset=0:sectors,size=1:sectors,op=2,read=W,write=R", "1,1,W\n1,1,R\n");
    assert_eq!(swapped.iter().map(|r| r.request.op).collect::<Vec<_>>(), [Read, Write]);
    // a comma is the default delimiter, and may be written out
    assert_eq!(read("columns:offset=0:sectors,size=1:sectors,delimiter=,", "1,1\n").len(), 1);
    assert_eq!(
        said("1,1\n", Some("columns:offset=0:sectors,size=1:sectors")),
        (vec![], false, false)
    );
    assert_eq!(
        said("1,1\n", Some("columns:time=0:s,offset=0:sectors,size=1:sectors")),
        (vec![], true, false)
    );
    assert_eq!(
        said("1,R\n", Some("columns:op=1,offset=0:sectors,size=0:sectors")),
        (vec![], false, true)
    );
}

#[test]
fn iolog_2_has_times_if_it_waits() {
    let log = |lines: &str| said(&format!("fio version 2 iolog\n{lines}f read 0 512\n"), None).1;
    assert!(log("f wait 10\n"));
    assert!(!log("f add\n"));
    assert!(said("fio version 3 iolog\n1 f read 0 512\n", None).1);
}

/// Returns the format that a text is read in, and the assumptions of the reading.
fn taken(text: &str) -> Result<(&'static str, String), String> {
    let content = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
    let opened = flashatlas_workload::open(content, None, &ReadOptions::default());
    let opened = opened.map_err(|error| error.to_string())?;
    Ok((opened.format.name, opened.guess.unwrap_or_default()))
}

#[test]
fn the_only_plausible_reading_is_taken_and_said() {
    // 40 requests of 8 sectors. If the times are milliseconds, there are 20 million requests a
    // second, 50 ns apart; if the times are seconds, there are 20 thousand a second
    let lines = |step: f64, size: u64, unit: u64| -> String {
        let line = |n: u64| format!("{:.6} 0 {} {size} 0\n", n as f64 * step, n * unit);
        (0..40).map(line).collect()
    };
    let (format, said) = taken(&lines(0.000_05, 8, 9)).unwrap();
    assert_eq!(format, "columns");
    assert!(said.starts_with("times are seconds, addresses and sizes sectors"), "{said}");
    assert!(said.contains("`disksim`") && said.contains("20 million requests a second"), "{said}");
    // 10 million a second is the limit of a plausible rate, so both readings may be meant
    assert!(taken(&lines(0.000_1, 8, 9)).unwrap_err().contains("several formats fit"));
    // a size of 1 MiB in bytes would be 512 MiB in sectors, more than a command can name. So the
    // sizes are bytes, and the user must name only the unit of time
    let asked = taken(&lines(0.1, 1 << 20, 1 << 20)).unwrap_err();
    assert!(!asked.contains("sectors") && asked.contains("`columns:time=0:ms,"), "{asked}");
    // if these whole numbers are milliseconds, requests are ten hours apart, and 512 requests fill
    // the 213 days of simulated time
    let whole: String = (0..900u64).map(|n| format!("{} 0 {n} 9 1\n", n * 36_000_000)).collect();
    let (format, said) = taken(&whole).unwrap();
    assert_eq!((format, said.starts_with("times are nanoseconds")), ("mqsim", true));
    assert!(said.contains("records that do not fit near the start"), "{said}");
}

#[test]
fn a_guess_that_is_taken_says_its_units_and_its_doubts() {
    let msr = |step: u64, offset: u64| -> String {
        let time = |n: u64| 128_166_372_003_061_629 + n * step;
        (0..40).map(|n| format!("{},hm,0,Read,{offset},4096,100\n", time(n))).collect()
    };
    assert_eq!(
        taken(&msr(10_000, 0)).unwrap(),
        ("msr", "times are units of 100 ns, addresses and sizes bytes".into())
    );
    // 2^49 bytes are 512 TiB
    let (_, said) = taken(&msr(10_000, 1 << 49)).unwrap();
    assert!(said.ends_with("; this would mean an address of 512 TiB, so check it"), "{said}");
    // for a format with fixed units, nothing is assumed
    let csv = "time_ps,op,sector,sectors,fua,device\n0,write,8,16,0,0\n";
    assert_eq!(taken(csv).unwrap(), ("csv", String::new()));
}
