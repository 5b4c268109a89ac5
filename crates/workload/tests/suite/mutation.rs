//! Damaged traces: reading never panics. It ends in an error, or yields only records that keep the
//! promises of the crate.

use crate::common::*;
use flashatlas_types::{Dur, HostOp, Ps, Rng, Seed};
use flashatlas_workload::{
    BadKinds, DeviceMap, FORMATS, MAX_TRANSFER_SECTORS, Opened, ReadOptions, TraceSummary,
    WriteOptions, atlas, create, open,
};
use std::io::Cursor;

/// Number of damaged copies of each corpus file for each format.
const COPIES: u32 = 3000;

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        match rng.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.below(256) as u8),
            2 => bytes.insert(at, b"\n\r,; -.9\0\xff"[rng.below(10) as usize]),
            3 => {
                let end = (at + 1 + rng.below(16) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + rng.below(64) as usize).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = rng.below(bytes.len() as u64 + 1) as usize;
                bytes.splice(to..to, piece);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            _ => {}
        }
    }
}

/// Reads to the end. The first result is `true` if there was any record, the second if an error
/// ended reading.
fn survive(bytes: &[u8], format: Option<&str>, options: &ReadOptions) -> (bool, bool) {
    let Ok(Opened { mut source, .. }) =
        open(Box::new(Cursor::new(bytes.to_vec())), format, options)
    else {
        return (false, true);
    };
    let (records, error) = drain(&mut *source);
    let mut summary = TraceSummary::new();
    for record in &records {
        let request = record.request;
        assert!(request.end().is_some_and(|end| end <= 1 << 55), "{record:?}");
        let longest = if request.op == HostOp::Trim { u32::MAX } else { MAX_TRANSFER_SECTORS };
        assert_eq!(request.op == HostOp::Flush, request.sectors == 0, "{record:?}");
        assert!(request.sectors <= longest, "{record:?}");
        summary.add(record);
    }
    assert!(source.account().skipped_bad <= options.skip_bad);
    assert!(!records.is_empty() || error.is_some(), "a trace without a request is an error");
    (!records.is_empty(), error.is_some())
}

fn options(rng: &mut Rng) -> ReadOptions {
    let sometimes = |rng: &mut Rng, ps: u64| (rng.below(3) == 0).then_some(Dur(ps));
    ReadOptions {
        skip_bad: rng.below(3),
        skip_kinds: BadKinds::NONE,
        shift_sectors: [0, -7, 1 << 54][rng.below(3) as usize],
        device_map: [DeviceMap::Separate, DeviceMap::Collapse, DeviceMap::Select(0)]
            [rng.below(3) as usize],
        drop_duplicates: sometimes(rng, 5 * MS),
        time_gap_max: sometimes(rng, S),
        assume_op: None,
    }
}

#[test]
fn damaged_traces_are_read_or_refused() {
    let mut rng = Rng::stream(Seed(0x0f1a_5a7a), "mutation");
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root().join("fuzz/corpus")).unwrap() {
        let folder = folder.unwrap();
        if folder.file_name().to_string_lossy().starts_with("trace_") {
            files.extend(std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().path()));
        }
    }
    files.sort(); // the order of the files in a folder depends on the machine
    assert!(files.len() > 15, "the corpus is there");
    let formats: Vec<Option<&str>> =
        std::iter::once(None).chain(FORMATS.iter().map(|f| Some(spec(f.name)))).collect();
    let (mut read, mut refused) = (0, 0);
    for path in files {
        let original = std::fs::read(&path).unwrap();
        for copy in 0..COPIES {
            let mut bytes = original.clone();
            mutate(&mut bytes, &mut rng);
            let options = options(&mut rng);
            // each copy is read in the recognised format, and then in one of the formats in turn
            for format in [None, formats[copy as usize % formats.len()]] {
                let (records, error) = survive(&bytes, format, &options);
                read += u32::from(records);
                refused += u32::from(error);
            }
        }
    }
    // some damaged traces must be read, and some refused
    assert!(read > 20_000 && refused > 20_000, "{read} {refused}");
}

#[test]
fn damaged_indexes_are_used_or_refused() {
    let mut rng = Rng::stream(Seed(5), "index");
    let original = std::fs::read(root().join("fuzz/corpus/trace_atlas/small.fatr")).unwrap();
    let (mut used, mut refused) = (0, 0);
    for _ in 0..COPIES {
        let mut bytes = original.clone();
        mutate(&mut bytes, &mut rng);
        let mut input = Cursor::new(bytes);
        match atlas::seek(&mut input, Ps(rng.below(4000))) {
            Ok(position) => {
                drain(&mut *atlas::resume(Box::new(input), &position, &ReadOptions::default()));
                used += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(used > 100 && refused > 1000, "{used} {refused}");
}

#[test]
fn damaged_specifications_are_taken_or_refused() {
    const LINES: &[u8] = b"when,kind,where\n0,R,8,8,a\n1;W;16;8;b\n1 2 3 4\n";
    let mut rng = Rng::stream(Seed(6), "specification");
    let mut files: Vec<_> =
        std::fs::read_dir(root().join("fuzz/corpus/format_spec")).unwrap().collect();
    files.sort_by_key(|file| file.as_ref().unwrap().path());
    let (mut taken, mut refused) = (0, 0);
    for file in files {
        let original = std::fs::read(file.unwrap().path()).unwrap();
        for _ in 0..COPIES {
            let mut bytes = original.clone();
            mutate(&mut bytes, &mut rng);
            let spec = String::from_utf8_lossy(&bytes).into_owned();
            match open(Box::new(LINES), Some(&spec), &ReadOptions::default()) {
                Ok(Opened { mut source, .. }) => {
                    drain(&mut *source);
                    taken += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
            drop(create(&spec, Box::new(std::io::sink()), "none", &WriteOptions::default()));
        }
    }
    assert!(taken > 100 && refused > 5000, "{taken} {refused}");
}
