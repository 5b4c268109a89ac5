//! Public traces, where they are at hand: in the folder that `FLASHATLAS_TRACES` names, else in `../shared/traces`
//! beside the workspace. They are not part of the project. The numbers were measured by other means; MB and KB in them
//! are MiB and KiB, pages 4 KiB.

mod common;

use common::*;
use flashatlas_types::HostOp;
use flashatlas_workload::{Opened, ReadOptions, TraceSummary, open};
use std::fs::File;
use std::path::PathBuf;

fn trace(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("FLASHATLAS_TRACES").map_or_else(|| root().join("../shared/traces"), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not here", path.display());
        return None;
    }
    Some(path)
}

fn summary(path: PathBuf, options: &ReadOptions) -> (&'static str, TraceSummary) {
    let size = path.metadata().unwrap().len();
    let Opened { format, mut source, .. } = open(Box::new(File::open(path).unwrap()), None, options).unwrap();
    let mut summary = TraceSummary::new();
    while let Some(record) = source.next().unwrap() {
        summary.add(&record);
    }
    assert_eq!((source.account().skipped_bad, source.bytes_read()), (0, size));
    (format.name, summary)
}

/// Read share in percent, mean KiB, written MiB, footprint MiB and overwrite ratio of `s`, as a table prints them.
fn row(s: &TraceSummary) -> String {
    const MIB: f64 = (1 << 20) as f64;
    format!(
        "{:.1} {:.1} {:.0} {:.1} {:.2}",
        s.read_share() * 100.0,
        s.mean_bytes() / 1024.0,
        s.written_bytes() as f64 / MIB,
        s.footprint_bytes() as f64 / MIB,
        s.overwrite_ratio()
    )
}

fn gib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / (1 << 30) as f64)
}

#[test]
fn linux_mysql() {
    let Some(path) = trace("blkreplay_natural/linux-mysql.load.gz") else { return };
    let (format, s) = summary(path, &ReadOptions::default());
    assert_eq!((format, s.requests(), s.reads() + s.writes()), ("blkreplay", 80_794, 80_794));
    // 1,050.45 MiB written; the table that the other numbers agree with says 1,051
    assert_eq!((row(&s).as_str(), gib(s.highest_bytes()).as_str()), ("8.9 14.3 1050 556.9 2.22", "30.3"));
    assert_eq!((s.written_bytes(), s.devices(), s.duration().0 / S), (1_101_479_936, 1, 3_599));
}

#[test]
fn windows_shared_server() {
    let Some(path) = trace("blkreplay_natural/windows-shared-server.load.gz") else { return };
    let (format, s) = summary(path, &ReadOptions::default());
    assert_eq!((format, s.requests(), s.reads()), ("blkreplay", 1_371, 0));
    assert_eq!((row(&s).as_str(), gib(s.highest_bytes()).as_str()), ("0.0 3.8 5 1.0 5.19", "3.0"));
}

#[test]
fn msr_sample() {
    let Some(path) = trace("msr_cambridge/msr-cambridge1-sample.csv") else { return };
    let (format, s) = summary(path, &ReadOptions::default());
    assert_eq!((format, s.requests(), s.reads()), ("msr", 1_000, 508));
    assert_eq!((row(&s).as_str(), gib(s.highest_bytes()).as_str()), ("50.8 9.5 3 7.5 1.97", "12.6"));
}

#[test]
fn cloudphysics() {
    let Some(path) = trace("cloudphysics/cloudPhysicsIO.vscsi.xz") else { return };
    let (format, s) = summary(path.clone(), &ReadOptions::default());
    assert_eq!((format, s.requests(), s.out_of_order()), ("vscsi", 113_872, 0));
    assert_eq!((row(&s).as_str(), gib(s.highest_bytes()).as_str()), ("41.3 36.1 2297 1051.6 3.14", "31.3"));
    assert_eq!(s.duration().0 / S, 7_200);
    assert_eq!(format!("{:.1}", s.unaligned_share() * 100.0), "99.9");
    let (_, s) = summary(path, &ReadOptions { shift_sectors: -7, ..ReadOptions::default() });
    assert_eq!(format!("{:.1}", s.unaligned_share() * 100.0), "28.6");
}

#[test]
fn the_same_bytes_in_every_compression() {
    let Some(path) = trace("cloudphysics/cloudPhysicsIO.vscsi.xz") else { return };
    let packed = std::fs::read(path).unwrap();
    let records = read(&packed).unwrap();
    assert_eq!(records.iter().filter(|r| r.request.op == HostOp::Read).count(), 46_974);
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut liblzma::read::XzDecoder::new(&packed[..]), &mut plain).unwrap();
    for name in COMPRESSIONS {
        assert!(read(&compress(&plain, name)).unwrap() == records, "{name} differs");
    }
}
