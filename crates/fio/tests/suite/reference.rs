//! The requests of job files, compared with the requests that the real fio writes into an iolog.
//!
//! Every job runs on fio's `null` engine with `write_iolog`, and the project's iolog reader reads
//! the log. If a job draws no random numbers, the two lists of requests must be equal. Otherwise
//! the distributions of the requests are compared. Each tolerance is given where it is used, in
//! standard deviations of the drawn number. Without an installed `fio`, the tests are skipped with
//! a message.

use flashatlas_fio::{Direction, JobStep, JobStream, parse};
use flashatlas_types::{HostOp, Seed};
use flashatlas_workload::{ReadOptions, open};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

/// Capacity of a drive that is larger than all jobs, in bytes.
const CAPACITY: u64 = 1 << 40;

/// A request: its operation, file, first byte and number of bytes.
pub(crate) type Line = (HostOp, u32, u64, u64);

/// Returns the version of the installed fio, or `None` if fio is not installed.
pub(crate) fn fio() -> Option<String> {
    let output = Command::new("fio").arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the requests that fio logs for the options in `job`.
pub(crate) fn theirs(name: &str, job: &str) -> Vec<Line> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("fio-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("job.fio"), format!("{job}\nwrite_iolog=log\n")).unwrap();
    let output = Command::new("fio").arg("job.fio").current_dir(&folder).output().unwrap();
    assert!(
        output.status.success(),
        "fio refuses {job}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let log = std::fs::read(folder.join("log")).unwrap();
    let opened =
        open(Box::new(std::io::Cursor::new(log)), Some("iolog"), &ReadOptions::default()).unwrap();
    let mut source = opened.source;
    let mut lines = Vec::new();
    while let Some(record) = source.next().unwrap() {
        let r = record.request;
        let file = if r.op == HostOp::Flush { 0 } else { record.device };
        lines.push((r.op, file, r.lba.0 * 512, u64::from(r.sectors) * 512));
    }
    std::fs::remove_dir_all(&folder).unwrap();
    lines
}

/// Returns the requests that this crate makes for the same job.
pub(crate) fn ours(job: &str, seed: u64) -> Vec<Line> {
    let none = |_: &str| Err(std::io::Error::other("no files here"));
    let layout = parse(job, "job.fio", &|_| None, &none).unwrap().layout(CAPACITY).unwrap();
    let mut stream = JobStream::new(&layout.jobs[0], Seed(seed));
    let mut lines = Vec::new();
    while let Some(step) = stream.next_step() {
        lines.push(match step {
            JobStep::Request(r) | JobStep::Check(r) => {
                stream.complete(r.direction, r.file, r.offset);
                (op(r.direction), r.file, r.offset, r.bytes)
            }
            JobStep::Sync { .. } | JobStep::EndSync => (HostOp::Flush, 0, 0, 0),
            JobStep::Pass | JobStep::PassEnd => continue,
        });
        assert!(lines.len() < 1_000_000, "an endless job: {job}");
    }
    lines
}

fn op(direction: Direction) -> HostOp {
    [HostOp::Read, HostOp::Write, HostOp::Trim][direction as usize]
}

pub(crate) fn job(options: &str) -> String {
    format!("[job]\nioengine=null\n{}\n", options.split_whitespace().collect::<Vec<_>>().join("\n"))
}

/// Number of runs of fio at the same time.
const AT_ONCE: usize = 4;

/// Skips the test with a message if fio is not installed.
macro_rules! need_fio {
    () => {
        match fio() {
            Some(version) => eprintln!("compared with {version}"),
            None => return eprintln!("skipped: fio is not installed"),
        }
    };
}

#[test]
fn jobs_without_chance_make_the_same_requests() {
    need_fio!();
    let jobs = [
        "size=64k",
        "rw=write size=64k bs=8k",
        "rw=trim size=64k",
        "rw=write size=36k bs=8k",
        "rw=write size=36k bs=8k loops=2",
        "rw=write size=30k bs=8k",
        "rw=read size=64k bs=4k,8k,16k",
        "rw=write size=64k bs=4k,8k",
        "rw=trim size=64k bs=4k,8k,16k",
        "rw=write size=64k offset=16k",
        "rw=write size=64k offset=50%",
        "rw=write size=64k offset=33%",
        "rw=write size=64k offset=33% offset_align=16k",
        "rw=write size=64k io_size=20k",
        "rw=write size=16k io_size=40k",
        "rw=write size=16k io_size=41k",
        "rw=write size=16k io_size=34k",
        "rw=write size=16k bs=8k,8k,64k io_size=40k",
        "rw=write size=64k io_size=50%",
        "rw=write size=64k io_size=16k loops=2",
        "rw=write size=64k io_size=100k loops=2",
        "rw=write size=16k loops=3",
        "rw=write:8k size=32k",
        "rw=write:4k size=30k bs=2k",
        "rw=read:-8k size=32k",
        "rw=read:-8k size=32k offset=8k",
        "rw=read:-4k size=32k offset=64k loops=2",
        "rw=write size=64k zonemode=strided zonesize=16k zoneskip=16k",
        "rw=write size=64k zonemode=strided zonesize=8k zonerange=16k zoneskip=16k fsync=1",
        "rw=write size=64k zonemode=strided zonesize=16k zonerange=8k",
        "rw=write size=40k zonemode=strided zonesize=16k zonerange=16k loops=2",
        "rw=write size=36k zonemode=strided zonesize=16k zoneskip=4k bs=8k",
        "rw=write size=64k offset=20k zonemode=strided zonesize=12k zoneskip=4k loops=2",
        "rw=write size=64k offset=20k zonemode=strided zonesize=12k zoneskip=4k io_size=200k",
        "rw=write size=64k zonemode=strided zonesize=1m",
        "rw=write size=64k zonemode=strided zonesize=16k zoneskip=16k nrfiles=2",
        "rw=write size=64k zonemode=strided zonesize=6k zonerange=10k bs=4k",
        "rw=write:4k size=64k zonemode=strided zonesize=16k zonerange=32k zoneskip=8k",
        "rw=trimwrite size=64k zonemode=strided zonesize=16k zoneskip=16k",
        "rw=write size=64k zonemode=strided zonesize=16k zoneskip=16k verify=md5",
        "rw=write size=64k zonemode=none zonerange=4k zoneskip=4k",
        "rw=trimwrite size=16k",
        "rw=trimwrite size=16k loops=2",
        "rw=trimwrite size=16k bs=8k io_size=40k",
        "rw=trimwrite size=64k number_ios=3",
        "rw=trimwrite size=16k number_ios=3 loops=2",
        "rw=trimwrite size=32k fsync=2",
        "rw=write size=64k number_ios=3",
        "rw=write size=64k number_ios=3 loops=2",
        "rw=write size=16k number_ios=6 loops=3",
        "rw=write size=64k fsync=3",
        "rw=write size=64k fsync=4",
        "rw=write size=64k fdatasync=3",
        "rw=write size=64k fsync=3 fdatasync=2",
        "rw=write size=64k fsync=1 loops=2",
        "rw=write size=32k fdatasync=2 io_size=64k",
        "rw=write size=64k fsync=3 end_fsync=1",
        "rw=write size=64k fsync=4 end_fsync=1",
        "rw=write size=32k loops=2 end_fsync=1",
        "rw=write size=32k fsync=3 loops=2 fsync_on_close=1",
        "rw=read size=64k fsync=3 end_fsync=1",
        "rw=write size=96k nrfiles=3 end_fsync=1",
        "rw=write size=96k nrfiles=3 fsync=2 end_fsync=1 loops=2",
        "rw=write size=96k nrfiles=3",
        "rw=write size=32k nrfiles=3",
        "rw=write size=64k nrfiles=4 loops=2",
        "rw=write size=64k nrfiles=4 io_size=100k",
        "rw=write size=64k nrfiles=3 file_service_type=sequential",
        "rw=write size=96k nrfiles=3 file_service_type=roundrobin:2",
        "rw=write size=96k nrfiles=3 fsync=4",
        "rw=write size=64k filename=one:two",
        "rw=write filesize=16k nrfiles=3",
        "rw=write filesize=16k size=40k nrfiles=3",
        "rw=rw size=64k rwmixread=100",
        "rw=rw size=64k rwmixread=0",
        "rw=rw size=64k rwmixwrite=100 fsync=3",
        "rw=randread size=64k percentage_random=0",
        "rw=write size=64k bs=1000 kb_base=1000",
        "rw=write size=64ki bs=4kib",
        "rw=write size=32k filename=one filename=two",
        "rw=write size=48k filename=one:two filename=three",
        "rw=write size=64k verify=crc32c",
        "rw=write size=64k verify=md5 do_verify=0",
        "rw=write size=64k verify_pattern=0xff",
        "rw=write size=64k verify_pattern=0xff verify=0",
        "rw=write size=32k verify=md5 loops=2",
        "rw=write size=16k verify=md5 io_size=40k",
        "rw=write size=32k verify=md5 nrfiles=2",
        "rw=write size=32k verify=md5 bs=8k fsync=2",
        "rw=write size=32k verify=md5 end_fsync=1",
        "rw=write:8k size=32k verify=meta",
        "rw=read size=32k verify=md5",
        "rw=rw size=64k rwmixread=0 verify=md5",
        "rw=rw size=64k rwmixread=100 verify=md5",
        "rw=trimwrite size=32k verify=md5",
        "rw=trimwrite size=32k verify=md5 loops=2",
        "rw=trim size=32k verify=md5",
        "rw=write size=64k verify=md5 verify_backlog=4",
        "rw=write size=64k verify=md5 verify_backlog=4 verify_backlog_batch=2",
        "rw=write size=64k verify=md5 verify_backlog=3",
        "rw=write size=64k verify=md5 verify_backlog=3 verify_backlog_batch=5 loops=2",
        "rw=write size=64k verify=md5 verify_backlog=1 fsync=3",
        "rw=write size=64k verify=md5 verify_backlog=2 verify_backlog_batch=1 end_fsync=1",
        "rw=write size=64k verify=md5 verify_backlog=4 io_size=200k",
        "rw=write size=64k verify=md5 verify_backlog=4 do_verify=0",
        "rw=write size=64k verify_backlog=4",
        "rw=trimwrite size=32k verify=md5 verify_backlog=2",
        "rw=write size=64k verify=md5 verify_backlog=4 nrfiles=2",
        "rw=write size=64k verify=md5 trim_percentage=50",
        "rw=write size=64k trim_percentage=50 trim_backlog_batch=4",
        "rw=rw size=32k rwmixread=0 verify=md5 loops=2 fsync=2",
        "rw=write size=64k offset=8k zonemode=strided zonesize=16k zoneskip=4k nrfiles=2 loops=2",
        "rw=randwrite size=64k percentage_random=0 verify=md5",
        "rw=read size=120ki bs=6ki",
        "rw=read size=120ki bs=6ki kb_base=1000",
        "rw=read size=120Kib bs=6KiB kb_base=1000",
        "rw=write size=96ki bsrange=6ki-6ki",
        "rw=write size=96ki bssplit=6ki/100 kb_base=1000",
        "rw=write:6ki size=96ki bs=2ki",
        "rw=write size=65536 bs=0x2000",
        "rw=write bssplit=8k/100 size=64k",
    ];
    let same = |(number, options): (usize, &&str)| {
        let text = job(options);
        let aligned = |lines: Vec<Line>| -> Vec<Line> {
            // the reader widens each request to sectors of 512 bytes
            let widen = |(op, file, at, bytes): Line| {
                (op, file, at / 512 * 512, (at + bytes).next_multiple_of(512) - at / 512 * 512)
            };
            lines.into_iter().map(widen).collect()
        };
        assert_eq!(aligned(ours(&text, 1)), theirs(&format!("exact{number}"), &text), "{options}");
    };
    // fio mostly waits, so several runs are started at a time
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            scope
                .spawn(move || jobs.iter().enumerate().skip(first).step_by(AT_ONCE).for_each(same));
        }
    });
}

