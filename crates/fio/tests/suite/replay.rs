//! Logs that a job replays (`read_iolog`), compared with real fio.
//!
//! `fio --debug=io` shows the requests that fio queues.

use crate::reference::fio;
use flashatlas_fio::{Direction, JobStep, JobStream, NextIssue, parse};
use flashatlas_types::Seed;
use std::path::PathBuf;
use std::process::Command;

/// A request: its kind, file, first byte and number of bytes.
///
/// In fio, the kinds are 0 for a read, 1 for a write, 2 for a trim, 3 for a sync and 4 for a
/// datasync.
type Line = (u32, String, u64, u64);

fn job(options: &str) -> String {
    let options = options.split_whitespace().collect::<Vec<_>>().join("\n");
    format!("[job]\nioengine=null\nread_iolog=log\n{options}\n")
}

fn steps(job: &str, log: &str) -> Result<(JobStream, Vec<String>), String> {
    let read = |_: &str| Ok(log.to_owned());
    let file = parse(job, "job.fio", &|_| None, &read).map_err(|e| e.to_string())?;
    let layout = file.layout(1 << 40).map_err(|e| e.to_string())?;
    let names = layout.jobs[0].files.iter().map(|file| file.name.clone()).collect();
    Ok((JobStream::new(&layout.jobs[0], Seed(1)), names))
}

fn ours(job: &str, log: &str) -> Vec<Line> {
    let (mut stream, names) = steps(job, log).unwrap();
    let mut lines = Vec::new();
    while let Some(step) = stream.next_step() {
        lines.push(match step {
            JobStep::Request(r) | JobStep::Check(r) => {
                stream.complete(r.direction, r.file, r.offset);
                (r.direction as u32, names[r.file as usize].clone(), r.offset, r.bytes)
            }
            JobStep::Sync { data_only } => (3 + u32::from(data_only), String::new(), 0, 0),
            JobStep::EndSync => (3, String::new(), 0, 0),
            JobStep::Pass | JobStep::PassEnd => continue,
        });
    }
    lines
}

fn theirs(name: &str, job: &str, log: &str) -> Vec<Line> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("fio-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("job.fio"), job).unwrap();
    std::fs::write(folder.join("log"), log).unwrap();
    let output =
        Command::new("fio").args(["--debug=io", "job.fio"]).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "fio refuses {job} {log}");
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let queued = text.lines().filter_map(|line| line.split_once("queue: io_u "));
    let field = |rest: &str, name: &str| {
        let (_, value) = rest.split_once(name).unwrap();
        value.split(',').next().unwrap().to_owned()
    };
    let hex = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let line = |(_, rest): (&str, &str)| {
        let kind = field(rest, "ddir=").parse().unwrap();
        match kind {
            0..=2 => {
                (kind, field(rest, "file="), hex(field(rest, "off=")), hex(field(rest, "len=")))
            }
            _ => (kind, String::new(), 0, 0),
        }
    };
    queued.map(line).collect()
}

/// A log with two files, overlapping writes, and requests that are not aligned to sectors.
const LOG: &str = "fio version 2 iolog\nf add\ng add\nf open\ng open\nf read 0 4096\n\
                   f write 8192 12288\ng write 1000 3000\nf sync 0 0\nf write 8192 4096\n\
                   f datasync 0 0\nf wait 10\ng read 65536 131072\nf close\ng close\n";

#[test]
fn logs_make_the_requests_that_fio_makes_of_them() {
    if fio().is_none() {
        return eprintln!("skipped: fio is not installed");
    }
    let three = LOG.replacen("version 2", "version 3", 1).replace("f wait 10\n", "");
    let timed = |log: &str| -> String {
        let mut lines = log.lines();
        let head = lines.next().unwrap();
        let lines = lines.enumerate().map(|(i, line)| format!("{} {line}\n", 100 * i));
        format!("{head}\n{}", lines.collect::<String>())
    };
    let two_clones = "numjobs=1 replay_redirect=h";
    for (number, options) in [
        "",
        "loops=3 size=1m filename=x rw=randwrite bs=8k rate_iops=2 fsync=1 number_ios=1 io_size=4k",
        "end_fsync=1",
        "fsync_on_close=1",
        "time_based runtime=3",
        "verify=md5",
        "verify=md5 do_verify=0",
        "verify=md5 verify_backlog=1",
        "rw=randwrite size=1m verify=md5",
        two_clones,
        "replay_scale=2",
        "replay_align=4096",
        "replay_scale=3 replay_align=512",
        "replay_no_stall=1",
        "replay_time_scale=200",
        "nrfiles=3 thinktime=10",
    ]
    .iter()
    .enumerate()
    {
        for (version, log) in [LOG.to_owned(), timed(&three)].iter().enumerate() {
            let text = job(options);
            let name = format!("replay{number}-{version}");
            assert_eq!(ours(&text, log), theirs(&name, &text, log), "{options} {version}");
        }
    }
}

#[test]
fn trims_of_a_log_are_replayed() {
    // fio 3.33 does not replay the trims of a log ("bad ddir: 2"), but later versions do
    let log = "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 0 4096\n\
               /dev/x read 0 4096\n/dev/x trim 0 4096\n/dev/x close\n";
    let line = |direction| (direction as u32, "/dev/x".to_owned(), 0, 4096);
    let expected = [Direction::Write, Direction::Read, Direction::Trim].map(line);
    assert_eq!(ours(&job("filename=/dev/y"), log), expected);
}

