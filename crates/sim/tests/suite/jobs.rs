//! Job files on the tiny drive, with times worked out by hand.
//!
//! The tiny drive has pages of 2 KiB, two channels of 51.2 us a page, and two dies on each. With
//! `cache.mode=write-through` a write of 4 KiB takes 251.2 us: 51.2 us of transfer and 200 us of
//! programming, on both channels at the same time.

use crate::environment;
use flashatlas_sim::{Opener, RunError, RunSpec, Stream, run};
use serde_json::{Value, json};
use std::io::Cursor;

/// Time of a write of 4 KiB, in nanoseconds.
pub(crate) const WRITE_NS: u64 = 251_200;

/// A job file and the files beside it, in memory.
pub(crate) struct Files<'a>(pub String, pub &'a [(&'a str, &'a str)]);

impl Opener for Files<'_> {
    fn open(&self, path: &str) -> std::io::Result<Stream> {
        match path {
            "job.fio" => Ok((Box::new(Cursor::new(self.0.clone().into_bytes())), None)),
            "common.fio" => Ok((Box::new(Cursor::new("size=16k\n".to_owned().into_bytes())), None)),
            _ => match self.1.iter().find(|(name, _)| *name == path) {
                Some((_, text)) => Ok((Box::new(Cursor::new(text.as_bytes().to_vec())), None)),
                None => Err(std::io::Error::other("no such file")),
            },
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "SIZE").then(|| "16k".to_owned())
    }
}

pub(crate) fn try_play(text: &str, changes: Value) -> Result<(Value, Value), RunError> {
    try_play_with(text, &[], changes)
}

pub(crate) fn try_play_with(
    text: &str,
    files: &[(&str, &str)],
    changes: Value,
) -> Result<(Value, Value), RunError> {
    let mut spec =
        json!({ "drive": "tiny", "set": ["cache.mode=write-through"], "job": "job.fio" });
    spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    run(&spec, &environment(&Files(text.to_owned(), files)), &mut |_| true)
        .map(|outcome| (outcome.record, outcome.jobs.unwrap()))
}

pub(crate) fn play(text: &str) -> (Value, Value) {
    play_with(text, &[])
}

/// Plays a job file with files beside it.
pub(crate) fn play_with(text: &str, files: &[(&str, &str)]) -> (Value, Value) {
    let played = try_play_with(text, files, json!({}));
    let (record, jobs) = played.unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(record["oracle"]["violations"], 0);
    assert_eq!(record["conservation"]["submitted"], record["conservation"]["completed"]);
    (record, jobs)
}

pub(crate) fn error(text: &str, changes: Value) -> String {
    try_play(text, changes).expect_err(text).to_string()
}

/// Returns a job of direct writes with `options`.
pub(crate) fn writes(options: &str) -> String {
    format!("[job]\nrw=write\ndirect=1\nsize=16k\n{}\n", options.replace(' ', "\n"))
}

#[test]
fn one_write_after_the_other() {
    let (record, jobs) = play(&writes(""));
    assert_eq!(record["trace"]["format"], "fio");
    assert_eq!(
        (&record["host"]["writes"], &record["host"]["write_bytes"]),
        (&json!(4), &json!(16384))
    );
    assert_eq!(record["simulated_ns"], 4 * WRITE_NS);
    let job = &jobs["jobs"][0];
    assert_eq!(
        (&job["name"], &job["jobs"], &job["runtime_ns"]),
        (&json!("job"), &json!(1), &json!(4 * WRITE_NS))
    );
    let write = &job["write"];
    assert_eq!((&write["ios"], &write["bytes"]), (&json!(4), &json!(16384)));
    assert_eq!(write["latency_ns"]["mean"], WRITE_NS as f64);
    assert_eq!(write["latency_ns"]["stddev"], 0.0);
    assert_eq!(write["latency_ns"]["bins"], json!([[WRITE_NS, 4]]));
    assert_eq!(job["depth_classes"], json!([4, 0, 0, 0, 0, 0, 0]));
    // 251.2 us lie in the class of 250 to 499 us
    assert_eq!(job["latency_us_classes"], json!([0, 0, 0, 0, 0, 0, 0, 4, 0, 0]));
    assert_eq!(job["read"]["ios"], 0);
    assert_eq!(jobs["warnings"], json!([]));
}

