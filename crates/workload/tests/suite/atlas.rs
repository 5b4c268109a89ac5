//! Tests of the atlas format: a file that another program wrote, every kind of damage, and reading
//! that starts in the middle of a file.

use crate::common::*;
use flashatlas_types::HostOp::{Flush, Read, Trim, Write};
use flashatlas_types::Ps;
use flashatlas_workload::atlas::{self, MAX_BLOCK_RECORDS};
use flashatlas_workload::{Bounds, Opened, Origin, ReadOptions, Record, Slice, open};
use std::io::{Cursor, Seek};

/// Returns a file that another program wrote, with docs/FORMATS.md as its only guide. The tests of
/// `atlas/block.rs` contain the same block.
fn small() -> Vec<u8> {
    std::fs::read(root().join("fuzz/corpus/trace_atlas/small.fatr")).unwrap()
}

fn origin() -> Origin {
    Origin {
        format: "iolog".into(),
        digest: "sha256:0".into(),
        device_names: vec!["/dev/sda".into(), "/dev/sdb".into()],
    }
}

fn small_records() -> Vec<Record> {
    let mut records = vec![
        record(0, Write, 16, 8, 0),
        record(3 * NS, Read, 24, 8, 0),
        record(2 * NS, Flush, 0, 0, 1),
        record(2 * NS, Trim, 0, 300, 1),
    ];
    records[0].request.fua = true;
    records
}

#[test]
fn a_file_as_the_layout_says() {
    let Opened { format, mut source, .. } =
        open(Box::new(Cursor::new(small())), None, &ReadOptions::default()).unwrap();
    assert_eq!((format.name, drain(&mut *source)), ("atlas", (small_records(), None)));
    assert_eq!(source.account().device_names, ["/dev/sda", "/dev/sdb"]);
    assert_eq!(source.bytes_read(), small().len() as u64);
    let (written, _) =
        write_from("atlas:zstd=0", &small_records(), "none", false, &origin()).unwrap();
    assert!(written == small(), "the writer makes the same bytes");
}

fn error(bytes: &[u8]) -> String {
    crate::common::error("atlas", bytes)
}

#[test]
fn no_bit_may_flip() {
    for (name, bytes) in [("plain", small()), ("zstd", many(MAX_BLOCK_RECORDS / 64, "atlas"))] {
        let step = if name == "plain" { 1 } else { 7 };
        for bit in (0..bytes.len() * 8).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let why = error(&flipped);
            assert!(why.starts_with("byte "), "{name}, bit {bit}: {why}");
            let skipping = ReadOptions { skip_bad: u64::MAX, ..ReadOptions::default() };
            assert!(read_with(&flipped, Some("atlas"), &skipping).is_err(), "{name}, bit {bit}");
        }
    }
}

#[test]
fn no_byte_may_be_missing_or_added() {
    let bytes = small();
    for cut in 1..bytes.len() {
        let why = error(&bytes[..cut]);
        assert!(
            why.contains("truncated") || cut < 8 && why.contains("not an atlas trace:"),
            "{cut}: {why}"
        );
    }
    let mut more = bytes.clone();
    more.push(0);
    assert_eq!(
        error(&more),
        format!(
            "byte {}: bytes after the end of the trace; the reader expects one trace in a file",
            bytes.len()
        )
    );
    assert!(error(&[bytes.clone(), bytes].concat()).contains("bytes after the end of the trace"));
}

#[test]
fn what_is_wrong_is_named() {
    let bytes = small();
    assert_eq!(
        error(b"time_ps,op,sector,sectors,fua,device\n"),
        "byte 0: not an atlas trace: `time_ps,`; the reader expects a file that begins with \
         \\x89FATR\\r\\n\\x1a"
    );
    assert_eq!(
        error(&bytes[..12]),
        "byte 12: the trace is truncated in its header; the reader expects 16 bytes"
    );
    let mut other = bytes.clone();
    other[8] = 2;
    let crc = crc32c::crc32c(&other[..12]);
    other[12..16].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(
        error(&other),
        "byte 8: version 2 of the atlas format; the reader expects version 1, which this reader \
         supports"
    );
    let flip = |at: usize| {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        error(&flipped)
    };
    assert_eq!(flip(8), "byte 8: a damaged header; the reader expects bytes that match its CRC");
    assert_eq!(
        flip(20),
        "byte 16: a damaged block header; the reader expects bytes that match its CRC"
    );
    assert_eq!(
        flip(60),
        "byte 16: a damaged block; the reader expects bytes that match the CRC in its header"
    );
    let end = bytes.len() - 16;
    assert!(
        flip(end - 1)
            .ends_with(": a damaged end record; the reader expects bytes that match its CRC")
    );
    assert_eq!(
        flip(end),
        format!("byte {end}: a damaged trailer; the reader expects the offset of the end record")
    );
    assert_eq!(
        flip(16),
        "byte 16: neither a block nor the end record: `C`; the reader expects `B` or `E`"
    );
    assert_eq!(
        error(&bytes[..80]),
        "byte 56: the trace is truncated in a block; the reader expects a complete file, which \
         ends with an index"
    );
}

#[test]
fn the_end_record_must_count_what_there_is() {
    let mut bytes = small();
    let end = bytes.iter().rposition(|&byte| byte == b'E').unwrap();
    assert_eq!(bytes[end..end + 4], [b'E', 0, 0, 0]);
    bytes[end + 16] = 5; // records in the file
    let body = end + 16..bytes.len() - 16;
    let crc = crc32c::crc32c(&bytes[body]);
    bytes[end + 8..end + 12].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[end..end + 12]);
    bytes[end + 12..end + 16].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(
        error(&bytes),
        format!(
            "byte {end}: the end record counts a different number of records than the blocks \
             contain; the reader expects equal numbers"
        )
    );
}

