//! Notes in the records of served drives.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// Note for every served drive.
    pub(crate) SERVED_AT_ARRIVAL = "served-at-arrival", RANK_MIDDLE,
        "served: a request takes effect when it arrives, in the order in which clients lock the \
         drive; a client that waits for each reply has a queue depth of 1",
        "See docs/howto/serve-a-drive.md.";

    /// Note for a served drive whose replies were sent later than the drive completed the commands.
    pub(crate) REPLIES_LATE = "replies-late", 8,
        "replies went out later than the drive completed the commands: {p50} us later in the \
         median and {p99} us at p99; the p99 of the drive's own {op} commands is {drive} us; \
         clients measure the sum of both, plus the time of the connection and of the client",
        "Use the latencies of the record, not the latencies that clients measure. Or serve slower \
         (`--time 10`), with fewer requests in flight, or on a machine with free cores.";

    /// Note for a served drive that ignores FLUSH.
    pub(crate) FLUSH_IGNORED = "flush-ignored", RANK_MIDDLE,
        "FLUSH and FUA were answered but not carried out (ignore_flush)",
        "This is for tests that must lose data.";

    /// Note for a served drive that ignores FUA.
    pub(crate) FUA_IGNORED = "fua-ignored", RANK_MIDDLE,
        "FUA was answered but not carried out (ignore_fua)",
        "This is for tests that must lose data.";
}
