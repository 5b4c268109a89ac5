//! Logs that jobs replay, with times worked out by hand.

use crate::beside_fio::jobs_of_fio;
use crate::jobs::{WRITE_NS, play_with};

/// Plays a job that replays `log`.
fn replay(log: &str, options: &str) -> (serde_json::Value, serde_json::Value) {
    let text = format!("[job]\ndirect=1\nread_iolog=log\n{}\n", options.replace(' ', "\n"));
    play_with(&text, &[("log", log)])
}

/// Returns a log of version 3 with a write of 4 KiB at each of `times`, in microseconds.
fn writes_at(times: &[u64]) -> String {
    let line = |(i, time): (usize, &u64)| format!("{time} f write {} 4096\n", 4096 * i);
    let lines: String = times.iter().enumerate().map(line).collect();
    format!("fio version 3 iolog\n1 f add\n1 f open\n{lines}")
}

#[test]
fn a_log_is_one_write_one_read_and_one_trim() {
    let log = "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 0 4096\n\
               /dev/x read 0 4096\n/dev/x trim 0 4096\n/dev/x close\n";
    let (record, jobs) = replay(log, "filename=/dev/x");
    let host = &record["host"];
    assert_eq!([&host["writes"], &host["reads"], &host["trims"]], [1, 1, 1]);
    assert_eq!(record["trace"]["named"][0]["path"], "log");
    let digest = record["trace"]["named"][0]["digest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    assert_eq!(jobs["jobs"][0]["trim"]["ios"], 1);
}

#[test]
fn distances_of_a_log_count_from_the_submission() {
    let runtime = |times: &[u64], options: &str| -> u64 {
        replay(&writes_at(times), options).1["jobs"][0]["runtime_ns"].as_u64().unwrap()
    };
    // the writes are 1 ms apart and take 251.2 us, so the last begins 2 ms after the first
    assert_eq!(runtime(&[1, 1001, 2001], ""), 2_000_000 + WRITE_NS);
    // the writes are 100 us apart, so each write waits for the write before it
    assert_eq!(runtime(&[1, 101, 201], ""), 3 * WRITE_NS);
    // the second write is late by 151.2 us, and the third still begins 1 ms after the second
    assert_eq!(runtime(&[1, 101, 1101], ""), WRITE_NS + 1_000_000 + WRITE_NS);
    // with a second place in the queue, no write is late
    let deep = runtime(&[1, 101, 1101], "ioengine=libaio iodepth=2");
    assert_eq!(deep, 1_100_000 + WRITE_NS);
    assert_eq!(runtime(&[1, 1001, 2001], "replay_no_stall=1"), 3 * WRITE_NS);
    assert_eq!(runtime(&[1, 1001, 2001], "replay_time_scale=50"), 4_000_000 + WRITE_NS);
    // a rate is ignored, but a pause of 2 ms follows each of the three writes
    assert_eq!(runtime(&[1, 1001, 2001], "rate_iops=1"), 2_000_000 + WRITE_NS);
    assert_eq!(runtime(&[1, 1001, 2001], "thinktime=2ms"), 3 * (WRITE_NS + 2_000_000));
    // the time of the job is up before the third write
    let (record, _) = replay(&writes_at(&[1, 1001, 2001]), "runtime=1500us");
    assert_eq!(record["host"]["writes"], 2);
}

#[test]
fn a_wait_of_version_2_is_a_time_since_the_start_of_all_jobs() {
    let log = "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf wait 5\nf write 4096 4096\n\
               f wait 4\nf write 8192 4096\n";
    let (_, jobs) = replay(log, "");
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 5_000_000 + 2 * WRITE_NS);
    // the job starts at 3 ms, so its wait until 5 ms is shorter
    let (_, jobs) = replay(log, "startdelay=3ms");
    assert_eq!(jobs["jobs"][0]["start_ns"], 3_000_000);
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 2_000_000 + 2 * WRITE_NS);
    let (_, jobs) = replay(log, "replay_no_stall=1");
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 3 * WRITE_NS);
}

#[test]
fn clones_replay_the_whole_log_each() {
    let (record, _) = replay(&writes_at(&[1, 2, 3]), "numjobs=2 loops=3");
    assert_eq!(record["host"]["writes"], 6);
}

/// Returns the time that fio takes for the job, in milliseconds, if fio is installed.
fn of_fio(name: &str, log: &str, options: &str) -> Option<f64> {
    let options = options.replace(' ', "\n");
    let text = format!("[job]\nioengine=null\nread_iolog=log\n{options}\n");
    let found = jobs_of_fio(&format!("replay-{name}"), &text, &[("log", log)])?;
    found[0]["job_runtime"].as_f64()
}

#[test]
fn a_log_takes_as_long_as_with_fio() {
    // pauses of 300 ms take the place of a slow drive; the log's distances are 100, 500 and 100 ms
    let log = writes_at(&[1, 100_001, 600_001, 700_001]);
    for (number, options) in
        ["", "thinktime=300ms", "replay_time_scale=200", "replay_no_stall=1 thinktime=100ms"]
            .iter()
            .enumerate()
    {
        let Some(theirs) = of_fio(&number.to_string(), &log, options) else {
            return eprintln!("skipped: fio is not installed");
        };
        let (_, jobs) = replay(&log, options);
        let ours = jobs["jobs"][0]["runtime_ns"].as_f64().unwrap() / 1e6;
        // the writes take 1 ms in the simulation and no time in fio, but the host's scheduler
        // delays fio
        assert!((ours - theirs).abs() < 60.0, "{options}: {ours} ms here, {theirs} ms in fio");
    }
}
