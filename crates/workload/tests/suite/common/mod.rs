//! Helpers of the tests.

use flashatlas_types::{HostOp, Lba, Ps, Request};
use flashatlas_workload::{
    Opened, Origin, ReadOptions, Record, RecordSource, WriteError, WriteOptions, Written, create,
    open,
};
use std::io::{Cursor, Write};
use std::path::PathBuf;

/// One nanosecond in picoseconds.
pub const NS: u64 = 1_000;
pub const US: u64 = 1_000 * NS;
pub const MS: u64 = 1_000 * US;
pub const S: u64 = 1_000 * MS;

/// Returns everything that `source` yields, or the error that ends it.
pub fn drain(source: &mut dyn RecordSource) -> (Vec<Record>, Option<String>) {
    let mut records = Vec::new();
    loop {
        match source.next() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, None),
            Err(error) => {
                assert_eq!(source.next(), Ok(None), "an error ends the source");
                return (records, Some(error.to_string()));
            }
        }
    }
}

/// Returns every record of `bytes`, or the error.
pub fn read_with(
    bytes: &[u8],
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<Vec<Record>, String> {
    let Opened { mut source, .. } =
        open(Box::new(Cursor::new(bytes.to_vec())), format, options).map_err(|e| e.to_string())?;
    match drain(&mut *source) {
        (records, None) => Ok(records),
        (_, Some(error)) => Err(error),
    }
}

/// Returns every record of `bytes`, whose format is recognised.
pub fn read(bytes: &[u8]) -> Result<Vec<Record>, String> {
    read_with(bytes, None, &ReadOptions::default())
}

/// Returns the format called `name` with the parameters that it needs.
pub fn spec(name: &'static str) -> &'static str {
    match name {
        "columns" => "columns:time=0:us,op=1,offset=2:bytes,size=3:sectors",
        "jsonl" => "jsonl:time=t:us,op=op,offset=at:bytes,size=n:sectors",
        _ => name,
    }
}

/// Returns the error of `bytes` in `format`.
pub fn error(format: &str, bytes: impl AsRef<[u8]>) -> String {
    read_with(bytes.as_ref(), Some(format), &ReadOptions::default()).expect_err("the input is bad")
}

pub fn record(at: u64, op: HostOp, lba: u64, sectors: u32, device: u32) -> Record {
    Record { request: Request { at: Ps(at), op, lba: Lba(lba), sectors, fua: false }, device }
}

/// Returns a version 1 vscsi record.
pub fn vscsi1(length: u32, command: u16, sector: u64, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    for word in [7, length, 1] {
        record.extend(u32::to_le_bytes(word));
    }
    record.extend(command.to_le_bytes());
    record.extend(0x0100_u16.to_le_bytes());
    record.extend(sector.to_le_bytes());
    record.extend(time_us.to_le_bytes());
    record
}

/// Returns a version 2 vscsi record.
pub fn vscsi2(length: u32, command: u16, sector: u64, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(command.to_le_bytes());
    record.extend(0x0200_u16.to_le_bytes());
    for word in [7, length, 1] {
        record.extend(u32::to_le_bytes(word));
    }
    for word in [sector, time_us, 99] {
        record.extend(u64::to_le_bytes(word));
    }
    record
}

pub const COMPRESSIONS: [&str; 5] = ["none", "gz", "bz2", "xz", "zst"];

/// Returns `bytes` compressed by the method `name`.
pub fn compress(bytes: &[u8], name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match name {
        "none" => out.extend_from_slice(bytes),
        "gz" => {
            let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap();
        }
        "bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap();
        }
        "xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(&mut out, 0);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap();
        }
        "zst" => {
            let mut encoder = zstd::stream::write::Encoder::new(&mut out, 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap();
        }
        other => panic!("no compression {other}"),
    }
    out
}

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Output of a sink, shared with the test.
#[derive(Clone, Default)]
pub struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns `records` written in `format`, and the account of the writing.
pub fn write(
    format: &str,
    records: &[Record],
    compression: &str,
    lossy: bool,
) -> Result<(Vec<u8>, Written), WriteError> {
    write_from(format, records, compression, lossy, &Origin::default())
}

/// Returns the same as [`write`], for a trace that comes from `origin`.
pub fn write_from(
    format: &str,
    records: &[Record],
    compression: &str,
    lossy: bool,
    origin: &Origin,
) -> Result<(Vec<u8>, Written), WriteError> {
    let shared = Shared::default();
    let mut sink =
        create(format, Box::new(shared.clone()), compression, &WriteOptions { lossy }).unwrap();
    records.iter().try_for_each(|record| sink.put(record))?;
    sink.describe(origin);
    let written = sink.finish()?;
    let bytes = std::mem::take(&mut *shared.0.lock().unwrap());
    Ok((bytes, written))
}

/// Returns the text of an error about a record whose kind of fault does not occur again in the
/// trace.
pub fn alone(error: &str, kind: &str) -> String {
    format!(
        "{error} (the only such record from here to the end; `skip_bad={kind}` skips and counts \
         this kind)"
    )
}