#[test]
fn one_random_request_in_a_few_is_followed_by_its_neighbours() {
    need_fio!();
    for (number, options) in [
        "rw=randread:4 size=256k",
        "rw=randwrite:3 rw_sequencer=identical size=256k",
        "rw=randtrimwrite size=256k",
        "rw=randtrimwrite size=64k loops=2",
        "rw=randread size=128k loops=3",
        "rw=randread size=128k loops=3 randrepeat=0",
        "rw=randwrite size=128k io_size=400k",
        "rw=randread size=128k bs=8k nrfiles=2 loops=2",
    ]
    .iter()
    .enumerate()
    {
        let text = job(options);
        let (a, b) = (ours(&text, 1), theirs(&format!("shape{number}"), &text));
        // only the random offsets are drawn; the requests after each random request follow from its
        // offset
        let shape =
            |lines: &[Line]| -> Vec<(HostOp, u64)> { lines.iter().map(|l| (l.0, l.3)).collect() };
        assert_eq!(shape(&a), shape(&b), "{options}");
        let repeats =
            |lines: &[Line]| -> Vec<bool> { lines.windows(2).map(|w| w[0].2 == w[1].2).collect() };
        if options.contains("identical") || options.contains("trimwrite") {
            assert_eq!(repeats(&a), repeats(&b), "{options}");
        }
        let distinct = |lines: &[Line]| {
            lines.iter().map(|l| (l.1, l.2)).collect::<std::collections::HashSet<_>>().len()
        };
        if !options.contains(':') {
            assert_eq!(distinct(&a), distinct(&b), "{options}");
        }
        let (loops, repeated) = (options.contains("loops=3"), !options.contains("randrepeat=0"));
        if loops {
            for lines in [&a, &b] {
                assert_eq!(
                    lines[..32] == lines[32..64],
                    repeated,
                    "{options}: passes draw the same blocks"
                );
            }
        }
    }
}

