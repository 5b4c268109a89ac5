//! Public traces, if they are in the folder that `FLASHATLAS_TRACES` names. They are not part of
//! the project. The expected numbers were measured by other means: by a few lines of another
//! language for each format, and by the list that comes with the traces. In this list, MB and KB
//! are MiB and KiB, and a page has 4 KiB.

use crate::common::*;
use flashatlas_fixtures::traces::path as trace;
use flashatlas_types::{Dur, HostOp};
use flashatlas_workload::{
    Account, BadKinds, DeviceMap, Opened, Place, ReadOptions, TraceSummary, open,
};
use std::fs::File;
use std::path::PathBuf;

/// A trace that was read to its end.
struct Measured {
    format: &'static str,
    summary: TraceSummary,
    account: Account,
    times: bool,
    operations: bool,
}

fn measure(path: PathBuf, format: Option<&str>, options: &ReadOptions) -> Measured {
    let size = path.metadata().unwrap().len();
    let opened = open(Box::new(File::open(path).unwrap()), format, options).unwrap();
    let Opened { format, mut source, times, operations, .. } = opened;
    let mut summary = TraceSummary::new();
    while let Some(record) = source.next().unwrap() {
        summary.add(&record);
    }
    let account = source.account();
    assert_eq!((account.skipped_bad, source.bytes_read()), (0, size));
    Measured { format: format.name, summary, account, times, operations }
}

/// Returns the share of reads in percent, mean KiB, written MiB, footprint MiB and overwrite ratio
/// of `s`, as a table prints them.
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