#[test]
fn pauses_lie_between_requests() {
    // a pause of 1 ms after each of the four writes, also after the last write
    let (_, jobs) = play(&writes("thinktime=1000"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 4 * (WRITE_NS + 1_000_000));
    // a pause of 1 ms after every second write
    let (_, jobs) = play(&writes("thinktime=1ms thinktime_blocks=2"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 4 * WRITE_NS + 2 * 1_000_000);
}

#[test]
fn a_rate_is_kept_from_the_beginning() {
    // at 4 KiB/s with blocks of 4 KiB, a request is issued each second, and the first immediately
    let (_, jobs) = play(&writes("rate=4k"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 3_000_000_000u64 + WRITE_NS);
    let (_, jobs) = play(&writes("rate_iops=10"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 300_000_000 + WRITE_NS);
    // 2,000 requests a second are one request every 500 us, and the drive is fast enough for this
    let (_, jobs) = play(&writes("rate_iops=2000"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 1_500_000 + WRITE_NS);
    // the drive is too slow for 10,000 requests a second
    let (_, jobs) = play(&writes("rate_iops=10000"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 4 * WRITE_NS);
}

#[test]
fn rates_of_a_mixed_job_are_kept_apart() {
    let text = "[job]\nrw=randrw\nsize=64k\ndirect=1\nio_size=1m\nrate_iops=20,10\n";
    let (_, jobs) = play(text);
    let job = &jobs["jobs"][0];
    let (reads, writes) =
        (job["read"]["ios"].as_u64().unwrap(), job["write"]["ios"].as_u64().unwrap());
    assert_eq!(reads + writes, 256);
    // the direction that is ahead of its rate waits, so there are 2 reads for each write; the first
    // request of each direction is issued immediately
    let seconds = job["runtime_ns"].as_f64().unwrap() / 1e9;
    assert!(
        (reads as f64 / 20.0 - seconds).abs() < 0.11
            && (writes as f64 / 10.0 - seconds).abs() < 0.11,
        "{job}"
    );
}

#[test]
fn depth_is_what_the_engine_can_queue() {
    let levels = |options: &str| {
        let (_, jobs) = play(&writes(&format!("io_size=16k iodepth=4 {options}")));
        jobs["jobs"][0]["depth_classes"].clone()
    };
    assert_eq!(levels("ioengine=psync"), json!([4, 0, 0, 0, 0, 0, 0]));
    assert_eq!(levels("ioengine=libaio"), json!([1, 2, 1, 0, 0, 0, 0]));
}

#[test]
fn the_queue_of_the_drive_is_the_limit_of_all() {
    let text = "[job]\nrw=write\ndirect=1\nsize=4k\nnumjobs=3\n";
    let spec = json!({ "set": ["cache.mode=write-through", "host.queue_depth=1"] });
    let (record, jobs) = try_play(text, spec).unwrap();
    for (i, job) in (1u64..).zip(jobs["jobs"].as_array().unwrap()) {
        // each job waits for the jobs before it
        assert_eq!(job["write"]["latency_ns"]["max"], i * WRITE_NS, "{i}");
    }
    assert_eq!(record["latency_ns"]["write"]["max"], 3.0 * WRITE_NS as f64);
    assert_eq!(record["latency_ns"]["write"]["service_mean"], WRITE_NS as f64);
}

#[test]
fn a_stonewall_waits_for_all_before_it() {
    let text =
        "[global]\nrw=write\ndirect=1\nsize=16k\n[a]\n[b]\nstonewall\n[c]\nstonewall\nsize=4k\n";
    let (_, jobs) = play(text);
    let starts: Vec<u64> =
        jobs["jobs"].as_array().unwrap().iter().map(|j| j["start_ns"].as_u64().unwrap()).collect();
    assert_eq!(starts, [0, 4 * WRITE_NS, 8 * WRITE_NS]);
    let groups: Vec<u64> =
        jobs["jobs"].as_array().unwrap().iter().map(|j| j["group"].as_u64().unwrap()).collect();
    assert_eq!(groups, [0, 1, 2]);
}

#[test]
fn start_delays_count_from_the_beginning() {
    let text = "[global]\nrw=write\ndirect=1\nsize=4k\n[a]\nstartdelay=2\n[b]\nstartdelay=500ms\n\
                [c]\nstartdelay=1-2\n";
    let (_, jobs) = play(text);
    let start = |i: usize| jobs["jobs"][i]["start_ns"].as_u64().unwrap();
    assert_eq!((start(0), start(1)), (2_000_000_000, 500_000_000));
    assert!((1_000_000_000..=2_000_000_000).contains(&start(2)), "{}", start(2));
}

#[test]
fn a_job_that_goes_by_time_ends_by_time() {
    let (_, jobs) = play(&writes("time_based runtime=10ms"));
    // the last of the 40 writes is issued before 10 ms have passed, and completes afterwards
    assert_eq!(jobs["jobs"][0]["write"]["ios"], 40);
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 40 * WRITE_NS);
    let (_, jobs) = play(&writes("runtime=10ms"));
    assert_eq!(
        jobs["jobs"][0]["write"]["ios"], 4,
        "without time_based, the job ends after its size"
    );
    // the end of the time cuts a pause short
    let (_, jobs) = play(&writes("time_based runtime=10ms thinktime=1s"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 10_000_000);
}

#[test]
fn what_happens_in_the_ramp_does_not_count() {
    let (record, jobs) = play(&writes("time_based runtime=10ms ramp_time=5ms"));
    let job = &jobs["jobs"][0];
    // the ramp ends with the 20th write, which completes at 5.024 ms; as in fio, this write counts
    // as measured
    assert_eq!(job["start_ns"], 20 * WRITE_NS);
    assert_eq!(job["write"]["ios"], 41);
    assert_eq!(job["runtime_ns"], 40 * WRITE_NS);
    assert_eq!(record["host"]["writes"], 40);
}

#[test]
fn a_job_ends_when_its_rates_have_settled() {
    // each interval contains five writes of 251.2 us, so the four measurements up to 5.024 ms are
    // equal
    let equal = "time_based runtime=1s ss_interval=1256us ss_dur=5024us steadystate=";
    let (_, jobs) = play(&writes(&format!("{equal}iops:1%")));
    let job = &jobs["jobs"][0];
    assert_eq!((&job["write"]["ios"], &job["runtime_ns"]), (&json!(20), &json!(20 * WRITE_NS)));
    let found = &job["steadystate"];
    assert_eq!((&found["criterion"], &found["attained"]), (&json!("iops"), &json!(true)));
    let rate = 5.0 / 1256e-6;
    assert_eq!(found["iops"], json!([rate, rate, rate, rate]));
    assert_eq!(found["bandwidth"][3], json!(20_480.0 / 1256e-6));
    assert_eq!(found["latency_ns"][0], json!(WRITE_NS as f64));
    // no measurement includes the ramp of ten writes
    let (_, jobs) = play(&writes(&format!("{equal}lat_slope:1us ss_ramp=2512us")));
    assert_eq!(jobs["jobs"][0]["write"]["ios"], 30);
    // no measurement includes the job's own ramp, either
    let (_, jobs) = play(&writes(&format!("{equal}iops:1% ramp_time=2512us")));
    assert_eq!(jobs["jobs"][0]["steadystate"]["attained"], json!(true));
    assert!(jobs["jobs"][0]["write"]["ios"].as_u64().unwrap() >= 20);
    // a job that ends before the window is full has not settled, and a note says this
    let (record, jobs) = play(&writes("runtime=1s ss=bw:1% ss_dur=5"));
    assert_eq!(jobs["jobs"][0]["steadystate"]["attained"], json!(false));
    assert_eq!(jobs["jobs"][0]["steadystate"]["found"], Value::Null);
    let said = record["approximations"].to_string();
    assert!(said.contains("the job ended after 0 of the 5 measurements"), "{said}");
}

#[test]
fn jobs_that_report_as_a_group_settle_as_one() {
    // each job issues a request every 10 ms, the second job from 100 ms on; rates are measured
    // every 50 ms. Alone, each job settles after four measurements. Together, the jobs complete 5,
    // 5, 10, 10, 10 and 10 requests in the intervals
    let text = |more: &str| {
        format!(
            "[global]\nrw=write\ndirect=1\nsize=16k\ntime_based\nruntime=1s\nrate_iops=100\n\
             ss=iops:1%\nss_dur=200ms\nss_interval=50ms\n{more}\n[a]\n[b]\nstartdelay=100ms\n"
        )
    };
    let (_, jobs) = play(&text(""));
    let ios = |jobs: &Value, i: usize| jobs["jobs"][i]["write"]["ios"].as_u64().unwrap();
    assert_eq!((ios(&jobs, 0), ios(&jobs, 1)), (20, 20));
    let (_, jobs) = play(&text("group_reporting"));
    assert_eq!(ios(&jobs, 0), 30 + 20);
    assert_eq!(jobs["jobs"][0]["steadystate"]["iops"], json!([200.0, 200.0, 200.0, 200.0]));
    // a sleeping job is ended, too: [b] would sleep until 5 s
    let (_, jobs) = play(&text("group_reporting").replace("startdelay=100ms", "thinktime=5s"));
    assert_eq!(jobs["jobs"][0]["steadystate"]["attained"], json!(true));
    assert!(jobs["jobs"][0]["runtime_ns"].as_u64().unwrap() < 1_000_000_000);
}

#[test]
fn fsyncs_are_flushes_and_the_job_waits_for_them() {
    let (record, jobs) = play(&writes("fsync=2 end_fsync=1"));
    assert_eq!(record["host"]["flushes"], 2, "one after two writes, one at the end");
    assert_eq!(jobs["jobs"][0]["sync"]["count"], 1, "as in fio, end_fsync does not count");
    let (record, _) = play(&writes("fdatasync=1"));
    assert_eq!(record["host"]["flushes"], 3, "no fsync follows the last write: the job is over");
    let (_, jobs) = play(&writes("ioengine=libaio iodepth=4 fsync=2"));
    // two writes, and then an fsync for which libaio waits
    assert_eq!(jobs["jobs"][0]["depth_classes"], json!([2, 2, 0, 0, 0, 0, 0]));
}

#[test]
fn durable_writes_bypass_the_cache() {
    let run = |options: &str| {
        let spec = json!({ "set": [] });
        let (record, _) = try_play(&writes(options), spec).unwrap();
        record["latency_ns"]["write"]["mean"].as_f64().unwrap()
    };
    assert!(run("") < 200_000.0, "a cached write does not wait for the flash");
    assert!(run("sync=1") > 200_000.0 && run("sync=dsync") > 200_000.0);
}

#[test]
fn trims_take_data_away() {
    let text = "[w]\nrw=write\ndirect=1\nsize=16k\nfilename=f\n[t]\nstonewall\nrw=trim\ndirect=1\n\
                size=16k\nfilename=f\nioengine=libaio\niodepth=4\n[r]\nstonewall\nrw=read\n\
                direct=1\nsize=16k\nfilename=f\n";
    let (record, jobs) = play(text);
    assert_eq!(jobs["jobs"][1]["trim"]["bytes"], 16384);
    assert_eq!(
        jobs["jobs"][1]["depth_classes"],
        json!([4, 0, 0, 0, 0, 0, 0]),
        "libaio waits for a trim"
    );
    let unmapped = record["approximations"]
        .as_array()
        .unwrap()
        .iter()
        .any(|note| note["code"] == "unmapped-reads" && note["values"]["units"] == 8);
    assert!(unmapped, "eight trimmed pages were read: {}", record["approximations"]);
}

#[test]
fn files_lie_side_by_side_and_clones_share_a_named_one() {
    let text = "[a]\nrw=write\ndirect=1\nsize=16k\nnumjobs=2\n[b]\nstonewall\nrw=read\ndirect=1\n\
                filename=a.1.0\nsize=16k\n[c]\nrw=read\ndirect=1\nfilename=new\nsize=16k\n";
    let (record, _) = play(text);
    // [b] reads the file that the second clone wrote, and [c] a file that no job wrote
    assert_eq!(record["oracle"]["units_checked"], 16);
    let unmapped = record["approximations"]
        .as_array()
        .unwrap()
        .iter()
        .any(|note| note["code"] == "unmapped-reads" && note["values"]["units"] == 8);
    assert!(unmapped, "{}", record["approximations"]);
}

#[test]
fn a_group_reports_as_one() {
    let text = "[a]\nrw=write\ndirect=1\nsize=16k\nnumjobs=3\ngroup_reporting\n[b]\nnew_group\n\
                rw=write\ndirect=1\nsize=8k\n";
    let (_, jobs) = play(text);
    let rows = jobs["jobs"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[0]["jobs"], &rows[0]["write"]["ios"], &rows[0]["write"]["bytes"]),
        (&json!(3), &json!(12), &json!(49152))
    );
    assert_eq!((&rows[1]["name"], &rows[1]["write"]["ios"]), (&json!("b"), &json!(2)));
}

#[test]
fn windows_of_half_a_second_give_rates() {
    // 100 requests a second for two seconds make four windows, and the first window includes the
    // request at time zero
    let (_, jobs) = play(&writes("rate_iops=100 time_based runtime=2s"));
    let iops = &jobs["jobs"][0]["write"]["iops"];
    assert_eq!((&iops["samples"], &iops["mean"]), (&json!(4), &json!(100.0)));
    let bandwidth = &jobs["jobs"][0]["write"]["bandwidth_kib"];
    assert_eq!((&bandwidth["mean"], &bandwidth["stddev"]), (&json!(400.0), &json!(0.0)));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = "[a]\nrw=randrw\nsize=128k\nio_size=1m\ndirect=1\nioengine=libaio\niodepth=8\n\
                numjobs=3\nbssplit=2k/50:4k/50\n";
    let (first, jobs) = play(text);
    let (second, again) = play(text);
    assert_eq!((first, &jobs), (second, &again));
    let (_, other) = try_play(text, json!({ "seed": 2 })).unwrap();
    assert_ne!(jobs, other);
}

#[test]
fn variables_includes_and_warnings() {
    let (record, jobs) =
        play("[global]\ninclude common.fio\n[a]\nrw=write\nthread=1\n[b]\nsize=${SIZE}\n");
    assert_eq!(record["oracle"]["units_checked"], 8);
    let warnings: Vec<&str> =
        jobs["warnings"].as_array().unwrap().iter().map(|w| w["text"].as_str().unwrap()).collect();
    assert_eq!(
        warnings,
        [
            "job.fio:3:1: direct: 0 is fio's default, but the page cache is not simulated: \
             requests go to the drive as with direct=1",
            "job.fio:5:1: thread: this option has no influence on the requests: processors, \
             memory and processes of the host are not simulated",
        ]
    );
}

#[test]
fn what_cannot_be_played_says_so() {
    assert_eq!(
        error(&writes("offset=2m"), json!({})),
        "job.fio:5:8: offset: the job would end at byte 2113536 of `job.0.0`, but the drive has \
         1310720 bytes"
    );
    assert_eq!(
        error("[job]\nsize=1m\nnumjobs=2\n", json!({})),
        "job.fio:2:6: size: the files of all jobs take 2097152 bytes, but the drive has \
         1310720 bytes"
    );
    assert_eq!(
        error(&writes(""), json!({ "depth": 4, "mode": "closed" })),
        "depth: a job file sets this itself (iodepth, ramp_time, steadystate, number_ios, offset …)"
    );
    assert_eq!(
        error("[a]\ninclude nowhere\n", json!({})),
        "job.fio:2:1: cannot include `nowhere`: no such file"
    );
}

/// The Python tests turn the same file into fio's layout.
#[test]
fn the_layout_of_the_statistics_is_the_documented_one() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/jobs.json");
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    // with a write-through cache, a flush takes no time, because nothing is left to write
    let text = "[global]\nrw=write\ndirect=1\n[job]\nsize=16k\nbs=4k\niodepth=1\nnumjobs=1\n\
                fsync=2\nfdatasync=3\n";
    assert_eq!(play(text).1, expected);
}

#[test]
fn jobs_that_no_time_would_end_are_errors() {
    // a blank drive answers reads in no time, so the runtime of a second never passes
    assert_eq!(
        error("[job]\nrw=randread\ndirect=1\nsize=64k\ntime_based\nruntime=1\n", json!({})),
        "2097152 requests of the jobs took no time at all: reads of units that are trimmed or were \
         never written complete immediately; precondition the drive"
    );
    assert_eq!(
        // 32 writes of 4096 bytes, each 4096 s after the previous one, take 1.5 days
        error(&writes("startdelay=199d rate=1 loops=8"), json!({})),
        "the jobs run for more than 200 days: simulated time ends there"
    );
}

#[test]
fn a_pause_waits_for_what_is_in_flight() {
    // the third write is issued when the first is complete; the second completion makes the pause
    // due, but the pause begins only after the third write; the first and the fourth write are
    // issued at depth 1, the others at depth 2
    let (_, jobs) = play(&writes("ioengine=libaio iodepth=2 thinktime=1ms thinktime_blocks=2"));
    let job = &jobs["jobs"][0];
    assert_eq!(job["depth_classes"], json!([2, 2, 0, 0, 0, 0, 0]));
    // here blocks count when they are issued, so a pause becomes due when a block is issued, before
    // it is complete
    let (_, jobs) =
        play(&writes("ioengine=libaio iodepth=4 thinktime=1ms thinktime_blocks_type=issue"));
    assert_eq!(
        jobs["jobs"][0]["depth_classes"],
        json!([4, 0, 0, 0, 0, 0, 0]),
        "each write is alone, because a pause follows each write"
    );
}

#[test]
fn progress_may_stop_the_run() {
    let text = "[job]\nrw=write\ndirect=1\nsize=64k\nloops=10000\n";
    let spec = json!({ "drive": "tiny", "job": "job.fio" });
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let stopped = run(&spec, &environment(&Files(text.to_owned(), &[])), &mut |p| p.phase != "run");
    assert!(matches!(stopped, Err(RunError::Interrupted)));
}

#[test]
fn flushes_are_added_to_a_workload_that_has_none() {
    let spec = json!({
        "drive": "tiny", "workload": "uniform:requests=10,size=2KiB", "flush_every": 3,
        "mode": "closed", "depth": 1,
    });
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let record =
        run(&spec, &environment(&Files(String::new(), &[])), &mut |_| true).unwrap().record;
    assert_eq!((&record["host"]["writes"], &record["host"]["flushes"]), (&json!(10), &json!(3)));
    assert!(
        record["approximations"].to_string().contains("a FLUSH was added after every 3 writes")
    );
}
