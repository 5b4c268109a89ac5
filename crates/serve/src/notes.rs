//! Notes in the records of served drives.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// Note for every served drive.
    pub(crate) SERVED_AT_ARRIVAL = "served-at-arrival", RANK_MIDDLE,
        "served: the effect of a request is decided when it arrives, in the order in which clients \
         got the drive's lock; a client that waits for each reply has a queue depth of 1",
        "See docs/howto/serve-a-drive.md.";

    /// Note for a served drive whose replies were sent later than the drive completed the commands.
    pub(crate) REPLIES_LATE = "replies-late", 8,
        "replies went out later than the drive was done: by {p50} us in the median and {p99} us at \
         p99, while the p99 of the drive's own commands ({op}) is {drive} us; clients measure the \
         sum of both, and the time that NBD and they themselves add",
        "Take latencies from the record, not from the client; or serve slower (`--time 10`), with \
         fewer requests in flight, or on a machine with cores to spare.";

    /// Note for a served drive that ignores FLUSH.
    pub(crate) FLUSH_IGNORED = "flush-ignored", RANK_MIDDLE,
        "FLUSH and FUA were answered but not carried out (ignore_flush)",
        "This is for tests that have to lose data.";

    /// Note for a served drive that ignores FUA.
    pub(crate) FUA_IGNORED = "fua-ignored", RANK_MIDDLE,
        "FUA was answered but not carried out (ignore_fua)",
        "This is for tests that have to lose data.";
}