/// Number of standard deviations by which two counts may differ.
///
/// One comparison in about 26 million fails by chance.
const SIGMAS: f64 = 5.5;

/// Checks that the counts `a` and `b`, each out of `draws` draws, are nearly the same.
///
/// A count out of `n` draws with probability `p` has a variance of `n p (1 - p)`.
pub(crate) fn assert_alike(what: &str, a: f64, b: f64, draws: f64) {
    let p = ((a + b) / 2.0 / draws).clamp(0.0, 1.0);
    let sigma = (2.0 * draws * p * (1.0 - p)).sqrt();
    assert!((a - b).abs() <= SIGMAS * sigma + 1.0, "{what}: {a} here, {b} in fio, {draws} draws");
}

#[test]
fn shares_of_directions_and_sizes_are_those_of_fio() {
    need_fio!();
    for (number, options) in [
        "rw=randrw size=64m",
        "rw=randrw size=64m rwmixread=75",
        "rw=randrw size=64m rwmixwrite=5",
        "rw=randread size=64m bssplit=4k/50:16k/30:64k/20 norandommap",
        "rw=randrw size=64m bssplit=4k/50:16k/50,8k/10:32k/90 norandommap",
        "rw=randwrite size=64m bssplit=4k:16k/40:64k norandommap",
        "rw=randwrite size=64m bssplit=4k/33:8k/33:16k/33 norandommap",
        "rw=write size=64m bsrange=4k-16k",
        "rw=randread size=64m bsrange=1k-16k,2k-4k norandommap",
        "rw=randread size=64m bsrange=3k-10k norandommap",
        "rw=randread size=64m percentage_random=30 bs=4k,64k bs_is_seq_rand=1 norandommap",
    ]
    .iter()
    .enumerate()
    {
        let text = job(options);
        let (a, b) = (ours(&text, 3), theirs(&format!("share{number}"), &text));
        // both lists have the same number of bytes, but the number of requests depends on the drawn
        // sizes
        let count = |lines: &[Line]| {
            let mut counts: HashMap<(HostOp, u64), f64> = HashMap::new();
            lines.iter().for_each(|l| *counts.entry((l.0, l.3)).or_default() += 1.0);
            counts
        };
        let (counts_a, counts_b) = (count(&a), count(&b));
        let draws = a.len().min(b.len()) as f64;
        let ratio = a.len() as f64 / b.len() as f64;
        // for a given number of bytes, the relative deviation of the number of requests equals the
        // relative deviation of their mean size
        let mean = b.iter().map(|l| l.3 as f64).sum::<f64>() / b.len() as f64;
        let square = b.iter().map(|l| (l.3 as f64 - mean).powi(2)).sum::<f64>() / b.len() as f64;
        let spread = (2.0 * square / draws).sqrt() / mean;
        let counts = (a.len(), b.len());
        assert!(
            (ratio - 1.0).abs() <= SIGMAS * spread + 1e-9,
            "{options}: {counts:?} requests here and in fio"
        );
        for key in counts_a.keys().chain(counts_b.keys()) {
            let get = |counts: &HashMap<_, f64>| counts.get(key).copied().unwrap_or(0.0);
            assert_alike(
                &format!("{options} {key:?}"),
                get(&counts_a) / ratio,
                get(&counts_b),
                draws,
            );
        }
    }
}