/// Returns the time at which each line is due, in microseconds.
///
/// `+` marks a time after the previous line, and `@` a time after the start of all jobs.
fn turns(options: &str, log: &str) -> Vec<(char, u64)> {
    let (mut stream, _) = steps(&job(options), log).unwrap();
    let mut turns = Vec::new();
    loop {
        turns.push(match stream.wish() {
            NextIssue::After(gap) => ('+', gap.ns() / 1000),
            NextIssue::NotBefore(time) => ('@', time.ns() / 1000),
            _ => return turns,
        });
        stream.next_step();
    }
}

#[test]
fn times_of_a_log_are_distances_from_the_line_before() {
    // neither the line after a line at time 0 nor a line with an earlier time than the previous
    // line waits
    let log = "fio version 3 iolog\n0 f add\n7 f open\n20 f read 0 512\n45 f read 0 512\n\
               30 f read 0 512\n31 f read 0 512\n";
    let gaps = |options: &str| -> Vec<u64> {
        turns(options, log)
            .into_iter()
            .map(|(kind, us)| {
                assert_eq!(kind, '+');
                us
            })
            .collect()
    };
    assert_eq!(gaps(""), [0, 0, 13, 25, 0, 1]);
    assert_eq!(gaps("replay_time_scale=50"), [0, 0, 26, 50, 0, 2]);
    // 13 / 2 = 6.5 and 25 / 2 = 12.5; fio rounds down to whole microseconds
    assert_eq!(gaps("replay_time_scale=200"), [0, 0, 6, 12, 0, 0]);
    assert_eq!(gaps("replay_no_stall=1"), [0; 6]);
    let log = "fio version 2 iolog\nf add\nf wait 3\nf read 0 512\nf wait 2\n";
    assert_eq!(turns("", log), [('+', 0), ('@', 3000), ('+', 0), ('@', 2000)]);
    assert_eq!(turns("replay_no_stall=1", log), [('+', 0); 4]);
}

#[test]
fn logs_that_cannot_be_replayed_say_where() {
    let error = |options: &str, log: &str| steps(&job(options), log).err().unwrap();
    let head = "fio version 2 iolog\n";
    for (options, log, expected) in [
        ("", "f read 0 512\n", "log:1:1: not an iolog header: `f read 0 512`; the reader expects"),
        ("", "", "log:1:1: not an iolog header: ``"),
        ("", head, "log:1:1: the log holds no read, write or trim"),
        (
            "",
            "fio version 2 iolog\nf read 0\n",
            "log:2:1: the wrong number of columns in `f read 0`; the reader expects a file, an \
             action, an offset and a length",
        ),
        (
            "",
            "fio version 2 iolog\nf reed 0 1\n",
            "log:2:3: an unknown action `reed`; the reader expects add",
        ),
        (
            "",
            "fio version 2 iolog\nf read x 1\n",
            "log:2:8: not a number `x`; the reader expects an offset",
        ),
        (
            "",
            "fio version 2 iolog\nf read 0 0\n",
            "log:2:10: fio cannot send the length `0`; the reader expects 1 to 4294967295 bytes",
        ),
        ("", "fio version 3 iolog\n5 f wait 3\n", "log:2:5: an unknown action `wait`"),
        ("", "fio version 3 iolog\nf read 0 1\n", "log:2:1: not a number `f`"),
        (
            "",
            "fio version 3 iolog\n1 f open\n99999999999999999 f read 0 1\n",
            "log:3:1: simulated time ends before the time `99999999999999999`",
        ),
        (
            "",
            "fio version 2 iolog\nf read 1099511627776 512\n",
            "job.fio:3:12: read_iolog: the log reaches byte 1099511628288 of `f`, but the drive \
             has 1099511627776 bytes (see replay_scale)",
        ),
        ("replay_align=3", head, "job.fio:4:14: replay_align: 3 is not a power of two"),
        (
            "replay_skip=read",
            head,
            "job.fio:4:13: replay_skip: fio 3.33 uses it only for recordings",
        ),
    ] {
        let said = error(options, log);
        assert!(said.starts_with(expected), "{said}");
    }
    let read = |_: &str| Err(std::io::Error::other("no such file"));
    let said = parse(&job(""), "job.fio", &|_| None, &read).err().unwrap().to_string();
    assert_eq!(said, "job.fio:3:12: read_iolog: cannot read `log`: no such file");
}

#[test]
fn options_that_a_log_decides_about_are_named() {
    let read = |_: &str| Ok("fio version 2 iolog\nf read 0 512\n".to_owned());
    let file = parse(&job("direct=1 rw=write fsync=3 iodepth=2"), "job.fio", &|_| None, &read);
    let warnings = file.unwrap().warnings;
    let named: Vec<&str> = warnings.iter().map(|w| w.option.as_str()).collect();
    assert_eq!(named, ["ioengine", "rw", "fsync"]);
    assert!(warnings[1].why.contains("together with `read_iolog`"), "{}", warnings[1].why);
}

#[test]
fn clones_replay_the_logs_in_turn() {
    let read = |path: &str| Ok(format!("fio version 2 iolog\n{path}.file read 0 512\n"));
    let text = "[job]\nread_iolog=a:b\nnumjobs=3\n";
    let layout = parse(text, "job.fio", &|_| None, &read).unwrap().layout(1 << 20).unwrap();
    let names: Vec<&str> = layout.jobs.iter().map(|job| job.files[0].name.as_str()).collect();
    assert_eq!(names, ["a.file", "b.file", "a.file"]);
}
