//! Zones of random jobs, random times, and reads of written data, compared with real fio.

use crate::reference::{assert_alike, fio, job, ours, theirs};
use flashatlas_fio::{Direction, JobStep, JobStream, parse};
use flashatlas_types::{HostOp, Rng, Seed};
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn a_random_job_goes_through_each_zone_in_turn() {
    if fio().is_none() {
        return eprintln!("skipped: fio is not installed");
    }
    for (number, (options, of_zone, zones)) in [
        // zones of 32 KiB with 32 KiB between them; each block of a zone is used once
        ("zonesize=32k zoneskip=32k", 8, &[0u64, 64, 128, 192][..]),
        // adjacent zones of 32 KiB; half of each zone is used
        ("zonesize=16k zonerange=32k", 4, &[0, 32, 64, 96, 128, 160, 192, 224]),
        // each zone is used twice
        ("zonesize=64k zonerange=32k zoneskip=96k", 16, &[0, 128]),
    ]
    .iter()
    .enumerate()
    {
        let text = job(&format!("rw=randwrite size=256k zonemode=strided {options}"));
        for lines in [ours(&text, 1), theirs(&format!("zones{number}"), &text)] {
            assert_eq!(lines.len(), 64, "{options}");
            for (turn, requests) in lines.chunks(*of_zone).enumerate() {
                let first = zones[turn % zones.len()] << 10;
                for pass in requests.chunks(8) {
                    let blocks: BTreeSet<u64> = pass.iter().map(|line| line.2).collect();
                    assert_eq!(blocks.len(), pass.len(), "{options}: {pass:?}");
                    let within = |at: &u64| (first..first + (32 << 10)).contains(at);
                    assert!(blocks.iter().all(within), "{options}: {first}: {blocks:?}");
                }
            }
        }
    }
}

#[test]
fn random_times_are_spread_as_in_fio() {
    if fio().is_none() {
        return eprintln!("skipped: fio is not installed");
    }
    const GAPS: usize = 800;
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("poisson-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = job(&format!("rate_iops=2500 rate_process=poisson size={}", 4096 * (GAPS + 1)));
    std::fs::write(folder.join("job.fio"), &text).unwrap();
    let output =
        Command::new("fio").args(["--debug=rate", "job.fio"]).current_dir(&folder).output();
    std::fs::remove_dir_all(&folder).unwrap();
    let output = output.unwrap();
    assert!(output.status.success(), "fio refuses {text}");
    // fio prints each gap as it draws it; when requests start depends on the load of the machine
    let theirs: Vec<u64> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_once("poisson rate iops=")?.1.split_once(',')?.0.parse().ok())
        .collect();
    // a gap below 1 us is not printed
    assert!(theirs.len() <= GAPS && theirs.len() > GAPS * 97 / 100, "{} gaps", theirs.len());
    let none = |_: &str| Err(std::io::Error::other("no files here"));
    let file = parse(&text, "job.fio", &|_| None, &none).unwrap();
    let mut rng = Rng::stream(Seed(1), "gaps");
    let ours: Vec<u64> =
        (0..GAPS).map(|_| file.sections[0].options.drawn_gap(0, &mut rng).ns() / 1000).collect();
    let mut below = [0; 2];
    for limit in [100, 250, 400, 800] {
        // fio prints a million divided by the gap in us
        let counts = [
            ours.iter().filter(|gap| **gap < limit).count(),
            theirs.iter().filter(|rate| **rate > 1_000_000 / limit).count() + (GAPS - theirs.len()),
        ];
        let [here, there] = [0, 1].map(|side| (counts[side] - below[side]) as f64);
        let what = format!("the range below {limit} us");
        assert_alike(&what, here, there, GAPS as f64);
        below = counts;
        // expected share of an exponential distribution with a mean of 400 us
        let share = 1.0 - (-(limit as f64) / 400.0).exp();
        assert_alike(&what, counts[0] as f64, share * GAPS as f64, GAPS as f64);
    }
}

#[test]
fn what_is_in_flight_is_not_read_back() {
    let text = job("rw=write size=32k verify=md5 verify_backlog=2");
    let none = |_: &str| Err(std::io::Error::other("no files here"));
    let layout = parse(&text, "job.fio", &|_| None, &none).unwrap().layout(1 << 20).unwrap();
    let mut stream = JobStream::new(&layout.jobs[0], Seed(1));
    let mut next = || match stream.next_step() {
        Some(JobStep::Request(r) | JobStep::Check(r)) => (r.direction, r.offset / 4096),
        step => panic!("{step:?}"),
    };
    // four writes are issued, and none of them is complete
    let writes: Vec<_> = (0..4).map(|_| next()).collect();
    assert_eq!(writes, [0, 1, 2, 3].map(|block| (Direction::Write, block)));
    stream.complete(Direction::Write, 0, 0);
    let mut next = || match stream.next_step() {
        Some(JobStep::Request(r) | JobStep::Check(r)) => (r.direction, r.offset / 4096),
        step => panic!("{step:?}"),
    };
    // only the first write is complete and read back
    assert_eq!([next(), next()], [(Direction::Read, 0), (Direction::Write, 4)]);
}

#[test]
fn a_mixed_job_reads_back_what_it_wrote() {
    if fio().is_none() {
        return eprintln!("skipped: fio is not installed");
    }
    for (number, options) in
        ["rw=randrw size=256k verify=md5", "rw=rw size=256k verify=md5 rwmixread=30"]
            .iter()
            .enumerate()
    {
        let text = job(options);
        for lines in [ours(&text, 1), theirs(&format!("mixed{number}"), &text)] {
            let writes: Vec<_> =
                lines.iter().filter(|l| l.0 == HostOp::Write).map(|l| (l.1, l.2, l.3)).collect();
            let (pass, back) = lines.split_at(lines.len() - writes.len());
            assert_eq!(pass.len(), 64, "{options}: all blocks are read or written");
            let back: Vec<_> = back.iter().map(|l| (l.1, l.2, l.3)).collect();
            assert_eq!(back, writes, "{options}");
        }
    }
}
