//! Jobs that end together, and jobs that keep to shares.
//!
//! The expected times are worked out by hand, and compared with the real fio.

use crate::beside_fio::jobs_of_fio;
use crate::jobs::{WRITE_NS, error, play};
use serde_json::{Value, json};

/// Returns three jobs. `[a]` writes ten blocks in 450 ms. `[b]` runs beside `[a]`, and `[c]` after
/// both; each would take a second.
fn three(a: &str) -> String {
    format!(
        "[global]\nioengine=null\ndirect=1\nrw=write\nrate_iops=20\nsize=40k\n[a]\n{a}\n[b]\n\
         runtime=1\ntime_based\n[c]\nstonewall\nruntime=1\ntime_based\n"
    )
}

#[test]
fn jobs_end_with_the_first_as_in_fio() {
    // a job writes 20 blocks in a second, the first immediately; [b] has written ten when [a] ends
    for (number, (options, of_b, of_c)) in [
        ("", 20, 20),
        ("exitall", 10, 20),
        ("exitall\nexit_what=group", 10, 20),
        ("exitall\nexit_what=stonewall", 10, 20),
        ("exitall\nexit_what=all", 10, 0),
        ("exit_what=all", 20, 20),
    ]
    .iter()
    .enumerate()
    {
        let text = three(options);
        let (_, jobs) = play(&text);
        let ours = |n: usize| jobs["jobs"][n]["write"]["ios"].as_u64().unwrap();
        let counts = [ours(0), ours(1), ours(2)];
        assert_eq!(counts[0], 10, "{options}");
        assert!(counts[1].abs_diff(*of_b) <= 1 && counts[2].abs_diff(*of_c) <= 1, "{counts:?}");
        let Some(theirs) = jobs_of_fio(&format!("exit{number}"), &text, &[]) else {
            return eprintln!("skipped: fio is not installed");
        };
        // a job that never started is not in fio's list
        let count =
            |n: usize| theirs.get(n).map_or(0, |job| job["write"]["total_ios"].as_u64().unwrap());
        for n in 0..3 {
            assert!(counts[n].abs_diff(count(n)) <= 2, "{options:?}: {n}: {counts:?} {}", count(n));
        }
    }
}

#[test]
fn a_job_that_is_ended_completes_what_it_sent_and_syncs() {
    let text = "[global]\nrw=write\ndirect=1\n[a]\nsize=8k\nexitall\n[b]\nsize=16k\nend_fsync=1\n\
                thinktime=1\n";
    let (record, jobs) = play(text);
    assert_eq!(record["host"]["flushes"], 1, "the flush of end_fsync");
    let written = jobs["jobs"][1]["write"]["ios"].as_u64().unwrap();
    assert!((1..4).contains(&written), "{written}");
    assert_eq!(error("[a]\nsize=8k\nexitall=0\n", json!({})).split(": ").nth(1), Some("exitall"));
}

#[test]
fn jobs_keep_to_their_shares_as_in_fio() {
    for (number, (flows, shares)) in
        [([1, 3], [0.25, 0.75]), ([8, 2], [0.8, 0.2]), ([50, 50], [0.5, 0.5])].iter().enumerate()
    {
        for sleep in ["", "flow_sleep=100"] {
            let job = |name: &str, flow: u32| format!("[{name}]\nflow={flow}\n{sleep}\n");
            let text = format!(
                "[global]\nioengine=null\ndirect=1\nrw=randwrite\nsize=256k\ntime_based\n\
                 runtime=400ms\n{}{}",
                job("a", flows[0]),
                job("b", flows[1])
            );
            let share = |counts: Vec<f64>| counts[0] / (counts[0] + counts[1]);
            let (_, jobs) = play(&text);
            let writes = |job: &Value| job["write"]["ios"].as_f64().unwrap();
            let ours = share((0..2).map(|n| writes(&jobs["jobs"][n])).collect());
            // the jobs issue some thousand requests, and only the last few may break the proportion
            assert!((ours - shares[0]).abs() < 0.01, "{text}: {ours}");
            // on a busy machine one of fio's jobs may hardly run, which says nothing
            let mut theirs = f64::NAN;
            for _ in 0..3 {
                let Some(jobs) = jobs_of_fio(&format!("flow{number}{sleep}"), &text, &[]) else {
                    return eprintln!("skipped: fio is not installed");
                };
                let total = |job: &Value| job["write"]["total_ios"].as_f64().unwrap();
                theirs = share(jobs.iter().map(total).collect());
                if (ours - theirs).abs() < 0.02 {
                    break;
                }
            }
            assert!((ours - theirs).abs() < 0.02, "{text}: {ours} here, {theirs} in fio");
        }
    }
}

#[test]
fn a_share_is_kept_one_request_after_the_other() {
    // the count of all requests begins at 1, as in fio, so [a] is ahead after its second write (2
    // of 3), and again after its third (3 of 5), once [b] has written. [b] writes again 5 ms after
    // its first write, and then [a] ends
    let text =
        "[global]\nrw=write\ndirect=1\nflow=1\n[a]\nsize=16k\n[b]\nsize=16k\nthinktime=5ms\n";
    let (_, jobs) = play(text);
    let end = |n: usize| jobs["jobs"][n]["runtime_ns"].as_u64().unwrap();
    assert!((5_000_000..5_000_000 + 4 * WRITE_NS).contains(&end(0)), "{}", end(0));
    let (_, jobs) = play(&text.replace("flow=1\n", ""));
    assert!(jobs["jobs"][0]["runtime_ns"].as_u64().unwrap() < 8 * WRITE_NS);
    // the runtime of a job passes while the job waits for its share
    let alone = "[a]\nrw=write\ndirect=1\nsize=64k\nflow=1\nruntime=20ms\n[b]\nrw=write\n\
                 direct=1\nsize=4k\nflow=1\nstartdelay=50ms\n";
    let (_, jobs) = play(alone);
    assert_eq!(jobs["jobs"][0]["runtime_ns"], 20_000_000);
    // a deadlock: [b] begins only when [a] is over, and [a] goes on only when [b] writes
    let walled = alone.replace("runtime=20ms\n", "").replace("startdelay=50ms", "stonewall");
    let said = error(&walled, json!({}));
    assert!(said.contains("flow: each running job is ahead of its share"), "{said}");
    // in another flow, [b] does not hold back [a]
    let (record, _) = play(&walled.replace("stonewall", "stonewall\nflow_id=2"));
    assert_eq!(record["host"]["writes"], 17);
}