/// Test case: the file and the format to name (`None` if it is recognised), then expected values.
/// These are the format, requests, reads, table row and highest GiB.
type Case =
    (&'static str, Option<&'static str>, &'static str, u64, u64, &'static str, &'static str);

/// Every trace that is read with the default options. Notes name the numbers that differ in the
/// list that comes with the traces.
const CASES: &[Case] = &[
    // 1,050.45 MiB written; the list says 1,051
    (
        "blkreplay_natural/linux-mysql.load.gz",
        None,
        "blkreplay",
        80_794,
        7_187,
        "8.9 14.3 1050 556.9 2.22",
        "30.3",
    ),
    (
        "blkreplay_natural/windows-shared-server.load.gz",
        None,
        "blkreplay",
        1_371,
        0,
        "0.0 3.8 5 1.0 5.19",
        "3.0",
    ),
    (
        "msr_cambridge/msr-cambridge1-sample.csv",
        None,
        "msr",
        1_000,
        508,
        "50.8 9.5 3 7.5 1.97",
        "12.6",
    ),
    (
        "mobile_pixel6a/cod_precond.csv.gz",
        None,
        "pixel6a",
        72_878,
        0,
        "0.0 135.0 9609 9543.8 1.01",
        "71.9",
    ),
    (
        "mobile_pixel6a/cod_exec.csv.gz",
        None,
        "pixel6a",
        223_998,
        201_635,
        "90.0 44.6 860 5231.2 1.33",
        "117.4",
    ),
    (
        "mobile_pixel6a/genshin_impact_precond.csv.gz",
        None,
        "pixel6a",
        141_152,
        0,
        "0.0 189.0 26052 25239.2 1.03",
        "118.8",
    ),
    (
        "mobile_pixel6a/genshin_impact_exec.csv.gz",
        None,
        "pixel6a",
        91_317,
        81_697,
        "89.5 44.8 237 2823.9 1.23",
        "118.9",
    ),
    (
        "mobile_pixel6a/pubg_precond.csv.gz",
        None,
        "pixel6a",
        51_110,
        0,
        "0.0 65.7 3279 3189.8 1.03",
        "119.0",
    ),
    (
        "mobile_pixel6a/pubg_exec.csv.gz",
        None,
        "pixel6a",
        67_757,
        50_737,
        "74.9 38.9 1324 2052.2 1.14",
        "119.0",
    ),
    // the list has an overwrite ratio of 1.10, because it does not round sizes down to pages
    (
        "mobile_nexus5/Movie_log121.txt.xz",
        None,
        "nexus5",
        4_781,
        4_523,
        "94.6 27.3 4 126.9 1.09",
        "28.2",
    ),
    (
        "ssdsim/example.ascii.xz",
        Some("ssdsim"),
        "ssdsim",
        10_000,
        4_077,
        "40.8 5.4 28 28.6 3.32",
        "0.5",
    ),
    (
        "umass_spc_excerpts/uflip_web1.trace.xz",
        Some("disksim:size=4KiB"),
        "disksim",
        50_000,
        49_990,
        "100.0 15.1 0 724.4 5.00",
        "16.7",
    ),
    (
        "mqsim_samples/wsrch-small.trace.xz",
        Some("mqsim"),
        "mqsim",
        24_783,
        24_779,
        "100.0 15.1 0 363.4 2.00",
        "16.7",
    ),
    (
        "mqsim_samples/tpcc-small.trace.xz",
        Some("mqsim"),
        "mqsim",
        6_999,
        4_381,
        "62.6 8.3 22 80.0 1.01",
        "216.7",
    ),
    (
        "disksim_ssd/ssd-iozone-aligned2-100K.trace.xz",
        Some("disksim"),
        "disksim",
        100_000,
        0,
        "0.0 359.9 35148 1059.8 33.16",
        "16.1",
    ),
    (
        "systor17/systor17-additional-sample.csv.gz",
        None,
        "systor17",
        999,
        700,
        "70.1 20.2 2 21.3 1.20",
        "4640.4",
    ),
    (
        "blkparse_misc/wiscsee_sqlitewal_events.txt.xz",
        None,
        "events",
        5_008,
        4,
        "0.1 13.5 66 8.5 7.78",
        "0.5",
    ),
    (
        "blkparse_misc/wiscsee_blkparse-output.txt",
        None,
        "blkparse",
        673,
        161,
        "23.9 195.7 128 128.0 1.00",
        "0.3",
    ),
];

#[test]
fn every_trace_as_measured_by_other_means() {
    for &(file, named, format, requests, reads, expected, highest) in CASES {
        let Some(path) = trace(file) else { continue };
        let measured = measure(path, named, &ReadOptions::default());
        let s = &measured.summary;
        assert_eq!((measured.format, s.requests(), s.reads()), (format, requests, reads), "{file}");
        assert_eq!(
            (row(s).as_str(), gib(s.highest_bytes()).as_str()),
            (expected, highest),
            "{file}"
        );
        assert!(measured.times && measured.operations, "{file}");
    }
}

#[test]
fn details_of_some() {
    let Some(path) = trace("blkreplay_natural/linux-mysql.load.gz") else { return };
    let s = measure(path, None, &ReadOptions::default()).summary;
    assert_eq!((s.written_bytes(), s.devices(), s.duration().0 / S), (1_101_479_936, 1, 3_599));
    let Some(path) = trace("systor17/systor17-additional-sample.csv.gz") else { return };
    let s = measure(path, None, &ReadOptions::default()).summary;
    assert_eq!((s.out_of_order(), s.devices()), (299, 1));
    let Some(path) = trace("ssdsim/example.ascii.xz") else { return };
    let s = measure(path.clone(), Some("ssdsim"), &ReadOptions::default()).summary;
    assert_eq!((s.devices(), s.pages_written(), s.distinct_pages_written()), (22, 12_406, 3_734));
    let map = ReadOptions { device_map: DeviceMap::Select(0), ..ReadOptions::default() };
    let measured = measure(path, Some("ssdsim"), &map);
    assert_eq!((measured.summary.requests(), measured.account.not_selected), (1_013, 8_987));
    let Some(path) = trace("blkparse_misc/wiscsee_sqlitewal_events.txt.xz") else { return };
    let s = measure(path, None, &ReadOptions::default()).summary;
    assert_eq!((s.trims(), s.writes()), (1, 5_003));
}

#[test]
fn repeats_in_the_pixel_traces() {
    // the list says that 8 to 32 % of the records are repeats; here 2.5 to 12.4 % are
    for (file, requests, dropped, expected) in [
        ("cod_precond", 71_023, 1_855, "0.0 137.9 9565 9543.8 1.00"),
        ("cod_exec", 205_426, 18_572, "91.4 46.2 683 5231.2 1.06"),
        ("genshin_impact_precond", 134_016, 7_136, "0.0 196.1 25670 25239.2 1.02"),
        ("genshin_impact_exec", 80_149, 11_168, "89.5 44.8 208 2823.9 1.08"),
        ("pubg_precond", 44_792, 6_318, "0.0 73.9 3233 3189.8 1.01"),
        ("pubg_exec", 61_478, 6_279, "76.5 38.8 1188 2052.2 1.02"),
    ] {
        let Some(path) = trace(&format!("mobile_pixel6a/{file}.csv.gz")) else { continue };
        let options = ReadOptions { drop_duplicates: Some(Dur(5 * MS)), ..ReadOptions::default() };
        let Measured { summary: s, account, .. } = measure(path, None, &options);
        assert_eq!((s.requests(), account.duplicates_dropped), (requests, dropped), "{file}");
        assert_eq!(row(&s), expected, "{file}");
    }
}

#[test]
fn days_between_sessions() {
    for (file, jumps, back) in
        [("cod_exec", 2, 0), ("genshin_impact_precond", 1, 0), ("genshin_impact_exec", 0, 1)]
    {
        let Some(path) = trace(&format!("mobile_pixel6a/{file}.csv.gz")) else { continue };
        let s = measure(path, None, &ReadOptions::default()).summary;
        assert_eq!((s.jumps(), s.out_of_order()), (jumps, back), "{file}");
    }
}

const ONE_SECOND: ReadOptions = ReadOptions {
    time_gap_max: Some(Dur(S)),
    skip_bad: 0,
    skip_kinds: BadKinds::NONE,
    shift_sectors: 0,
    device_map: DeviceMap::Separate,
    drop_duplicates: None,
    assume_op: None,
};

#[test]
fn clocks_that_were_set() {
    let Some(path) = trace("mobile_nexus5/Booting_log176.txt.xz") else { return };
    let plain = read(&std::fs::read(&path).unwrap()).unwrap_err();
    assert!(plain.starts_with("543:26: a time too far from the first record `"), "{plain}");
    assert!(
        plain.ends_with("; the reader expects at most 213 days (`time_gap_max` cuts long gaps)"),
        "{plain}"
    );
    let Measured { summary: s, account, .. } = measure(path, None, &ONE_SECOND);
    // the list has an overwrite ratio of 1.21, because it does not round sizes down to pages
    assert_eq!((s.requests(), row(&s)), (18_417, "66.9 53.3 223 908.1 1.20".to_owned()));
    let jump = account.first_jump.unwrap();
    assert_eq!(
        (jump.place, jump.step_ps),
        (Place::Line { line: 6, column: 1 }, 10_363_864_954_205_468_000)
    );
    assert!(account.gaps_cut > 0 && account.backward_steps > 0 && s.jumps() == 0);
}

#[test]
fn one_absurd_time_at_the_end() {
    let Some(path) = trace("blkparse_misc/blkparseout_ext4.txt.xz") else { return };
    let plain = read(&std::fs::read(&path).unwrap()).unwrap_err();
    assert!(plain.contains(": a time too far from the first record `"), "{plain}");
    let measured = measure(path.clone(), None, &ONE_SECOND);
    let s = &measured.summary;
    assert_eq!((measured.format, s.requests(), s.reads()), ("blkparse", 9_887, 9_039));
    assert_eq!(
        (row(s).as_str(), gib(s.highest_bytes()).as_str()),
        ("91.4 128.4 240 1238.9 1.00", "8.1")
    );
    let line = measured.account.first_jump.map(|jump| jump.place);
    assert_eq!(line, Some(Place::Line { line: 29_662, column: 1 }));
    // the completion events do not have the absurd time
    let completed = measure(path, Some("blkparse:action=C"), &ReadOptions::default());
    assert_eq!((completed.summary.requests(), completed.account.first_jump), (9_887, None));
}

#[test]
fn arc_counts_pages() {
    for (file, requests, pages, touched) in
        [("OLTP", 914_145, 914_145, 186_880), ("P3", 238_578, 3_912_296, 762_543)]
    {
        let Some(path) = trace(&format!("arc_ibm/{file}.lis.zst")) else { continue };
        let measured = measure(path, Some("arc:block=4KiB"), &ReadOptions::default());
        let s = &measured.summary;
        assert_eq!(
            (s.requests(), s.read_bytes() / 4096, s.footprint_bytes() / 4096),
            (requests, pages, touched)
        );
        assert!(!measured.times && !measured.operations && s.zero_time());
    }
}

#[test]
fn what_is_not_recognised_says_what_to_name() {
    // in nanoseconds the trace takes 26 s. In milliseconds it would take 303 days, so one reading
    // is left
    for file in ["ssdsim/example.ascii.xz"] {
        let Some(path) = trace(file) else { continue };
        let content = std::fs::File::open(path).unwrap();
        let opened = open(Box::new(content), None, &ReadOptions::default());
        let guess = opened.map(|opened| opened.guess.unwrap_or_default());
        let guess = guess.map_err(|error| error.to_string()).unwrap();
        assert!(guess.starts_with("times are nanoseconds"), "{file}: {guess}");
    }
    for (file, readings) in [
        ("umass_spc_excerpts/uflip_web1.trace.xz", 3),
        ("disksim_ssd/ssd-iozone-aligned2-100K.trace.xz", 2),
        // in nanoseconds the trace takes 2.5 s. In milliseconds it would take 29 days, which is
        // possible
        ("mqsim_samples/wsrch-small.trace.xz", 3),
        ("mqsim_samples/tpcc-small.trace.xz", 3),
    ] {
        let Some(path) = trace(file) else { continue };
        let Err(error) = read(&std::fs::read(path).unwrap()) else { panic!("{file}: taken") };
        assert_eq!(error.matches("` if times are ").count(), readings, "{file}: {error}");
    }
}

#[test]
fn cloudphysics() {
    let Some(path) = trace("cloudphysics/cloudPhysicsIO.vscsi.xz") else { return };
    let Measured { format, summary: s, .. } = measure(path.clone(), None, &ReadOptions::default());
    assert_eq!((format, s.requests(), s.out_of_order()), ("vscsi", 113_872, 0));
    assert_eq!(
        (row(&s).as_str(), gib(s.highest_bytes()).as_str()),
        ("41.3 36.1 2297 1051.6 3.14", "31.3")
    );
    assert_eq!(s.duration().0 / S, 7_200);
    assert_eq!(format!("{:.1}", s.unaligned_share() * 100.0), "99.9");
    let s =
        measure(path, None, &ReadOptions { shift_sectors: -7, ..ReadOptions::default() }).summary;
    assert_eq!(format!("{:.1}", s.unaligned_share() * 100.0), "28.6");
}

#[test]
fn the_same_bytes_in_every_compression() {
    let Some(path) = trace("cloudphysics/cloudPhysicsIO.vscsi.xz") else { return };
    let packed = std::fs::read(path).unwrap();
    let records = read(&packed).unwrap();
    assert_eq!(records.iter().filter(|r| r.request.op == HostOp::Read).count(), 46_974);
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut liblzma::read::XzDecoder::new(&packed[..]), &mut plain)
        .unwrap();
    for name in COMPRESSIONS {
        assert!(read(&compress(&plain, name)).unwrap() == records, "{name} differs");
    }
}

#[test]
fn converted_and_back() {
    for file in ["msr_cambridge/msr-cambridge1-sample.csv", "cloudphysics/cloudPhysicsIO.vscsi.xz"]
    {
        let Some(path) = trace(file) else { continue };
        let records = read(&std::fs::read(path).unwrap()).unwrap();
        for format in ["atlas", "csv"] {
            let (bytes, written) = write(format, &records, "none", false).unwrap();
            assert_eq!(written.records, records.len() as u64);
            assert!(read(&bytes).unwrap() == records, "{file} in {format}");
        }
    }
}