#[test]
fn a_map_cuts_requests_as_in_fio() {
    need_fio!();
    for (number, options) in
        ["rw=randread size=1g bssplit=4k/50:16k/30:64k/20", "rw=randwrite size=512m bsrange=4k-16k"]
            .iter()
            .enumerate()
    {
        let text = job(options);
        let (a, b) = (ours(&text, 3), theirs(&format!("cut{number}"), &text));
        let bytes = |lines: &[Line]| lines.iter().map(|l| l.3).sum::<u64>();
        assert_eq!(bytes(&a), bytes(&b), "{options}: a pass covers the file");
        // a request is cut at a block that an earlier request has used, so the counts depend on
        // each other. Over 5 seeds at 64 MiB, the standard deviation of fio's number of requests is
        // 2.7 %; at 16 times the size it is a quarter of this, 0.7 %
        let near = |what: &str, a: usize, b: usize| {
            let off = (a as f64 - b as f64).abs();
            let spread = SIGMAS * (0.007 * b as f64 + (2.0 * b as f64).sqrt());
            assert!(off <= spread, "{options} {what}: {a} here, {b} in fio");
        };
        near("requests", a.len(), b.len());
        for blocks in 1..=16 {
            let of = |lines: &[Line]| lines.iter().filter(|l| l.3 == blocks * 4096).count();
            near(&format!("of {blocks} blocks"), of(&a), of(&b));
        }
    }
}

