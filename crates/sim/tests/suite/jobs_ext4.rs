//! Jobs on a file system: the writes of its journal, and the calls that wait for a transaction.

use crate::jobs::{try_play, writes};
use serde_json::{Value, json};

/// Tiny file system with blocks of 2 KiB, a journal of 1 MiB and one block of metadata.
const EXT4: &str = "ext4:journal_size=1MiB,block_size=2KiB,metadata_blocks=1";

/// Plays writes on a drive with room for the journal: it exports 640 pages of 2 KiB, or 1.25 MiB.
fn on_ext4(options: &str, filesystem: &str) -> (Value, Value) {
    try_play(
        &writes(options),
        json!({ "filesystem": filesystem, "set": ["cache.mode=write-through"] }),
    )
    .unwrap_or_else(|e| panic!("{options}: {e}"))
}

#[test]
fn a_sync_on_ext4_commits_when_it_must() {
    // four writes allocate new blocks of 16 KiB together; for each call, ext4 sends a descriptor
    // and metadata in one write, a FLUSH, the commit block, and a FLUSH
    for call in ["fsync=1", "fdatasync=1"] {
        let (record, jobs) = on_ext4(call, EXT4);
        assert_eq!(record["host"]["writes"], 4 + 2 * 3, "{call}: no call follows the last write");
        assert_eq!(
            (&record["host"]["flushes"], &jobs["jobs"][0]["sync"]["count"]),
            (&json!(2 * 3), &json!(3))
        );
        assert_eq!(
            jobs["jobs"][0]["write"]["ios"], 4,
            "writes of the journal do not belong to the job"
        );
        // a write of two pages and a FLUSH, then a write of one page and a FLUSH; each write takes
        // 251.2 us, and each FLUSH takes no time
        assert_eq!(jobs["jobs"][0]["sync"]["mean"], 502_400.0, "{call}");
    }
    let (record, jobs) = on_ext4("fdatasync=1", &format!("{EXT4},files=written"));
    assert_eq!((&record["host"]["writes"], &record["host"]["flushes"]), (&json!(4), &json!(3)));
    assert_eq!(jobs["jobs"][0]["sync"]["mean"], 0.0, "the data is on flash already");
    // at 24 ticks a second, all calls fall into one tick, and only the first fsync must commit the
    // time
    let (record, _) = on_ext4("fsync=1", &format!("{EXT4},files=written,hz=24"));
    assert_eq!(
        (&record["host"]["writes"], &record["host"]["flushes"]),
        (&json!(4 + 2), &json!(2 + 2))
    );
    let (record, _) = on_ext4("fsync=1", &format!("{EXT4},fua=true"));
    assert_eq!(record["host"]["flushes"], 3, "the commit block carries FUA");
    let notes = record["approximations"].to_string();
    assert!(notes.contains("3 transactions, 0 checkpoints"), "{notes}");
}

#[test]
fn calls_that_wait_for_a_transaction_share_the_next() {
    let text = "[global]\nrw=write\ndirect=1\nsize=2k\nbs=2k\nend_fsync=1\n[a]\n[b]\n[c]\n[d]\n";
    let (record, _) =
        try_play(text, json!({ "filesystem": EXT4 })).unwrap_or_else(|e| panic!("{e}"));
    // the first call commits alone, and the three other calls share the second transaction
    let notes = record["approximations"].to_string();
    assert!(notes.contains("2 transactions"), "{notes}");
    assert_eq!(record["host"]["flushes"], 4);
}

#[test]
fn requests_that_end_together_keep_their_tags() {
    // every operation takes 100 us, so a request of the journal completes at the same time as reads
    // of the other job; its completion sends the next request, which reuses a tag of these reads
    let text = "[global]\ndirect=1\nsize=64k\nioengine=libaio\nloops=20\n\
                [syncs]\nrw=write\nbs=2k\nfsync=1\n\
                [reads]\nrw=randread\nbs=4k\niodepth=8\n";
    let settings = [
        "cache.mode=write-through",
        "timing.t_read=100us",
        "timing.t_program=100us",
        "timing.channel_rate=0",
    ];
    let (record, jobs) =
        try_play(text, json!({ "filesystem": EXT4, "set": settings, "precondition": "fill" }))
            .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(record["conservation"]["submitted"], record["conservation"]["completed"]);
    let of = |job: usize, op: &str| {
        let stats = &jobs["jobs"][job][op];
        (stats["ios"].as_u64().unwrap(), stats["bytes"].as_u64().unwrap())
    };
    assert_eq!(of(0, "write"), (20 * 32, 20 << 16), "every pass writes 32 blocks of 2 KiB");
    assert_eq!(of(1, "read"), (20 * 16, 20 << 16), "every pass reads 16 blocks of 4 KiB");
}
