//! Each format with each of its quirks, against requests written out by hand.

use crate::common::*;
use flashatlas_types::HostOp::{Flush, Read, Trim, Write};
use flashatlas_types::{Lba, Ps};
use flashatlas_workload::{FORMATS, Opened, ReadOptions, Record, open};
use std::io::{self, Cursor};

#[test]
fn msr() {
    // 100 ns ticks; offsets and sizes off sector boundaries; two disks of a host and another host;
    // an early record
    let text = "128000000000000000,alpha,0,Read,1048576,24576,41\n\
                128000000000000007,alpha,0,Write,513,1,19\n\
                127999999999999999,alpha,1,write,511,514,\n128000000000000100,beta,0,READ,0,1,5\n\
                128000000000000050,alpha,0,Write,0,512,5\n";
    let expected = [
        record(0, Read, 2048, 48, 0),
        record(700 * NS, Write, 1, 1, 0),
        record(0, Write, 0, 3, 1),
        record(10 * US, Read, 0, 1, 2),
        record(5 * US, Write, 0, 1, 0),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    // a byte order mark, column names, CRLF, blank lines, and no line end at the end
    let dressed = format!(
        "\u{feff}\nTimestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\n{}",
        text.trim_end().replace(",alpha,0,Write,513", ",  alpha ,0 ,Write , 513 ")
    );
    // `alpha ,0 ` is another spelling, and so another device
    let got = read(dressed.replace('\n', "\r\n").as_bytes()).unwrap();
    assert_eq!(got.iter().map(|r| r.request).collect::<Vec<_>>(), expected.map(|r| r.request));
}

#[test]
fn spc() {
    let text = "0,1000,8192,W,0.100000\n1,2000,513,w,0.350000000001\n0,3000,15872,r,0.1\n\
                7,16,1,R,1.5,left,open\n";
    let expected = [
        record(0, Write, 1000, 16, 0),
        record(250_000_000_001, Write, 2000, 2, 1),
        record(0, Read, 3000, 31, 0),
        record(1400 * MS, Read, 16, 1, 2),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    assert_eq!(read(text.replace(',', " ,\t").replace('\n', "\r\n").as_bytes()).unwrap(), expected);
}

#[test]
fn blkreplay() {
    let text = "Made by hand; semicolons; in; the; preamble.\n1 ; 2 ; 3 ; W\n\nstart ; sector; \
                length ; op ;  replay_delay=0 ; replay_duration=0\n0.000000001 ;       64 ;    8 ; \
                W ; 0.0 ; 0.0\n0.000000002 ;       72 ;    7 ;WSF ; 0.0 ; 0.0\n# a comment\n\
                1.500000001 ;     4096 ;   16 ;RA ; 0.0 ; 0.0\n0.5 ; 8192 ; 4294967295 ; DS ; 0.0 \
                ; 0.0\n2.25 ; 0 ; 0 ; F ; 0.0 ; 0.0\n";
    let mut expected = [
        record(0, Write, 64, 8, 0),
        record(NS, Write, 72, 7, 0),
        record(1500 * MS, Read, 4096, 16, 0),
        record(500 * MS - NS, Trim, 8192, u32::MAX, 0),
        record(2250 * MS - NS, Flush, 0, 0, 0),
    ];
    expected[1].request.fua = true;
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    assert_eq!(read(text.replace('\n', "\r\n").as_bytes()).unwrap(), expected);
    // the line of names decides the number of columns
    assert_eq!(read(b"start;sector;length;op\n5;6;7;R\n").unwrap(), [record(0, Read, 6, 7, 0)]);
    // a load that was published twice; each time a licence and column names were put in front
    let names = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";
    let (preamble, load) = text.split_once(names).unwrap();
    let licence = "You may copy this; under the terms; of a licence.\n\n".repeat(25);
    let twice = format!("{preamble}{names}{licence}{names}{load}");
    assert_eq!(read(twice.as_bytes()).unwrap(), expected);
}

#[test]
fn iolog_2() {
    let text = "fio version 2 iolog\n/dev/sdb add\n/dev/sda add\n/dev/sda open\n/dev/sda wait 100 \
                0\n/dev/sda read 0 4096\n/dev/sda wait 1100 0\n/dev/sda write 4096 8192\n/dev/sdb \
                wait 500\n/dev/sdb trim 1000 100\n/dev/sda sync 0 0\n/dev/sdc datasync\n/dev/sda \
                close\n/dev/sda unlink\n";
    // times count from the first request; the wait until 500 ms has no effect, as that time has
    // passed; sdb is named first
    let expected = [
        record(0, Read, 0, 8, 1),
        record(S, Write, 8, 16, 1),
        record(S, Trim, 1, 2, 0),
        record(S, Flush, 0, 0, 1),
        record(S, Flush, 0, 0, 2),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
    assert_eq!(
        read(
            text.replace('\n', "\r\n")
                .replace(' ', "  ")
                .replace("fio  version  2  ", "fio version 2 ")
                .as_bytes()
        )
        .unwrap(),
        expected
    );
}

#[test]
fn iolog_3() {
    let text = "fio version 3 iolog\n2 /dev/sda add\n3 /dev/sda open\n10 /dev/sda read 0 4096\n12 \
                /dev/sdb write 512 512\n9 /dev/sda trim 65536 1048576\n15 /dev/sda datasync\n16 \
                /dev/sda close\n";
    let expected = [
        record(0, Read, 0, 8, 0),
        record(2 * US, Write, 1, 1, 1),
        record(0, Trim, 128, 2048, 0),
        record(5 * US, Flush, 0, 0, 0),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
}

/// Length, command, sector and time.
type Vscsi = (u32, u16, u64, u64);

/// Returns records for both versions of vscsi, and the records expected from reading them.
fn vscsi_cases() -> ([Vscsi; 5], [Record; 5]) {
    let cases = [
        (4096, 0x2a, 63, 1000),
        (512, 0x28, 7, 1005),
        (0, 0x35, 0, 1006),
        (513, 0x8a, 1 << 40, 990),
        (1, 0x88, 100, u64::MAX / 1_000_000_000),
    ];
    let expected = [
        record(0, Write, 63, 8, 0),
        record(5 * US, Read, 7, 1, 0),
        record(6 * US, Flush, 0, 0, 0),
        record(0, Write, 1 << 40, 2, 0),
        record((u64::MAX / 1_000_000_000 - 1000) * US, Read, 100, 1, 0),
    ];
    (cases, expected)
}

#[test]
fn vscsi_both_versions() {
    let (cases, expected) = vscsi_cases();
    let v1: Vec<u8> = cases.iter().flat_map(|&(l, c, s, t)| vscsi1(l, c, s, t)).collect();
    let v2: Vec<u8> = cases.iter().flat_map(|&(l, c, s, t)| vscsi2(l, c, s, t)).collect();
    assert_eq!((v1.len(), v2.len()), (5 * 32, 5 * 40));
    assert_eq!(read(&v1).unwrap(), expected);
    assert_eq!(read(&v2).unwrap(), expected);
    assert_eq!(read(&v1[..32]).unwrap(), expected[..1], "one record is enough to tell");
    assert_eq!(read(&v2[..40]).unwrap(), expected[..1]);
}

#[test]
fn the_shift_moves_every_address_but_a_flush() {
    let (cases, expected) = vscsi_cases();
    let bytes: Vec<u8> = cases.iter().flat_map(|&(l, c, s, t)| vscsi1(l, c, s, t)).collect();
    let got = read_with(&bytes, None, &ReadOptions { shift_sectors: -7, ..ReadOptions::default() })
        .unwrap();
    for (got, mut want) in got.into_iter().zip(expected) {
        if want.request.op != Flush {
            want.request.lba = Lba(want.request.lba.0 - 7);
        }
        assert_eq!(got, want);
    }
    let options = ReadOptions { shift_sectors: -64, ..ReadOptions::default() };
    assert_eq!(
        read_with(&bytes, None, &options).unwrap_err(),
        "byte 0: the address shift moves the request off the drive \
         `\\x07\\x00\\x00\\x00\\x00\\x10\\x00\\x00\\x01…`; the reader expects a smaller shift"
    );
}

#[test]
fn every_compression_and_several_streams_in_a_file() {
    let part = b"0,1,512,r,0\n0,2,512,r,1\n";
    let expected = [record(0, Read, 1, 1, 0), record(S, Read, 2, 1, 0)];
    for name in COMPRESSIONS {
        let once = compress(part, name);
        let Opened { format, compression, mut source, .. } =
            open(Box::new(Cursor::new(once.clone())), None, &ReadOptions::default()).unwrap();
        assert_eq!((format.name, compression), ("spc", name));
        assert_eq!(drain(&mut *source), (expected.to_vec(), None));
        assert_eq!(
            (source.bytes_read(), source.expected(), source.account().skipped_bad),
            (once.len() as u64, None, 0)
        );
        let twice = [once.clone(), once].concat();
        assert_eq!(read(&twice).unwrap(), [expected, expected].concat(), "{name}");
    }
}

/// A reader that hands out one byte at a time and is interrupted before each.
struct Trickle(Cursor<Vec<u8>>, bool);

impl io::Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        let end = buffer.len().min(1);
        if self.1 {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            self.0.read(&mut buffer[..end])
        }
    }
}

#[test]
fn buffers_may_end_anywhere() {
    let (cases, _) = vscsi_cases();
    let vscsi: Vec<u8> =
        cases.iter().cycle().take(5000).flat_map(|&(l, c, s, t)| vscsi2(l, c, s, t)).collect();
    let text: String = (0..20_000).map(|i| format!("0,{i},512,r,{i}.5\n")).collect();
    for (bytes, count) in [(vscsi, 5000), (text.into_bytes(), 20_000)] {
        for name in ["none", "gz", "xz"] {
            let packed = compress(&bytes, name);
            let trickle = Trickle(Cursor::new(packed), false);
            let Opened { mut source, .. } =
                open(Box::new(trickle), None, &ReadOptions::default()).unwrap();
            let (records, error) = drain(&mut *source);
            assert_eq!((records.len(), error), (count, None), "{name}");
        }
    }
}

#[test]
fn reading_counts_consumed_input() {
    let text: String = (0..200_000).map(|i| format!("0,{i},512,r,0\n")).collect();
    let Opened { mut source, .. } =
        open(Box::new(Cursor::new(text.clone().into_bytes())), None, &ReadOptions::default())
            .unwrap();
    source.next().unwrap();
    let early = source.bytes_read();
    assert!(early > 0 && early < text.len() as u64 / 2, "{early}");
    drain(&mut *source);
    assert_eq!(source.bytes_read(), text.len() as u64);
}

#[test]
fn long_times_fit_to_the_last_picosecond() {
    let text = format!("0,1,512,r,5\n0,2,512,r,{}.{:012}\n", u64::MAX / S + 5, u64::MAX % S);
    assert_eq!(read(text.as_bytes()).unwrap()[1].request.at, Ps(u64::MAX));
}

#[test]
fn every_format_file_is_in_the_list() {
    let folder = root().join("crates/workload/src/formats");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()))
        .filter(|name| name != "mod")
        .collect();
    files.sort();
    assert_eq!(
        files,
        FORMATS.iter().map(|f| f.name).collect::<Vec<_>>(),
        "a file for each format, the list in order"
    );
    for format in FORMATS {
        assert!(!format.summary.is_empty() && !format.quirks.is_empty());
        let fuzz = root().join("fuzz");
        assert!(
            fuzz.join(format!("fuzz_targets/trace_{}.rs", format.name)).exists(),
            "{} has no fuzz target",
            format.name
        );
        assert!(
            fuzz.join(format!("corpus/trace_{}", format.name)).exists(),
            "{} has no corpus",
            format.name
        );
    }
}

#[test]
fn every_format_is_told_from_all_others() {
    let mut refused = Vec::new();
    for format in FORMATS {
        let folder = root().join(format!("fuzz/corpus/trace_{}", format.name));
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = format!("{}/{}", format.name, path.file_name().unwrap().to_string_lossy());
            let bytes = std::fs::read(path).unwrap();
            match open(Box::new(Cursor::new(bytes)), None, &ReadOptions::default()) {
                Ok(opened) => assert_eq!(opened.format.name, format.name, "{name}"),
                Err(_) => refused.push(name),
            }
        }
    }
    refused.sort();
    // `columns` and `jsonl` are never recognised, the text of DiskSim may be read in several ways,
    // and most records of the bad file are bad
    let expected = [
        "columns/plain.csv",
        "disksim/spaces.txt",
        "disksim/tabs.txt",
        "jsonl/plain.jsonl",
        "mqsim/plain.txt",
        "spc/bad.spc",
        "ssdsim/plain.txt",
    ];
    assert_eq!(refused, expected);
}
