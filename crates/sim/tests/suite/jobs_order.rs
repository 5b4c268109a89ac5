//! Jobs that wait for one another, and jobs that read back what they wrote.

use crate::environment;
use crate::jobs::{Files, WRITE_NS, error, play, writes};
use flashatlas_sim::{RunSpec, run};
use serde_json::json;

#[test]
fn a_job_waits_for_the_one_that_it_names() {
    // [a] and its clone write 4 blocks each, and [b] writes one block. [c] waits for [b] alone, and
    // [d] waits for [a] and its clone
    let text = "[global]\nrw=write\ndirect=1\n[a]\nsize=16k\nnumjobs=2\n[b]\nsize=4k\n[c]\n\
                wait_for=b\nsize=4k\n[d]\nwait_for=a\nsize=4k\n";
    let (_, jobs) = play(text);
    let at = |number: usize, key: &str| jobs["jobs"][number][key].as_u64().unwrap();
    let end = |number: usize| at(number, "start_ns") + at(number, "runtime_ns");
    assert_eq!((at(0, "start_ns"), at(1, "start_ns"), at(2, "start_ns")), (0, 0, 0));
    assert_eq!(at(3, "start_ns"), end(2), "[c] begins when [b] ends");
    assert_eq!(
        at(4, "start_ns"),
        end(0).max(end(1)),
        "[d] begins when [a] and its clone have ended"
    );
    assert!(end(2) < end(0), "[b] must end before [a], or the test shows nothing");
}

#[test]
fn what_was_written_is_read_back_without_pauses() {
    let (record, jobs) = play(&writes("verify=crc32c"));
    assert_eq!((&record["host"]["writes"], &record["host"]["reads"]), (&json!(4), &json!(4)));
    let plain = jobs["jobs"][0]["runtime_ns"].as_u64().unwrap();
    assert!(plain > 4 * WRITE_NS);
    // a pause of 1 ms follows each of the four writes, and no pause follows a read
    let (_, jobs) = play(&writes("verify=crc32c thinktime=1ms"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], plain + 4 * 1_000_000);
    // a pause lasts at least as long as its spinning part
    let (_, jobs) = play(&writes("verify=crc32c thinktime=1ms thinktime_spin=3ms"));
    assert_eq!(jobs["jobs"][0]["runtime_ns"], plain + 4 * 3_000_000);
    let (record, _) = play(&writes("verify=crc32c do_verify=0"));
    assert_eq!(record["host"]["reads"], 0);
}

#[test]
fn file_systems_are_named_in_errors() {
    let wrong = |text: &str| error(&writes("fsync=1"), json!({ "filesystem": text }));
    assert!(wrong("ext5").contains("filesystem `ext5` is not known; did you mean `ext4`?"));
    assert!(wrong("ext4:fau=true").contains("did you mean `fua`?"));
    assert!(
        wrong("ext4")
            .contains("the journal of 134217728 bytes and the metadata do not fit the drive")
    );
    let spec = json!({ "drive": "tiny", "workload": "uniform:requests=1", "filesystem": "ext4" });
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let refused = run(&spec, &environment(&Files(String::new(), &[])), &mut |_| true)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("filesystem: only job files (`job=FILE`) use this option"),
        "{refused}"
    );
    let spec = json!({ "drive": "jasmine-64gb", "workload": "ext4-sync:operations=1" });
    let spec: RunSpec = serde_json::from_value(spec).unwrap();
    let refused = run(&spec, &environment(&Files(String::new(), &[])), &mut |_| true)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("use `mode=closed` and `depth=1`"), "{refused}");
}
