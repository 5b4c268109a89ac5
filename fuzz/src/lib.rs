//! Code that the fuzz targets share.

use flashatlas_types::{Dur, HostOp, Ps};
use flashatlas_workload::{
    BadKinds, DeviceMap, MAX_TRANSFER_SECTORS, Opened, ReadOptions, TraceSummary, WriteOptions,
    atlas, create, open,
};
use std::io::Cursor;

/// Maximum number of records that are read from one input, because a few hundred bytes can
/// decompress to gigabytes.
const MAX_RECORDS: u32 = 100_000;

/// Returns options of reading that depend on the bits of `choice`.
fn options(choice: u8) -> ReadOptions {
    let bit = |bit: u8| choice >> bit & 1 == 1;
    ReadOptions {
        skip_bad: u64::from(choice & 3),
        skip_kinds: BadKinds::NONE,
        shift_sectors: [0, -7, i64::MIN, i64::MAX][usize::from(choice >> 6)],
        device_map: if bit(2) { DeviceMap::Select(1) } else { DeviceMap::Separate },
        drop_duplicates: bit(3).then_some(Dur(5_000_000_000)),
        time_gap_max: bit(4).then_some(Dur(1_000_000_000_000)),
        assume_op: None,
    }
}

/// A few lines that are valid in many formats.
const LINES: &[u8] = b"when,kind,where\n0,R,8,8,a\n1;W;16;8;b\n1 2 3 4\n";

/// Reads a few lines in the format `spec`, and makes a writer of this format. Both may fail.
pub fn spec(spec: &str) {
    if let Ok(Opened { mut source, .. }) =
        open(Box::new(LINES), Some(spec), &ReadOptions::default())
    {
        while let Ok(Some(_)) = source.next() {}
    }
    drop(create(spec, Box::new(std::io::sink()), "none", &WriteOptions::default()));
}

/// Finds a time in the trace `data` by its index, and reads the trace from there.
pub fn seek(data: &[u8]) {
    let from = Ps(u64::from(data.first().copied().unwrap_or_default()) * 1000);
    let mut input = Cursor::new(data.to_vec());
    let Ok(position) = atlas::seek(&mut input, from) else { return };
    let mut source = atlas::resume(Box::new(input), &position, &ReadOptions::default());
    while let Ok(Some(_)) = source.next() {}
}

/// Reads at most [`MAX_RECORDS`] records of `data`, in `format` or in the recognised format, and
/// checks the promises about every record. The last byte is a part of the trace, and also
/// determines the options.
pub fn read(format: Option<&str>, data: &[u8]) {
    let options = options(data.last().copied().unwrap_or_default());
    let Ok(Opened { mut source, .. }) =
        open(Box::new(Cursor::new(data.to_vec())), format, &options)
    else {
        return;
    };
    let mut summary = TraceSummary::new();
    let mut delivered = 0;
    while delivered < MAX_RECORDS {
        match source.next() {
            Ok(Some(record)) => {
                let request = record.request;
                let end = request.end().expect("the end of a request has an address");
                assert!(end <= 1 << 55, "the last byte has an address");
                match request.op {
                    HostOp::Flush => assert_eq!((request.lba.0, request.sectors), (0, 0)),
                    HostOp::Trim => assert!(request.sectors > 0),
                    HostOp::Read | HostOp::Write => {
                        assert!((1..=MAX_TRANSFER_SECTORS).contains(&request.sectors));
                    }
                }
                summary.add(&record);
                delivered += 1;
            }
            Ok(None) => {
                assert!(delivered > 0, "a trace without a request is an error");
                break;
            }
            Err(error) => {
                assert!(error.excerpt.chars().count() <= 40);
                assert!(error.record == u64::from(delivered) + error.skipped + 1);
                assert!(!error.to_string().contains('\n'));
                assert!(matches!(source.next(), Ok(None)), "an error ends the source");
                break;
            }
        }
    }
    assert!(source.account().skipped_bad <= options.skip_bad);
    assert_eq!(summary.requests(), u64::from(delivered));
    assert!(summary.distinct_pages_written() <= summary.pages_written());
}