/// Returns `count` records, one every millisecond.
fn every_ms(count: usize) -> Vec<Record> {
    (0..count as u64)
        .map(|n| record(n * MS, if n % 3 == 0 { Read } else { Write }, n * 7919 % 100_000, 8, 0))
        .collect()
}

fn many(count: usize, format: &str) -> Vec<u8> {
    write_from(format, &every_ms(count), "none", false, &origin()).unwrap().0
}

#[test]
fn blocks_end_at_their_limit_and_read_on() {
    for count in
        [1, MAX_BLOCK_RECORDS - 1, MAX_BLOCK_RECORDS, MAX_BLOCK_RECORDS + 1, 3 * MAX_BLOCK_RECORDS]
    {
        for format in ["atlas", "atlas:zstd=0"] {
            assert!(read(&many(count, format)).unwrap() == every_ms(count), "{count} in {format}");
        }
    }
}

/// Returns the records of `bytes` from time `from` on, and the number of bytes that the search in
/// the index skipped.
fn from(bytes: &[u8], from: Ps) -> (Vec<Record>, u64) {
    let mut input = Cursor::new(bytes.to_vec());
    let position = atlas::seek(&mut input, from).unwrap();
    assert_eq!(input.stream_position().unwrap(), position.offset);
    assert_eq!(position.origin, origin());
    let source = atlas::resume(Box::new(input), &position, &ReadOptions::default());
    let mut slice = Slice::new(source, Bounds { from, ..Bounds::default() });
    (drain(&mut slice).0, position.offset)
}

#[test]
fn a_slice_starts_at_the_right_block() {
    let bytes = many(3 * MAX_BLOCK_RECORDS, "atlas");
    let all = every_ms(3 * MAX_BLOCK_RECORDS);
    let block = MAX_BLOCK_RECORDS as u64;
    let mut offsets = Vec::new();
    for first in [0, 1, block - 1, block, 2 * block + 5, 3 * block - 1] {
        let (got, offset) = from(&bytes, Ps(first * MS));
        offsets.push(offset);
        let mut expected = all[first as usize..].to_vec();
        expected.iter_mut().for_each(|r| r.request.at = Ps(r.request.at.0 - first * MS));
        assert!(got == expected, "from {first} ms");
        // a slice of the whole stream has the same records
        let Opened { source, .. } =
            open(Box::new(Cursor::new(bytes.clone())), None, &ReadOptions::default()).unwrap();
        let mut slice = Slice::new(source, Bounds { from: Ps(first * MS), ..Bounds::default() });
        assert!(drain(&mut slice).0 == expected, "from {first} ms of the stream");
    }
    offsets.dedup();
    assert_eq!(offsets.len(), 3, "one offset for each block");
    assert_eq!(offsets[0], 16);
    assert_eq!(from(&bytes, Ps(3 * block * MS)).0, [], "no record has a time that late");
}

#[test]
fn records_out_of_order_are_found_too() {
    // a record of the first block has a later time than the records after it
    let mut records = every_ms(2 * MAX_BLOCK_RECORDS);
    records[7].request.at = Ps(1_000_000 * MS);
    let (bytes, _) = write_from("atlas", &records, "none", false, &origin()).unwrap();
    let (got, offset) = from(&bytes, Ps(MAX_BLOCK_RECORDS as u64 * MS));
    assert_eq!((got.len(), offset), (MAX_BLOCK_RECORDS + 1, 16));
}

#[test]
fn seeking_refuses_what_it_cannot_use() {
    let seek = |bytes: &[u8]| {
        atlas::seek(&mut Cursor::new(bytes.to_vec()), Ps::ZERO).map_err(|e| e.to_string())
    };
    let bytes = small();
    assert_eq!(seek(&bytes).unwrap().records, 4);
    assert_eq!(
        seek(&bytes[..bytes.len() - 1]).unwrap_err(),
        format!(
            "byte {}: the trace is truncated: it has no trailer; the reader expects a complete \
             file, which ends with an index",
            bytes.len() - 17
        )
    );
    assert!(
        seek(&compress(&bytes, "gz"))
            .unwrap_err()
            .starts_with("byte 0: not an atlas trace: `\\x1f\\x8b")
    );
    let mut damaged = bytes.clone();
    damaged[bytes.len() - 20] ^= 1;
    assert!(seek(&damaged).unwrap_err().contains("a damaged end record"));
    for cut in 0..bytes.len() {
        assert!(seek(&bytes[..cut]).is_err(), "{cut} bytes");
    }
}

/// Reader that hands out one byte at a time.
struct Trickle(Cursor<Vec<u8>>);

impl std::io::Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let end = buffer.len().min(1);
        self.0.read(&mut buffer[..end])
    }
}

#[test]
fn a_pipe_will_do() {
    let bytes = many(1000, "atlas");
    let Opened { mut source, .. } =
        open(Box::new(Trickle(Cursor::new(bytes))), None, &ReadOptions::default()).unwrap();
    assert!(drain(&mut *source) == (every_ms(1000), None));
}

#[test]
fn options_apply_as_to_any_format() {
    let options = ReadOptions { shift_sectors: -16, skip_bad: 1, ..ReadOptions::default() };
    let got = read_with(&small(), None, &options).unwrap();
    assert_eq!(
        got.iter().map(|r| r.request.lba.0).collect::<Vec<_>>(),
        [0, 8, 0],
        "the trim at 0 cannot be shifted"
    );
}