/// Returns the number of requests that begin in each block of `block` bytes.
fn frequencies(lines: &[Line], block: u64, blocks: u64) -> Vec<f64> {
    let mut counts = vec![0.0; blocks as usize];
    lines.iter().for_each(|l| counts[(l.2 / block) as usize] += 1.0);
    counts
}

#[test]
fn what_was_written_is_read_back_in_the_order_of_fio() {
    need_fio!();
    for (number, options) in [
        "rw=randwrite size=256k verify=md5",
        "rw=randwrite size=256k norandommap verify=md5",
        "rw=randwrite size=256k bsrange=2k-8k norandommap verify=md5",
        "rw=randwrite size=128k nrfiles=2 verify=md5",
        "rw=randtrimwrite size=128k verify=md5",
    ]
    .iter()
    .enumerate()
    {
        let text = job(options);
        for lines in [ours(&text, 1), theirs(&format!("back{number}"), &text)] {
            let of = |op| lines.iter().filter(move |l| l.0 == op).map(|l| (l.1, l.2, l.3));
            let (mut writes, reads): (Vec<_>, Vec<_>) =
                (of(HostOp::Write).collect(), of(HostOp::Read).collect());
            if options.contains("norandommap") {
                // only writes that no later write overlaps are read back, in order of address
                let later = writes.clone();
                let mut number = 0;
                writes.retain(|w| {
                    number += 1;
                    !later[number..].iter().any(|l| l.1 < w.1 + w.2 && w.1 < l.1 + l.2)
                });
                writes.sort_unstable();
            }
            assert_eq!(reads, writes, "{options}");
        }
    }
}

#[test]
fn a_pass_with_a_map_uses_every_block_once() {
    need_fio!();
    for (number, options) in [
        "rw=randread size=4m",
        "rw=randwrite size=1000k",
        "rw=randread size=4m random_generator=lfsr",
    ]
    .iter()
    .enumerate()
    {
        let text = job(options);
        let (a, b) = (ours(&text, 1), theirs(&format!("pass{number}"), &text));
        assert_eq!(a.len(), b.len(), "{options}");
        for lines in [&a, &b] {
            let blocks = lines.len() as u64;
            assert!(frequencies(lines, 4096, blocks).iter().all(|&n| n == 1.0), "{options}");
        }
    }
}

