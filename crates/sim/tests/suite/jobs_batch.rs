//! Jobs that send and reap several requests at a time, and requests at random times.

use crate::beside_fio::jobs_of_fio;
use crate::jobs::{WRITE_NS, play, writes};

/// Returns the shares of requests by depth, in percent, with the depth at the time of sending.
fn depths(options: &str) -> Vec<f64> {
    let text = format!(
        "[job]\nioengine=libaio\ndirect=1\nrw=write\nsize=512k\n{}\n",
        options.replace(' ', "\n")
    );
    let (record, jobs) = play(&text);
    assert_eq!(record["host"]["writes"], 128, "{options}");
    let classes = jobs["jobs"][0]["depth_classes"].as_array().unwrap().clone();
    classes.iter().map(|n| n.as_f64().unwrap() / 1.28).collect()
}

/// Returns the distribution of depths of fio itself, on a file.
fn of_fio(name: &str, options: &str) -> Option<Vec<f64>> {
    let options = options.replace(' ', "\n");
    let text = format!("[job]\nioengine=libaio\nrw=write\nsize=512k\nfilename=f\n{options}\n");
    let found = jobs_of_fio(&format!("batch-{name}"), &text, &[])?;
    let levels = found[0]["iodepth_level"].as_object()?.clone();
    let names = ["1", "2", "4", "8", "16", "32", ">=64"];
    Some(names.iter().map(|name| levels[*name].as_f64().unwrap()).collect())
}

#[test]
fn batches_have_the_depths_of_fio() {
    for (number, options) in [
        "iodepth=8",
        "iodepth=8 iodepth_batch=4",
        "iodepth=8 iodepth_batch_complete_min=0",
        "iodepth=8 iodepth_batch_complete_min=4",
        "iodepth=8 iodepth_batch=8 iodepth_batch_complete_min=4",
        "iodepth=8 iodepth_low=1",
        "iodepth=8 iodepth_batch=3 iodepth_low=2",
        "iodepth=8 iodepth_batch=0 iodepth_batch_complete=8",
        "iodepth=8 iodepth_batch_submit=99 iodepth_low=99",
        "iodepth=8 iodepth_batch_complete_min=99",
    ]
    .iter()
    .enumerate()
    {
        let Some(theirs) = of_fio(&number.to_string(), options) else {
            return eprintln!("skipped: fio is not installed, or has no libaio");
        };
        for (class, (ours, theirs)) in depths(options).into_iter().zip(theirs).enumerate() {
            // fio rounds shares, and shows shares below 0.1 % as 0.1
            assert!((ours - theirs).abs() < 0.11, "{options}: class {class}: {ours} {theirs}");
        }
    }
}

#[test]
fn a_batch_is_sent_when_it_is_full_and_when_the_job_waits() {
    let first = |options: &str| -> u64 {
        let (_, jobs) = play(&writes(options));
        jobs["jobs"][0]["runtime_ns"].as_u64().unwrap()
    };
    // each of the four writes waits for the write before it
    let one_by_one = 4 * WRITE_NS;
    assert_eq!(first("ioengine=libaio iodepth=4 iodepth_batch_complete_min=0"), one_by_one);
    // with batches of three, the fourth write is sent when the pass ends
    let three = first("ioengine=libaio iodepth=4 iodepth_batch=3");
    assert!(three < one_by_one, "{three}");
    // queued writes are sent before a pause, so each of the four writes is sent alone and followed
    // by 1 ms
    let paused = first(
        "ioengine=libaio iodepth=4 iodepth_batch=4 thinktime=1ms thinktime_blocks_type=issue",
    );
    assert_eq!(paused, 4 * (WRITE_NS + 1_000_000));
    // a synchronous engine sends one request at a time
    assert_eq!(first("ioengine=psync iodepth=4 iodepth_batch=4"), one_by_one);
}

#[test]
fn a_full_queue_is_filled_again_when_it_is_low() {
    // if completions are reaped in pairs, two writes overlap, and the next two begin when both are
    // complete; with `iodepth_low=1`, the third write begins when the first is complete
    let runtime = |options: &str| -> u64 {
        let (_, jobs) = play(&writes(options));
        jobs["jobs"][0]["runtime_ns"].as_u64().unwrap()
    };
    let pair = runtime("ioengine=libaio iodepth=2 number_ios=2");
    let both = runtime("ioengine=libaio iodepth=2 iodepth_batch_complete_min=2");
    assert_eq!(both, 2 * pair);
    let low = runtime("ioengine=libaio iodepth=2 iodepth_low=1");
    assert!(low < both, "{low} {both}");
}

#[test]
fn random_times_have_the_mean_of_the_rate() {
    let runtime = |options: &str| -> f64 {
        let text = writes(options).replace("size=16k", "size=1m");
        play(&text).1["jobs"][0]["runtime_ns"].as_f64().unwrap() / 1e6
    };
    // the sum of 255 gaps with a mean of 1 ms has a standard deviation of sqrt(255) ms
    let drawn = runtime("rate_iops=1000 rate_process=poisson");
    assert!((drawn - 255.0).abs() < 5.5 * 255f64.sqrt(), "{drawn}");
    let even = runtime("rate_iops=1000 rate_process=linear");
    assert_eq!(even, 255.0 + WRITE_NS as f64 / 1e6);
    assert_ne!(drawn, even);
    // without a rate, no request waits
    assert_eq!(runtime("rate_process=poisson"), 256.0 * WRITE_NS as f64 / 1e6);
}