#[test]
fn without_a_map_blocks_repeat_as_in_fio() {
    need_fio!();
    for (number, options) in [
        "rw=randread size=16m norandommap",
        "rw=randread size=16m percentage_random=50",
        "rw=randread size=16m ba=2k",
        "rw=randread size=16m ba=16k",
        "rw=randread size=16m bs=16k ba=4k norandommap",
    ]
    .iter()
    .enumerate()
    {
        let text = job(options);
        let (a, b) = (ours(&text, 5), theirs(&format!("repeat{number}"), &text));
        let distinct = |lines: &[Line]| {
            lines.iter().map(|l| l.2).collect::<std::collections::HashSet<_>>().len() as f64
        };
        // for n draws from n blocks, the number of distinct blocks has a standard deviation below
        // the square root of n / 4
        assert_eq!(a.len(), b.len(), "{options}");
        assert_alike(options, distinct(&a), distinct(&b), a.len() as f64);
        let step = |lines: &[Line]| lines.iter().all(|l| l.2 % 4096 == 0);
        assert_eq!(step(&a), step(&b), "{options}: alignment");
    }
}

#[test]
fn skewed_blocks_have_the_frequencies_of_fio() {
    need_fio!();
    for (number, (law, blocks)) in [
        ("zipf:1.2", 1024),
        ("zipf:0.9", 1024),
        ("zipf", 1000),
        ("zipf:1.2:0.25", 1024),
        ("pareto:0.2", 1024),
        ("pareto:0.4:0.5", 1000),
        ("normal:5", 1024),
        ("normal:0", 1000),
        ("normal:20", 1024),
    ]
    .iter()
    .enumerate()
    {
        // normal laws with similar deviations differ little, so the test needs more draws
        let total = if law.starts_with("normal") { 800 } else { 200 };
        let options =
            format!("rw=randread size={}k io_size={total}m random_distribution={law}", blocks * 4);
        let text = job(&options);
        let (a, b) = (ours(&text, 7), theirs(&format!("law{number}"), &text));
        assert_eq!(a.len(), b.len(), "{law}");
        let draws = a.len() as f64;
        let (mut a, mut b) = (frequencies(&a, 4096, *blocks), frequencies(&b, 4096, *blocks));
        // zipf and pareto scatter the ranks from a random place, unless a centre is given; normal
        // ranks have fixed places
        if !law.starts_with("normal") && law.matches(':').count() < 2 {
            a.sort_by(f64::total_cmp);
            b.sort_by(f64::total_cmp);
        }
        for (block, (&a, &b)) in a.iter().zip(&b).enumerate() {
            assert_alike(&format!("{law} block {block}"), a, b, draws);
        }
        // compare all blocks together: the chi square of two samples has one degree of freedom for
        // each block, and a variance of twice this number
        let drawn: Vec<(f64, f64)> =
            a.iter().copied().zip(b).filter(|(a, b)| a + b >= 10.0).collect();
        let chi: f64 = drawn.iter().map(|(a, b)| (a - b).powi(2) / (a + b)).sum();
        let freedom = drawn.len() as f64;
        assert!(
            chi <= freedom + SIGMAS * (2.0 * freedom).sqrt(),
            "{law}: chi square {chi} of {freedom} blocks"
        );
    }
}

#[test]
fn zones_get_their_shares() {
    need_fio!();
    for (number, law) in [
        "zoned:60/10:30/20:8/30:2/40",
        "zoned:50/5:50/5",
        "zoned:100/50",
        "zoned:20/5:80",
        "zoned_abs:60/1m:30/2m:10/1m",
        "zoned_abs:50/96k:50/3m",
    ]
    .iter()
    .enumerate()
    {
        let options = format!("rw=randrw size=4m io_size=100m random_distribution={law}");
        let text = job(&options);
        let (a, b) = (ours(&text, 7), theirs(&format!("zone{number}"), &text));
        assert_eq!(a.len(), b.len(), "{law}");
        for op in [HostOp::Read, HostOp::Write] {
            let of = |lines: &[Line]| -> Vec<Line> {
                lines.iter().filter(|l| l.0 == op).copied().collect()
            };
            // count the requests in 64 parts of 64 KiB
            let (a, b) = (frequencies(&of(&a), 65_536, 64), frequencies(&of(&b), 65_536, 64));
            let draws = a.iter().sum::<f64>();
            for (part, (&a, &b)) in a.iter().zip(&b).enumerate() {
                assert_alike(&format!("{law} {op:?} part {part}"), a, b, draws);
            }
        }
    }
}
